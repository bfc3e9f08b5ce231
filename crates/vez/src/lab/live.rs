//! A cluster that runs, as the page follows it: its traces, merged and judged while they grow.
//!
//! **Invariant:** what is remembered is bounded. The older half of it is thinned out: what nobody
//! was told of goes first.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use vez_core::{Channel, Time};
use vez_net::{Court, Group, Line, Log, Loom};
use vez_sim::{TraceEvent, What};

use super::runs::{self, Wiring};
use super::{Refusal, Shared};
use crate::registry::Entry;

/// A line for the cluster, and where its answer goes.
pub struct Order {
    pub line: String,
    pub answer: Option<oneshot::Sender<Result<(), String>>>,
}

/// A cluster that runs, and whoever takes its commands.
pub struct Live {
    feed: Mutex<Feed>,
    orders: mpsc::UnboundedSender<Order>,
}

/// What has been read of the traces, merged and judged.
struct Feed {
    entry: Entry,
    group: Group,
    ids: Vec<u64>,
    tails: Vec<Tail>,
    /// Read, but too fresh to know what else happened then.
    fresh: Vec<Line>,
    loom: Loom,
    court: Box<dyn Court>,
    shown: VecDeque<Shown>,
    next: u64,
    /// When each message was sent that may be lost, and has not been heard.
    flying: BTreeMap<u64, Time>,
    /// Why nothing more can be understood, if so.
    stuck: Option<String>,
}

/// A trace of which so much has been read.
struct Tail {
    path: PathBuf,
    read: u64,
    /// A line whose end is not written yet.
    half: Vec<u8>,
    /// Up to when everything is known that it holds; `None` if there is nothing more to read.
    until: Option<Time>,
}

