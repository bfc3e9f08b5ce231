//! A scenario comes in, its run goes out.

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use vez_core::{NodeId, Shape, Topology};
use vez_sim::{TraceEvent, What};

use super::{Limits, Refusal, Shared};
use crate::picture::{self, Picture, shape};
use crate::result::RunResult;
use crate::scenario::{self, Members, Resolved, Scenario};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Question {
    scenario: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    format: String,
}

/// A scenario's own text, or its run as a picture.
#[derive(Clone, Copy)]
enum Export {
    Toml,
    Picture(Picture),
}

impl Export {
    fn of(word: &str) -> Result<Self, Refusal> {
        match (word, Picture::of(word)) {
            ("toml", _) => Ok(Self::Toml),
            (_, Some(picture)) => Ok(Self::Picture(picture)),
            _ => {
                let words = ["toml"].into_iter().chain(Picture::ALL.map(Picture::word));
                let known = scenario::alternatives(&words.collect::<Vec<_>>());
                Err(Refusal::bad(format!("format `{word}`; expected {known}")))
            }
        }
    }
}

#[derive(Serialize)]
struct Shown<'a> {
    /// As it was understood.
    scenario: Value,
    result: RunResult<'a>,
    topology: Wiring,
    events: &'a [TraceEvent],
    /// How many more there were.
    dropped: u64,
}

#[derive(Serialize)]
pub(super) struct Wiring {
    shape: &'static str,
    nodes: Vec<Named>,
    /// Left out where everyone is linked to everyone and they are too many to tell apart.
    edges: Vec<(u64, u64)>,
}

#[derive(Serialize)]
struct Named {
    uid: u64,
    name: String,
}

/// More lines than this between all of them are no picture.
const MESH_MAX: u32 = 40;
/// What of a value fits beside a process.
const TEXT_MAX: usize = 200;

pub(super) async fn run(
    State(lab): State<Shared>,
    question: Result<Json<Question>, JsonRejection>,
) -> Result<Response, Refusal> {
    let scenario = understood(question)?;
    let limits = lab.limits;
    let text = in_turn(&lab, move || shown(&scenario, limits)).await?;
    Ok(([(CONTENT_TYPE, "application/json")], text).into_response())
}

pub(super) async fn export(
    State(lab): State<Shared>,
    wanted: Result<Query<Wanted>, QueryRejection>,
    question: Result<Json<Question>, JsonRejection>,
) -> Result<Response, Refusal> {
    let Query(Wanted { format }) = wanted.map_err(|why| Refusal::bad(why.body_text()))?;
    let format = Export::of(&format)?;
    let scenario = understood(question)?;
    let limits = lab.limits;
    let text = in_turn(&lab, move || {
        let resolved = resolved(&scenario, limits)?;
        match format {
            Export::Toml => Ok(scenario.to_string()),
            Export::Picture(picture) => match picture::draw(picture, &resolved) {
                Ok((_, text)) => Ok(text),
                Err(why) => Err(Refusal::bad(why.to_string())),
            },
        }
    });
    let kind = match format {
        Export::Toml => "application/toml; charset=utf-8",
        Export::Picture(picture) => picture.content_type(),
    };
    Ok(([(CONTENT_TYPE, kind)], text.await?).into_response())
}

/// Does the work away from the threads that answer, when it is its turn.
async fn in_turn<T: Send + 'static>(
    lab: &Shared,
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let _turn = lab.turns.acquire().await.expect("it is never closed");
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| {
        let why = "the run failed: a mistake of ours; the scenario shows how".to_owned();
        Err(Refusal(StatusCode::INTERNAL_SERVER_ERROR, why))
    })
}

fn understood(question: Result<Json<Question>, JsonRejection>) -> Result<Scenario, Refusal> {
    let Json(question) = question.map_err(|why| unreadable(&why))?;
    of_json(&question.scenario)
}

