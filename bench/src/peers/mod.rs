//! The same election on the same ring, written for other simulators.
//!
//! Each is given its due: an idiomatic, minimal model with integer or short messages, a delay of
//! one unit a hop, one process a node, and no checks of any promise. Building the system is not
//! timed for them, and is for us. What each passes is asserted to be what we pass.

mod anysystem;
#[cfg(madsim)]
mod madsim;
mod nexosim;
mod simpy;

use crate::measure::Sample;

/// Another simulator: passes the election over a ring with these uids, and says how it went; or
/// why it could not.
#[derive(Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    /// Where to measure it besides n = 1,000: as large as it can go in reasonable time.
    pub(crate) n_large: u32,
    pub(crate) run: fn(uids: &[u64]) -> anyhow::Result<Sample>,
}

pub(crate) const PEERS: &[Peer] = &[
    Peer { name: "nexosim", n_large: 10_000, run: nexosim::run },
    #[cfg(madsim)]
    Peer { name: "madsim", n_large: 10_000, run: madsim::run },
    Peer { name: "anysystem", n_large: 10_000, run: anysystem::run },
    Peer { name: "SimPy", n_large: 10_000, run: simpy::run },
];
