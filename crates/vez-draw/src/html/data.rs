//! What the page's script knows: steps, states and messages, as JSON that no markup can end.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use vez_sim::What;

use crate::scene::Scene;
use crate::story::{journey, tell};
use crate::words::{moment, name};

#[derive(Serialize)]
struct Data<'a> {
    /// By lane.
    names: Vec<String>,
    /// The state each process booted with, by name: field, value.
    first: BTreeMap<String, Vec<(String, String)>>,
    steps: Vec<StepData<'a>>,
    messages: BTreeMap<u64, MessageData<'a>>,
}

#[derive(Serialize)]
struct StepData<'a> {
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    who: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    changed: &'a [String],
}

#[derive(Serialize)]
struct MessageData<'a> {
    kind: &'static str,
    journey: String,
    message: &'a Value,
}

pub(super) fn data(scene: &Scene<'_>) -> String {
    let steps = scene.steps.iter().enumerate().map(|(index, step)| StepData {
        time: moment(step.at()),
        who: step.node().map(name),
        words: tell(scene, index),
        changed: &scene.changes[index],
    });
    let messages = scene.flights.iter().map(|flight| {
        let (kind, message) = (flight.kind, flight.message);
        (flight.id, MessageData { kind, journey: journey(flight), message })
    });
    let data = Data {
        names: scene.uids.iter().map(|&uid| name(uid)).collect(),
        first: first_states(scene),
        steps: steps.collect(),
        messages: messages.collect(),
    };
    let json = serde_json::to_string(&data).expect("plain data");
    json.replace('<', "\\u003c")
}

fn first_states(scene: &Scene<'_>) -> BTreeMap<String, Vec<(String, String)>> {
    let mut first = BTreeMap::new();
    for event in scene.run.events {
        let (What::State { state, .. }, Some(uid)) = (&event.what, event.node) else { continue };
        first.entry(name(uid)).or_insert_with(|| {
            let mut fields = Vec::new();
            flatten("", state, 2, &mut fields);
            fields
        });
        if first.len() == scene.uids.len() {
            break;
        }
    }
    first
}

/// Fields by name, those within others as `outer.inner`.
fn flatten(prefix: &str, value: &Value, depth: u32, out: &mut Vec<(String, String)>) {
    match value {
        Value::Object(parts) if 0 < depth && !parts.is_empty() => {
            for (key, part) in parts {
                let dot = if prefix.is_empty() { "" } else { "." };
                flatten(&format!("{prefix}{dot}{key}"), part, depth - 1, out);
            }
        }
        Value::Null => out.push((prefix.to_owned(), "–".to_owned())),
        Value::String(word) => out.push((prefix.to_owned(), word.clone())),
        other => out.push((prefix.to_owned(), other.to_string())),
    }
}