pub(super) fn unreadable(why: &JsonRejection) -> Refusal {
    let text = why.body_text();
    Refusal(why.status(), text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A scenario file in the shape of JSON.
pub(super) fn as_json(scenario: &Scenario) -> Value {
    let table: toml::Table =
        toml::from_str(&scenario.to_string()).expect("a scenario is written as TOML");
    serde_json::to_value(table).expect("TOML without dates is JSON")
}

pub(super) fn of_json(value: &Value) -> Result<Scenario, Refusal> {
    // JSON has a word for nothing, and TOML has none: what is null is not said.
    let text = toml::to_string(&without_nulls(value))
        .map_err(|error| Refusal::bad(format!("scenario: {error}")))?;
    // A line of a text that nobody has seen tells nobody anything; the line itself does.
    scenario::read(&text).map_err(|fault| Refusal::bad(explained(fault, &text)))
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(parts) => {
            let said = parts.iter().filter(|(_, part)| !part.is_null());
            said.map(|(name, part)| (name.clone(), without_nulls(part))).collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

fn explained(fault: scenario::Fault, text: &str) -> String {
    match fault.place {
        scenario::Place::Line(line) => {
            let said = text.lines().nth(line - 1).unwrap_or_default().trim();
            format!("`{said}`: {}", fault.message)
        }
        _ => fault.message,
    }
}

pub(super) fn resolved(scenario: &Scenario, limits: Limits) -> Result<Resolved, Refusal> {
    let n = match &scenario.members {
        Members::Count(count) => count.value,
        Members::Ids(ids) => ids.value.len() as u64,
    };
    if u64::from(limits.nodes) < n {
        let most = limits.nodes;
        return Err(Refusal::bad(format!("{n} processes; expected at most {most}")));
    }
    let text = || scenario.to_string();
    let mut resolved = scenario::resolve(scenario).map_err(|fault| {
        // Places are of the text that came in, which is written like this one.
        Refusal::bad(match fault.place {
            scenario::Place::Line(_) => fault.message,
            _ => explained(fault, &text()),
        })
    })?;
    resolved.plan.steps_max = resolved.plan.steps_max.min(limits.steps);
    Ok(resolved)
}

fn shown(scenario: &Scenario, limits: Limits) -> Result<String, Refusal> {
    let resolved = resolved(scenario, limits)?;
    let Resolved { entry, topology, config, plan } = &resolved;
    let (report, mut trace) = (entry.watch)(topology, config, plan, limits.events);
    for event in &mut trace.events {
        shorten(event);
    }
    let shown = Shown {
        scenario: as_json(scenario),
        result: RunResult::new(&resolved, &report),
        topology: wiring(topology),
        events: &trace.events,
        dropped: trace.dropped,
    };
    Ok(serde_json::to_string(&shown).expect("plain data"))
}

/// Leaves out what the page does not show.
pub(super) fn shorten(event: &mut TraceEvent) {
    match &mut event.what {
        What::State { state, changed } if !changed.is_empty() => {
            *state = Value::Null;
            for text in changed {
                if let Some((end, _)) = text.char_indices().nth(TEXT_MAX) {
                    text.truncate(end);
                    text.push('…');
                }
            }
        }
        What::Send { message, .. } => *message = Value::Null,
        _ => (),
    }
}

pub(super) fn wiring(topology: &Topology) -> Wiring {
    let is_mesh = matches!(topology.shape(), Shape::Complete) && MESH_MAX < topology.n();
    let ends = |(a, b): (NodeId, NodeId)| (topology.uid(a), topology.uid(b));
    let named = |node: NodeId| Named { uid: topology.uid(node), name: topology.name(node) };
    Wiring {
        shape: shape(topology).trim_start_matches("random "),
        nodes: topology.ids().map(named).collect(),
        edges: if is_mesh { Vec::new() } else { topology.links().map(ends).collect() },
    }
}
