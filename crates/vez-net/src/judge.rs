//! The traces of real processes before the same court as a simulation.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use vez_core::problem::{self, Tally};
use vez_core::{
    Breach, Channel, Ending, NodeId, Notice, Problem, Protocol, Reaction, Request, Terms, Time,
    Topology, Wish,
};
use vez_sim::{Messages, Report, TraceEvent, Verdict, What};

use crate::log::Line;
use crate::names::names_of;

/// Judges what happened, in this order: the verdicts, and the events as pictures are made of
/// them. Fails on events that no process of this algorithm can have written.
pub fn judge<P: Protocol>(
    topology: &Topology,
    config: &P::Config,
    lines: &[Line],
) -> Result<(Report, Vec<TraceEvent>), String> {
    let mut hearing = Hearing::<P>::new(topology, config);
    for line in lines {
        hearing.take(line)?;
    }
    Ok(hearing.close())
}

/// A hearing while the processes still run, whatever their algorithm.
pub trait Court: Send {
    /// Takes in what happened next: the event as pictures know it, and the promises it broke.
    fn hear(&mut self, line: &Line) -> Result<Vec<TraceEvent>, String>;
    /// How every promise fares so far. What only the end can show counts as kept.
    fn verdicts(&self) -> Vec<Verdict>;
}

/// The same hearing as [`judge`]'s, to be fed while it goes on.
pub fn court<P: Protocol>(topology: &Topology, config: &P::Config) -> Box<dyn Court> {
    Box::new(Hearing::<P>::new(topology, config))
}

impl<P: Protocol> Court for Hearing<P> {
    fn hear(&mut self, line: &Line) -> Result<Vec<TraceEvent>, String> {
        self.take(line)?;
        Ok(std::mem::take(&mut self.events))
    }

    fn verdicts(&self) -> Vec<Verdict> {
        Verdict::of::<P>(&self.spec, &self.broken)
    }
}

struct Hearing<P: Protocol> {
    topology: Topology,
    names: Vec<&'static str>,
    spec: P::Problem,
    tally: <P::Problem as Problem>::Tally,
    broken: Vec<(Time, Breach)>,
    events: Vec<TraceEvent>,
    now: Time,
    steps: u64,
    down: BTreeSet<NodeId>,
    messages: Messages,
    /// To whom each message went that nobody has heard yet.
    flying: BTreeMap<u64, NodeId>,
    /// Who is inside, and may leave at any moment.
    inside: BTreeSet<NodeId>,
    /// The timers that run, of every process that is known to have booted, and has not crashed.
    armed: BTreeMap<NodeId, BTreeSet<String>>,
    unexpected: u64,
    unexpected_first: Option<(Time, NodeId, &'static str)>,
}

impl<P: Protocol> Hearing<P> {
    fn new(topology: &Topology, config: &P::Config) -> Self {
        let mut names = vec!["Message"];
        for more in [
            names_of::<P::Message>(),
            names_of::<P::Timer>(),
            names_of::<Request<P>>(),
            names_of::<Notice<P>>(),
        ] {
            names.extend(more);
        }
        Self {
            topology: topology.clone(),
            names,
            spec: P::Problem::new(topology, Terms::of::<P>(config, topology)),
            tally: <P::Problem as Problem>::Tally::new(topology),
            broken: Vec::new(),
            events: Vec::new(),
            now: Time::ZERO,
            steps: 0,
            down: BTreeSet::new(),
            messages: Messages::default(),
            flying: BTreeMap::new(),
            inside: BTreeSet::new(),
            armed: BTreeMap::new(),
            unexpected: 0,
            unexpected_first: None,
        }
    }

    fn take(&mut self, line: &Line) -> Result<(), String> {
        self.try_to_take(line).map_err(|why| format!("{why}: {}", line.event))
    }

    fn try_to_take(&mut self, line: &Line) -> Result<(), String> {
        self.now = line.at;
        let node = match line.node {
            None => None,
            Some(uid) => Some(self.topology.find(uid).ok_or("no such process")?),
        };
        let what = self.what(line)?;
        let event = TraceEvent { at: line.at, node: line.node, what };
        self.events.push(event.clone());
        match node {
            Some(node) => self.at_process(node, event.what),
            None => Ok(()),
        }
    }

