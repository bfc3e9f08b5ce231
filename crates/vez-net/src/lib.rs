//! Real processes: the driver that runs any [`Protocol`](vez_core::Protocol) on sockets.
//!
//! It provides exactly the channel an algorithm assumes and no more: datagrams where messages may
//! be lost; numbered, acknowledged and re-sent frames where they may not. It writes down what must
//! survive before anything of a step leaves. What is generic over the algorithm ends at
//! [`Machine`]; sockets see bytes.
//!
//! **Invariant:** whatever a peer sends, this process neither stops nor grows without bound.

mod clock;
mod counters;
mod door;
mod group;
mod judge;
mod link;
mod log;
mod machine;
mod merge;
mod names;
mod node;
mod proxy;
mod record;
mod store;
mod tls;
mod udp;
mod ways;
mod wire;

use clock::VectorClock;
pub use group::{Group, GroupError, Member};
pub use judge::{Court, court, judge};
pub use log::{Line, Log, LogError, now_line};
pub use machine::{Asked, Machine, Out, Outbox, Process};
pub use merge::{Loom, Merged, merge};
pub use node::{Node, NodeError, Order, Settings, Told};
pub use proxy::{Fault, Proxy};
pub use record::{Header, Record};
pub use tls::{Tls, TlsError, TlsFiles};
