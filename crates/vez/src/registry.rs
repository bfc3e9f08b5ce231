//! Algorithms by name, with their types erased at the door.
//!
//! What is erased is the *run*, not the process: each entry holds functions already instantiated
//! for its algorithm, so inside a run everything is static.

use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use vez_algorithms::{Visitor, visit_all};
use vez_check::{CheckError, Hooks};
use vez_core::kind::variants_of;
use vez_core::{Meta, NodeId, Problem, Promise, Protocol, Request, Topology};
use vez_net::{Court, Line, Machine};
use vez_sim::{Plan, Report, Trace, TraceEvent};

use crate::rules::Rules;
use crate::scenario::suggestion;

/// Everything the tool can do with one algorithm.
#[derive(Clone, Copy)]
pub struct Entry {
    pub meta: Meta,
    pub problem: &'static str,
    /// Every promise a run is judged by.
    pub promises: &'static [Promise],
    /// The kinds of what can happen to a process, as its rules name them.
    pub requests: fn() -> &'static [&'static str],
    pub messages: fn() -> &'static [&'static str],
    pub timers: fn() -> &'static [&'static str],
    /// The settings, with their defaults.
    pub settings: fn() -> serde_json::Map<String, serde_json::Value>,
    /// Whether these settings can be read; if not, why.
    pub check_config: fn(&toml::Table) -> Result<(), String>,
    /// Whether these settings make sense for this system; if not, why.
    pub validate: fn(&toml::Table, &Topology) -> Result<(), String>,
    /// Runs it. The settings must have been checked.
    pub simulate: fn(&Topology, &toml::Table, &Plan) -> Report,
    /// Runs it and writes down at most so many events.
    pub watch: fn(&Topology, &toml::Table, &Plan, usize) -> (Report, Trace),
    /// Explores every run of it.
    pub check: Check,
    /// One process of it, to be run on sockets; the last is its seed. The settings must have been
    /// checked.
    pub process: fn(NodeId, Arc<Topology>, &toml::Table, u64) -> Box<dyn Machine>,
    /// Judges what real processes wrote down.
    pub judge: Judge,
    /// Judges them while they run.
    pub court: fn(&Topology, &toml::Table) -> Box<dyn Court>,
}

pub type Check = fn(
    &Topology,
    &toml::Table,
    &vez_check::Options,
    &Hooks<'_>,
) -> Result<vez_check::Outcome, CheckError>;

pub type Judge = fn(&Topology, &toml::Table, &[Line]) -> Result<(Report, Vec<TraceEvent>), String>;

impl Entry {
    pub fn rules(&self) -> Rules {
        Rules::read(self.meta.rules)
    }
}

static ALL: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let mut table = Table(Vec::new());
    visit_all(&mut table);
    table.0
});

/// Every algorithm, in the order of the list.
pub fn all() -> &'static [Entry] {
    &ALL
}

/// The algorithm of this name; otherwise a complaint that names the nearest.
pub fn find(name: &str) -> Result<Entry, String> {
    let found = all().iter().find(|entry| entry.meta.name == name);
    found.copied().ok_or_else(|| {
        let near = suggestion(name, all().iter().map(|entry| entry.meta.name));
        let hint = if near.is_empty() { "; `vez algorithms` lists them" } else { &near };
        format!("no algorithm is called `{name}`{hint}")
    })
}

struct Table(Vec<Entry>);

impl Visitor for Table {
    fn visit<P: Protocol>(&mut self) {
        self.0.push(Entry {
            meta: P::META,
            problem: P::Problem::NAME,
            promises: P::Problem::PROMISES,
            requests: variants_of::<Request<P>>,
            messages: variants_of::<P::Message>,
            timers: variants_of::<P::Timer>,
            settings: settings::<P>,
            check_config: |table| read::<P>(table).map(|_| ()),
            validate: |table, topology| P::validate(&read::<P>(table)?, topology),
            simulate: |topology, table, plan| {
                vez_sim::simulate::<P>(topology, &checked::<P>(table), plan)
            },
            watch: |topology, table, plan, events_max| {
                let trace = Trace::with_limit(events_max);
                vez_sim::watch::<P, _>(topology, &checked::<P>(table), plan, trace)
            },
            check: |topology, table, options, hooks| {
                vez_check::check::<P>(topology, &checked::<P>(table), options, hooks)
            },
            process: |me, topology, table, seed| {
                let config = checked::<P>(table);
                Box::new(vez_net::Process::<P>::new(me, topology, config, seed))
            },
            judge: |topology, table, lines| {
                vez_net::judge::<P>(topology, &checked::<P>(table), lines)
            },
            court: |topology, table| vez_net::court::<P>(topology, &checked::<P>(table)),
        });
    }
}

fn settings<P: Protocol>() -> serde_json::Map<String, serde_json::Value> {
    match serde_json::to_value(P::Config::default()) {
        Ok(serde_json::Value::Object(settings)) => settings,
        _ => serde_json::Map::new(),
    }
}

fn read<P: Protocol>(table: &toml::Table) -> Result<P::Config, String> {
    if table.is_empty() {
        return Ok(P::Config::default());
    }
    // An algorithm without settings has `()`, which would complain of a map, not of the name.
    if settings::<P>().is_empty() {
        return Err("expected none: this algorithm has no settings".to_owned());
    }
    P::Config::deserialize(table.clone()).map_err(|error| error.message().to_owned())
}

fn checked<P: Protocol>(table: &toml::Table) -> P::Config {
    read::<P>(table).expect("the settings were checked when the scenario was resolved")
}
