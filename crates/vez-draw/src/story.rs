//! The log in words: one line for everything worth telling.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use vez_core::Time;
use vez_sim::What;

use crate::Run;
use crate::scene::{Fate, Flight, Scene, Violation};
use crate::steps::Step;
use crate::words::{asked, link, millis, moment, name, names, shorten, sides, told};

/// One thing worth telling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub at: Time,
    pub words: String,
    /// Whether it tells of a broken promise.
    pub broken: bool,
}

/// The run told in lines. Those of broken promises start with `✘`.
pub fn story(run: &Run<'_>) -> Vec<String> {
    let width = run.events.iter().map(|event| millis(event.at).len()).max();
    let width = width.unwrap_or_default().max(4);
    let told = lines(run).into_iter().map(|Line { at, words, broken }| {
        let mark = if broken { '✘' } else { ' ' };
        format!("{mark}{:>width$} ms  {words}", millis(at))
    });
    told.collect()
}

/// The same, each with its moment apart.
pub fn lines(run: &Run<'_>) -> Vec<Line> {
    let scene = Scene::new(run);
    let mut lines = Vec::new();
    for (index, step) in scene.steps.iter().enumerate() {
        if let Some(words) = tell(&scene, index) {
            lines.push(Line { at: step.at(), words, broken: false });
        }
        for Violation { at, promise, detail, claimed, .. } in scene.violations(index) {
            let remark = if *claimed { "" } else { " (not promised)" };
            let words = format!("{promise}: {detail}{remark}");
            lines.push(Line { at: *at, words, broken: true });
        }
    }
    lines
}

/// A step in words; `None` if it is not worth telling.
pub(crate) fn tell(scene: &Scene<'_>, index: usize) -> Option<String> {
    let step = &scene.steps[index];
    let cause = cause(scene, step)?;
    let effects = effects(scene, step);
    if !effects.is_empty() {
        return Some(format!("{cause}: {}", effects.join(", ")));
    }
    // That a process exists is no news.
    if matches!(step.cause().what, What::Boot) {
        return None;
    }
    match scene.changes[index].join(", ") {
        changes if changes.is_empty() => Some(cause),
        changes => Some(format!("{cause}; now {}", shorten(&changes, CHANGES_MAX))),
    }
}

/// Longest account of a changed state, in characters.
const CHANGES_MAX: usize = 80;

fn cause(scene: &Scene<'_>, step: &Step<'_>) -> Option<String> {
    let event = step.cause();
    let who = event.node.map(name).unwrap_or_default();
    Some(match &event.what {
        What::Boot => format!("{who} boots"),
        What::Request { request, kind, text } => format!("{who} {}", asked(request, kind, text)),
        What::Receive { from, id, text, .. } => {
            let copy = scene.flight(*id).is_some_and(|flight| flight.copy);
            let copy = if copy { ", a copy" } else { "" };
            format!("{who} hears {text} from {}{copy}", name(*from))
        }
        What::Timer { text, .. } => format!("{who}'s timer {text} runs out"),
        What::Lose { id, cause } => {
            let flight = scene.flight(*id)?;
            let why = match *cause {
                "receiver-down" => format!("{} is down", name(flight.to)),
                "cut" => "the link is cut".to_owned(),
                _ => "lost on the way".to_owned(),
            };
            let (from, to) = (name(flight.from), name(flight.to));
            format!("{} from {from} does not reach {to}: {why}", flight.text)
        }
        What::Crash => format!("{who} crashes"),
        What::Restart { forgot: false } => format!("{who} restarts"),
        What::Restart { forgot: true } => format!("{who} restarts, having forgotten everything"),
        What::Pause { until } => format!("{who} pauses until {}", moment(*until)),
        What::Resume => format!("{who} goes on"),
        What::Partition { groups } => format!("the network splits: {}", sides(groups)),
        What::Cut { from, to, both } => format!("the link {} is cut", link(*from, *to, *both)),
        What::Heal { link: None } => "the network is whole again".to_owned(),
        What::Heal { link: Some((from, to, both)) } => {
            format!("the link {} is mended", link(*from, *to, *both))
        }
        _ => return None,
    })
}

/// What the process said and told, in order.
fn effects(scene: &Scene<'_>, step: &Step<'_>) -> Vec<String> {
    let mut parts = Vec::new();
    let mut sayings: Vec<Saying<'_>> = Vec::new();
    let everyone = scene.uids.len() - 1;
    for event in step.events {
        if matches!(event.what, What::Notice { .. } | What::Unexpected { .. }) {
            parts.extend(breath(&std::mem::take(&mut sayings), everyone));
        }
        match &event.what {
            What::Send { to, id, text, .. } => {
                if sayings.last().is_none_or(|saying| saying.text != text.as_str()) {
                    sayings.push(Saying { text, ..Saying::default() });
                }
                let saying = sayings.last_mut().expect("just made sure");
                saying.to.push(*to);
                match scene.flight(*id).map(|flight| flight.fate) {
                    Some(Fate::Lost(at, "chance")) if at == event.at => saying.lost.push(*to),
                    Some(Fate::Lost(at, "cut")) if at == event.at => saying.cut.push(*to),
                    _ => (),
                }
            }
            What::Notice { notice, kind, text } => {
                parts.push(told(event.node, notice, kind, text).words());
            }
            What::Unexpected { text } => parts.push(format!("finds the impossible: {text}")),
            _ => (),
        }
    }
    parts.extend(breath(&sayings, everyone));
    parts
}

/// One text said to several.
#[derive(Default)]
struct Saying<'a> {
    text: &'a str,
    to: Vec<u64>,
    lost: Vec<u64>,
    cut: Vec<u64>,
}

fn breath(sayings: &[Saying<'_>], everyone: usize) -> Option<String> {
    let told: Vec<String> = sayings.iter().map(|saying| saying.words(everyone)).collect();
    (!told.is_empty()).then(|| format!("sends {}", told.join(", ")))
}

impl Saying<'_> {
    fn words(&self, everyone: usize) -> String {
        let different = self.to.iter().collect::<BTreeSet<_>>().len();
        let all = 3 <= everyone && different == everyone && self.to.len() == everyone;
        let to = if all { "all others".to_owned() } else { names(&self.to) };
        let mut words = format!("{} to {to}", self.text);
        for (uids, why) in [(&self.lost, "lost on the way to"), (&self.cut, "cut off from")] {
            if !uids.is_empty() {
                write!(words, " ({why} {})", names(uids)).expect("to a string");
            }
        }
        words
    }
}

/// The sentence on one message: who to whom, when, and what became of it.
pub(crate) fn journey(flight: &Flight<'_>) -> String {
    let (from, to) = (name(flight.from), name(flight.to));
    let sent = moment(flight.sent);
    let took = |at: Time| moment(at.saturating_sub(flight.sent));
    let fate = match flight.fate {
        Fate::Heard(at) => format!("heard {} (took {})", moment(at), took(at)),
        Fate::Lost(_, "receiver-down") => format!("lost, {to} was down"),
        Fate::Lost(_, "cut") => "lost, the link was cut".to_owned(),
        Fate::Lost(..) => "lost on the way".to_owned(),
        Fate::UnderWay => "still under way at the end".to_owned(),
    };
    let copy = if flight.copy { " (copy)" } else { "" };
    format!("{}{copy} · {from} → {to} · sent {sent}, {fate}", flight.text)
}
