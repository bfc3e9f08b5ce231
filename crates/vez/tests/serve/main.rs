//! The service, asked by clients that nobody here wrote, and on bad days.

mod bad_days;
mod crashes;
mod differential;
mod etcdctl;
mod other_clients;
mod promises;
mod server;
mod stalls;
mod watchers;

/// A real etcd, to compare with.
#[path = "../../../vez-client/tests/server/mod.rs"]
mod peer;
