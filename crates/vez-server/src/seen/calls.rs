//! What clients call, how it ends and how long it takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;
use tonic::Code;
use tonic::codegen::http::HeaderMap;

use super::meter::{Counter, Histogram};

/// gRPC's, in the order of their numbers.
pub(super) const CODES: [&str; 17] = [
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
];
const CANCELED: usize = 1;
const UNKNOWN: usize = 2;

/// By path, in order; what else is called is counted as the last.
pub(super) const METHODS: [(&str, &str); 31] = [
    ("etcdserverpb.Cluster", "MemberAdd"),
    ("etcdserverpb.Cluster", "MemberList"),
    ("etcdserverpb.Cluster", "MemberPromote"),
    ("etcdserverpb.Cluster", "MemberRemove"),
    ("etcdserverpb.Cluster", "MemberUpdate"),
    ("etcdserverpb.KV", "Compact"),
    ("etcdserverpb.KV", "DeleteRange"),
    ("etcdserverpb.KV", "Put"),
    ("etcdserverpb.KV", "Range"),
    ("etcdserverpb.KV", "Txn"),
    ("etcdserverpb.Lease", "LeaseGrant"),
    ("etcdserverpb.Lease", "LeaseKeepAlive"),
    ("etcdserverpb.Lease", "LeaseLeases"),
    ("etcdserverpb.Lease", "LeaseRevoke"),
    ("etcdserverpb.Lease", "LeaseTimeToLive"),
    ("etcdserverpb.Maintenance", "Alarm"),
    ("etcdserverpb.Maintenance", "Defragment"),
    ("etcdserverpb.Maintenance", "Hash"),
    ("etcdserverpb.Maintenance", "HashKV"),
    ("etcdserverpb.Maintenance", "MoveLeader"),
    ("etcdserverpb.Maintenance", "Snapshot"),
    ("etcdserverpb.Maintenance", "Status"),
    ("etcdserverpb.Watch", "Watch"),
    ("v3electionpb.Election", "Campaign"),
    ("v3electionpb.Election", "Leader"),
    ("v3electionpb.Election", "Observe"),
    ("v3electionpb.Election", "Proclaim"),
    ("v3electionpb.Election", "Resign"),
    ("v3lockpb.Lock", "Lock"),
    ("v3lockpb.Lock", "Unlock"),
    ("", ""),
];
const OTHER: usize = METHODS.len() - 1;

/// Answered over a stream that lasts as long as the client likes, or by waiting for others: how
/// long that takes says nothing of the server.
fn lasts(method: usize) -> bool {
    matches!(
        METHODS[method].1,
        "LeaseKeepAlive" | "Watch" | "Observe" | "Snapshot" | "Lock" | "Campaign"
    )
}

/// One method's.
pub(super) struct Tally {
    pub(super) started: Counter,
    pub(super) handled: [AtomicU64; CODES.len()],
    pub(super) took: Histogram,
}

pub(crate) struct Calls {
    pub(super) tallies: Vec<Tally>,
    pub(super) sent: Counter,
    /// Of all that do not last.
    pub(super) took: Histogram,
}

impl Default for Calls {
    fn default() -> Self {
        let tally = |_| Tally {
            started: Counter::default(),
            handled: Default::default(),
            took: Histogram::quick(),
        };
        let tallies = METHODS.iter().map(tally).collect();
        Self { tallies, sent: Counter::default(), took: Histogram::quick() }
    }
}

impl Calls {
    /// How many calls began.
    pub(super) fn started(&self) -> u64 {
        self.tallies.iter().map(|tally| tally.started.get()).sum()
    }

    pub(crate) fn begin(self: &Arc<Self>, path: &str) -> Call {
        let path = path.strip_prefix('/').and_then(|path| path.split_once('/'));
        let method = path.and_then(|path| METHODS[..OTHER].binary_search(&path).ok());
        let method = method.unwrap_or(OTHER);
        self.tallies[method].started.add(1);
        Call { calls: Arc::clone(self), method, begun: Instant::now(), code: CANCELED }
    }
}

/// A call under way; counted when it is over. Whoever hangs up before the end has cancelled it.
pub(crate) struct Call {
    calls: Arc<Calls>,
    method: usize,
    begun: Instant,
    code: usize,
}

impl Call {
    /// It was answered like this, with so many bytes.
    pub(crate) fn end(&mut self, code: Code, bytes: usize) {
        self.code = code as usize;
        self.sends(bytes);
    }

    pub(crate) fn sends(&self, bytes: usize) {
        self.calls.sent.add(bytes as u64);
    }

    /// How it ended, if these say so.
    pub(crate) fn hear(&mut self, headers: &HeaderMap) {
        if let Some(status) = headers.get("grpc-status") {
            let code = status.to_str().ok().and_then(|code| code.parse().ok());
            self.code = code.filter(|code| *code < CODES.len()).unwrap_or(UNKNOWN);
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let tally = &self.calls.tallies[self.method];
        tally.handled[self.code].fetch_add(1, Ordering::Relaxed);
        let took = self.begun.elapsed();
        tally.took.observe(took);
        if !lasts(self.method) {
            self.calls.took.observe(took);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_found_by_their_paths() {
        assert!(METHODS[..OTHER].is_sorted(), "they are searched by halves");
        let calls = Arc::new(Calls::default());
        for (index, (service, method)) in METHODS[..OTHER].iter().enumerate() {
            assert_eq!(calls.begin(&format!("/{service}/{method}")).method, index);
        }
        for path in ["", "/", "/etcdserverpb.KV/Other", "etcdserverpb.KV/Put", "/a/b/c"] {
            assert_eq!(calls.begin(path).method, OTHER, "{path}");
        }
    }

    #[test]
    fn a_call_is_counted_once_by_how_it_ended() {
        let calls = Arc::new(Calls::default());
        let handled = |code: usize| calls.tallies[7].handled[code].load(Ordering::Relaxed);
        drop(calls.begin("/etcdserverpb.KV/Put"));
        assert_eq!((handled(0), handled(CANCELED)), (0, 1));
        let mut headers = HeaderMap::new();
        headers.insert("grpc-status", "0".parse().expect("a value"));
        let mut call = calls.begin("/etcdserverpb.KV/Put");
        call.hear(&headers);
        drop(call);
        assert_eq!((handled(0), handled(CANCELED), calls.started()), (1, 1, 2));
        headers.insert("grpc-status", "99".parse().expect("a value"));
        calls.begin("/etcdserverpb.KV/Put").hear(&headers);
        assert_eq!(handled(UNKNOWN), 1);
    }
}
