//! Watching a run. A run nobody watches is compiled without any of it.

use vez_core::{Breach, NodeId, Notice, Protocol, Request, Time, Topology};

/// Is shown everything that happens, in order.
pub trait Observer<P: Protocol> {
    /// Whether to show anything at all.
    const WATCHES: bool = true;

    fn on(&mut self, at: Time, topology: &Topology, what: Happening<'_, P>);
}

/// Looks the other way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl<P: Protocol> Observer<P> for Silent {
    const WATCHES: bool = false;

    fn on(&mut self, _: Time, _: &Topology, _: Happening<'_, P>) {}
}

/// One thing that happened.
///
/// A step shows its cause (`Booted`, `Asked`, `Heard`, `Fired`), then the `Now` state, then its
/// effects in the order the algorithm gave them.
#[derive(Debug)]
pub enum Happening<'a, P: Protocol> {
    Booted {
        node: NodeId,
    },
    Asked {
        node: NodeId,
        request: &'a Request<P>,
    },
    Heard {
        node: NodeId,
        from: NodeId,
        id: u64,
        message: &'a P::Message,
    },
    Fired {
        node: NodeId,
        timer: P::Timer,
    },
    /// The state a step left behind.
    Now {
        node: NodeId,
        process: &'a P,
    },
    Sent {
        node: NodeId,
        to: NodeId,
        id: u64,
        message: &'a P::Message,
    },
    /// A message on its way twice; the copy has an id of its own.
    Repeated {
        id: u64,
        copy: u64,
    },
    Lost {
        id: u64,
        cause: LossCause,
    },
    Armed {
        node: NodeId,
        timer: P::Timer,
        until: Time,
    },
    Disarmed {
        node: NodeId,
        timer: P::Timer,
    },
    Told {
        node: NodeId,
        notice: &'a Notice<P>,
    },
    Unexpected {
        node: NodeId,
        what: &'static str,
    },
    Crashed {
        node: NodeId,
    },
    /// `forgot` says that even its durable state is gone.
    Restarted {
        node: NodeId,
        forgot: bool,
    },
    Paused {
        node: NodeId,
        until: Time,
    },
    Resumed {
        node: NodeId,
    },
    Partitioned {
        groups: &'a [Vec<NodeId>],
    },
    Cut {
        from: NodeId,
        to: NodeId,
        both: bool,
    },
    Healed {
        from: NodeId,
        to: NodeId,
        both: bool,
    },
    HealedAll,
    Broken(&'a Breach),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// The network loses some.
    Chance,
    /// The link was cut when it was sent, or when it would have arrived.
    Cut,
    /// Nobody was there to hear it.
    ReceiverDown,
}
