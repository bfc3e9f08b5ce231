//! The server's half of HTTP/2, as far as gRPC needs it, as a state machine: bytes in, events out;
//! answers in, bytes out.
//!
//! Written here because most of what a server of small calls did was to bring them through a stack
//! that can do much more. What gRPC never uses is not here: pushes, priorities, the client's half.
//!
//! **Invariant:** no I/O, no clock, no tasks. Whatever a client sends, nothing here panics, and
//! what is kept for it is bounded: by its windows, by [`Limits`], and by what its caller lets
//! gather in [`Connection::out`].

mod connection;
mod frame;
mod hpack;
mod sending;
mod streams;
#[cfg(test)]
mod tests;

pub use connection::{Broken, Connection, Event, Limits};
pub use streams::Fields;

/// Why a stream or a connection ends, by HTTP/2's numbers.
pub mod reason {
    pub const NO_ERROR: u32 = 0;
    pub const PROTOCOL_ERROR: u32 = 1;
    pub const INTERNAL_ERROR: u32 = 2;
    pub const FLOW_CONTROL_ERROR: u32 = 3;
    pub const STREAM_CLOSED: u32 = 5;
    pub const FRAME_SIZE_ERROR: u32 = 6;
    pub const REFUSED_STREAM: u32 = 7;
    pub const CANCEL: u32 = 8;
    pub const COMPRESSION_ERROR: u32 = 9;
    pub const ENHANCE_YOUR_CALM: u32 = 11;
}
