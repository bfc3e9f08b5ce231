//! Events as flags: `--crash 7@10ms` and its kin.

use std::str::FromStr;

use vez_core::Time;

use super::{Act, Event, Fault, Place, Whom, Wiring};

/// The flags that make events, as typed.
#[derive(Clone, Debug, Default)]
pub struct EventFlags<'a> {
    /// The name of a flag without dashes, and a value it was given.
    pub given: Vec<(&'static str, &'a str)>,
}

impl EventFlags<'_> {
    /// Replaces, for every kind of event that was given as a flag, the events of that kind.
    pub fn apply(&self, events: &mut Vec<Event>) -> Result<(), Fault> {
        let mut fresh = Vec::new();
        for &(flag, value) in &self.given {
            let place = Place::Flag(format!("--{flag} {value}"));
            let (act, at) = parse_event(flag, value).map_err(|why| Fault::new(&place, why))?;
            fresh.push(Event { at, act, place });
        }
        events.retain(|old| !fresh.iter().any(|new| new.act.word() == old.act.word()));
        events.extend(fresh);
        // The run takes them by time; within a moment, as listed.
        events.sort_by_key(|event| event.at);
        Ok(())
    }
}

fn parse_event(flag: &str, value: &str) -> Result<(Act, Time), String> {
    let (what, when) = value.split_once('@').unwrap_or((value, "0"));
    let span = |text: &str| text.parse::<Time>().map_err(|error| error.to_string());
    // `@TIME:FOR`, where the flag takes a length of time.
    let (when, length) = match when.split_once(':') {
        Some((when, length)) if matches!(flag, "acquire" | "pause") => (when, Some(span(length)?)),
        _ => (when, None),
    };
    let at = span(when)?;
    let act = match flag {
        "start" => Act::Start(parse_whom(what)?),
        "suspect" => {
            let (node, of) = what.split_once(':').ok_or("expected WHO:WHOM@TIME")?;
            Act::Suspect { node: parse_uid(node)?, of: parse_uid(of)? }
        }
        "acquire" => {
            Act::Acquire { who: parse_whom(what)?, hold: length.unwrap_or(Time::from_millis(1)) }
        }
        "withdraw" => Act::Withdraw(parse_uid(what)?),
        "crash" => Act::Crash { node: parse_uid(what)?, unsent: false },
        "crash-unsent" => Act::Crash { node: parse_uid(what)?, unsent: true },
        "restart" => Act::Restart { node: parse_uid(what)?, amnesia: false },
        "pause" => {
            let span = length.ok_or("expected UID@TIME:FOR, such as 3@10ms:50ms")?;
            Act::Pause { node: parse_uid(what)?, span }
        }
        "partition" => Act::Partition(parse_groups(what)?),
        "cut" => {
            let (from, to, both) = parse_wire(what)?;
            Act::Cut { from, to, both }
        }
        "heal" if what.is_empty() => Act::Heal(None),
        "heal" => Act::Heal(Some(parse_wire(what)?)),
        other => unreachable!("no event flag is called {other}"),
    };
    Ok((act, at))
}

pub(crate) fn parse_uid(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a uid; expected a whole number"))
}

fn parse_whom(text: &str) -> Result<Whom, String> {
    if text == "all" { Ok(Whom::All) } else { parse_uid(text).map(Whom::One) }
}

fn parse_groups(text: &str) -> Result<Vec<Vec<u64>>, String> {
    text.split('/').map(|group| group.split(',').map(parse_uid).collect()).collect()
}

/// `1-2` is both directions of a link, `1>2` one.
pub(super) fn parse_wire(text: &str) -> Result<(u64, u64, bool), String> {
    if let Some((from, to)) = text.split_once('>') {
        return Ok((parse_uid(from)?, parse_uid(to)?, false));
    }
    let (a, b) =
        text.split_once('-').ok_or("expected a link like 1-2, or 1>2 for one direction")?;
    Ok((parse_uid(a)?, parse_uid(b)?, true))
}

impl FromStr for Wiring {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(share) = text.strip_prefix("random:") {
            let share: Result<f64, _> = share.parse();
            return match share {
                Ok(share) if (0.0..=1.0).contains(&share) => Ok(Self::Random(share)),
                _ => Err(format!("`{text}`: expected random:P with P from 0 to 1")),
            };
        }
        if let Some(edges) = text.strip_prefix("edges:") {
            let pair = |edge: &str| parse_wire(edge).map(|(a, b, _)| (a, b));
            let edges: Result<Vec<_>, _> =
                edges.split(',').filter(|edge| !edge.is_empty()).map(pair).collect();
            return Ok(Self::Edges(edges?));
        }
        match text {
            "complete" => Ok(Self::Complete),
            "ring" => Ok(Self::Ring),
            "star" => Ok(Self::Star),
            "line" => Ok(Self::Line),
            "grid" => Ok(Self::Grid),
            _ => Err(format!(
                "`{text}` is no topology; expected complete, ring, star, line, grid, random:P or \
                 edges:1-4,4-8"
            )),
        }
    }
}
