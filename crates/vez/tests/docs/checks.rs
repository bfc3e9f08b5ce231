//! What the checker says of every algorithm, with what it assumes and without: `docs/checks.md`
//! and the counterexamples under `scenarios/checks/`, made by the binary itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use serde_json::Value;
use vez::checking::{Assumption, grouped};
use vez::registry;
use vez::rules::Language;

use crate::root;

/// The flags for an algorithm with all it assumes, those for when something is taken away, and
/// those for when a certain thing is.
type Flags = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str)]);

const CASES: &[Flags] = &[
    ("coordinator", "--nodes 3 --entries 2", "--nodes 3", &[]),
    ("token-ring", "--nodes 3 --epochs 4", "--nodes 3", &[]),
    ("quorum", "--nodes 3", "--nodes 3 --askers 1,2", &[]),
    ("lamport", "--nodes 3", "--nodes 3 --askers 1,2", &[]),
    ("ricart-agrawala", "--nodes 3", "--nodes 3 --askers 1,2", &[]),
    ("ricart-agrawala-tanenbaum", "--nodes 2 --epochs 4", "--nodes 2", &[]),
    ("maekawa", "--nodes 4", "--nodes 3", &[("fifo", "--nodes 4")]),
    ("suzuki-kasami", "--nodes 3 --entries 2", "--nodes 3", &[]),
    ("raymond", "--nodes 4", "--nodes 3", &[]),
    ("elected-coordinator", "--nodes 2 --epochs 8", "--nodes 2 --epochs 8", &[]),
    ("bully", "--nodes 3", "--nodes 3", &[]),
    ("bully-strict", "--nodes 3 --epochs 12", "--nodes 2 --epochs 12", &[]),
    ("anonymous-ring", "--nodes 4", "--nodes 3", &[]),
    ("itai-rodeh", "--nodes 3", "--nodes 3", &[("once", "--nodes 2")]),
    ("list-ring", "--nodes 4", "--nodes 3", &[]),
    ("chang-roberts", "--ids 6,5,4,3,2,1", "--ids 4,3,2,1", &[]),
    ("franklin", "--nodes 4", "--nodes 3", &[]),
    ("peterson", "--nodes 5", "--nodes 3", &[]),
    ("hirschberg-sinclair", "--nodes 3 --epochs 5", "--nodes 3 --epochs 5", &[]),
    ("yoyo", "--nodes 4", "--nodes 3", &[]),
    ("wireless", "--nodes 3", "--nodes 3", &[]),
    ("probabilistic", "--nodes 3 --promise uniqueness", "--nodes 2 --promise uniqueness", &[]),
    ("weighted-majority", "--nodes 3 --epochs 1", "--nodes 3 --epochs 1", &[]),
    ("stable", "--nodes 2", "--nodes 2 --max-states 100k", &[]),
    ("monitored", "--nodes 2", "--nodes 2", &[]),
];

/// Runs the binary: its exit code, what it printed, what it complained of.
fn vez(words: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vez"));
    let output = command.current_dir(root()).args(words).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// A question to the checker.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Case {
    /// Where it stands in the table.
    order: (usize, usize),
    algorithm: &'static str,
    without: Option<Assumption>,
    flags: &'static str,
}

impl Case {
    fn all() -> Vec<Self> {
        let mut cases = Vec::new();
        for (place, entry) in registry::all().iter().enumerate() {
            let algorithm = entry.meta.name;
            let case = CASES.iter().find(|case| case.0 == algorithm);
            let &(_, whole, less, special) =
                case.unwrap_or_else(|| panic!("{algorithm} is not checked"));
            cases.push(Self { order: (place, 0), algorithm, without: None, flags: whole });
            for (number, without) in (1..).zip(Assumption::of(&entry.meta)) {
                let special = special.iter().find(|(name, _)| *name == without.name());
                let flags = special.map_or(less, |(_, flags)| flags);
                let order = (place, number);
                cases.push(Self { order, algorithm, without: Some(without), flags });
            }
        }
        cases
    }

    fn words(&self) -> Vec<&'static str> {
        let mut words = vec!["check", self.algorithm];
        words.extend(self.flags.split(' '));
        if let Some(without) = self.without {
            words.extend(["--without", without.name()]);
        }
        words
    }

    fn ask(&self) -> Value {
        // One thread, so that a search that is cut short is always cut at the same place.
        let words = [&self.words()[..], &["--threads", "1", "--format", "json"]].concat();
        let (code, out, complaint) = vez(&words);
        assert!(code < 2, "{words:?}: {complaint}");
        let answer: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(answer["broken"].is_string(), code == 1, "{words:?}");
        answer
    }
}

/// Every case with its answer. Asked by two threads: this is most of what these tests do.
fn answers() -> BTreeMap<(usize, usize), (Case, Value)> {
    let cases = Mutex::new(Case::all());
    let answers = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(case) = { cases.lock().unwrap().pop() } {
                    let answer = case.ask();
                    answers.lock().unwrap().insert(case.order, (case, answer));
                }
            });
        }
    });
    answers.into_inner().unwrap()
}

