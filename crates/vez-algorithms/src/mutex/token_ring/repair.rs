//! How a token ring mends itself: it steps over members that do not answer, and elects one to
//! re-create a token that was lost.
//!
//! Why the new token is the only one: a ballot comes home only past every process that answers. One
//! that has the token lets no ballot pass, and of all ballots only that with the largest uid passes
//! all candidates. What this cannot see is a holder too slow to answer; its token, of an older
//! epoch, goes no further than the first process that has seen the newer.

use serde::{Deserialize, Serialize};
use vez_core::{Ctx, Fence, NodeId, Time};

use super::{Config, Message, Timer, Token, TokenRing};

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
        Config { lap_within: None, unilateral: true, .. } => {
            Err("unilateral: expected lap_within, which says when to re-create the token"
                .to_owned())
        }
        _ => Ok(()),
    }
}

impl TokenRing {
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
                hand(next, Parcel::Token(token), ctx);
            }
            Parcel::Election(_) => hand(next, parcel, ctx),
        }
    }

    /// Upon no token having been here for too long.
    pub(super) fn miss(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.config().unilateral {
            return self.create(self.newest.epoch, ctx);
        }
        arm_lap(ctx); // In case the ballot gets lost with its bearer.
        self.stand(self.candidate.unwrap_or(self.newest.epoch), ctx);
    }

    /// Upon a ballot.
    pub(super) fn vote(&mut self, ballot: Ballot, ctx: &mut Ctx<'_, Self>) {
        let settled = ballot.epoch < self.newest.epoch;
        let wrong = self.holds && ballot.epoch == self.newest.epoch;
        if settled || wrong {
            return;
        }
        let Ballot { uid, epoch, hop } = ballot;
        if uid == ctx.uid() {
            // Of an earlier life, unless we stand.
            if self.candidate == Some(epoch) {
                self.create(epoch, ctx);
            }
        } else if uid > ctx.uid() {
            // Past everyone and not home: its owner is gone.
            if hop < u64::from(ctx.topology().n()) {
                hand(ctx.next(), Parcel::Election(Ballot { hop: hop + 1, ..ballot }), ctx);
            }
        } else if self.candidate < Some(epoch) {
            // Ours of an older epoch would be swallowed by who knows this one.
            self.stand(epoch, ctx);
        }
    }

    fn stand(&mut self, epoch: u64, ctx: &mut Ctx<'_, Self>) {
        self.candidate = Some(epoch);
        hand(ctx.next(), Parcel::Election(Ballot { uid: ctx.uid(), epoch, hop: 1 }), ctx);
    }

    fn create(&mut self, lost: u64, ctx: &mut Ctx<'_, Self>) {
        self.take(Token { epoch: lost + 1, hop: self.newest.hop + 1 }, ctx);
    }
}

/// Gives a parcel to `to`, and remembers to look after it if parcels are acknowledged.
pub(super) fn hand(to: NodeId, parcel: Parcel, ctx: &mut Ctx<'_, TokenRing>) {
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
