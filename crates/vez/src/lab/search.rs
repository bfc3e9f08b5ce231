//! "Find a run that breaks this": the checker in the background.
//!
//! A search outlives the question that began it; the page asks how far it is. Few run at once,
//! none for long, and only the last few are remembered.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use vez_check::{CheckError, Hooks, Judgement, Options, Outcome, Progress, Stop};
use vez_core::Promise;

use super::{Limits, Refusal, Shared, runs};
use crate::checking::{Assumption, Exhibit};
use crate::scenario::{Resolved, Scenario, alternatives};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    scenario: Value,
    /// Only this one; by default those the algorithm makes.
    #[serde(default)]
    promise: Option<String>,
    #[serde(default = "once")]
    entries: u32,
    #[serde(default)]
    crashes: Option<u32>,
    #[serde(default)]
    losses: Option<u32>,
    #[serde(default)]
    duplicates: Option<u32>,
    #[serde(default)]
    partitions: Option<u32>,
    #[serde(default)]
    without: Vec<String>,
    #[serde(default)]
    states_max: Option<u64>,
}

fn once() -> u32 {
    1
}

/// Every search that is remembered, by number.
#[derive(Default)]
pub(super) struct Searches(Mutex<(u64, BTreeMap<u64, Arc<Search>>)>);

struct Search {
    cancel: AtomicBool,
    begun: Instant,
    heard: Mutex<Heard>,
}

#[derive(Default)]
struct Heard {
    progress: Option<Progress>,
    end: Option<Result<Found, String>>,
    seconds: f64,
}

#[derive(Clone, Serialize)]
struct Found {
    complete: bool,
    stopped: Option<Stop>,
    states: u64,
    transitions: u64,
    depth: u32,
    promises: Vec<Judged>,
    broken: Option<Broken>,
}

#[derive(Clone, Serialize)]
struct Judged {
    name: &'static str,
    judgement: Judgement,
    detail: Option<String>,
}

#[derive(Clone, Serialize)]
struct Broken {
    promise: &'static str,
    detail: String,
    steps: Vec<String>,
    cycle_from: Option<usize>,
    /// Replays it; none if the simulator comes to another end.
    scenario: Option<Value>,
}

#[derive(Serialize)]
pub(super) struct Begun {
    id: u64,
}

#[derive(Serialize)]
pub(super) struct Standing {
    state: &'static str,
    progress: Option<Far>,
    outcome: Option<Found>,
    error: Option<String>,
}

#[derive(Serialize)]
struct Far {
    states: u64,
    transitions: u64,
    depth: u32,
    frontier: u64,
    memory: u64,
    seconds: f64,
}

const RUNNING_MAX: usize = 2;
const REMEMBERED: usize = 16;
const PATIENCE: Duration = Duration::from_mins(2);
const STATES_MAX: u64 = 20_000_000;
const MEMORY_MAX: u64 = 1 << 30;
const NODES_MAX: u32 = 12;

impl Search {
    #[expect(clippy::disallowed_methods, reason = "how long a search takes is part of its result")]
    fn new() -> Self {
        Self {
            cancel: AtomicBool::new(false),
            begun: Instant::now(),
            heard: Mutex::new(Heard::default()),
        }
    }

    fn report(&self, progress: Progress) {
        if PATIENCE < self.begun.elapsed() {
            self.cancel.store(true, Ordering::Relaxed);
        }
        open(&self.heard).progress = Some(progress);
    }

    fn end(&self, found: Result<Found, String>) {
        let mut heard = open(&self.heard);
        heard.seconds = self.begun.elapsed().as_secs_f64();
        heard.end = Some(found);
    }
}

pub(super) async fn begin(
    State(lab): State<Shared>,
    wanted: Result<Json<Wanted>, JsonRejection>,
) -> Result<(StatusCode, Json<Begun>), Refusal> {
    let Json(wanted) = wanted.map_err(|why| runs::unreadable(&why))?;
    let scenario = runs::of_json(&wanted.scenario)?;
    let resolved = runs::resolved(&scenario, Limits { nodes: NODES_MAX, ..lab.limits })?;
    let options = options(&wanted, &resolved)?;
    let search = Arc::new(Search::new());
    let id = lab.searches.add(Arc::clone(&search))?;
    tokio::task::spawn_blocking(move || {
        let progress = |progress: Progress| search.report(progress);
        let hooks = Hooks { cancel: Some(&search.cancel), progress: Some(&progress) };
        let Resolved { entry, topology, config, .. } = &resolved;
        let outcome = (entry.check)(topology, config, &options, &hooks);
        let end = |outcome: Outcome| found(&scenario, &outcome);
        search.end(outcome.map(end).map_err(|error: CheckError| error.to_string()));
    });
    Ok((StatusCode::ACCEPTED, Json(Begun { id })))
}

