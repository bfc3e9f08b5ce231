//! The service, asked by clients that nobody here wrote, and on bad days.

mod bad_days;
mod cold_disk;
mod config;
mod crashes;
mod differential;
mod etcdctl;
mod other_clients;
mod promises;
mod restarts;
mod server;
mod snapshots;
mod stalls;
mod tls;
mod wall_clock;
mod watchers;
mod wire;

/// A real etcd, to compare with.
#[path = "../lock/server.rs"]
mod peer;