#[test]
fn the_table_and_the_counterexamples_are_what_the_checker_says_today() {
    let answers = answers();
    let mut files = BTreeMap::from([("docs/checks.md".to_owned(), page(&answers))]);
    for (case, answer) in answers.values() {
        if case.without.is_none() && case.algorithm != "probabilistic" {
            // An algorithm that breaks its word under its own assumptions is no table's business.
            assert!(answer["broken"].is_null(), "{}: {answer:#}", case.algorithm);
            assert_eq!(answer["unexpected"], 0, "{}", case.algorithm);
        }
        if let Some(promise) = answer["broken"].as_str() {
            let scenario = answer["scenario"].as_str();
            let scenario = scenario.unwrap_or_else(|| panic!("no replay: {:?}", case.words()));
            assert!(scenario.contains(promise));
            files.insert(file_of(case), scenario.to_owned());
        }
    }
    let update = std::env::var_os("UPDATE").is_some();
    let mut stale = Vec::new();
    for (path, text) in &files {
        let file = root().join(path);
        if update {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
        } else if fs::read_to_string(&file).unwrap_or_default() != *text {
            stale.push(path.as_str());
        }
    }
    let there = fs::read_dir(root().join("scenarios/checks")).unwrap();
    for entry in there {
        let path = format!("scenarios/checks/{}", entry.unwrap().file_name().to_str().unwrap());
        assert!(files.contains_key(&path), "{path} belongs to nothing");
    }
    assert!(stale.is_empty(), "UPDATE=1 cargo test -p vez --test docs rewrites: {stale:#?}");
}

#[test]
fn every_counterexample_on_file_breaks_what_it_says_when_it_is_run() {
    if std::env::var_os("UPDATE").is_some() {
        return; // They are being written.
    }
    let mut run = 0;
    for entry in fs::read_dir(root().join("scenarios/checks")).unwrap() {
        let path = entry.unwrap().path();
        let file = path.to_str().unwrap();
        let (code, out, complaint) = vez(&["run", file, "--format", "json"]);
        // Broken, and just as the file expects: otherwise it would complain.
        assert_eq!((code, complaint.as_str()), (1, ""), "{file}");
        let result: Value = serde_json::from_str(&out).unwrap();
        let title = fs::read_to_string(&path).unwrap();
        let broken = result["promises"].as_array().unwrap().iter().filter(|p| p["kept"] == false);
        let names: BTreeSet<&str> = broken.map(|p| p["name"].as_str().unwrap()).collect();
        let is_it = names.iter().any(|name| title.contains(&format!("breaks {name} in")));
        assert!(is_it, "{file} breaks {names:?}");
        run += 1;
    }
    assert!(run > 50, "{run}");
}

fn file_of(case: &Case) -> String {
    match case.without {
        Some(without) => {
            format!("scenarios/checks/{}-without-{}.toml", case.algorithm, without.name())
        }
        None => format!("scenarios/checks/{}.toml", case.algorithm),
    }
}

fn count(answer: &Value, key: &str) -> String {
    grouped(answer[key].as_u64().unwrap())
}

fn page(answers: &BTreeMap<(usize, usize), (Case, Value)>) -> String {
    let mut page = String::from(include_str!("checks/head.md"));
    page += "\n| algorithm | `vez check …` | states | transitions | depth | verdict |\n";
    page += "|---|---|--:|--:|--:|---|\n";
    for (case, answer) in answers.values().filter(|(case, _)| case.without.is_none()) {
        let name = case.algorithm;
        let (states, transitions) = (count(answer, "states"), count(answer, "transitions"));
        let (depth, flags) = (count(answer, "depth"), case.flags);
        let verdict = verdict(case, answer);
        writeln!(
            page,
            "| [{name}](algorithms/{name}.md) | `{flags}` | {states} | {transitions} | {depth} | {verdict} |"
        )
        .unwrap();
    }
    page += include_str!("checks/middle.md");
    for entry in registry::all() {
        let name = entry.meta.name;
        let of_entry: Vec<_> = answers
            .values()
            .filter(|(case, _)| case.algorithm == name && case.without.is_some())
            .collect();
        writeln!(page, "\n### {}\n", entry.rules().title.in_language(Language::En)).unwrap();
        page += "| `--without` | assumed | with | states | then |\n|---|---|---|--:|---|\n";
        for (case, answer) in of_entry {
            let without = case.without.expect("filtered");
            let (word, meaning) = (without.name(), without.meaning(Language::En));
            let (states, flags) = (count(answer, "states"), case.flags);
            let verdict = verdict(case, answer);
            writeln!(page, "| {word} | {meaning} | `{flags}` | {states} | {verdict} |").unwrap();
        }
    }
    page + include_str!("checks/tail.md")
}

fn verdict(case: &Case, answer: &Value) -> String {
    if let Some(promise) = answer["broken"].as_str() {
        let steps = answer["trace"].as_array().unwrap().len();
        let steps = if steps == 1 { "1 step".to_owned() } else { format!("{steps} steps") };
        let endless = match answer["repeats_from"].as_u64() {
            Some(from) => format!(", from step {from} on for ever"),
            None => String::new(),
        };
        let file = file_of(case);
        return format!("**breaks {promise}** in [{steps}](../{file}){endless}");
    }
    let kept = if case.without.is_some() { "still holds" } else { "all kept" };
    let waits = answer["worst_wait"].as_u64().filter(|_| case.without.is_none());
    let waits = waits.map(|worst| format!("; longest wait {worst}")).unwrap_or_default();
    match answer["stopped"].as_str() {
        None => format!("{kept}{waits}"),
        Some("epoch") => {
            format!("{kept} up to epoch {}, incomplete{waits}", answer["model"]["epochs"])
        }
        Some("states") => format!("not broken so far, incomplete{waits}"),
        Some(other) => format!("incomplete: {other}"),
    }
}
