//! The runs of the simulator that are measured.

use serde::{Deserialize, Serialize};
use vez_algorithms::election::{ChangRoberts, chang_roberts};
use vez_core::problem::ElectionRequest;
use vez_core::{
    Chance, Channel, Crashes, Ctx, Election, Layout, Meta, Never, NodeId, Protocol, Seeded, Time,
    Timing, Topology,
};
use vez_sim::{Input, Network, Plan, Report, Silent, Trace, Who, simulate, watch};

use crate::textbook::Textbook;

/// Uids `1..=n` in an order drawn once and for all.
pub(crate) fn shuffled(n: u32) -> Vec<u64> {
    let mut uids: Vec<u64> = (1..=u64::from(n)).collect();
    let mut chance = Seeded(1);
    for i in (1..uids.len()).rev() {
        uids.swap(i, chance.below(i as u32 + 1) as usize);
    }
    uids
}

pub(crate) fn ring_of(n: u32) -> Topology {
    Topology::of(Layout::Ring, n).expect("a ring of this size").with_uids(shuffled(n))
}

/// Everyone starts an election at once, under the reference schedule.
pub(crate) fn all_start() -> Plan {
    Plan { inputs: vec![(Time::ZERO, Input::Start(Who::All))], ..Plan::default() }
}

/// The same with every delay drawn between 1 and 20 milliseconds.
pub(crate) fn all_start_with_random_delays(fifo: bool) -> Plan {
    let delay = "1ms..20ms".parse().expect("a delay");
    Plan { network: Network { delay, fifo, ..Network::default() }, ..all_start() }
}

/// Chang–Roberts as all contestants run it, judged by all its promises.
pub(crate) fn ring(topology: &Topology, plan: &Plan) -> Report {
    let report = simulate::<Textbook>(topology, &(), plan);
    assert!(report.claims_kept(), "{:?}", report.promises);
    report
}

/// Chang–Roberts as we ship it.
pub(crate) fn shipped_ring(topology: &Topology, plan: &Plan) -> Report {
    let report = simulate::<ChangRoberts>(topology, &chang_roberts::Config::default(), plan);
    assert!(report.claims_kept(), "{:?}", report.promises);
    report
}

/// The same, however it ends.
pub(crate) fn cut_off(topology: &Topology, plan: &Plan) -> Report {
    simulate::<ChangRoberts>(topology, &chang_roberts::Config::default(), plan)
}

/// The textbook's watched by an observer that looks the other way.
pub(crate) fn ring_watched(topology: &Topology, plan: &Plan) -> Report {
    watch::<Textbook, _>(topology, &(), plan, Silent).0
}

/// The same with everything written down.
pub(crate) fn ring_traced(topology: &Topology, plan: &Plan) -> Report {
    let (report, trace) = watch::<Textbook, _>(topology, &(), plan, Trace::default());
    assert!(report.messages.total < trace.events.len() as u64);
    report
}

/// Everyone asks everyone and everyone answers.
pub(crate) fn flood(n: u32) -> Report {
    let topology = Topology::of(Layout::Complete, n).expect("a system of this size");
    simulate::<Flood>(&topology, &(), &all_start())
}

/// What Ricart–Agrawala says when all want in at once, without what it does about it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct Flood {
    answers: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
enum Question {
    Request { stamp: u64 },
    Reply,
}

impl Protocol for Flood {
    type Problem = Election;
    type Message = Question;
    type Timer = Never;
    type Durable = ();
    type Config = ();

    const META: Meta = Meta {
        name: "flood",
        title: "Flood",
        source: "the bench",
        layout: Layout::Complete,
        channel: Channel::Reliable,
        timing: Timing::Asynchronous,
        crashes: Crashes::None,
        restless: None,
        promises: &[],
        rules: "",
    };

    fn start(_saved: Option<()>, _ctx: &mut Ctx<'_, Self>) -> Self {
        Self { answers: 0 }
    }

    fn on_request(&mut self, _request: ElectionRequest, ctx: &mut Ctx<'_, Self>) {
        ctx.broadcast(&Question::Request { stamp: 1 });
    }

    fn on_message(&mut self, from: NodeId, message: Question, ctx: &mut Ctx<'_, Self>) {
        match message {
            Question::Request { .. } => ctx.send(from, Question::Reply),
            Question::Reply => self.answers += 1,
        }
    }
}
