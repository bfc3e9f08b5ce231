//! `vez worst`: in process where much is run, as a binary where people see it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use vez::registry;
use vez::sweep::Subject;
use vez::worst::{Aim, Finding, Quest, Replay, seek};
use vez_core::Time;

use crate::binary::{text, vez};

fn quest(name: &str, n: u32) -> Quest {
    Quest {
        subject: Subject { entry: registry::find(name).unwrap(), config: BTreeMap::new() },
        n,
        wiring: None,
        metric: Aim::Messages,
        best: false,
        all_start: false,
        hold: Time::from_millis(1),
        delay_max: Time::from_millis(4),
        enumerate_max: 1_500_000,
        trials: 0,
        seed: 0,
        threads: 2,
    }
}

fn find(quest: &Quest) -> Finding {
    let finding = seek(quest, &AtomicBool::new(false), |_, _, _| ()).unwrap();
    let scored = finding.best.as_ref().unwrap();
    // Refuses what does not replay.
    let replay = Replay::new(quest, scored).unwrap();
    let expected = replay.scenario.expect.as_ref().unwrap().messages;
    assert_eq!(expected, Some(replay.report.messages.total));
    finding
}

fn score(quest: &Quest) -> f64 {
    find(quest).best.unwrap().score
}

#[track_caller]
fn same(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found} against {expected}");
}

#[test]
fn enumeration_answers_the_exercise_on_the_ring() {
    for n in 2..=6_u32 {
        let finding = find(&quest("chang-roberts", n));
        let scored = finding.best.unwrap();
        same(scored.score, f64::from(n * (n + 1) / 2 + n));
        // Descending along the ring, from the largest, and all start.
        assert!(scored.candidate.uids.iter().copied().eq((1..=u64::from(n)).rev()));
        assert!(scored.candidate.starts.iter().all(|&start| start == Some(Time::ZERO)));
        let arrangements: u64 = (1..u64::from(n)).product();
        assert_eq!(finding.tried.enumerated, arrangements * ((1 << n) - 1));
        assert_eq!(finding.tried.searched, 0);
    }
    for n in [7, 8] {
        let all = Quest { all_start: true, ..quest("chang-roberts", n) };
        same(score(&all), f64::from(n * (n + 1) / 2 + n));
        assert_eq!(find(&all).tried.enumerated, (1..u64::from(n)).product::<u64>());
    }
}

#[test]
fn enumeration_finds_the_least_too() {
    for n in 2..=5 {
        let best = |quest: Quest| score(&Quest { best: true, ..quest });
        same(best(quest("chang-roberts", n)), f64::from(2 * n));
        let all = Quest { all_start: true, ..quest("chang-roberts", n) };
        same(best(all), f64::from(3 * n - 1));
        same(best(quest("bully", n)), f64::from(n - 1));
    }
}

#[test]
fn the_worst_of_others_is_what_the_books_say() {
    for n in 3..=5_u32 {
        same(score(&quest("suzuki-kasami", n)), f64::from(n));
        same(score(&quest("coordinator", n)), 3.0);
        same(score(&quest("ricart-agrawala", n)), f64::from(2 * (n - 1)));
        same(score(&quest("token-ring", n)), f64::from(n - 1));
    }
    // What all starting costs is not the worst: those who start beside the largest cost more.
    assert!(score(&quest("bully", 4)) > 15.0);
    let wiring = Some(vez::scenario::Wiring::Line);
    // The token at one end, the only asker at the other: there and back over every link.
    same(score(&Quest { wiring, ..quest("raymond", 6) }), 10.0);
    same(score(&quest("franklin", 4)), f64::from(2 * 4 * 3 + 4));
}

#[test]
fn climbing_gets_there_without_enumeration() {
    let climb = |name, n, trials| Quest { trials, enumerate_max: 0, ..quest(name, n) };
    let finding = find(&climb("chang-roberts", 12, 3_000));
    assert_eq!((finding.tried.enumerated, finding.tried.searched), (0, 3_000));
    same(finding.best.unwrap().score, f64::from(12 * 13 / 2 + 12));
    // Slow links make Maekawa's processes change their minds: more than any start at once does.
    let at_once = score(&quest("maekawa", 4));
    let maekawa = find(&Quest { trials: 1_000, ..quest("maekawa", 4) });
    assert!(maekawa.tried.beyond);
    let found = maekawa.best.unwrap().score;
    assert!(at_once < found && found <= 12.0, "{at_once} {found}");
}

#[test]
fn the_same_seed_finds_the_same_whatever_the_number_of_threads() {
    let of = |threads| {
        let quest = Quest { threads, trials: 640, seed: 3, ..quest("maekawa", 4) };
        let scored = find(&quest).best.unwrap();
        (scored.score.to_bits(), scored.candidate)
    };
    assert_eq!(of(1), of(3));
}

