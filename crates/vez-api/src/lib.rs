//! The words that clients and servers exchange: etcd's v3 API, and what the log holds.
//!
//! The code under `generated/` is made of `proto/` by `UPDATE=1 cargo test -p vez-api`, and kept in
//! the tree so that nobody needs a compiler for it.
//!
//! **Invariant:** words, and how to say them; what they mean is said where they are served.

#![expect(
    clippy::pedantic,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    reason = "made by a tool with a style of its own"
)]

pub mod mvccpb {
    //! Keys and what happens to them.
    include!("generated/mvccpb.rs");
}

pub mod etcdserverpb {
    //! Requests and answers about keys, leases, watches, members and the server itself.
    include!("generated/etcdserverpb.rs");
}

pub mod v3lockpb {
    //! Locks.
    include!("generated/v3lockpb.rs");
}

pub mod v3electionpb {
    //! Elections.
    include!("generated/v3electionpb.rs");
}

pub mod log {
    //! What the replicated log holds.
    include!("generated/vez.rs");

    impl From<command::Command> for Command {
        fn from(command: command::Command) -> Self {
            Self { command: Some(command), ..Self::default() }
        }
    }
}

pub mod peer {
    //! What members of a cluster say to each other.
    include!("generated/vezpeer.rs");
}

// As the generated code calls it, by its package.
use log as vez;

mod range;

pub use range::end_of_prefix;
