//! Checks a scenario against its algorithm and gives every name its address.

use std::collections::{BTreeMap, BTreeSet};

use vez_core::{NodeId, Shape, Time, Topology};
use vez_sim::{Directions, Forget, Input, LinkRule, Network, Plan, Who};

use super::{Act, Event, Fault, Members, Place, Placed, Scenario, Whom, Wiring};
use crate::registry::{self, Entry};

/// A scenario that can run.
pub struct Resolved {
    pub entry: Entry,
    pub topology: Topology,
    pub config: toml::Table,
    pub plan: Plan,
}

type Checked<T> = Result<T, Fault>;

pub fn resolve(scenario: &Scenario) -> Checked<Resolved> {
    let entry = registry::find(&scenario.algorithm.value)
        .map_err(|message| scenario.algorithm.fault(message))?;
    let book = Book::new(&scenario.members)?;
    let topology = topology(scenario, &entry, &book)?;
    let config = config(scenario, &entry, &topology)?;
    let plan = Plan {
        seed: scenario.seed,
        network: network(scenario, &book)?,
        inputs: inputs(scenario, &entry, &book)?,
        clocks: clocks(scenario, &book)?,
        drift: share(&scenario.drift, "drift", 0.9)?,
        amnesia: scenario.amnesia,
        messages: fates(&scenario.messages, "message", |flight| {
            (flight.number, flight.arrives.clone())
        })?,
        timers: fates(&scenario.timers, "timer", |arming| (arming.number, arming.after))?,
        choices: scenario.choices.clone(),
        until: scenario.until,
        ..Plan::default()
    };
    Ok(Resolved { entry, topology, config, plan })
}

/// Which uid is where.
enum Book {
    /// Uids `1..=n`.
    Plain(u64),
    Listed(Vec<u64>, BTreeMap<u64, NodeId>),
}

impl Book {
    fn new(members: &Members) -> Checked<Self> {
        let max = u64::from(Topology::NODES_MAX);
        match members {
            Members::Count(count) => match count.value {
                1.. if count.value <= max => Ok(Self::Plain(count.value)),
                found => Err(count.fault(format!("{found} processes; expected 1 to {max}"))),
            },
            Members::Ids(ids) => {
                let found = ids.value.len() as u64;
                if found == 0 || found > max {
                    return Err(ids.fault(format!("{found} ids; expected 1 to {max}")));
                }
                let mut index = BTreeMap::new();
                for (&uid, node) in ids.value.iter().zip(0..) {
                    if index.insert(uid, NodeId(node)).is_some() {
                        return Err(ids.fault(format!("the id {uid} is listed twice")));
                    }
                }
                Ok(Self::Listed(ids.value.clone(), index))
            }
        }
    }

    fn n(&self) -> u32 {
        match self {
            Self::Plain(count) => *count as u32,
            Self::Listed(ids, _) => ids.len() as u32,
        }
    }

    fn node(&self, uid: u64, place: &Place) -> Checked<NodeId> {
        let found = match self {
            Self::Plain(count) => (1..=*count).contains(&uid).then(|| NodeId(uid as u32 - 1)),
            Self::Listed(_, index) => index.get(&uid).copied(),
        };
        found.ok_or_else(|| {
            let known = match self {
                Self::Plain(count) => format!("1 to {count}"),
                Self::Listed(ids, _) if ids.len() <= 12 => {
                    ids.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
                }
                Self::Listed(ids, _) => format!("one of the {} ids", ids.len()),
            };
            Fault::new(place, format!("no process has the uid {uid}; expected {known}"))
        })
    }

    fn who(&self, whom: Whom, place: &Place) -> Checked<Who> {
        match whom {
            Whom::All => Ok(Who::All),
            Whom::One(uid) => Ok(Who::One(self.node(uid, place)?)),
        }
    }
}

fn topology(scenario: &Scenario, entry: &Entry, book: &Book) -> Checked<Topology> {
    let n = book.n();
    let place = scenario.wiring.as_ref().map_or(Place::Whole, |wiring| wiring.place.clone());
    let fault = |error: vez_core::TopologyError| Fault::new(&place, error.to_string());
    let mut topology = match &scenario.wiring {
        None => Topology::of(entry.meta.layout, n).map_err(fault)?,
        Some(wiring) => Topology::new(shape(wiring, book)?, n, scenario.seed).map_err(fault)?,
    };
    topology.fits(entry.meta.layout).map_err(|why| {
        Fault::new(&place, format!("{} cannot run on this topology: {why}", entry.meta.name))
    })?;
    if let Book::Listed(ids, _) = book {
        topology = topology.with_uids(ids.clone());
    }
    if !scenario.merits.is_empty() {
        let mut merits = vec![0; n as usize];
        for merit in &scenario.merits {
            merits[book.node(merit.value.0, &merit.place)?.index()] = merit.value.1;
        }
        topology = topology.with_merits(merits);
    }
    if !scenario.weights.is_empty() {
        let mut weights = vec![1; n as usize];
        for weight in &scenario.weights {
            weights[book.node(weight.value.0, &weight.place)?.index()] = weight.value.1;
        }
        topology = topology.with_weights(weights);
    }
    Ok(topology)
}

