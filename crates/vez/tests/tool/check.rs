//! `vez check` as people call it: what it prints, where, and how it exits.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::binary::{scratch, text, vez};

/// What `vez check` prints with these flags, after it exits as it should.
#[track_caller]
fn check(code: i32, flags: &str) -> String {
    let args: Vec<&str> = std::iter::once("check").chain(flags.split(' ')).collect();
    let output = vez(&args);
    assert_eq!(output.status.code(), Some(code), "{flags}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[track_caller]
fn json(code: i32, flags: &str) -> Value {
    serde_json::from_str(&check(code, &format!("{flags} --format json"))).unwrap()
}

#[test]
fn a_proof_says_that_it_is_one() {
    let said = check(0, "coordinator");
    let expected = "\
coordinator · 3 processes, star, each user asks once
  messages  in any order, none lost, none heard twice
  timers    may run out at any moment
  crashes   none
  searched  260 states, 424 transitions, 12 steps deep
            complete: these are all the runs there are
            chance that a state was overlooked: 4e-15
  ✔ mutual-exclusion  kept in every run
  ✔ no-deadlock       kept in every run
  ✔ no-starvation     kept in every run
  ✔ fencing           kept in every run
";
    assert_eq!(said, expected);
}

#[test]
fn a_broken_promise_as_json_has_the_fields_that_scripts_read() {
    let result = json(1, "bully --without synchrony --crashes 0");
    assert_eq!(result["states"], 42);
    assert_eq!(result["transitions"], 66);
    assert_eq!((&result["depth"], &result["complete"]), (&2.into(), &false.into()));
    assert!(result["seconds"].as_f64().unwrap() >= 0.0);
    assert_eq!(result["model"]["without"], serde_json::json!(["synchrony"]));
    let broken: Vec<&Value> =
        result["promises"].as_array().unwrap().iter().filter(|p| p["kept"] == false).collect();
    let detail = "P3 declared itself leader while P1 considers itself leader";
    let expected = serde_json::json!({
        "name": "uniqueness", "kept": false, "judgement": "broken", "claimed": true, "detail": detail,
    });
    assert_eq!(broken, [&expected]);
    assert_eq!(result["broken"], "uniqueness");
    let second = serde_json::json!({
        "step": 2, "deed": "fire", "node": 1, "timer": 1,
        "text": "P1's timer Answer runs out: declares itself leader, sends Coord(1) to P2, P3",
    });
    assert_eq!(result["trace"].as_array().unwrap().len(), 3);
    assert_eq!(result["trace"][1], second);
    assert!(result["scenario"].as_str().unwrap().contains("broken = [\"uniqueness\""));
    assert!(result["statistics"]["process_states"].as_u64().unwrap() > 0);
}

#[test]
fn a_run_that_goes_round_says_from_where() {
    let flags = "elected-coordinator --nodes 2 --epochs 8 --without fifo";
    let result = json(1, flags);
    let steps = result["trace"].as_array().unwrap().len() as u64;
    let from = result["repeats_from"].as_u64().unwrap();
    assert!(1 < from && from <= steps, "{from} of {steps}");
    let said = check(1, flags);
    assert!(said.contains(&format!("from step {from} on this repeats for ever")), "{said}");
    assert!(said.contains("✘ no-starvation") && said.contains("✔ mutual-exclusion"), "{said}");
}

#[test]
fn a_trace_comes_in_every_format_and_runs_again_from_its_file() {
    let flags = "lamport --nodes 2 --without fifo";
    for (format, mark) in [
        ("mermaid", "sequencediagram"),
        ("svg", "<svg"),
        ("html", "<!doctype html"),
        ("jsonl", "\"event\":\"violation\""),
        ("shiviz", "(?<host>"),
    ] {
        let out = check(1, &format!("{flags} --format {format}")).to_lowercase();
        assert!(out.contains(mark), "{format}: {out}");
    }
    let file = scratch("trace").join("broken.toml");
    let file = file.to_str().unwrap();
    assert_eq!(check(1, &format!("{flags} --format scenario -o {file}")), "");
    let again = vez(&["run", file]);
    assert_eq!((again.status.code(), text(&again.stderr).as_str()), (Some(1), ""));
    assert!(text(&again.stdout).contains("P2 entered while P1 was inside"));
}

#[test]
fn where_nothing_breaks_there_is_nothing_to_draw() {
    let folder = scratch("unbroken");
    let file = folder.join("broken.svg");
    let args = ["check", "coordinator", "--format", "svg", "-o", file.to_str().unwrap()];
    let output = vez(&args);
    assert_eq!(output.status.code(), Some(0));
    let said = "vez: no promise was found broken, so there is no trace to show\n";
    assert_eq!((text(&output.stderr).as_str(), text(&output.stdout).as_str()), (said, ""));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn a_search_cut_short_is_called_incomplete() {
    for (flags, why) in [
        ("lamport --max-states 1k", "incomplete: stopped after 1,000 states (--max-states)"),
        ("lamport --memory 100KiB", "incomplete: 100 KiB of memory are full (--memory)"),
        ("itai-rodeh", "incomplete: nothing after epoch 2 was explored (--epochs 3 goes further)"),
        (
            "lamport --search walks --walks 10 --steps 5 --seed 7",
            "incomplete: 10 random runs of at most 5 steps were tried, seed 7",
        ),
        (
            "coordinator --bitstate 1MiB",
            "incomplete: with a few bits a state some were taken for others",
        ),
    ] {
        let said = check(0, flags);
        assert!(said.contains(why), "{flags}: {said}");
        assert!(!said.contains('✔') && said.contains("kept as far as was searched"), "{said}");
    }
}

#[test]
fn the_same_question_has_the_same_answer_on_any_number_of_threads() {
    for flags in ["ricart-agrawala", "maekawa --nodes 4 --without fifo"] {
        let code = i32::from(flags.contains("without"));
        let alone = check(code, &format!("{flags} --threads 1"));
        for threads in [2, 3] {
            assert_eq!(check(code, &format!("{flags} --threads {threads}")), alone);
        }
    }
}

#[test]
fn reductions_say_what_they_saved() {
    let whole = json(0, "chang-roberts --ids 6,5,4,3,2,1");
    let reduced = json(0, "chang-roberts --ids 6,5,4,3,2,1 --reduce");
    assert!(reduced["states"].as_u64() < whole["states"].as_u64());
    assert!(reduced["statistics"]["ample_saved"].as_u64() > Some(0));
    assert!(check(0, "chang-roberts --reduce").contains("  reduced   "));
}

#[test]
fn a_scenario_file_lends_its_system_and_a_flag_changes_it() {
    let file = "scenarios/s26-chang-roberts-eight.toml";
    let result = json(0, &format!("{file} --max-states 1k"));
    assert_eq!((&result["algorithm"], &result["nodes"]), (&"chang-roberts".into(), &8.into()));
    assert_eq!(json(0, &format!("{file} --nodes 3"))["states"], 73);
}

#[test]
fn every_fault_can_be_asked_for_in_numbers() {
    for (flags, key, value) in [
        ("coordinator --crashes 1", "crashes", Value::from(1)),
        ("coordinator --restarts", "restarts", true.into()),
        ("coordinator --amnesia", "amnesia", true.into()),
        ("coordinator --losses 2", "losses", 2.into()),
        ("coordinator --partitions 1", "partitions", 1.into()),
    ] {
        let result = json(1, flags);
        assert_eq!(result["model"][key], value, "{flags}");
        assert_eq!(result["broken"], "no-deadlock", "{flags}");
    }
    assert_eq!(json(0, "coordinator --duplicates 1")["model"]["duplicates"], 1);
    // What is said outright counts for more than what follows.
    assert_eq!(json(0, "coordinator --without no-crashes --crashes 0")["states"], 260);
    let few = json(0, "lamport --askers 1,2");
    assert_eq!(
        (&few["model"]["askers"], &few["states"]),
        (&serde_json::json!([1, 2]), &2180.into())
    );
}

#[test]
fn only_the_promises_asked_for_are_judged() {
    let lease = "coordinator --nodes 2 --set lease=5ms";
    assert_eq!(json(1, lease)["broken"], "mutual-exclusion");
    let fenced = json(0, &format!("{lease} --promise fencing"));
    assert_eq!(fenced["promises"].as_array().unwrap().len(), 1);
    let both = json(1, &format!("{lease} --keep-going"));
    let kept = both["promises"].as_array().unwrap().iter().filter(|p| p["judgement"] == "kept");
    assert!(kept.count() >= 1, "{both:#}");
}

#[test]
fn a_complaint_is_one_line_that_helps() {
    for (flags, complaint) in [
        (
            "coordinator --without fifo",
            "--without fifo: coordinator does not assume that messages of one sender to one receiver keep their order; expected reliable, once, no-partitions or no-crashes",
        ),
        (
            "lamport --without fifi",
            "--without fifi: `fifi` is no assumption of lamport, did you mean `fifo`?",
        ),
        (
            "lamport --promise agreement",
            "--promise agreement: no promise of mutex; expected mutual-exclusion, no-deadlock, no-starvation, bounded-wait or fencing",
        ),
        (
            "probabilistic",
            "probabilistic promises nothing that could be checked; name what to judge it by with --promise termination, uniqueness, agreement, validity or stability",
        ),
        ("lamport --askers 9", "--askers 9: no process has the uid 9; expected 1, 2, 3"),
        ("lamport --entries 0", "--entries 0: nobody would ask for anything; expected 1 or more"),
        ("lamport --threads 0", "--threads 0; expected 1 or more"),
        ("lamport --memory 4XB", "--memory 4XB: expected a number above 0, like 512MiB or 4GiB"),
        ("lamport --max-states 0", "--max-states 0: expected a number above 0, like 5000000 or 5M"),
        ("lamport --search bfs --walks 5", "--walks and --steps are for --search walks"),
        (
            "bully --nodes 20 --partitions 1",
            "bully: partitions: expected at most 16 processes, found 20",
        ),
        (
            "chang-roberts --topology star",
            "--topology star: chang-roberts cannot run on this topology: it needs a ring",
        ),
        ("lampert", "no algorithm is called `lampert`, did you mean `lamport`?"),
    ] {
        let args: Vec<&str> = std::iter::once("check").chain(flags.split(' ')).collect();
        let output = vez(&args);
        assert_eq!(text(&output.stderr), format!("vez: {complaint}\n"), "{flags}");
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(2), ""));
    }
}

/// Ctrl-C on a search that would take hours: it says what it knows, at once.
#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_search_says_what_it_has_found() {
    use std::process::Stdio;
    let args = ["check", "lamport", "--nodes", "5", "--entries", "3"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_vez"));
    let command = command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let listens = || {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() >> 1 & 1 == 1 // SIGINT is 2.
    };
    while !listens() {
        std::thread::yield_now();
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("incomplete: interrupted"), "{said}");
}