    fn at_process(&mut self, node: NodeId, what: What) -> Result<(), String> {
        let now = self.now;
        let mut breaches = Vec::new();
        let topology = &self.topology;
        let court = &mut problem::Court { topology, breaches: &mut breaches };
        match what {
            What::Request { request, .. } => {
                let request: Request<P> = read(topology, &request)?;
                if !self.spec.may(node, &request) {
                    return Err("no user may ask this now".to_owned());
                }
                if P::Problem::request(Wish::Release).is_some_and(|release| release == request) {
                    self.inside.remove(&node);
                }
                self.spec.on_request(node, &request, court);
                self.tally.on_request(now, node, &request);
            }
            What::Notice { notice, .. } => {
                let notice: Notice<P> = read(topology, &notice)?;
                match P::Problem::reaction(&notice) {
                    Reaction::Hold => self.inside.insert(node),
                    Reaction::Outside => self.inside.remove(&node),
                    Reaction::None => false,
                };
                self.spec.on_notice(node, &notice, court);
                self.tally.on_notice(now, node, &notice);
            }
            What::Crash => {
                self.down.insert(node);
                self.armed.remove(&node);
                self.inside.remove(&node);
                let lost = self.flying.len();
                self.flying.retain(|_, to| *to != node);
                self.messages.to_crashed += (lost - self.flying.len()) as u64;
                self.spec.on_crash(node);
                self.tally.on_crash(now, node);
            }
            What::Restart { .. } => {
                self.steps += 1;
                self.armed.insert(node, BTreeSet::new());
                if self.down.remove(&node) {
                    self.spec.on_restart(node);
                    self.tally.on_restart(node);
                }
            }
            What::Boot => {
                self.steps += 1;
                self.armed.insert(node, BTreeSet::new());
            }
            What::Arm { kind, text, .. } => {
                self.armed.entry(node).or_default().insert(format!("{kind} {text}"));
            }
            What::Disarm { kind, text } => self.disarm(node, kind, &text),
            What::Timer { kind, text } => {
                self.steps += 1;
                self.disarm(node, kind, &text);
            }
            What::Receive { id, .. } => {
                self.steps += 1;
                let is_first = self.flying.remove(&id).is_some();
                self.messages.duplicated += u64::from(!is_first);
            }
            What::Send { to, id, kind, .. } => self.sent(to, id, kind)?,
            What::Unexpected { text } => {
                self.unexpected += 1;
                self.unexpected_first.get_or_insert((now, node, text));
            }
            _ => (),
        }
        self.note(breaches);
        Ok(())
    }

    fn disarm(&mut self, node: NodeId, kind: &str, text: &str) {
        if let Some(timers) = self.armed.get_mut(&node) {
            timers.remove(&format!("{kind} {text}"));
        }
    }

    fn sent(&mut self, to: u64, id: u64, kind: &'static str) -> Result<(), String> {
        let to = self.topology.find(to).ok_or("no such process")?;
        self.messages.total += 1;
        self.messages.add(kind, 1);
        if self.down.contains(&to) {
            self.messages.to_crashed += 1;
        } else {
            self.flying.insert(id, to);
        }
        Ok(())
    }

    fn note(&mut self, breaches: Vec<Breach>) {
        for breach in breaches {
            let (promise, detail) = (breach.promise.name(), breach.detail.clone());
            let what = What::Violation { promise, detail };
            self.events.push(TraceEvent { at: self.now, node: None, what });
            if !self.broken.iter().any(|(_, known)| known.promise == breach.promise) {
                self.broken.push((self.now, breach));
            }
        }
    }

    fn close(mut self) -> (Report, Vec<TraceEvent>) {
        let ending = if self.is_at_rest() { Ending::Quiescent } else { Ending::Deadline };
        let mut breaches = Vec::new();
        let court = &mut problem::Court { topology: &self.topology, breaches: &mut breaches };
        self.spec.at_rest(ending, court);
        self.note(breaches);
        if P::META.channel == Channel::Lossy {
            self.messages.lost = self.flying.len() as u64;
        }
        let order = |name: &&str| self.names.iter().position(|known| known == name);
        self.messages.by_kind.sort_by_key(|(name, _)| order(name));
        let report = Report {
            ending,
            time: self.now,
            steps: self.steps,
            rounds: 0,
            promises: Verdict::of::<P>(&self.spec, &self.broken),
            messages: self.messages,
            account: self.tally.into(),
            unexpected: self.unexpected,
            unexpected_first: self.unexpected_first,
            queue_bytes_max: 0,
        };
        (report, self.events)
    }

