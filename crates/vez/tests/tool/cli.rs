//! The binary, as people call it: what it prints, where, and how it exits.

use std::fs;

use crate::binary::{scratch, succeeds, text, vez};

fn json(args: &[&str]) -> serde_json::Value {
    serde_json::from_str(&text(&vez(args).stdout)).unwrap()
}

#[test]
fn a_run_as_json_has_the_fields_that_scripts_read() {
    let result = json(&[
        "run",
        "chang-roberts",
        "--ids",
        "0,1,2,3,4,5,6,7",
        "--start",
        "2",
        "--format",
        "json",
    ]);
    let expected = serde_json::json!({
        "algorithm": "chang-roberts", "problem": "election", "seed": 0, "nodes": 8,
        "outcome": "quiescent", "time_ms": 21.0, "steps": 29, "rounds": 0,
        "messages": { "total": 21, "by_kind": { "Election": 13, "Elected": 8 },
                      "lost": 0, "duplicated": 0, "to_crashed": 0 },
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&result[key], value, "{key}");
    }
    assert_eq!(result["election"]["leader"], 7);
    assert_eq!(result["election"]["views"]["0"], 7);
    assert_eq!(
        result["election"]["declarations"][0],
        serde_json::json!({ "node": 7, "at_ms": 13.0, "term": 0 })
    );
    let names: Vec<_> =
        result["promises"].as_array().unwrap().iter().map(|p| p["name"].clone()).collect();
    assert_eq!(names, ["termination", "uniqueness", "agreement", "validity", "stability"]);
    assert!(
        result["promises"]
            .as_array()
            .unwrap()
            .iter()
            .all(|p| p["kept"] == true && p["detail"].is_null())
    );
}

#[test]
fn a_mutual_exclusion_as_json_lists_its_entries() {
    let args = [
        "run",
        "coordinator",
        "--nodes",
        "3",
        "--acquire",
        "2@0:2ms",
        "--acquire",
        "3@0:2ms",
        "--format",
        "json",
    ];
    let mutex = &json(&args)["mutex"];
    let first = serde_json::json!({ "node": 2, "requested_ms": 0.0, "entered_ms": 2.0, "left_ms": 4.0, "fence": 1 });
    assert_eq!(mutex["entries"][0], first);
    assert_eq!(mutex["entries"][1]["node"], 3);
    assert_eq!(mutex["waiting"], serde_json::json!([]));
    assert_eq!(mutex["refused_by_fence"], 0);
}