struct Shown {
    number: u64,
    event: TraceEvent,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct From {
    from: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Said {
    line: String,
}

#[derive(Serialize)]
pub(super) struct Stretch {
    scenario: Value,
    problem: &'static str,
    topology: Wiring,
    promises: Vec<Value>,
    now_ms: f64,
    events: Vec<TraceEvent>,
    /// Where the next one begins, and whether there is more already.
    next: u64,
    more: bool,
    stuck: Option<String>,
}

const PACE: Duration = Duration::from_millis(100);
/// What happened within this time may not have been written down by all.
const HORIZON: Time = Time::from_millis(150);
/// Who has not been heard for so long will not be, where messages may be lost.
const LOST_AFTER: Time = Time::from_secs(2);
const READ_MAX: u64 = 1 << 20;
const ANSWER_MAX: usize = 4_000;
const SHOWN_MAX: usize = 8_000;
const LINE_MAX: usize = 200;
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

impl Live {
    /// Follows the traces in this directory, of these processes.
    pub fn new(
        entry: Entry,
        group: Group,
        traces: &Path,
        orders: mpsc::UnboundedSender<Order>,
    ) -> anyhow::Result<Arc<Self>> {
        let topology = group.topology(entry.meta.layout)?;
        let ids: Vec<u64> = group.members.iter().map(|member| member.id).collect();
        let names = ids.iter().map(u64::to_string).chain(["cluster".to_owned()]);
        let tail = |name| Tail {
            path: traces.join(format!("{name}.jsonl")),
            read: 0,
            half: Vec::new(),
            until: None,
        };
        // What an earlier run left there is not this one's.
        let tails = names.map(tail).map(Tail::at_end).collect();
        let court = (entry.court)(&topology, &group.config);
        let feed = Feed {
            entry,
            group,
            ids,
            tails,
            fresh: Vec::new(),
            loom: Loom::default(),
            court,
            shown: VecDeque::new(),
            next: 0,
            flying: BTreeMap::new(),
            stuck: None,
        };
        Ok(Arc::new(Self { feed: Mutex::new(feed), orders }))
    }

    /// Reads on, whether anybody looks or not, as long as anybody could.
    pub(super) async fn follow(self: Arc<Self>) {
        loop {
            tokio::time::sleep(PACE).await;
            let live = Arc::clone(&self);
            // What goes wrong is said where it is asked for.
            let _ = tokio::task::spawn_blocking(move || live.open().read_on()).await;
        }
    }

    fn open(&self) -> std::sync::MutexGuard<'_, Feed> {
        self.feed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What has happened from a number on.
pub(super) async fn stretch(
    State(lab): State<Shared>,
    from: Result<Query<From>, QueryRejection>,
) -> Result<Json<Stretch>, Refusal> {
    let Query(From { from }) = from.map_err(|why| Refusal::bad(why.body_text()))?;
    let live = lab.live.as_ref().ok_or_else(nothing_live)?;
    live.open().stretch(from).map(Json).map_err(Refusal::bad)
}

/// Passes a command on to the cluster.
pub(super) async fn say(
    State(lab): State<Shared>,
    said: Result<Json<Said>, JsonRejection>,
) -> Result<Json<Value>, Refusal> {
    let Json(Said { line }) = said.map_err(|why| runs::unreadable(&why))?;
    let live = lab.live.as_ref().ok_or_else(nothing_live)?;
    if LINE_MAX < line.len() || line.contains(['\n', '\r']) {
        return Err(Refusal::bad(format!("expected one line of at most {LINE_MAX} bytes")));
    }
    let (answer, answered) = oneshot::channel();
    let gone = || Refusal(StatusCode::GONE, "the cluster has ended".to_owned());
    live.orders.send(Order { line, answer: Some(answer) }).map_err(|_| gone())?;
    match tokio::time::timeout(ANSWER_WITHIN, answered).await {
        Ok(Ok(Ok(()))) => Ok(Json(json!({}))),
        Ok(Ok(Err(why))) => Err(Refusal::bad(why)),
        Ok(Err(_)) => Err(gone()),
        Err(_) => {
            let why = "the cluster is busy with what it was told before; this comes next";
            Err(Refusal(StatusCode::SERVICE_UNAVAILABLE, why.to_owned()))
        }
    }
}

fn nothing_live() -> Refusal {
    Refusal(StatusCode::NOT_FOUND, "no cluster runs here; `vez cluster --lab` starts one".into())
}

impl Feed {
    fn read_on(&mut self) {
        if self.stuck.is_none()
            && let Err(why) = self.try_to_read_on()
        {
            self.stuck = Some(why);
        }
    }

    fn try_to_read_on(&mut self) -> Result<(), String> {
        let horizon = now().saturating_sub(HORIZON);
        for tail in &mut self.tails {
            self.fresh.extend(tail.read_on()?);
        }
        // Of a trace that has not been read to its end, what comes later is not known yet.
        let known = self.tails.iter().filter_map(|tail| tail.until).fold(horizon, Time::min);
        let (ripe, fresh) = self.fresh.drain(..).partition(|line| line.at <= known);
        self.fresh = fresh;
        for line in self.loom.weave(ripe, &self.ids).lines {
            for event in self.court.hear(&line)? {
                self.show(event);
            }
        }
        self.lose(self.loom.since_first(known));
        if SHOWN_MAX < self.shown.len() {
            self.thin_out();
        }
        Ok(())
    }

    fn show(&mut self, event: TraceEvent) {
        if self.entry.meta.channel == Channel::Lossy {
            match event.what {
                What::Send { id, .. } => drop(self.flying.insert(id, event.at)),
                What::Receive { id, .. } => drop(self.flying.remove(&id)),
                _ => (),
            }
        }
        self.shown.push_back(Shown { number: self.next, event });
        self.next += 1;
    }

    fn lose(&mut self, now: Time) {
        let late = now.saturating_sub(LOST_AFTER);
        let lost: Vec<u64> =
            self.flying.iter().filter(|(_, sent)| **sent < late).map(|(&id, _)| id).collect();
        for id in lost {
            self.flying.remove(&id);
            let what = What::Lose { id, cause: "chance" };
            self.show(TraceEvent { at: now, node: None, what });
        }
    }

    /// Of the older half, keeps the steps of which somebody was told something, and how every
    /// process stood at their end.
    fn thin_out(&mut self) {
        let old: Vec<Shown> = self.shown.drain(..SHOWN_MAX / 2).collect();
        let mut last = BTreeMap::new();
        for (index, Shown { event, .. }) in old.iter().enumerate() {
            if let What::State { .. } = event.what {
                last.insert(event.node, index);
            }
        }
        let mut kept = Vec::new();
        let mut step: Vec<Shown> = Vec::new();
        let mut is_told = false;
        for (index, mut shown) in old.into_iter().enumerate() {
            if !is_effect(&shown.event.what) {
                kept.extend(step.drain(..).filter(|shown| is_told || is_whole(shown)));
                is_told = false;
            }
            is_told |= is_notable(&shown.event.what);
            if let What::State { changed, .. } = &mut shown.event.what
                && last.get(&shown.event.node) == Some(&index)
            {
                // Then the whole state is shown.
                changed.clear();
            }
            step.push(shown);
        }
        kept.extend(step.into_iter().filter(|shown| is_told || is_whole(shown)));
        // Of what was said, only what is also heard.
        let heard = |shown: &Shown| match shown.event.what {
            What::Receive { id, .. } | What::Lose { id, .. } => Some(id),
            _ => None,
        };
        let heard: BTreeSet<u64> = kept.iter().chain(&self.shown).filter_map(heard).collect();
        kept.retain(
            |shown| !matches!(shown.event.what, What::Send { id, .. } if !heard.contains(&id)),
        );
        // So much that even that is too much: the oldest is forgotten.
        let extra = kept.len().saturating_sub(SHOWN_MAX / 4);
        for shown in kept.into_iter().skip(extra).rev() {
            self.shown.push_front(shown);
        }
    }

    fn stretch(&self, from: u64) -> Result<Stretch, String> {
        let topology =
            self.group.topology(self.entry.meta.layout).map_err(|error| error.to_string())?;
        let start = self.shown.partition_point(|shown| shown.number < from);
        let some = self.shown.range(start..).take(ANSWER_MAX);
        let events: Vec<TraceEvent> = some
            .map(|shown| {
                let mut event = shown.event.clone();
                runs::shorten(&mut event);
                event
            })
            .collect();
        let following = self.shown.get(start + events.len());
        let promises = self.court.verdicts().into_iter().map(|verdict| {
            json!({
                "name": verdict.promise.name(),
                "kept": verdict.kept,
                "claimed": verdict.claimed,
                "broken_at_ms": verdict.broken_at.map(Time::as_millis_f64),
                "detail": verdict.detail,
            })
        });
        Ok(Stretch {
            scenario: json!({
                "algorithm": self.entry.meta.name,
                "ids": self.ids,
                "config": self.group.config,
            }),
            problem: self.entry.problem,
            topology: runs::wiring(&topology),
            promises: promises.collect(),
            now_ms: self.loom.since_first(now().saturating_sub(HORIZON)).as_millis_f64(),
            events,
            next: following.map_or(self.next, |shown| shown.number),
            more: following.is_some(),
            stuck: self.stuck.clone(),
        })
    }
}

impl Tail {
    fn at_end(mut self) -> Self {
        self.read = std::fs::metadata(&self.path).map_or(0, |file| file.len());
        self
    }

    /// What has been written since, line by line; not more than so much at once.
    fn read_on(&mut self) -> Result<Vec<Line>, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.path.display());
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        file.seek(SeekFrom::Start(self.read)).map_err(failed)?;
        let read = file.take(READ_MAX).read_to_end(&mut self.half).map_err(failed)?;
        self.read += read as u64;
        let end = self.half.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
        let rest = self.half.split_off(end);
        let whole = std::mem::replace(&mut self.half, rest);
        let name = self.path.display().to_string();
        let lines = Log::read(&name, &whole).map_err(|error| error.to_string())?.lines;
        let is_all = (read as u64) < READ_MAX;
        let last = lines.iter().map(|line| line.at).max();
        self.until = if is_all { None } else { last.or(self.until).or(Some(Time::ZERO)) };
        Ok(lines)
    }
}

/// What a step leaves behind; all else begins a new one.
fn is_effect(what: &What) -> bool {
    matches!(
        what,
        What::State { .. }
            | What::Send { .. }
            | What::Arm { .. }
            | What::Disarm { .. }
            | What::Notice { .. }
            | What::Unexpected { .. }
            | What::Violation { .. }
    )
}

fn is_notable(what: &What) -> bool {
    let is_plain = matches!(
        what,
        What::Receive { .. }
            | What::Timer { .. }
            | What::State { .. }
            | What::Send { .. }
            | What::Arm { .. }
            | What::Disarm { .. }
            | What::Lose { .. }
    );
    !is_plain
}

fn is_whole(shown: &Shown) -> bool {
    matches!(&shown.event.what, What::State { changed, .. } if changed.is_empty())
}

#[expect(clippy::disallowed_methods, reason = "real processes are dated by the clock on the wall")]
fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_micros(since.as_micros() as u64)
}
