//! The lab and the dashboard: their servers, asked as a browser would ask them, and their pages
//! in a real browser.

mod browser;
mod client;
mod dashboard;
mod dashboard_page;
mod live;
mod metrics;
mod page;
mod server;
mod service;