pub(super) async fn standing(
    State(lab): State<Shared>,
    Path(id): Path<u64>,
) -> Result<Json<Standing>, Refusal> {
    let search = lab.searches.get(id)?;
    let heard = open(&search.heard);
    let seconds = match heard.end {
        Some(_) => heard.seconds,
        None => search.begun.elapsed().as_secs_f64(),
    };
    let far = |progress: Progress| {
        let Progress { states, transitions, depth, frontier, memory } = progress;
        Far { states, transitions, depth, frontier, memory, seconds }
    };
    let (outcome, error) = match &heard.end {
        None => (None, None),
        Some(Ok(found)) => (Some(found.clone()), None),
        Some(Err(error)) => (None, Some(error.clone())),
    };
    let state = if heard.end.is_some() { "done" } else { "running" };
    Ok(Json(Standing { state, progress: heard.progress.map(far), outcome, error }))
}

pub(super) async fn cancel(
    State(lab): State<Shared>,
    Path(id): Path<u64>,
) -> Result<StatusCode, Refusal> {
    lab.searches.get(id)?.cancel.store(true, Ordering::Relaxed);
    Ok(StatusCode::NO_CONTENT)
}

impl Searches {
    fn add(&self, search: Arc<Search>) -> Result<u64, Refusal> {
        let (last, known) = &mut *open(&self.0);
        let is_running = |search: &Search| open(&search.heard).end.is_none();
        if RUNNING_MAX <= known.values().filter(|search| is_running(search)).count() {
            let why = format!("{RUNNING_MAX} searches are under way; cancel one, or wait");
            return Err(Refusal(StatusCode::TOO_MANY_REQUESTS, why));
        }
        while REMEMBERED <= known.len() {
            known.pop_first();
        }
        *last += 1;
        known.insert(*last, search);
        Ok(*last)
    }

    fn get(&self, id: u64) -> Result<Arc<Search>, Refusal> {
        let found = open(&self.0).1.get(&id).cloned();
        found.ok_or_else(|| Refusal(StatusCode::NOT_FOUND, format!("no search {id} is remembered")))
    }
}

fn options(wanted: &Wanted, resolved: &Resolved) -> Result<Options, Refusal> {
    let entry = &resolved.entry;
    let mut options = Options::new(&entry.meta);
    if let Some(name) = &wanted.promise {
        let found = entry.promises.iter().find(|promise| promise.name() == name);
        options.promises = vec![*found.ok_or_else(|| {
            let names: Vec<&str> = entry.promises.iter().map(|promise| promise.name()).collect();
            Refusal::bad(format!("promise `{name}`; expected {}", alternatives(&names)))
        })?];
        options.bounded_wait = options.promises.contains(&Promise::BoundedWait);
    }
    for name in &wanted.without {
        Assumption::named(name, &entry.meta).map_err(Refusal::bad)?.remove(&mut options);
    }
    options.entries = wanted.entries;
    options.crashes = wanted.crashes.unwrap_or(options.crashes);
    options.losses = wanted.losses.unwrap_or(options.losses);
    options.duplicates = wanted.duplicates.unwrap_or(options.duplicates);
    options.partitions = wanted.partitions.unwrap_or(options.partitions);
    options.states_max = wanted.states_max.unwrap_or(STATES_MAX).min(STATES_MAX);
    options.memory_max = MEMORY_MAX;
    Ok(options)
}

fn found(scenario: &Scenario, outcome: &Outcome) -> Found {
    let judged = |verdict: &vez_check::Verdict| Judged {
        name: verdict.promise.name(),
        judgement: verdict.judgement,
        detail: verdict.detail.clone(),
    };
    let broken = outcome.counterexample.as_ref().map(|found| {
        let exhibit = Exhibit::new(scenario, "", found);
        let plain = || found.steps.iter().map(|step| step.text.clone()).collect();
        Broken {
            promise: found.promise.name(),
            detail: found.detail.clone(),
            steps: exhibit.as_ref().map_or_else(plain, |exhibit| exhibit.steps.clone()),
            cycle_from: found.cycle_from,
            scenario: exhibit.map(|exhibit| runs::as_json(&exhibit.scenario)),
        }
    });
    Found {
        complete: outcome.complete,
        stopped: outcome.stopped,
        states: outcome.states,
        transitions: outcome.transitions,
        depth: outcome.depth,
        promises: outcome.promises.iter().map(judged).collect(),
        broken,
    }
}

fn open<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
