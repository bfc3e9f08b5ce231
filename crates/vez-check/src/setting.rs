//! The system that is explored, whatever algorithm runs in it.

use vez_core::{Channel, Promise, Timing, Topology};

use crate::Options;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting<'a> {
    pub(crate) topology: &'a Topology,
    pub(crate) options: &'a Options,
}

impl Setting<'_> {
    pub(crate) fn judges(self, promise: Promise) -> bool {
        self.options.promises.contains(&promise)
    }

    pub(crate) fn is_fifo(self) -> bool {
        self.options.channel == Channel::Fifo
    }

    /// Whether what is in flight stays there: it may be heard any number of times, or never.
    pub(crate) fn is_lossy(self) -> bool {
        self.options.channel == Channel::Lossy
    }

    /// Whether all that is said is in flight until it is heard, in no order.
    pub(crate) fn is_plain(self) -> bool {
        self.options.channel == Channel::Reliable && self.options.partitions == 0
    }

    pub(crate) fn is_synchronous(self) -> bool {
        self.options.timing == Timing::Synchronous
    }
}