fn shape(wiring: &Placed<Wiring>, book: &Book) -> Checked<Shape> {
    Ok(match &wiring.value {
        Wiring::Complete => Shape::Complete,
        Wiring::Ring => Shape::Ring,
        Wiring::Star => Shape::Star,
        Wiring::Line => Shape::Line,
        Wiring::Grid => Shape::Grid,
        Wiring::Random(share) => Shape::Random(*share),
        Wiring::Edges(edges) => {
            let address = |uid: u64| Ok(book.node(uid, &wiring.place)?.0);
            let mut set = BTreeSet::new();
            for &(a, b) in edges {
                if a == b {
                    return Err(wiring.fault(format!("the link {a}-{b} leads from {a} to itself")));
                }
                if !set.insert((a.min(b), a.max(b))) {
                    return Err(wiring.fault(format!("the link {a}-{b} is listed twice")));
                }
            }
            let edges = edges.iter().map(|&(a, b)| Ok((address(a)?, address(b)?)));
            Shape::Edges(edges.collect::<Checked<_>>()?)
        }
    })
}

fn config(scenario: &Scenario, entry: &Entry, topology: &Topology) -> Checked<toml::Table> {
    let mut table = toml::Table::new();
    for (key, value) in &scenario.config {
        // One by one, so that a complaint has its line.
        let alone = toml::Table::from_iter([(key.clone(), value.value.clone())]);
        (entry.check_config)(&alone)
            .map_err(|why| value.fault(format!("setting `{key}` of {}: {why}", entry.meta.name)))?;
        table.insert(key.clone(), value.value.clone());
    }
    (entry.validate)(&table, topology).map_err(|why| {
        // The complaint begins with the setting it is about, if it is about one.
        let about = why.split(':').next().and_then(|key| scenario.config.get(key));
        let place = about.map_or(Place::Whole, |value| value.place.clone());
        Fault::new(&place, format!("settings of {}: {why}", entry.meta.name))
    })?;
    Ok(table)
}

fn share(value: &Placed<f64>, what: &str, max: f64) -> Checked<f64> {
    if (0.0..=max).contains(&value.value) {
        return Ok(value.value);
    }
    Err(value.fault(format!("`{what}` is {}; expected 0 to {max}", value.value)))
}

fn network(scenario: &Scenario, book: &Book) -> Checked<Network> {
    let weather = &scenario.network;
    let mut links = BTreeMap::new();
    for link in &scenario.links {
        let rule = &link.value;
        let ends = (book.node(rule.from, &link.place)?, book.node(rule.to, &link.place)?);
        for (what, value) in [("loss", rule.loss), ("duplicate", rule.duplicate)] {
            share(&Placed::new(value.unwrap_or(0.0), link.place.clone()), what, 1.0)?;
        }
        let (delay, loss, duplicate) = (rule.delay, rule.loss, rule.duplicate);
        if links.insert(ends, LinkRule { delay, loss, duplicate }).is_some() {
            let (from, to) = (rule.from, rule.to);
            return Err(link.fault(format!("the link from {from} to {to} has two sets of rules")));
        }
    }
    Ok(Network {
        delay: weather.delay,
        loss: share(&weather.loss, "loss", 1.0)?,
        duplicate: share(&weather.duplicate, "duplicate", 1.0)?,
        fifo: weather.fifo,
        links,
    })
}

fn clocks(scenario: &Scenario, book: &Book) -> Checked<BTreeMap<NodeId, f64>> {
    let mut clocks = BTreeMap::new();
    for clock in &scenario.clocks {
        let (uid, rate) = clock.value;
        if !(0.01..=100.0).contains(&rate) {
            return Err(clock.fault(format!("the clock of {uid} at {rate}; expected 0.01 to 100")));
        }
        clocks.insert(book.node(uid, &clock.place)?, rate);
    }
    Ok(clocks)
}

/// What is said of single messages or timers, by their number.
fn fates<T, U>(
    told: &[Placed<T>],
    what: &str,
    fate: impl Fn(&T) -> (u64, U),
) -> Checked<BTreeMap<u64, U>> {
    let mut fates = BTreeMap::new();
    for item in told {
        let (number, fate) = fate(&item.value);
        if number == 0 {
            return Err(item.fault(format!("{what} 0; expected 1 or more, 1 being the first")));
        }
        if fates.insert(number, fate).is_some() {
            return Err(item.fault(format!("the {what} {number} is told of twice")));
        }
    }
    Ok(fates)
}

