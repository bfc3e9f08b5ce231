//! A protocol with one habit for each thing a simulator can do to it.
//!
//! Told to start, it tells everyone the news and counts it, durably. Told that it is itself
//! suspected, it talks to itself. Told to suspect the last process, it sets a timer for ever; any
//! other, a timer of one millisecond, which starting disarms.

use serde::{Deserialize, Serialize};
use vez_core::problem::ElectionRequest;
use vez_core::{
    Channel, Crashes, Ctx, Election, Layout, Meta, NodeId, Protocol, Time, Timing, Topology,
};
use vez_sim::{Input, Plan, Report, Trace, TraceEvent, What, Who, simulate, watch};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct Gossip {
    told: u64,
    echoes: u64,
    endless: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Word {
    News,
    Echo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Alarm {
    Tick,
}

impl Protocol for Gossip {
    type Problem = Election;
    type Message = Word;
    type Timer = Alarm;
    type Durable = u64;
    type Config = ();

    const META: Meta = Meta {
        name: "gossip",
        title: "Gossip",
        source: "a test",
        layout: Layout::Complete,
        channel: Channel::Fifo,
        timing: Timing::Asynchronous,
        crashes: Crashes::Recover,
        restless: None,
        promises: &[],
        rules: "",
    };

    fn start(saved: Option<u64>, _ctx: &mut Ctx<'_, Self>) -> Self {
        Self { told: saved.unwrap_or_default(), echoes: 0, endless: false }
    }

    fn on_request(&mut self, request: ElectionRequest, ctx: &mut Ctx<'_, Self>) {
        match request {
            ElectionRequest::Start => {
                self.told += 1;
                ctx.disarm(Alarm::Tick);
                ctx.broadcast(&Word::News);
            }
            ElectionRequest::Suspect(node) if node == ctx.me() => {
                ctx.send(node, Word::Echo);
                ctx.arm(Alarm::Tick, Time::ZERO);
            }
            ElectionRequest::Suspect(node) => {
                self.endless = node.0 + 1 == ctx.topology().n();
                ctx.arm(Alarm::Tick, Time::from_millis(1));
            }
        }
    }

    fn on_message(&mut self, _from: NodeId, word: Word, _ctx: &mut Ctx<'_, Self>) {
        if word == Word::Echo {
            self.echoes += 1;
        }
    }

    fn on_timer(&mut self, alarm: Alarm, ctx: &mut Ctx<'_, Self>) {
        if self.endless {
            ctx.arm(alarm, Time::from_millis(1));
        }
    }

    fn durable(&self) -> u64 {
        self.told
    }

    fn epoch(&self) -> u64 {
        self.told
    }
}

pub(crate) fn say(at: u64, node: NodeId) -> (Time, Input) {
    (Time::from_millis(at), Input::Start(Who::One(node)))
}

pub(crate) fn plan(inputs: Vec<(Time, Input)>) -> Plan {
    Plan { inputs, ..Plan::default() }
}

/// Three processes live through `plan`.
pub(crate) fn run(plan: &Plan) -> Report {
    simulate::<Gossip>(&Topology::of(Layout::Complete, 3).unwrap(), &(), plan)
}

pub(crate) fn traced(plan: &Plan) -> (Report, Vec<TraceEvent>) {
    let topology = Topology::of(Layout::Complete, 3).unwrap();
    let (report, trace) = watch::<Gossip, _>(&topology, &(), plan, Trace::default());
    (report, trace.events)
}

/// When and where this word was heard, in order.
pub(crate) fn heard(trace: &[TraceEvent], word: Word) -> Vec<(Time, NodeId)> {
    let name = format!("{word:?}");
    let heard = trace.iter().filter_map(|event| match &event.what {
        What::Receive { kind, .. } if *kind == name => {
            Some((event.at, NodeId(event.node? as u32 - 1)))
        }
        _ => None,
    });
    heard.collect()
}
