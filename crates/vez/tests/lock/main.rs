//! `vez lock`, `vez elect` and `vez status`: the real binary, with a real server.

mod elections;
mod locks;
mod losses;
mod run;
#[path = "../../../vez-client/tests/server/mod.rs"]
mod server;
mod terminal;
