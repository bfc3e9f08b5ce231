//! What there is to look at: every algorithm with its rules, every story.

use std::sync::LazyLock;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use rust_embed::RustEmbed;
use serde::Serialize;
use serde_json::Value;
use vez_core::{Channel, Crashes, Layout, Promise, Timing};

use super::{Limits, Shared, runs};
use crate::checking::Assumption;
use crate::registry::{self, Entry};
use crate::rules::{Clause, Rules};
use crate::scenario::{self, Words};

#[derive(RustEmbed)]
#[folder = "../../scenarios/"]
struct Stories;

#[derive(Serialize)]
struct Catalogue<'a> {
    limits: Limits,
    algorithms: &'a [Algorithm],
    stories: &'a [Story],
    /// Whether a cluster runs that can be watched.
    live: bool,
}

#[derive(Serialize)]
struct Algorithm {
    name: &'static str,
    problem: &'static str,
    source: &'static str,
    title: Words,
    line: Words,
    idea: Words,
    clauses: Vec<Clause>,
    settings: Vec<Setting>,
    costs: Vec<Words>,
    breaks: Vec<Words>,
    errata: Vec<Words>,
    /// Those it makes; a run is judged by all there are.
    promises: &'static [Promise],
    judged: &'static [Promise],
    layout: Layout,
    channel: Channel,
    timing: Timing,
    crashes: Crashes,
    /// What of that can be taken away in a search.
    without: Vec<&'static str>,
}

#[derive(Serialize)]
struct Setting {
    name: String,
    default: Value,
    en: String,
    pt: String,
}

#[derive(Serialize)]
struct Story {
    id: String,
    name: String,
    title: Words,
    look: Words,
    algorithm: String,
    scenario: Value,
}

static ALGORITHMS: LazyLock<Vec<Algorithm>> =
    LazyLock::new(|| registry::all().iter().map(algorithm).collect());

static STORIES: LazyLock<Vec<Story>> = LazyLock::new(|| {
    // Those in folders are what the checker found, not stories.
    let mut names: Vec<_> = Stories::iter().filter(|name| !name.contains('/')).collect();
    names.sort_unstable();
    names.iter().map(|name| story(name)).collect()
});

pub(super) async fn catalogue(State(lab): State<Shared>) -> Response {
    let limits = lab.limits;
    let live = lab.live.is_some();
    let catalogue = Catalogue { limits, algorithms: &ALGORITHMS, stories: &STORIES, live };
    let text = serde_json::to_string(&catalogue).expect("plain data");
    ([(CONTENT_TYPE, "application/json")], text).into_response()
}

fn algorithm(entry: &Entry) -> Algorithm {
    let Rules { title, line, idea, clauses, settings, costs, breaks, errata } = entry.rules();
    let defaults = (entry.settings)();
    let setting = |setting: crate::rules::Setting| Setting {
        default: defaults.get(&setting.name).cloned().unwrap_or_default(),
        name: setting.name,
        en: setting.en,
        pt: setting.pt,
    };
    Algorithm {
        name: entry.meta.name,
        problem: entry.problem,
        source: entry.meta.source,
        title,
        line,
        idea,
        clauses,
        settings: settings.into_iter().map(setting).collect(),
        costs,
        breaks,
        errata,
        promises: entry.meta.promises,
        judged: entry.promises,
        layout: entry.meta.layout,
        channel: entry.meta.channel,
        timing: entry.meta.timing,
        crashes: entry.meta.crashes,
        without: Assumption::of(&entry.meta).into_iter().map(Assumption::name).collect(),
    }
}

/// The stories are part of the binary, and a test runs them all.
fn story(name: &str) -> Story {
    let file = Stories::get(name).unwrap_or_else(|| panic!("{name} was listed"));
    let text = String::from_utf8_lossy(&file.data);
    let told = scenario::read(&text).unwrap_or_else(|fault| panic!("{}", fault.in_file(name)));
    let id = name.trim_end_matches(".toml").to_owned();
    let scenario::About { name, title, look } = told.about.clone();
    let algorithm = told.algorithm.value.clone();
    Story { id, name, title, look, algorithm, scenario: runs::as_json(&told) }
}
