//! The vocabulary every other crate speaks: what a distributed algorithm *is*.
//!
//! An algorithm is one [`Protocol`]: a process that reacts to events. It does no I/O, reads no
//! clock and rolls no dice of its own; everything it wants done it says to its [`Ctx`]. A driver
//! (simulator, model checker, socket runtime) owns the processes, feeds them [`Event`]s and
//! carries out their [`Effect`]s.
//!
//! **Invariant:** this crate depends on nothing but serde, and a `Protocol` step is a function of
//! (state, event, choices). Same inputs, same outputs.

mod chance;
mod ctx;
mod id;
pub mod kind;
mod meta;
pub mod problem;
mod protocol;
pub mod quorum;
mod time;
mod topology;

pub use chance::{Chance, Script, Seeded};
pub use ctx::{Ctx, Effect, Env};
pub use id::{Fence, NodeId, NodeSet, Stamp, Term};
pub use meta::{Channel, Crashes, Layout, Meta, Promise, Timing, Winner};
pub use problem::{Breach, Debt, Election, Ending, Mutex, Problem, Reaction, Terms, Wish};
pub use protocol::{Data, Event, Never, Notice, Protocol, Request, TimerKey};
pub use time::{ParseTimeError, Time};
pub use topology::{Shape, Topology, TopologyError};
