//! `vez lock`, `vez elect` and `vez status`, and the crate that they are made of, with real
//! servers.

mod client_elections;
mod client_locks;
mod elections;
mod locks;
mod losses;
mod run;
mod server;
mod terminal;
