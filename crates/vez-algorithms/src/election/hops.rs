//! Passing messages on round a ring some of whose members may be down.
//!
//! Every hop is acknowledged. A successor that does not acknowledge in time is taken for dead, and
//! the message goes to the one after it; in the end, where all others are dead, to ourselves.
//! Nothing is remembered of the dead: the next message tries them again, so that one that comes
//! back is in the ring again. One that was merely slow passes its copy on as well.
//!
//! **Invariant:** where nothing is skipped, nothing is numbered, kept, armed or acknowledged.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use vez_core::{Ctx, NodeId, Protocol, Time};

/// The number of a message that wants no acknowledgement.
pub const UNNUMBERED: u32 = 0;

/// What a process has passed on and not yet seen acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Hops<M> {
    /// The last number given.
    numbered: u32,
    /// By number: to whom it went last, and what.
    pending: BTreeMap<u32, (NodeId, M)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Timer {
    /// The message of this number has not been acknowledged.
    Hop { number: u32 },
    /// The election has led to nothing: whoever carried it must have died.
    Patience,
}

impl<M> Default for Hops<M> {
    fn default() -> Self {
        Self { numbered: UNNUMBERED, pending: BTreeMap::new() }
    }
}

impl<M: Clone> Hops<M> {
    /// Passes on what `message` makes of its number, acknowledged if the dead are to be skipped.
    pub fn pass<P>(
        &mut self,
        skip_within: Option<Time>,
        message: impl FnOnce(u32) -> M,
        ctx: &mut Ctx<'_, P>,
    ) where
        P: Protocol<Message = M, Timer = Timer>,
    {
        let Some(within) = skip_within else {
            return ctx.send(ctx.next(), message(UNNUMBERED));
        };
        self.numbered += 1;
        self.send(self.numbered, ctx.next(), message(self.numbered), within, ctx);
    }

    /// Skips `dead`: sends its message to the one after it.
    pub fn skip<P>(
        &mut self,
        number: u32,
        dead: NodeId,
        message: M,
        within: Time,
        ctx: &mut Ctx<'_, P>,
    ) where
        P: Protocol<Message = M, Timer = Timer>,
    {
        self.send(number, ctx.topology().next(dead), message, within, ctx);
    }

    fn send<P>(&mut self, number: u32, to: NodeId, message: M, within: Time, ctx: &mut Ctx<'_, P>)
    where
        P: Protocol<Message = M, Timer = Timer>,
    {
        if to != ctx.me() {
            self.pending.insert(number, (to, message.clone()));
            ctx.arm(Timer::Hop { number }, within);
        }
        ctx.send(to, message);
    }

    /// Somebody has the message of this number: also one given up as dead that was merely slow.
    pub fn acknowledged<P>(&mut self, number: u32, ctx: &mut Ctx<'_, P>)
    where
        P: Protocol<Timer = Timer>,
    {
        if self.pending.remove(&number).is_some() {
            ctx.disarm(Timer::Hop { number });
        }
    }

    /// Takes back what was not acknowledged in time, and says by whom.
    pub fn overdue(&mut self, number: u32) -> (NodeId, M) {
        self.pending.remove(&number).expect("its timer runs as long as it is pending")
    }
}

/// How long a process waits for a leader before it starts again: three laps in which every hop
/// takes as long as skipping one that is dead.
pub fn patience(skip_within: Time, n: u32) -> Time {
    skip_within * 3 * u64::from(n)
}

/// Refuses a time in which nobody could acknowledge anything.
pub fn validate(skip_within: Option<Time>) -> Result<(), String> {
    match skip_within {
        Some(Time::ZERO) => Err("skip_within: expected more than 0ms, found 0ms".to_owned()),
        _ => Ok(()),
    }
}
