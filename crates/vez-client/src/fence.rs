use std::sync::atomic::{AtomicI64, Ordering};

/// The side of the resource: lets a fence in only if none greater was seen before.
///
/// A lock alone cannot stop a holder that fell asleep and wakes up after its lease was given to
/// somebody else. The resource can: whoever comes late carries the smaller fence.
///
/// ```
/// use vez_client::FenceGate;
///
/// let gate = FenceGate::new();
/// assert!(gate.admit(33).is_ok());
/// assert!(gate.admit(33).is_ok(), "the same holder may come again");
/// assert!(gate.admit(34).is_ok());
/// assert_eq!(gate.admit(33).unwrap_err().greatest, 34);
/// ```
///
/// One gate guards what one lock protects; fences of different names say nothing about each other.
/// What it has seen lives as long as the value: a resource that survives its process keeps
/// [`greatest`](Self::greatest) with its own data, in the same transaction as what the holder
/// writes, and starts with [`resume`](Self::resume).
#[derive(Debug, Default)]
pub struct FenceGate(AtomicI64);

/// Who came with a smaller fence than somebody before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fence {fence} is stale: {greatest} was seen")]
pub struct Stale {
    pub fence: i64,
    pub greatest: i64,
}

impl FenceGate {
    pub const fn new() -> Self {
        Self(AtomicI64::new(0))
    }

    /// A gate that has seen this fence.
    pub const fn resume(greatest: i64) -> Self {
        Self(AtomicI64::new(greatest))
    }

    /// The greatest fence that was let in.
    pub fn greatest(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }

    pub fn admit(&self, fence: i64) -> Result<(), Stale> {
        let greatest = self.0.fetch_max(fence, Ordering::SeqCst);
        if fence < greatest { Err(Stale { fence, greatest }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_that_resumes_refuses_what_it_refused_before() {
        let gate = FenceGate::resume(7);
        assert_eq!(gate.admit(6), Err(Stale { fence: 6, greatest: 7 }));
        assert_eq!(gate.admit(7), Ok(()));
        assert_eq!(gate.greatest(), 7);
    }

    #[test]
    fn a_refused_fence_leaves_no_trace() {
        let gate = FenceGate::new();
        gate.admit(5).unwrap();
        gate.admit(3).unwrap_err();
        gate.admit(4).unwrap_err();
        assert_eq!(gate.greatest(), 5);
    }
}
