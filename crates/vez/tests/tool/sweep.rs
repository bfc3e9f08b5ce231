//! `vez sweep` as people call it.

use std::fs;
use std::process::{Command, Stdio};

use crate::binary::{scratch, succeeds, text, vez};

fn json(args: &[&str]) -> serde_json::Value {
    let output = vez(&[args, &["--format", "json"]].concat());
    serde_json::from_str(&text(&output.stdout)).unwrap()
}

#[test]
fn the_table_holds_what_was_measured_against_the_formula() {
    let args = ["sweep", "chang-roberts", "--nodes", "4..8", "--order", "descending"];
    let out = succeeds(&[&args[..], &["--trials", "2"]].concat());
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(
        lines[0],
        "messages per election · all start, uids descending, delay 1ms, 2 runs each, seed 0"
    );
    assert!(lines[3].contains("14") && lines[3].contains("= 14"), "{out}");
    assert!(lines[4].contains("44") && lines[4].contains("n(n + 1)/2 + n"), "{out}");
}

#[test]
fn the_output_is_the_same_whatever_the_number_of_threads() {
    let folder = scratch("threads");
    let call = |threads: &str| {
        let chart = folder.join(format!("{threads}.svg"));
        let chart = chart.to_str().unwrap();
        let args = [
            "sweep",
            "itai-rodeh",
            "bully",
            "--nodes",
            "2..9:+1",
            "--trials",
            "7",
            "--loss",
            "0,0.05",
            "--delay",
            "1ms..3ms",
            "--within",
            "5ms",
            "--format",
            "json",
            "--threads",
            threads,
            "--plot",
            chart,
        ];
        (text(&vez(&args).stdout), fs::read_to_string(chart).unwrap())
    };
    let (json, svg) = call("1");
    assert!(json.len() > 1000 && svg.contains("<svg"));
    for threads in ["2", "5"] {
        assert_eq!(call(threads), (json.clone(), svg.clone()));
    }
}

#[test]
fn seeds_change_what_is_drawn_and_nothing_else_does() {
    let args = ["sweep", "chang-roberts", "--nodes", "16", "--trials", "5"];
    let of = |seed: &str| json(&[&args[..], &["--seed", seed]].concat())["points"].clone();
    assert_eq!(of("1"), of("1"));
    assert_ne!(of("1"), of("2"));
    // A size costs the same in whatever company.
    let alone = &of("0")[0];
    let among = json(&["sweep", "bully", "chang-roberts", "--nodes", "8,16", "--trials", "5"]);
    assert_eq!(&among["points"][3], alone);
}

#[test]
fn waiting_times_and_fairness_are_what_the_run_says() {
    // Three ask at once, two delays to enter, 1 ms inside, two delays to hand over.
    let args = ["sweep", "coordinator", "--nodes", "4", "--load", "0.75", "--trials", "1"];
    let point = &json(&[&args[..], &["--metric", "wait"]].concat())["points"][0];
    assert_eq!(point["wait_ms"]["count"], 3);
    assert_eq!(point["wait_ms"]["min"], 2.0);
    assert_eq!(point["wait_ms"]["mean"], 5.0);
    assert_eq!(point["wait_ms"]["p50"], 5.0);
    assert_eq!(point["wait_ms"]["max"], 8.0);
    let jain = (2.0 + 5.0 + 8.0_f64).powi(2) / (3.0 * (4.0 + 25.0 + 64.0));
    assert!((point["fairness"]["mean"].as_f64().unwrap() - jain).abs() < 1e-12);
    assert_eq!(point["messages"]["mean"], 3.0);
    assert_eq!(point["messages_total"]["mean"], 9.0);
    assert_eq!(point["by_kind"]["Request"], 3.0);
    assert_eq!(point["time_ms"]["mean"], 9.0);
}

#[test]
fn the_time_to_elect_ends_when_everyone_knows() {
    let args = ["sweep", "chang-roberts", "--nodes", "8", "--trials", "1", "--order", "ascending"];
    let args = [&args[..], &["--initiators", "largest", "--metric", "time"]].concat();
    // Eight hops back to the largest, seven more until the last has heard.
    assert_eq!(json(&args)["points"][0]["time_ms"]["mean"], 15.0);
}

