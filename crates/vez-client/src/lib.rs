//! A client of the service, and of etcd: locks and elections as guards.
//!
//! **Invariant:** nothing here knows which of the two it talks to.
