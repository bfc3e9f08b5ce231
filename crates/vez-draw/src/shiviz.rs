//! For `ShiViz`: every event with its vector clock, so that the tool can draw who knew what when.
//!
//! The first line of the file is the expression that reads it, the second (empty) would separate
//! several runs; `ShiViz` takes such a file as it is.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use vez_sim::{TraceEvent, What};

use crate::Run;
use crate::scene::{Fate, Scene};
use crate::words::{asked, link, millis, name, sides, told};

const PATTERN: &str = r"(?<host>\S*) (?<clock>{.*})\n(?<event>.*)";
/// Where what befalls the whole network is written down.
const WORLD: usize = usize::MAX;

/// By lane: how many of its events are known. Only those that are, so that it stays small.
type Clock = BTreeMap<usize, u64>;

/// The run as a log for `ShiViz`.
pub fn shiviz(run: &Run<'_>) -> String {
    let scene = Scene::new(run);
    let mut clocks: BTreeMap<usize, Clock> = BTreeMap::new();
    // What each message that will be heard knows.
    let mut sent: BTreeMap<u64, Clock> = BTreeMap::new();
    let mut out = format!("{PATTERN}\n\n");
    for step in &scene.steps {
        for event in step.events {
            let Some(words) = words(&scene, event) else { continue };
            let host = event.node.or(step.node()).and_then(|uid| scene.lane(uid)).unwrap_or(WORLD);
            let clock = clocks.entry(host).or_default();
            if let What::Receive { id, .. } = event.what {
                for (host, count) in sent.remove(&id).unwrap_or_default() {
                    let known = clock.entry(host).or_default();
                    *known = count.max(*known);
                }
            }
            *clock.entry(host).or_default() += 1;
            if let What::Send { id, .. } | What::Repeat { copy: id, .. } = event.what
                && scene.flight(id).is_some_and(|flight| matches!(flight.fate, Fate::Heard(_)))
            {
                sent.insert(id, clock.clone());
            }
            write_clock(&scene, host, clock, &mut out);
            writeln!(out, "{} ms {words}", millis(event.at)).expect("to a string");
        }
    }
    out
}

fn write_clock(scene: &Scene<'_>, host: usize, clock: &Clock, out: &mut String) {
    let host_name = |host: usize| scene.uids.get(host).map_or("World".to_owned(), |&uid| name(uid));
    write!(out, "{} {{", host_name(host)).expect("to a string");
    for (i, (&host, count)) in clock.iter().enumerate() {
        let comma = if i == 0 { "" } else { ", " };
        write!(out, "{comma}\"{}\": {count}", host_name(host)).expect("to a string");
    }
    out.push_str("}\n");
}

fn words(scene: &Scene<'_>, event: &TraceEvent) -> Option<String> {
    Some(match &event.what {
        What::Request { request, kind, text } => asked(request, kind, text),
        What::Receive { from, text, .. } => format!("hears {text} from {}", name(*from)),
        What::Timer { text, .. } => format!("timer {text} runs out"),
        What::Send { to, id, text, .. } => {
            let lost = scene.flight(*id).is_some_and(|f| matches!(f.fate, Fate::Lost(..)));
            format!("sends {text} to {}{}", name(*to), if lost { " (lost)" } else { "" })
        }
        What::Repeat { copy, .. } => {
            let flight = scene.flight(*copy)?;
            format!("{} to {} goes twice", flight.text, name(flight.to))
        }
        What::Notice { notice, kind, text } => told(event.node, notice, kind, text).words(),
        What::Unexpected { text } => format!("finds the impossible: {text}"),
        What::Crash => "crashes".to_owned(),
        What::Restart { forgot: false } => "restarts".to_owned(),
        What::Restart { forgot: true } => "restarts, having forgotten everything".to_owned(),
        What::Pause { until } => format!("pauses until {} ms", millis(*until)),
        What::Resume => "goes on".to_owned(),
        What::Partition { groups } => format!("the network splits: {}", sides(groups)),
        What::Cut { from, to, both } => format!("the link {} is cut", link(*from, *to, *both)),
        What::Heal { link: None } => "the network is whole again".to_owned(),
        What::Heal { link: Some((from, to, both)) } => {
            format!("the link {} is mended", link(*from, *to, *both))
        }
        What::Violation { promise, detail } => format!("✘ {promise}: {detail}"),
        What::Boot
        | What::State { .. }
        | What::Lose { .. }
        | What::Arm { .. }
        | What::Disarm { .. } => return None,
    })
}
