//! A counterexample as a scenario, run again by the simulator.

use vez_check::{Act as Done, Counterexample, Deed, Replay};
use vez_core::problem::Account;
use vez_core::{NodeId, Promise, Time, Topology};
use vez_draw::Line;
use vez_sim::{Delay, Report, Trace, TraceEvent, What};

use crate::rules::Language;
use crate::scenario::{
    About, Act, Arming, Event, Expectation, Flight, Place, Placed, Resolved, Scenario, Whom, Words,
    outcome_word, resolve,
};

/// A counterexample that the simulator has confirmed.
pub struct Exhibit {
    pub scenario: Scenario,
    pub resolved: Resolved,
    pub report: Report,
    pub trace: Trace,
    /// What happened before the first step: what processes said when they were born.
    pub births: Vec<String>,
    /// Each step in words.
    pub steps: Vec<String>,
    /// The promises broken, in words.
    pub broken: Vec<String>,
}

/// What takes this long in a replay never comes to pass.
const FAR: Time = Time::from_secs(3600);
const EVENTS_MAX: usize = 50_000;

impl Exhibit {
    /// Has the simulator take the steps of a counterexample found in this system. `None` if it
    /// then comes to another end.
    pub fn new(system: &Scenario, name: &str, found: &Counterexample) -> Option<Self> {
        let base = resolve(system).ok()?;
        // Late enough for what is never to come, and soon enough for a run to come to rest.
        let late = Time::from_millis(found.steps.len() as u64 + 1);
        let mut scenario = scenario(system, &base.topology, &found.replay, late);
        let is_broken =
            |report: &Report| report.verdict(found.promise).is_some_and(|verdict| !verdict.kept);
        let run = |scenario: &Scenario| {
            let resolved = resolve(scenario).ok()?;
            let Resolved { entry, topology, config, plan } = &resolved;
            let (report, trace) = (entry.watch)(topology, config, plan, EVENTS_MAX);
            is_broken(&report).then_some((resolved, report, trace))
        };
        // A run that goes round for ever is stopped where what is owed is owed.
        let last = found.steps.len() as u64;
        let first = found.cycle_from.map_or(last, |from| from as u64);
        let ends = (first..last).rev().map(|end| Some(Time::from_millis(end)));
        let (resolved, report, trace) =
            std::iter::once(scenario.until).chain(ends).find_map(|until| {
                scenario.until = until;
                run(&scenario)
            })?;
        scenario.about = about(&resolved, name, found);
        scenario.expect = Some(expectation(&report, &resolved.topology));
        let told = vez_draw::lines(&vez_draw::Run {
            title: "",
            subtitle: "",
            topology: &resolved.topology,
            report: &report,
            events: &trace.events,
        });
        let (broken, told): (Vec<Line>, Vec<Line>) = told.into_iter().partition(|line| line.broken);
        let at = |step: u64| {
            let of_step = told.iter().filter(move |line| line.at == Time::from_millis(step));
            of_step.map(|line| without_losses(&line.words)).collect::<Vec<_>>()
        };
        let steps = found.steps.iter().zip(1..).map(|(step, number)| match step.deed {
            Deed::Lose { number } => lost(number, &trace.events).unwrap_or(step.text.clone()),
            _ => match at(number).join("; ") {
                words if words.is_empty() => step.text.clone(),
                words => words,
            },
        });
        let (steps, births) = (steps.collect(), at(0));
        let broken = broken.into_iter().map(|line| line.words).collect();
        Some(Self { scenario, resolved, report, trace, births, steps, broken })
    }
}

/// Here a loss is a step of its own; the simulator tells it with the sending.
fn without_losses(words: &str) -> String {
    let mut out = words.to_owned();
    while let Some(from) = out.find(" (lost on the way to ")
        && let Some(length) = out[from..].find(')')
    {
        out.replace_range(from..=from + length, "");
    }
    out
}

/// The message of this number, and that it is lost.
fn lost(number: u64, events: &[TraceEvent]) -> Option<String> {
    let mut sent = events.iter().filter_map(|event| match &event.what {
        What::Send { to, text, .. } => Some((event.node?, to, text)),
        _ => None,
    });
    let (from, to, text) = sent.nth(number as usize - 1)?;
    Some(format!("{text} from P{from} to P{to} is lost"))
}

