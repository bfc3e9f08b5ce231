//! Deterministic simulation: one thread, one clock, one seed.
//!
//! **Invariant:** a run is a function of (protocol, topology, config, plan). The same plan gives
//! the same trace, byte for byte, on every machine.

mod describe;
mod network;
mod observe;
mod plan;
mod queue;
mod report;
mod trace;
mod users;
mod world;

pub use describe::{Picture, describe};
pub use network::{Delay, LinkRule, Network, ParseDelayError};
pub use observe::{Happening, LossCause, Observer, Silent};
pub use plan::{Directions, Forget, Input, Plan, Who};
pub use queue::{Item, Queue};
pub use report::{Messages, Report, Verdict};
pub use trace::{Trace, TraceEvent, What};

use vez_core::{Protocol, Topology};
use world::World;

/// Runs `plan` and reports; nothing is traced, and tracing costs nothing.
pub fn simulate<P: Protocol>(topology: &Topology, config: &P::Config, plan: &Plan) -> Report {
    World::<P, Silent>::new(topology, config, plan, Silent).run().0
}

/// Runs `plan` and shows everything that happens to `observer`.
pub fn watch<P: Protocol, O: Observer<P>>(
    topology: &Topology,
    config: &P::Config,
    plan: &Plan,
    observer: O,
) -> (Report, O) {
    World::<P, O>::new(topology, config, plan, observer).run()
}
