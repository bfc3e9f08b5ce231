//! How a token ring mends itself: it steps over members that do not answer, and elects one to
//! re-create a token that was lost.
//!
//! Why the new token is the only one: a ballot comes home only past every process that answers. One
//! that has the token, or has handed it on and does not know yet that it arrived, lets no ballot
//! pass. The token cannot get behind a ballot but past its owner, who then stands no more; and when
//! it stands again it is for a later epoch. Of all ballots only the largest uid's passes everyone.
//! What this cannot see is a holder too slow to answer; its token, of an older epoch, goes no
//! further than the first process that has seen the newer.

use serde::{Deserialize, Serialize};
use vez_core::{Ctx, Fence, NodeId, Time};

use super::{Config, Custody, Message, Timer, TokenRing};

/// Newer is larger: of two epochs the later, in one epoch the one that has come further.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Token {
    pub(super) epoch: u64,
    pub(super) hop: u64,
}

/// A candidacy to re-create the token that was lost in this epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ballot {
    uid: u64,
    epoch: u64,
    hop: u64,
}

/// What is handed from process to process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Parcel {
    Token(Token),
    Election(Ballot),
}

pub(super) fn validate(config: &Config) -> Result<(), String> {
    match config {
        Config { hop_within: Some(Time::ZERO), .. } => {
            Err("hop_within: expected more than 0".to_owned())
        }
        Config { lap_within: Some(Time::ZERO), .. } => {
            Err("lap_within: expected more than 0".to_owned())
        }
        Config { lap_within: Some(_), hop_within: None, unilateral: false, .. } => {
            Err("lap_within: expected hop_within too, or no ballot gets past a crashed process"
                .to_owned())
        }
        // Or a ballot is sent again before it has got past a crashed process, for ever.
        Config { lap_within: Some(lap), hop_within: Some(hop), unilateral: false, .. }
            if lap <= hop =>
        {
            Err("lap_within: expected more than hop_within".to_owned())
        }
        Config { lap_within: None, unilateral: true, .. } => {
            Err("unilateral: expected lap_within, which says when to re-create the token"
                .to_owned())
        }
        _ => Ok(()),
    }
}

impl TokenRing {
    pub(super) fn hand_token(&mut self, to: NodeId, ctx: &mut Ctx<'_, Self>) {
        let looks_after = ctx.config().hop_within.is_some();
        self.custody = if looks_after { Custody::Handed } else { Custody::Gone };
        hand(to, Parcel::Token(self.newest), ctx);
    }

    /// Upon a parcel being acknowledged: who has it answers for it.
    pub(super) fn settle(&mut self, from: NodeId, parcel: Parcel, ctx: &mut Ctx<'_, Self>) {
        ctx.disarm(Timer::Hop { to: from, parcel });
        if self.custody == Custody::Handed && parcel == Parcel::Token(self.newest) {
            self.custody = Custody::Gone;
        }
    }

    /// Upon a parcel not being acknowledged: to the next one with it.
    pub(super) fn skip(&mut self, to: NodeId, parcel: Parcel, ctx: &mut Ctx<'_, Self>) {
        let next = ctx.topology().next(to);
        match parcel {
            // A newer token has been here since; this one lives on or was replaced.
            Parcel::Token(token) if token < self.newest => (),
            Parcel::Token(token) => {
                // Who was stepped over may merely be slow, and have it. Its token is out of date.
                let token = Token { epoch: token.epoch + 1, ..token };
                if next == ctx.me() {
                    return self.take(token, ctx);
                }
                self.newest = token;
                self.hand_token(next, ctx);
            }
            Parcel::Election(ballot) if self.refuses(ballot) => (),
            Parcel::Election(_) => hand(next, parcel, ctx),
        }
    }

    /// Upon no token having been here for too long.
    pub(super) fn miss(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.config().unilateral {
            return self.create(self.newest.epoch, ctx);
        }
        match self.custody {
            Custody::Gone => self.stand(self.newest.epoch, ctx),
            Custody::Handed | Custody::Here => arm_lap(ctx),
        }
    }

    /// Upon a ballot.
    pub(super) fn vote(&mut self, ballot: Ballot, ctx: &mut Ctx<'_, Self>) {
        let Ballot { uid, epoch, hop } = ballot;
        if self.refuses(ballot) {
            return;
        }
        if uid < ctx.uid() {
            self.stand(epoch, ctx);
        } else if self.best == Some((epoch, uid)) && self.candidate {
            self.create(epoch, ctx);
        } else if uid > ctx.uid() && hop < u64::from(ctx.topology().n()) {
            // One that is past everyone and not home has lost its owner.
            (self.best, self.candidate) = (Some((epoch, uid)), false);
            arm_lap(ctx);
            hand(ctx.next(), Parcel::Election(Ballot { hop: hop + 1, ..ballot }), ctx);
        }
    }

    /// Whether the token is known not to be lost, or a better ballot is out.
    fn refuses(&self, Ballot { uid, epoch, .. }: Ballot) -> bool {
        let settled = epoch < self.newest.epoch;
        self.custody != Custody::Gone || settled || Some((epoch, uid)) < self.best
    }

    /// Sends a ballot to replace the token of `epoch`, or of a later one if anybody has tried to
    /// replace that: its owner may have succeeded. In case it gets lost, once a lap.
    fn stand(&mut self, epoch: u64, ctx: &mut Ctx<'_, Self>) {
        let next = self.best.map_or(0, |(best, _)| best + u64::from(!self.candidate));
        let (uid, epoch) = (ctx.uid(), epoch.max(next));
        (self.best, self.candidate) = (Some((epoch, uid)), true);
        arm_lap(ctx);
        hand(ctx.next(), Parcel::Election(Ballot { uid, epoch, hop: 1 }), ctx);
    }

    fn create(&mut self, lost: u64, ctx: &mut Ctx<'_, Self>) {
        self.take(Token { epoch: lost + 1, hop: self.newest.hop + 1 }, ctx);
    }
}

/// Gives a parcel to `to`, and remembers to look after it if parcels are acknowledged.
fn hand(to: NodeId, parcel: Parcel, ctx: &mut Ctx<'_, TokenRing>) {
    ctx.send(to, parcel.into());
    if let Some(within) = ctx.config().hop_within.filter(|_| to != ctx.me()) {
        ctx.arm(Timer::Hop { to, parcel }, within);
    }
}

/// Everything is acknowledged, stale or not: who hears nothing would step over us.
pub(super) fn acknowledge(from: NodeId, parcel: Parcel, ctx: &mut Ctx<'_, TokenRing>) {
    if ctx.config().hop_within.is_some() && from != ctx.me() {
        ctx.send(from, Message::Ack { of: parcel });
    }
}

pub(super) fn arm_lap(ctx: &mut Ctx<'_, TokenRing>) {
    if let Some(within) = ctx.config().lap_within {
        ctx.arm(Timer::Lap, within);
    }
}

impl Token {
    pub(super) fn fence(self) -> Fence {
        Fence { term: self.epoch, count: self.hop }
    }
}

impl From<Parcel> for Message {
    fn from(parcel: Parcel) -> Self {
        match parcel {
            Parcel::Token(token) => Self::Token(token),
            Parcel::Election(ballot) => Self::Election(ballot),
        }
    }
}