#[test]
fn csv_has_a_row_for_every_point_and_as_many_cells_as_names() {
    let args = ["sweep", "bully", "quorum", "--nodes", "2,3", "--trials", "2", "--format", "csv"];
    let out = text(&vez(&args).stdout);
    let rows: Vec<usize> = out.lines().map(|line| line.split(',').count()).collect();
    assert_eq!(rows.len(), 1 + 4, "{out}");
    assert!(rows.iter().all(|&cells| cells == rows[0]), "{out}");
}

#[test]
fn broken_promises_are_counted_and_can_be_looked_at() {
    let folder = scratch("broken");
    let file = folder.join("broken.toml");
    let file = file.to_str().unwrap();
    let args = ["sweep", "ricart-agrawala", "--nodes", "3", "--loss", "0.3", "--broken", file];
    let output = vez(&args);
    assert_eq!(output.status.code(), Some(1));
    let out = text(&output.stdout);
    assert!(out.contains("✘ no-deadlock in ") && out.contains("/20"), "{out}");
    let replay = vez(&["run", file, "--format", "json"]);
    assert_eq!(replay.status.code(), Some(1));
    let replay: serde_json::Value = serde_json::from_str(&text(&replay.stdout)).unwrap();
    let broken = replay["promises"].as_array().unwrap().iter();
    assert!(broken.clone().any(|p| p["kept"] == false && p["claimed"] == true));
    // What is not promised may break without harm.
    let output = vez(&["sweep", "anonymous-ring", "--nodes", "3", "--trials", "2"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("uniqueness in 2/2 (not promised)"));
}

#[test]
fn crashes_change_leaders() {
    let args = ["sweep", "monitored", "--nodes", "4", "--trials", "4", "--crash-rate", "0,5"];
    let points = json(&[&args[..], &["--metric", "changes"]].concat())["points"].clone();
    assert_eq!(points[0]["changes"]["mean"], 0.0);
    assert!(points[1]["changes"]["mean"].as_f64().unwrap() > 1.0, "{points}");
}

#[test]
fn sizes_that_cannot_be_are_left_out_with_a_line() {
    let output = vez(&["sweep", "maekawa", "--set", "quorums=plane", "--nodes", "3,4,7"]);
    assert_eq!(output.status.code(), Some(0));
    let complaint = text(&output.stderr);
    assert!(complaint.starts_with("vez: maekawa with 4 processes is left out: "), "{complaint}");
    assert_eq!(complaint.lines().count(), 1);
    assert_eq!(text(&output.stdout).lines().count(), 3 + 2);
}

#[test]
fn a_complaint_is_one_line_that_helps() {
    for (args, complaint) in [
        (
            &["chang-robert"][..],
            "no algorithm is called `chang-robert`, did you mean `chang-roberts`?",
        ),
        (&["bully", "bully"], "bully is listed twice"),
        (&["bully", "--nodes", "8..2"], "--nodes 8..2: `8..2` is empty: it ends before it begins"),
        (
            &["bully", "--nodes", ""],
            "--nodes : ``: expected a form like 2..64, 2..64:+2, 2..64:x4 or 3,7,13",
        ),
        (&["bully", "--nodes", "0"], "--nodes 0: 0 processes; expected 1 to 4000000"),
        (
            &["bully", "--nodes", "2..8:x1"],
            "--nodes 2..8:x1: `x1` is no step; expected +K, or xK with K above 1",
        ),
        (&["bully", "--trials", "0"], "--trials 0: expected 1 or more"),
        (&["bully", "--loss", "1.5"], "--loss 1.5: `1.5`; expected a share from 0 to 1"),
        (&["bully", "--loss", "NaN"], "--loss NaN: `NaN`; expected a share from 0 to 1"),
        (
            &["bully", "--crash-rate=-1"],
            "--crash-rate -1: `-1`; expected a rate from 0 to 1000 a second",
        ),
        (
            &["bully", "--initiators", "0"],
            "--initiators 0: expected all, one, random, smallest, largest or a number above 0",
        ),
        (&["bully", "--order", "up"], "--order up: expected ascending, descending or random"),
        (
            &["bully", "lamport", "--metric", "wait"],
            "--metric wait: only a mutual exclusion has it; bully is an election",
        ),
        (
            &["lamport", "--metric", "changes"],
            "--metric changes: only an election has it; lamport is a mutual exclusion",
        ),
        (
            &["maekawa", "--set", "quorum=plane"],
            "--set quorum=plane: no setting here is called `quorum`, did you mean `quorums`?",
        ),
        (&["bully", "--threads", "0"], "--threads 0: expected 1 or more"),
        (
            &["lamport", "--topology", "edges:1-2"],
            "--topology edges:1-2: expected a shape that every size has",
        ),
    ] {
        let output = vez(&[&["sweep"], args].concat());
        assert_eq!(text(&output.stderr), format!("vez: {complaint}\n"), "{args:?}");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

/// Signals are a matter of Unix.
#[cfg(unix)]
#[test]
fn an_interrupt_prints_what_is_finished() {
    use std::io::{BufRead as _, BufReader, Read as _};
    // It would take hours, and says that 4 is no plane when it begins.
    let args = ["sweep", "maekawa", "--set", "quorums=plane", "--nodes", "3,4,57", "--trials"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_vez"))
        .args(args)
        .args(["5000000", "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("is left out"), "{line}");
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    line.clear();
    stderr.read_line(&mut line).unwrap();
    assert_eq!(line, "vez: stopped: 0 of 2 points are finished\n");
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let result: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(result["complete"], false);
}

#[test]
fn sizes_double_add_multiply_or_are_listed() {
    use vez::sweep::axes::{rates, shares, sizes};
    assert_eq!(sizes("2..64").unwrap(), [2, 4, 8, 16, 32, 64]);
    assert_eq!(sizes("3..10").unwrap(), [3, 6, 10]);
    assert_eq!(sizes("2..9:+3").unwrap(), [2, 5, 8, 9]);
    assert_eq!(sizes("1..100:x10").unwrap(), [1, 10, 100]);
    assert_eq!(sizes("7").unwrap(), [7]);
    assert_eq!(sizes("5..5").unwrap(), [5]);
    assert_eq!(sizes("13, 3").unwrap(), [13, 3]);
    assert_eq!(sizes("1..4000000:x2").unwrap().last(), Some(&4_000_000));
    for bad in ["", "x", "2..", "..2", "2..8:", "2..8:x", "2..8:+0", "2..8:é", "-1", "1.5", "2,,3"]
    {
        assert!(sizes(bad).is_err(), "{bad}");
    }
    assert_eq!(shares("0,0.5,1").unwrap(), [0.0, 0.5, 1.0]);
    assert_eq!(rates("0,12.5").unwrap(), [0.0, 12.5]);
    for bad in ["", "-0.1", "inf", "NaN", "0;1"] {
        assert!(shares(bad).is_err() && rates(bad).is_err(), "{bad}");
    }
}

#[test]
fn the_chart_names_what_it_shows() {
    let folder = scratch("chart");
    let file = folder.join("chart.svg");
    let file = file.to_str().unwrap();
    let args = ["sweep", "lamport", "maekawa", "quorum", "--nodes", "2..16", "--trials", "1"];
    succeeds(&[&args[..], &["--plot", file]].concat());
    let svg = fs::read_to_string(file).unwrap();
    for label in ["Messages per entry", "lamport = 3(n − 1)", "maekawa ≤ 6(K − 1)", "processes"]
    {
        assert!(svg.contains(&format!(">{label}</text>")), "{label}");
    }
    // What lies along the axis follows from what is varied.
    let args = ["sweep", "lamport", "--nodes", "4", "--loss", "0,0.1", "--trials", "1", "--linear"];
    vez(&[&args[..], &["--plot", file]].concat());
    assert!(fs::read_to_string(file).unwrap().contains(">share of messages lost</text>"));
}
