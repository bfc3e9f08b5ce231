//! Every story under `scenarios/` comes out as its file says.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use vez::scenario::{Scenario, read, resolve};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn stories() -> Vec<(String, Scenario)> {
    let mut stories = Vec::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue; // The checker's counterexamples have a test of their own.
        }
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        let scenario = read(&text).unwrap_or_else(|fault| panic!("{}", fault.in_file(&name)));
        stories.push((name, scenario));
    }
    stories.sort_by(|a, b| a.0.cmp(&b.0));
    stories
}

#[test]
fn every_story_comes_out_as_its_file_says() {
    let mut wrong = Vec::new();
    for (name, scenario) in stories() {
        let resolved =
            resolve(&scenario).unwrap_or_else(|fault| panic!("{}", fault.in_file(&name)));
        let report =
            (resolved.entry.simulate)(&resolved.topology, &resolved.config, &resolved.plan);
        let expect = scenario.expect.as_ref().unwrap_or_else(|| panic!("{name} expects nothing"));
        let differences = expect.differences(&report, &resolved.topology);
        wrong.extend(differences.into_iter().map(|difference| format!("{name}: {difference}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_story_says_what_to_look_for_and_how_it_ends() {
    for (name, scenario) in stories() {
        let about = &scenario.about;
        let prefix = format!("{}-", about.name.to_lowercase());
        assert!(name.starts_with(&prefix), "{name} calls itself {}", about.name);
        for words in [&about.title, &about.look] {
            assert!(!words.en.is_empty() && !words.pt.is_empty(), "{name} lacks its words");
        }
        let expect = scenario.expect.expect("asserted above");
        assert!(expect.outcome.is_some(), "{name} expects no outcome");
        let judged = expect.leader.is_some() || expect.entered.is_some();
        assert!(judged, "{name} expects neither a leader nor entries");
    }
}

#[test]
fn a_story_written_out_reads_back_the_same() {
    for (name, scenario) in stories() {
        let text = scenario.to_string();
        let again = read(&text).unwrap_or_else(|fault| panic!("{name}: {fault}\n{text}"));
        assert_eq!(again, scenario, "{name}\n{text}");
    }
}

#[test]
fn every_story_of_the_notes_that_is_a_run_is_told() {
    let told: BTreeSet<String> = stories().into_iter().map(|(_, story)| story.about.name).collect();
    // Three of the notes' scenarios are sums, not runs: quorum risk, overlap, the price of waiting.
    let sums = [8, 9, 15];
    let due =
        (1..=38).filter(|number| !sums.contains(number)).map(|number| format!("S{number:02}"));
    let missing: Vec<String> = due.filter(|name| !told.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_algorithm_has_a_story() {
    let told: BTreeSet<String> =
        stories().into_iter().map(|(_, story)| story.algorithm.value).collect();
    let all = vez::registry::all().iter().map(|entry| entry.meta.name);
    let missing: Vec<&str> = all.filter(|name| !told.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
