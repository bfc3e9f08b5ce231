//! The lab: its server, asked as a browser would ask it, and its page in a real browser.

mod browser;
mod client;
mod live;
mod page;
mod server;
