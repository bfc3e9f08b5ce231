//! Any election, started by a failure detector instead of by people: the composition every system
//! in production runs, after Chandra and Toueg, *Unreliable Failure Detectors for Reliable
//! Distributed Systems*, JACM 43(2), 1996.
//!
//! Everyone sends heartbeats to everyone and suspects whoever falls silent. When that is the
//! leader, the election inside is told. A process heard again that ranks above the leader may have
//! led all the while on the other side of a partition: that starts an election too. n(n − 1)
//! heartbeats a period, whatever happens, besides the election's own messages.

use serde::{Deserialize, Serialize};
use vez_core::problem::{ElectionNotice, ElectionRequest};
use vez_core::{Ctx, Election, Meta, NodeId, Protocol, Time, Timing, Topology, Winner};

use crate::detect::{DetectorConfig, Watch};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Monitored<E> {
    election: E,
    watch: Watch,
    leader: Option<NodeId>,
    /// For how many ticks it has led while suspected: a suspicion from its earlier life would hide
    /// that it is silent in this one.
    unheard: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message<M> {
    Heartbeat,
    Election(M),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Timer<T> {
    Tick,
    Election(T),
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[serde(bound(deserialize = "C: Default + Deserialize<'de>"))]
pub struct Config<C> {
    pub detector: DetectorConfig,
    /// The settings of the election inside.
    pub election: C,
}

impl<E: Protocol<Problem = Election>> Protocol for Monitored<E> {
    type Problem = Election;
    type Message = Message<E::Message>;
    type Timer = Timer<E::Timer>;
    type Durable = E::Durable;
    type Config = Config<E::Config>;

    const META: Meta = Meta {
        name: "monitored",
        title: "Election on suspicion",
        source: "Chandra & Toueg, JACM 43(2), 1996, over the election inside",
        timing: Timing::Synchronous,
        restless: Some(Time::from_secs(1)),
        rules: include_str!("monitored.toml"),
        ..E::META
    };

    fn start(saved: Option<E::Durable>, ctx: &mut Ctx<'_, Self>) -> Self {
        let watch = Watch::new(ctx.peers(), &ctx.config().detector);
        ctx.arm(Timer::Tick, ctx.config().detector.tick);
        let start = |ctx: &mut Ctx<'_, E>| E::start(saved, ctx);
        let config = &ctx.config().election;
        let (election, notices) = ctx.embed(config, Message::Election, Timer::Election, start);
        let mut this = Self { election, watch, leader: None, unheard: None };
        this.pass_on(notices, ctx);
        this
    }

    fn on_request(&mut self, request: ElectionRequest, ctx: &mut Ctx<'_, Self>) {
        self.elect(ctx, |election, ctx| election.on_request(request, ctx));
    }

    fn on_message(&mut self, from: NodeId, message: Self::Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Heartbeat => {
                self.unheard = self.unheard.filter(|_| self.leader != Some(from));
                if self.watch.on_heartbeat(from) {
                    ctx.notify(ElectionNotice::Trusts { id: from });
                    self.elect_if_outranked(from, ctx);
                }
            }
            Message::Election(message) => {
                self.elect(ctx, |election, ctx| election.on_message(from, message, ctx));
            }
        }
    }

    fn on_timer(&mut self, timer: Self::Timer, ctx: &mut Ctx<'_, Self>) {
        match timer {
            Timer::Tick => self.tick(ctx),
            Timer::Election(timer) => {
                self.elect(ctx, |election, ctx| election.on_timer(timer, ctx));
            }
        }
    }

    fn durable(&self) -> E::Durable {
        self.election.durable()
    }

    fn epoch(&self) -> u64 {
        self.election.epoch()
    }

    fn validate(config: &Self::Config, topology: &Topology) -> Result<(), String> {
        config.detector.validate()?;
        E::validate(&config.election, topology).map_err(|why| format!("election.{why}"))
    }

    fn winner(config: &Self::Config) -> Winner {
        E::winner(&config.election)
    }
}

impl<E: Protocol<Problem = Election>> Monitored<E> {
    fn tick(&mut self, ctx: &mut Ctx<'_, Self>) {
        let detector = &ctx.config().detector;
        let tick = self.watch.on_tick(detector);
        if tick.beat {
            ctx.broadcast(&Message::Heartbeat);
        }
        for id in tick.suspected {
            ctx.notify(ElectionNotice::Suspects { id });
            if self.leader == Some(id) {
                self.replace(id, ctx);
            }
        }
        self.unheard = self.unheard.map(|ticks| ticks + 1);
        if let (Some(ticks), Some(leader)) = (self.unheard, self.leader)
            && self.watch.silence(leader, detector).is_some_and(|(_, limit)| limit < ticks)
        {
            self.unheard = None;
            self.replace(leader, ctx);
        }
        ctx.arm(Timer::Tick, detector.tick);
    }

    fn replace(&mut self, leader: NodeId, ctx: &mut Ctx<'_, Self>) {
        let suspect = ElectionRequest::Suspect(leader);
        self.elect(ctx, |election, ctx| election.on_request(suspect, ctx));
    }

    fn elect_if_outranked(&mut self, by: NodeId, ctx: &mut Ctx<'_, Self>) {
        let rank = |node| ctx.topology().rank(node);
        let largest = E::winner(&ctx.config().election) == Winner::Largest;
        if largest && self.leader.is_some_and(|leader| rank(leader) < rank(by)) {
            let start = ElectionRequest::Start;
            self.elect(ctx, |election, ctx| election.on_request(start, ctx));
        }
    }

    fn elect(&mut self, ctx: &mut Ctx<'_, Self>, step: impl FnOnce(&mut E, &mut Ctx<'_, E>)) {
        let (config, election) = (&ctx.config().election, &mut self.election);
        let step = |ctx: &mut Ctx<'_, E>| step(election, ctx);
        let ((), notices) = ctx.embed(config, Message::Election, Timer::Election, step);
        self.pass_on(notices, ctx);
    }

    fn pass_on(&mut self, notices: Vec<ElectionNotice>, ctx: &mut Ctx<'_, Self>) {
        for notice in notices {
            match notice {
                ElectionNotice::Leader { id, .. } => {
                    self.leader = Some(id);
                    self.unheard = self.watch.is_suspected(id).then_some(0);
                }
                ElectionNotice::NoLeader { .. } => (self.leader, self.unheard) = (None, None),
                ElectionNotice::Suspects { .. } | ElectionNotice::Trusts { .. } => (),
            }
            ctx.notify(notice);
        }
    }
}
