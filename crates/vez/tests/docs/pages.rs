//! The docs pages of the algorithms, made by the tool itself: explanation, stories and pictures.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use vez::cmd::explain::markdown;
use vez::registry::{self, Entry};
use vez::rules::Language;
use vez::scenario::{Scenario, read, resolve};

use crate::root;

/// Pictures of longer stories would be walls.
const MESSAGES_MAX: u64 = 120;

#[test]
fn the_docs_are_what_the_tool_says_today() {
    let pages = pages();
    let update = std::env::var_os("UPDATE").is_some();
    let mut stale = Vec::new();
    for (path, text) in &pages {
        let file = root().join("docs").join(path);
        if update {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
        } else if fs::read_to_string(&file).unwrap_or_default() != *text {
            stale.push(path.clone());
        }
    }
    assert!(stale.is_empty(), "UPDATE=1 cargo test -p vez --test docs rewrites: {stale:#?}");
}

/// Pages among those that the tool makes.
const BY_HAND: [&str; 4] =
    ["pt/lab.md", "pictures/lab.png", "pt/dashboard.md", "pictures/dashboard.png"];

#[test]
fn no_page_is_left_of_what_is_gone() {
    let pages = pages();
    for folder in ["algorithms", "pt", "pictures"] {
        for entry in fs::read_dir(root().join("docs").join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let path = format!("{folder}/{name}");
            let is_ours = BY_HAND.contains(&path.as_str()) || pages.contains_key(&path);
            assert!(is_ours, "{path} belongs to nothing");
        }
    }
}

/// Every page and picture, by its path under `docs/`.
fn pages() -> BTreeMap<String, String> {
    let stories = stories();
    let mut pages = BTreeMap::new();
    let mut drawn = Vec::new();
    for (name, story) in &stories {
        if let Some(svg) = picture(story) {
            pages.insert(format!("pictures/{name}.svg"), svg);
            drawn.push(name.as_str());
        }
    }
    for entry in registry::all() {
        let of_entry: Vec<_> =
            stories.iter().filter(|(_, story)| story.algorithm.value == entry.meta.name).collect();
        for (language, folder) in [(Language::En, "algorithms"), (Language::Pt, "pt")] {
            let page = page(entry, language, &of_entry, &drawn);
            pages.insert(format!("{folder}/{}.md", entry.meta.name), page);
        }
    }
    for (name, words) in CHARTS {
        pages.insert(format!("pictures/{name}.svg"), chart(name, words));
    }
    for (name, words) in RUNS {
        pages.insert(format!("pictures/{name}.svg"), run(words));
    }
    pages.insert("README.md".to_owned(), index());
    pages
}

/// Charts of the pages on `vez sweep`, and the calls that draw them.
const CHARTS: [(&str, &str); 2] = [
    ("sweep-rings", "chang-roberts franklin hirschberg-sinclair peterson --nodes 2..64"),
    (
        "sweep-wait",
        "coordinator token-ring ricart-agrawala maekawa --nodes 16 --load 0,0.125,0.25,0.5,0.75,1 \
         --metric wait --requests 4 --within 20ms",
    ),
];

/// Pictures of other pages, and the runs they show.
const RUNS: [(&str, &str); 1] = [(
    "majority-of-three",
    "weighted-majority --nodes 3 --start 3 --set check_quorum=true --set pre_vote=true \
     --set heartbeat_every=20ms --set election_after=40ms --partition 3/1,2@12ms --heal @110ms \
     --until 140ms",
)];

fn run(words: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vez"));
    command.arg("run").args(words.split_whitespace()).args(["--format", "svg"]);
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

fn chart(name: &str, words: &str) -> String {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.svg"));
    let output = Command::new(env!("CARGO_BIN_EXE_vez"))
        .arg("sweep")
        .args(words.split_whitespace())
        .arg("--plot")
        .arg(&file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    fs::read_to_string(file).unwrap()
}

fn stories() -> Vec<(String, Scenario)> {
    let mut stories = Vec::new();
    for entry in fs::read_dir(root().join("scenarios")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue; // The checker's counterexamples are listed with the checks.
        }
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        stories.push((name, read(&fs::read_to_string(&path).unwrap()).unwrap()));
    }
    stories.sort_by(|a, b| a.0.cmp(&b.0));
    stories
}

fn picture(story: &Scenario) -> Option<String> {
    let resolved = resolve(story).unwrap();
    let run = (resolved.entry.watch)(&resolved.topology, &resolved.config, &resolved.plan, 5_000);
    let (report, trace) = run;
    if report.messages.total > MESSAGES_MAX {
        return None;
    }
    let title = &story.about.title.en;
    let subtitle = format!("{}: {}", story.about.name, resolved.entry.rules().title.en);
    let (topology, events) = (&resolved.topology, &trace.events[..]);
    let run = vez_draw::Run { title, subtitle: &subtitle, topology, report: &report, events };
    Some(vez_draw::svg(&run))
}

fn page(
    entry: &Entry,
    language: Language,
    stories: &[&(String, Scenario)],
    drawn: &[&str],
) -> String {
    let mut page = markdown(entry, language);
    if stories.is_empty() {
        return page;
    }
    writeln!(page, "\n## {}", language.pick("Stories", "Histórias")).unwrap();
    for (name, story) in stories {
        let (title, look) = (&story.about.title, &story.about.look);
        let (title, look) = (title.in_language(language), look.in_language(language));
        writeln!(page, "\n### {}: {title}\n\n{look}\n", story.about.name).unwrap();
        writeln!(page, "```sh\nvez run scenarios/{name}.toml\n```").unwrap();
        if drawn.contains(&name.as_str()) {
            writeln!(page, "\n![{title}](../pictures/{name}.svg)").unwrap();
        }
    }
    page
}

fn index() -> String {
    let mut page = String::from(
        "# vez, in depth\n\n- [Scenario files and results](scenarios.md)\n\
         - [The lab](lab.md) ([em português](pt/lab.md))\n\
         - [Checking every run](check.md)\n\
         - [What the checker says of every algorithm](checks.md)\n\
         - [How safe a quorum is](quorum.md)\n- [How long to wait](timeout.md)\n\
         - [What algorithms cost: `vez sweep`](sweep.md)\n\
         - [The worst case: `vez worst`](worst.md)\n\
         - [Real processes](processes.md)\n- [How fast it is](benchmarks.md)\n\
         - [The service: `vez serve`](service.md)\n\
         - [Three machines, or five](cluster.md)\n\
         - [Operating vez](operating.md)\n\
         - [The dashboard of the service](dashboard.md) ([em português](pt/dashboard.md))\n\
         - [Numbers, health and logs of the service](metrics.md)\n\
         - [Locks and elections from the command line: `vez lock`, `vez elect`, `vez status`]\
           (lock.md)\n\n\
         The pages below are made by the tool: `vez explain NAME --format markdown`, with its \
         stories.\n",
    );
    for (problem, heading) in [("mutex", "Who may enter now"), ("election", "Who leads now")] {
        writeln!(page, "\n## {heading}\n\n| algorithm | | em português |\n|---|---|---|").unwrap();
        for entry in registry::all().iter().filter(|entry| entry.problem == problem) {
            let (name, rules) = (entry.meta.name, entry.rules());
            let (title, pt) = (rules.title.en.trim(), rules.title.pt.trim());
            let line = rules.line.en.trim();
            writeln!(page, "| [{title}](algorithms/{name}.md) | {line} | [{pt}](pt/{name}.md) |")
                .unwrap();
        }
    }
    page
}