fn scenario(system: &Scenario, topology: &Topology, replay: &Replay, late: Time) -> Scenario {
    let mut network = system.network.clone();
    network.delay = Delay::Fixed(late);
    let event = |(at, done): &(Time, Done)| {
        let act = act(done, topology, late);
        Event { at: *at, act, place: Place::Whole }
    };
    // What is still under way in the end takes the network's time anyway.
    let messages = replay.messages.iter().filter(|(_, arrives)| *arrives != [FAR]);
    let flight = |(number, arrives): &(u64, Vec<Time>)| {
        let arrives = arrives.iter().copied().filter(|&time| time != FAR).collect();
        Placed::new(Flight { number: *number, arrives }, Place::Whole)
    };
    let arming = |&(number, after): &(u64, Time)| {
        Placed::new(Arming { number, after: after.min(late) }, Place::Whole)
    };
    Scenario {
        algorithm: system.algorithm.clone(),
        seed: system.seed,
        members: system.members.clone(),
        wiring: system.wiring.clone(),
        merits: system.merits.clone(),
        weights: system.weights.clone(),
        config: system.config.clone(),
        network,
        events: replay.inputs.iter().map(event).collect(),
        messages: messages.map(flight).collect(),
        timers: replay.timers.iter().map(arming).collect(),
        choices: replay.choices.clone(),
        until: replay.until,
        ..Scenario::default()
    }
}

fn act(done: &Done, topology: &Topology, late: Time) -> Act {
    let uid = |node: NodeId| topology.uid(node);
    match *done {
        Done::Start(node) => Act::Start(Whom::One(uid(node))),
        Done::Suspect(node, of) => Act::Suspect { node: uid(node), of: uid(of) },
        Done::Acquire(node, hold) => {
            Act::Acquire { who: Whom::One(uid(node)), hold: hold.min(late) }
        }
        Done::Withdraw(node) => Act::Withdraw(uid(node)),
        Done::Crash(node) => Act::Crash { node: uid(node), unsent: false },
        Done::CrashUnsent(node) => Act::Crash { node: uid(node), unsent: true },
        Done::Restart { node, forget } => Act::Restart { node: uid(node), amnesia: forget },
        Done::Split { side } => {
            let is_far = |node: &NodeId| side >> node.0 & 1 == 1;
            let (far, near): (Vec<NodeId>, Vec<NodeId>) = topology.ids().partition(is_far);
            let uids = |nodes: Vec<NodeId>| nodes.into_iter().map(uid).collect();
            Act::Partition(vec![uids(far), uids(near)])
        }
        Done::Heal => Act::Heal(None),
    }
}

fn about(resolved: &Resolved, name: &str, found: &Counterexample) -> About {
    let title = resolved.entry.rules().title;
    let (en, pt) = (title.in_language(Language::En), title.in_language(Language::Pt));
    let (promise, count) = (found.promise.name(), found.steps.len());
    let (steps, passos) = if count == 1 { ("step", "passo") } else { ("steps", "passos") };
    let title = Words {
        en: format!("{en} breaks {promise} in {count} {steps}"),
        pt: format!("{pt} quebra {promise} em {count} {passos}"),
    };
    let look = match found.cycle_from {
        Some(from) => Words {
            en: format!("What happens from {} ms on can go on for ever.", from + 1),
            pt: format!("O que ocorre a partir de {} ms pode repetir-se para sempre.", from + 1),
        },
        None => Words {
            en: "One step a millisecond; no shorter run breaks a promise.".to_owned(),
            pt: "Um passo por milissegundo; nenhuma execução mais curta quebra uma promessa."
                .to_owned(),
        },
    };
    About { name: name.to_owned(), title, look }
}

fn expectation(report: &Report, topology: &Topology) -> Expectation {
    let broken = report.promises.iter().filter(|verdict| !verdict.kept);
    let uid = |node: NodeId| topology.uid(node);
    let (mut declared, mut entered) = (None, None);
    match &report.account {
        Account::Election(tally) => {
            declared = Some(tally.declarations.iter().map(|reign| uid(reign.node)).collect());
        }
        Account::Mutex(tally) => {
            entered = Some(tally.entries.iter().map(|entry| uid(entry.node)).collect());
        }
    }
    Expectation {
        outcome: Some(outcome_word(report.ending).to_owned()),
        broken: broken.map(|verdict| Promise::name(verdict.promise).to_owned()).collect(),
        declared,
        entered,
        ..Expectation::default()
    }
}