fn inputs(scenario: &Scenario, entry: &Entry, book: &Book) -> Checked<Vec<(Time, Input)>> {
    let mut events: Vec<&Event> = scenario.events.iter().collect();
    events.sort_by_key(|event| event.at);
    let mut health = Health::default();
    let mut inputs = Vec::with_capacity(events.len());
    for event in events {
        suits(event, entry)?;
        health.check(event)?;
        inputs.push((event.at, input(event, book)?));
    }
    Ok(inputs)
}

fn suits(event: &Event, entry: &Entry) -> Checked<()> {
    let for_mutex = matches!(event.act, Act::Acquire { .. } | Act::Withdraw(_));
    let for_election = matches!(event.act, Act::Start(_) | Act::Suspect { .. });
    let (word, name) = (event.act.word(), entry.meta.name);
    let wrong = |is: &str, expected: &str| {
        let message = format!("`{word}` makes no sense for {name}, {is}; expected {expected}");
        Err(Fault::new(&event.place, message))
    };
    match entry.problem {
        "election" if for_mutex => wrong("an election", "start or suspect"),
        "mutex" if for_election => wrong("a mutual exclusion", "acquire"),
        _ => Ok(()),
    }
}

fn input(event: &Event, book: &Book) -> Checked<Input> {
    let node = |uid: u64| book.node(uid, &event.place);
    let directions = |both| if both { Directions::Both } else { Directions::One };
    Ok(match &event.act {
        Act::Start(whom) => Input::Start(book.who(*whom, &event.place)?),
        Act::Suspect { node: who, of } => Input::Suspect(node(*who)?, node(*of)?),
        Act::Acquire { who, hold } => Input::Acquire(book.who(*who, &event.place)?, *hold),
        Act::Withdraw(uid) => Input::Withdraw(node(*uid)?),
        Act::Crash { node: uid, unsent: false } => Input::Crash(node(*uid)?),
        Act::Crash { node: uid, unsent: true } => Input::CrashUnsent(node(*uid)?),
        Act::Restart { node: uid, amnesia } => {
            let forget = if *amnesia { Forget::Everything } else { Forget::AsPlanned };
            Input::Restart(node(*uid)?, forget)
        }
        Act::Pause { node: uid, span } => Input::Pause(node(*uid)?, *span),
        Act::Partition(groups) => Input::Partition(partition(groups, event, book)?),
        Act::Cut { from, to, both } => Input::Cut(node(*from)?, node(*to)?, directions(*both)),
        Act::Heal(None) => Input::HealAll,
        Act::Heal(Some((from, to, both))) => {
            Input::Heal(node(*from)?, node(*to)?, directions(*both))
        }
    })
}

fn partition(groups: &[Vec<u64>], event: &Event, book: &Book) -> Checked<Vec<Vec<NodeId>>> {
    let mut seen = BTreeSet::new();
    for &uid in groups.iter().flatten() {
        if !seen.insert(uid) {
            return Err(Fault::new(
                &event.place,
                format!("{uid} is on two sides of the partition"),
            ));
        }
    }
    let group = |group: &Vec<u64>| group.iter().map(|&uid| book.node(uid, &event.place)).collect();
    groups.iter().map(group).collect()
}

/// Who is down or paused as the story goes, to notice faults that cannot happen.
#[derive(Default)]
struct Health {
    down: BTreeSet<u64>,
    /// Will crash in its next step, whenever that is.
    doomed: BTreeSet<u64>,
    paused: BTreeMap<u64, Time>,
}

impl Health {
    fn check(&mut self, event: &Event) -> Checked<()> {
        let at = event.at;
        let fault = |message: String| Err(Fault::new(&event.place, message));
        let doomed = &self.doomed;
        let is_down =
            |down: &BTreeSet<u64>, uid: u64| down.contains(&uid) && !doomed.contains(&uid);
        match event.act {
            Act::Crash { node, .. } if is_down(&self.down, node) => {
                return fault(format!("{node} is down at {at}; expected one that is up to crash"));
            }
            Act::Crash { node, unsent } => {
                self.down.insert(node);
                self.paused.remove(&node);
                if unsent {
                    self.doomed.insert(node);
                }
            }
            Act::Restart { node, .. } => {
                self.down.remove(&node);
                self.doomed.remove(&node);
                self.paused.remove(&node);
            }
            Act::Pause { node, .. } if is_down(&self.down, node) => {
                return fault(format!("{node} is down at {at}; expected one that is up to pause"));
            }
            Act::Pause { node, .. } if self.paused.get(&node).is_some_and(|&until| at < until) => {
                let until = self.paused[&node];
                return fault(format!("{node} is paused until {until} already"));
            }
            Act::Pause { node, span } => {
                self.paused.insert(node, at + span);
            }
            Act::Start(Whom::One(node))
            | Act::Suspect { node, .. }
            | Act::Withdraw(node)
            | Act::Acquire { who: Whom::One(node), .. }
                if is_down(&self.down, node) =>
            {
                let word = event.act.word();
                return fault(format!("{node} is down at {at}; expected one that is up to {word}"));
            }
            _ => (),
        }
        Ok(())
    }
}