#[test]
fn a_second_election_does_not_count() {
    let quest = Quest { trials: 1_000, enumerate_max: 0, ..quest("bully", 4) };
    let finding = find(&quest);
    let scored = finding.best.unwrap();
    assert!(finding.refused > 0 && scored.score < 30.0, "{}", scored.score);
}

#[test]
fn who_stops_it_gets_the_best_so_far() {
    let stop = AtomicBool::new(false);
    let halt = |done, _, best: Option<f64>| {
        stop.store(100 < done && best.is_some(), std::sync::atomic::Ordering::SeqCst);
    };
    let finding = seek(&quest("chang-roberts", 8), &stop, halt).unwrap();
    assert!(finding.stopped && finding.best.is_some());
    assert!(finding.tried.enumerated < 1_285_200);
}

#[test]
fn the_scenario_it_prints_runs_to_the_same_count() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("worst");
    fs::create_dir_all(&folder).unwrap();
    for name in ["chang-roberts", "maekawa", "raymond", "yoyo"] {
        let file = folder.join(format!("{name}.toml"));
        let file = file.to_str().unwrap();
        let call = ["worst", name, "--nodes", "4", "--trials", "300"];
        let output = vez(&[&call[..], &["--format", "scenario", "-o", file]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let found = vez(&[&call[..], &["--format", "json"]].concat());
        let found: serde_json::Value = serde_json::from_str(&text(&found.stdout)).unwrap();
        let run = vez(&["run", file, "--format", "json"]);
        assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
        let run: serde_json::Value = serde_json::from_str(&text(&run.stdout)).unwrap();
        assert_eq!(run["messages"]["total"], found["messages"]["total"], "{name}");
        assert_eq!(run["messages"]["by_kind"], found["messages"]["by_kind"], "{name}");
        assert_eq!(fs::read_to_string(file).unwrap(), found["scenario"], "{name}");
    }
}

#[test]
fn the_result_says_exactly_what_was_tried() {
    let output = vez(&["worst", "chang-roberts", "--nodes", "4", "--trials", "0"]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    for line in [
        "chang-roberts · 4 processes · most messages: 14",
        "  messages  14 (Election 10, Elected 4)",
        "  formula   = 14 = n(n + 1)/2 + n (all start, uids descending): met",
        "  uids      4 3 2 1, in the direction of travel",
        "  start     all at 0ms",
        "  tried     all 6 arrangements up to rotation × all 15 sets of initiators, all at once, every message 1ms: 90 runs",
        "ids = [4, 3, 2, 1]",
        "messages = 14",
    ] {
        assert!(out.lines().any(|found| found == line), "{line}\n{out}");
    }
}

#[test]
fn a_complaint_is_one_line_that_helps() {
    for (args, complaint) in [
        (
            &["chang-robert"][..],
            "no algorithm is called `chang-robert`, did you mean `chang-roberts`?",
        ),
        (&["bully", "--nodes", "0"], "--nodes 0: expected 1 to 4000000"),
        (
            &["bully", "--trials", "0", "--enumerate", "0"],
            "--trials 0 --enumerate 0: nothing to try; expected one above 0",
        ),
        (&["bully", "--initiators", "some"], "--initiators some: expected any or all"),
        (
            &["stable", "--nodes", "3"],
            "stable sends heartbeats for as long as it runs; expected --metric time",
        ),
        (
            &["maekawa", "--nodes", "5", "--set", "quorums=plane"],
            "--set quorums=plane: settings of maekawa: quorums: expected a plane of one of 3, 7, 13, 21, 31, 57 processes, found 5",
        ),
    ] {
        let output = vez(&[&["worst"], args].concat());
        assert_eq!(text(&output.stderr), format!("vez: {complaint}\n"), "{args:?}");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

/// Signals are a matter of Unix.
#[cfg(unix)]
#[test]
fn an_interrupt_prints_the_best_so_far() {
    use std::io::Read as _;
    // It would take days.
    let mut child = Command::new(env!("CARGO_BIN_EXE_vez"))
        .args(["worst", "chang-roberts", "--nodes", "12", "--enumerate", "999999999999999"])
        .args(["--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Once the handler is there, the process catches the signal.
    let status = format!("/proc/{}/status", child.id());
    let catches = || {
        let status = fs::read_to_string(&status).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        caught.is_none_or(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() >> 1 & 1 == 1)
    };
    while !catches() {
        std::thread::yield_now();
    }
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let (mut out, mut said) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let code = child.wait().unwrap().code();
    // Either something had been run, and is told, or nothing had.
    match code {
        Some(0) => {
            let result: serde_json::Value = serde_json::from_str(&out).unwrap();
            assert_eq!(result["complete"], false);
            assert_eq!(said, "vez: stopped: this is the best so far\n");
        }
        _ => assert_eq!((code, said.contains("stopped before the first run")), (Some(2), true)),
    }
}