#[test]
fn exit_codes_tell_kept_from_broken_from_wrong_usage() {
    assert_eq!(vez(&["run", "scenarios/s01-three-in-turn.toml"]).status.code(), Some(0));
    assert_eq!(vez(&["run", "scenarios/s03-slow-holder.toml"]).status.code(), Some(1));
    for args in [
        &["run", "bullly"][..],
        &["run", "missing.toml"],
        &["run", "bully", "--nodes", "0"],
        &["run", "bully", "--no-such-flag"],
        &["explain", "nothing"],
        &["dance"],
        &[],
    ] {
        let output = vez(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn a_complaint_is_one_line_that_helps() {
    for (args, complaint) in [
        (&["run", "bullly"][..], "vez: no algorithm is called `bullly`, did you mean `bully`?\n"),
        (
            &["run", "paxos-made-live"],
            "vez: no algorithm is called `paxos-made-live`; `vez algorithms` lists them\n",
        ),
        (
            &["run", "bully", "--crash", "9@0"],
            "vez: --crash 9@0: no process has the uid 9; expected 1 to 5\n",
        ),
        (
            &["run", "bully", "--crash", "1", "--crash", "1@5ms"],
            "vez: --crash 1@5ms: 1 is down at 5ms; expected one that is up to crash\n",
        ),
        (
            &["run", "bully", "--nodes", "99999999999"],
            "vez: --nodes 99999999999: 99999999999 processes; expected 1 to 4000000\n",
        ),
        (
            &["run", "coordinator", "--start", "1"],
            "vez: --start 1: `start` makes no sense for coordinator, a mutual exclusion; expected acquire\n",
        ),
        (
            &["run", "bully", "--nodes", "300", "--format", "svg"],
            "vez: 300 processes are too many to draw; expected at most 200 (or use --format jsonl)\n",
        ),
    ] {
        let output = vez(args);
        assert_eq!(text(&output.stderr), complaint);
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn nothing_is_written_when_something_is_wrong() {
    let folder = scratch("nothing");
    let target = folder.join("run.json");
    let target = target.to_str().unwrap();
    vez(&["run", "bully", "--crash", "9@0", "-o", target]);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    let output = vez(&["run", "bully", "-o", folder.join("no/such/folder").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("vez: cannot write"), "{}", text(&output.stderr));
}

#[test]
fn flags_amount_to_a_scenario_that_runs_the_same() {
    let folder = scratch("flags");
    let flags = [
        "run",
        "coordinator",
        "--ids",
        "9,4,7",
        "--acquire",
        "4@0:5ms",
        "--acquire",
        "7@1ms:5ms",
        "--pause",
        "4@3ms:10ms",
        "--set",
        "lease=4ms",
        "--delay",
        "1ms..2ms",
        "--seed",
        "3",
        "--partition",
        "9/4,7@20ms",
        "--heal",
        "@30ms",
        "--cut",
        "9>4@31ms",
        "--clock",
        "9:1.1",
        "--crash-unsent",
        "7@40ms",
    ];
    let scenario = succeeds(&[&flags[..], &["--print-scenario"]].concat());
    let file = folder.join("same.toml");
    fs::write(&file, scenario).unwrap();
    let file = file.to_str().unwrap();
    let by_flags = vez(&[&flags[..], &["--format", "jsonl"]].concat()).stdout;
    assert!(!by_flags.is_empty());
    assert_eq!(by_flags, vez(&["run", file, "--format", "jsonl"]).stdout);
}

#[test]
fn a_flag_takes_the_place_of_what_the_file_says() {
    let result = json(&[
        "run",
        "scenarios/s26-chang-roberts-eight.toml",
        "--start",
        "7",
        "--format",
        "json",
    ]);
    assert_eq!(result["messages"]["by_kind"]["Election"], 8);
}

#[test]
fn every_format_says_something_of_its_own() {
    for (format, mark) in [
        ("text", "came to rest"),
        ("json", "\"outcome\""),
        ("mermaid", "sequenceDiagram"),
        ("svg", "<svg"),
        ("html", "<!doctype html"),
        ("jsonl", "{\"t_ms\":"),
        ("shiviz", "(?<host>"),
    ] {
        let out = succeeds(&["run", "bully", "--nodes", "4", "--format", format]);
        assert!(out.to_lowercase().contains(&mark.to_lowercase()), "{format}: {out}");
    }
}

#[test]
fn the_same_seed_prints_the_same_bytes() {
    let args = [
        "run", "bully", "--nodes", "6", "--delay", "exp:1ms", "--loss", "0.1", "--seed", "5",
        "--format", "jsonl",
    ];
    let first = vez(&args).stdout;
    assert_eq!(first, vez(&args).stdout);
    let other = [&args[..9], &["6"], &args[10..]].concat();
    assert_ne!(first, vez(&other).stdout);
}

#[test]
fn algorithms_are_listed_and_explained_in_both_languages() {
    let list = succeeds(&["algorithms"]);
    assert!(list.contains("mutual exclusion") && list.contains("chang-roberts"));
    assert!(succeeds(&["algorithms", "--lang", "pt"]).contains("exclusão mútua"));
    let listed = json(&["algorithms", "--format", "json"]);
    for entry in listed.as_array().unwrap() {
        let name = entry["name"].as_str().unwrap();
        let english = succeeds(&["explain", name]);
        assert!(english.contains("upon") && english.contains("What breaks it"), "{name}");
        let portuguese = succeeds(&["explain", name, "--lang", "pt"]);
        assert!(portuguese.contains("Regras") && portuguese.contains("O que o quebra"), "{name}");
        assert!(english.lines().all(|line| line.chars().count() <= 132), "{name}");
    }
}

#[test]
fn a_scenario_that_is_not_met_says_so() {
    let folder = scratch("unmet");
    let file = folder.join("s.toml");
    fs::write(&file, "algorithm = \"bully\"\nnodes = 3\n[[at]]\ntime = \"0ms\"\nstart = \"all\"\n[expect]\nleader = 1\n").unwrap();
    let output = vez(&["run", file.to_str().unwrap(), "--brief"]);
    assert_eq!(output.status.code(), Some(1));
    let expected = "vez: not as the scenario expects: leader: expected Some(1), found Some(3)\n";
    assert_eq!(text(&output.stderr), expected);
}