    /// Whether nothing more could have come of itself: everybody's trace is here, nobody's timer
    /// runs, nobody is inside, and no message is on its way. If not, nobody knows what would have
    /// come.
    fn is_at_rest(&self) -> bool {
        let is_still = |timers: Option<&BTreeSet<String>>| timers.is_some_and(BTreeSet::is_empty);
        let mut live = self.topology.ids().filter(|node| !self.down.contains(node));
        self.flying.is_empty()
            && self.inside.is_empty()
            && live.all(|node| is_still(self.armed.get(&node)))
    }

    /// The event as pictures know it.
    fn what(&self, line: &Line) -> Result<What, String> {
        let event = &line.event;
        let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
        let number = |key: &str| event[key].as_u64().ok_or_else(|| format!("expected {key}"));
        let kind = || {
            let kind = event["kind"].as_str().unwrap_or_default();
            let known = self.names.iter().find(|name| **name == kind);
            known.copied().ok_or_else(|| format!("`{kind}` is nothing this algorithm knows"))
        };
        // Moments in an event are on the same clock as the event.
        let until = || {
            let shift = event["until_ms"].as_f64()? - event["t_ms"].as_f64()?;
            #[expect(clippy::cast_sign_loss, reason = "it is not negative")]
            let micros = (shift * 1_000.0).round().max(0.0) as u64;
            Some(line.at + Time::from_micros(micros))
        };
        let until = until().unwrap_or(line.at);
        Ok(match line.kind() {
            "boot" => What::Boot,
            "request" => What::Request {
                request: event["request"].clone(),
                kind: kind()?,
                text: text("text"),
            },
            "receive" => What::Receive {
                from: number("from")?,
                id: number("id")?,
                kind: kind()?,
                text: text("text"),
            },
            "timer" => What::Timer { kind: kind()?, text: text("text") },
            "state" => {
                What::State { state: event["state"].clone(), changed: words(&event["changed"]) }
            }
            "send" => What::Send {
                to: number("to")?,
                id: number("id")?,
                kind: kind()?,
                text: text("text"),
                message: event["message"].clone(),
            },
            "arm" => What::Arm { kind: kind()?, text: text("text"), until },
            "disarm" => What::Disarm { kind: kind()?, text: text("text") },
            "notice" => {
                What::Notice { notice: event["notice"].clone(), kind: kind()?, text: text("text") }
            }
            "unexpected" => What::Unexpected { text: "a process met what it takes for impossible" },
            "crash" => What::Crash,
            "restart" => What::Restart { forgot: event["forgot"] == true },
            "pause" => What::Pause { until },
            "resume" => What::Resume,
            "partition" => What::Partition { groups: plain(&event["groups"])? },
            "cut" => {
                What::Cut { from: number("from")?, to: number("to")?, both: event["both"] == true }
            }
            "heal" => What::Heal { link: plain(&event["link"])? },
            other => return Err(format!("no event is called `{other}`")),
        })
    }
}

fn words(list: &Value) -> Vec<String> {
    plain(list).unwrap_or_default()
}

fn plain<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    serde_json::from_value(value.clone()).map_err(|error| error.to_string())
}

/// What a process was asked or told, from how people read it: processes by uid, fences as
/// `term.count`.
fn read<T: DeserializeOwned>(topology: &Topology, value: &Value) -> Result<T, String> {
    plain(&addressed(topology, value)?)
}

fn addressed(topology: &Topology, value: &Value) -> Result<Value, String> {
    let Value::Object(parts) = value else { return Ok(value.clone()) };
    let mut whole = Map::new();
    for (name, part) in parts {
        let part = match (name.as_str(), part) {
            ("id" | "Suspect", Value::Number(uid)) => {
                let node = uid.as_u64().and_then(|uid| topology.find(uid));
                json!(node.ok_or_else(|| format!("no process has the uid {uid}"))?.0)
            }
            ("fence", Value::Number(count)) => json!({ "term": 0, "count": count }),
            ("fence", Value::String(fence)) => {
                let (term, count) = fence.split_once('.').ok_or("no fence")?;
                let number = |text: &str| text.parse::<u64>().map_err(|error| error.to_string());
                json!({ "term": number(term)?, "count": number(count)? })
            }
            (_, part) => addressed(topology, part)?,
        };
        whole.insert(name.clone(), part);
    }
    Ok(Value::Object(whole))
}
