//! `vez quorum` and `vez timeout`, as people call them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::binary::{root, scratch, text};

/// The words of a command, without `vez`.
fn vez(words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vez"));
    command.current_dir(root()).args(words.split(' ')).env("LC_ALL", "C").output().unwrap()
}

#[track_caller]
fn json(words: &str) -> Value {
    let output = vez(&format!("{words} --format json"));
    assert!(output.stderr.is_empty(), "{words}: {}", text(&output.stderr));
    serde_json::from_str(&text(&output.stdout)).unwrap()
}

#[track_caller]
fn complains(words: &str, complaint: &str) {
    let output = vez(words);
    assert_eq!(output.status.code(), Some(2), "{words}");
    assert_eq!(text(&output.stderr), format!("vez: {complaint}\n"), "{words}");
    assert!(output.stdout.is_empty(), "{words}");
}

const NOTES: &str = "quorum --coordinators 32 --quorum 24 --restart-probability";

#[test]
fn s08_the_notes_example_has_all_its_digits() {
    let result = json(&format!("{NOTES} 1e-4"));
    assert_eq!(result["overlap"], 16);
    let digits = result["violation_probability"].as_str().unwrap();
    assert!(digits.starts_with("7.3491741661588085") && digits.ends_with("e-59"), "{digits}");
    assert!(digits.len() > 40);
    let rival = result["fixed_rival_probability"].as_str().unwrap();
    assert_eq!(rival, format!("1.{}e-64", "0".repeat(39)));
    assert_eq!(result["smallest_quorum"], 18);
    assert_eq!(result["meets_target"], true);
    assert_eq!(result["unsafe_up_to"], 16);
    assert_eq!(result["every_quorum"].as_array().unwrap().len(), 16);
    assert_eq!(result["simulation"], Value::Null);
}

#[test]
fn s08_one_minute_in_ten_days_is_not_one_in_ten_thousand() {
    let result = json(&format!("{NOTES} 1/14400"));
    assert!(result["violation_probability"].as_str().unwrap().starts_with("2.1504957574"));
    // "Exactly one" and "exactly one given" differ by a factor of n.
    let one = |field: &str| result[field].as_str().unwrap().parse::<f64>().unwrap();
    assert!((one("exactly_one_restarts") / one("one_given_restarts") - 32.0).abs() < 1e-12);
}

#[test]
fn s09_overlaps() {
    for (n, m, overlap) in [(3, 2, 1), (7, 4, 1), (32, 24, 16)] {
        let result = json(&format!("quorum -n {n} -m {m} -p 0.01"));
        assert_eq!(result["overlap"], overlap);
    }
}

#[test]
fn a_split_round_of_three_with_three() {
    let result = json("quorum -n 3 -m 2 -p 0.01 --participants 2,3");
    let split: Vec<f64> = result["split_round"]
        .as_array()
        .unwrap()
        .iter()
        .map(|split| split["probability"].as_str().unwrap().parse().unwrap())
        .collect();
    assert!(split[0] == 0.0 && (split[1] - 2.0 / 9.0).abs() < 1e-15, "{split:?}");
}

#[test]
fn the_table_is_the_same_in_every_format() {
    let result = json("quorum -n 9 -m 6 -p 0.02 --down-probability 0.1");
    let csv = text(&vez("quorum -n 9 -m 6 -p 0.02 --down-probability 0.1 --format csv").stdout);
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let every = result["every_quorum"].as_array().unwrap();
    assert_eq!(rows.len(), every.len() + 1);
    for (cells, row) in rows[1..].iter().zip(every) {
        for (name, cell) in rows[0].iter().zip(cells) {
            let found = &row[*name];
            let found = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
            assert_eq!(found, *cell, "{name}");
        }
        let add = |name: &str| row[name].as_str().unwrap().parse::<f64>().unwrap();
        assert!((add("availability") + add("unavailability") - 1.0).abs() < 1e-15);
    }
}

#[test]
fn dice_judge_and_say_when_they_cannot() {
    let result = json("quorum -n 7 -m 5 -p 0.05 --simulate --trials 200000 --seed 1");
    let dice = &result["simulation"];
    assert_eq!((&dice["agrees"], &dice["seed"]), (&Value::Bool(true), &Value::from(1)));
    assert_eq!(dice["violation"]["feasible"], true);
    let low = dice["violation"]["interval"][0].as_f64().unwrap();
    let high = dice["violation"]["interval"][1].as_f64().unwrap();
    let exact: f64 = result["violation_probability"].as_str().unwrap().parse().unwrap();
    assert!(low < exact && exact < high && high < 2.0 * low);
    let rare = &json(&format!("{NOTES} 1e-4 --simulate"))["simulation"];
    assert_eq!(rare["violation"]["feasible"], false);
    assert_eq!(rare["violation"]["trials_needed"], "1.36e60");
    assert_eq!(rare["violation"]["agrees"], Value::Null);
    let same = vez("quorum -n 7 -m 5 -p 0.05 --simulate --trials 1000 --seed 3").stdout;
    assert_eq!(same, vez("quorum -n 7 -m 5 -p 0.05 --simulate --trials 1000 --seed 3").stdout);
}

#[test]
fn no_probability_is_too_small_or_too_large() {
    for (restart, expected) in [
        ("0", "0"),
        ("1", "1.000"),
        ("1e-300", "2.000"),
        ("0.999999999999999999999999999999", "1.000"),
    ] {
        let result = json(&format!("quorum -n 3 -m 2 -p {restart}"));
        assert!(result["violation_probability"].as_str().unwrap().starts_with(expected));
    }
    let nearly = text(&vez("quorum -n 3 -m 2 -p 0.999999999999999999999999999999").stdout);
    assert!(nearly.contains("1 − 10⁻⁶⁰"), "{nearly}");
}

#[test]
fn a_wrong_quorum_gets_one_clear_line() {
    let probability = "expected a probability, 0 to 1, such as 0.25, 1e-4 or 1/14400";
    for (flags, complaint) in [
        ("-n 3 -m 4 -p 0.1", "--quorum 4: more than there are; expected 2 to 3".to_owned()),
        (
            "-n 4 -m 2 -p 0.1",
            "--quorum 2: not more than half of 4 coordinators, so two quorums need not meet: unsafe even without failures; expected 3 to 4".to_owned(),
        ),
        (
            "-n 3 -m 0 -p 0.1",
            "--quorum 0: not more than half of 3 coordinators, so two quorums need not meet: unsafe even without failures; expected 2 to 3".to_owned(),
        ),
        ("-n 0 -m 1 -p 0.1", "--coordinators 0: expected 1 to 10000".to_owned()),
        ("-n three -m 2 -p 0.1", "--coordinators three: expected a whole number from 1 on".to_owned()),
        ("-n 3 -m 2 -p 1.5", format!("--restart-probability 1.5: more than 1; {probability}")),
        ("-n 3 -m 2 -p -0.1", format!("--restart-probability -0.1: {probability}")),
        ("-n 3 -m 2 -p NaN", format!("--restart-probability NaN: {probability}")),
        ("-n 3 -m 2 -p inf", format!("--restart-probability inf: {probability}")),
        ("-n 3 -m 2 -p 0 --down-probability 7", format!("--down-probability 7: more than 1; {probability}")),
        ("-n 3 -m 2 -p 0 --target x", format!("--target x: {probability}")),
        ("-n 3 -m 2 -p 0 --trials 0", "--trials 0: expected 1 to 1000000000".to_owned()),
        (
            "-n 3 -m 2 -p 0 --participants 2,,3",
            "--participants : expected 1 to 1000000, with commas between".to_owned(),
        ),
    ] {
        complains(&format!("quorum {flags}"), &complaint);
    }
}

#[test]
fn an_exponential_law_has_its_closed_form() {
    let result = json("timeout --exponential 0.1 --mistake-cost 1000 --wait-cost 1");
    let best = result["cheapest"]["timeout"].as_f64().unwrap();
    assert!((best - 100_f64.ln() * 10.0).abs() < 1e-9);
    let first = &result["acceptable"];
    let cost = |field: &str| first[field].as_f64().unwrap();
    assert!((cost("mistake_cost") - cost("wait_cost")).abs() < 1e-9);
    assert!(result["warnings"][0].as_str().unwrap().starts_with("No timeout is safe"));
    assert!(result["curve"].as_array().unwrap().len() > 100);
}

/// S15: accept a timeout if and only if C·p < E.
#[test]
fn s15_a_timeout_is_accepted_or_refused() {
    let flags = "timeout --samples docs/data/ten-answers.txt --mistake-cost 100 --wait-cost 2";
    for (timeout, accepted) in [(8, false), (9, true)] {
        let words = format!("{flags} --timeout {timeout}");
        assert_eq!(json(&words)["asked"]["acceptable"], accepted);
        assert_eq!(vez(&words).status.code(), Some(i32::from(!accepted)));
    }
    let result = json(flags);
    assert_eq!(result["acceptable"]["timeout"], 9.0);
    assert_eq!(result["cheapest"]["timeout"], 10.0);
    let end = "the sample ends";
    assert!(result["warnings"].to_string().contains(end));
    let interval = &result["cheapest"]["late_interval"];
    assert!(interval["low"] == 0.0 && interval["high"].as_f64().unwrap() > 0.3);
}

#[test]
fn samples_come_as_lines_as_tables_and_as_logs() {
    let folder = scratch("samples");
    let files = [
        ("lines.txt", "# measured\n1 # quick\n 2.5\n\n4e0\n", ""),
        ("marked.txt", "\u{feff}1\r\n2.5\r\n4\r\n", ""),
        ("table.csv", "when,\"took, ms\"\n1,1\n2,2.5\n3,4\n", "--column 2"),
        ("named.csv", "latency;host\n1;a\n2.5;b\n4;c\n", "--column latency"),
        ("plain.csv", "7,1\n8,2.5\n9,4\n", "--column 2"),
        ("one.csv", "latency\n1\n2.5\n4\n", ""),
        ("node.jsonl", "{\"rtt_ms\":1}\n{\"send\":1}\n{\"rtt_ms\":2.5}\n{\"rtt_ms\":4}\n", ""),
        (
            "trace.jsonl",
            concat!(
                "{\"event\":\"header\",\"node\":1}\n",
                "{\"event\":\"send\",\"node\":1,\"to\":2,\"t_ms\":1000}\n",
                "{\"event\":\"send\",\"node\":1,\"to\":3,\"t_ms\":1000}\n",
                "{\"event\":\"receive\",\"node\":1,\"from\":2,\"t_ms\":1001}\n",
                "{\"event\":\"receive\",\"node\":1,\"from\":3,\"t_ms\":1002.5}\n",
                "{\"event\":\"receive\",\"node\":1,\"from\":3,\"t_ms\":1003}\n",
                "{\"event\":\"send\",\"node\":1,\"to\":2,\"t_ms\":2000}\n",
                "{\"event\":\"receive\",\"node\":1,\"from\":2,\"t_ms\":2004}\n",
                "{\"event\":\"rec",
            ),
            "",
        ),
        ("other.jsonl", "{\"took\":1}\n{\"took\":2.5}\n{\"took\":4}\n", "--column took"),
    ];
    let expected = json(&format!(
        "timeout --samples {} --mistake-cost 9 --wait-cost 1",
        write(&folder, files[0].0, files[0].1)
    ));
    assert_eq!(expected["answers"]["samples"], 3);
    for (name, content, flags) in files {
        let path = write(&folder, name, content);
        let words = format!("timeout --samples {path} --mistake-cost 9 --wait-cost 1 {flags}");
        let found = json(words.trim_end());
        assert_eq!(found["cheapest"], expected["cheapest"], "{name}");
        let skipped = u64::from(name == "node.jsonl");
        assert_eq!(found["answers"]["lines_without"], skipped, "{name}");
    }
}

fn write(folder: &Path, name: &str, content: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn bad_samples_are_told_by_line() {
    let folder = scratch("bad-samples");
    for (name, content, flags, complaint) in [
        ("empty", "", "", ": no samples; expected at least one"),
        ("blank", "\n# nothing\n\n", "", ": no samples; expected at least one"),
        ("text", "1\n2\nthree\n", "", ":3: `three`; expected a time, 0 or more"),
        ("minus", "1\n-2\n", "", ":2: -2 is negative; expected a time, 0 or more"),
        ("nan", "1\nNaN\n", "", ":2: `NaN`; expected a time, 0 or more"),
        ("inf", "1\ninf\n", "", ":2: `inf`; expected a time, 0 or more"),
        ("cell", "a,b\n1,2\n1,x\n", " --column b", ":3: `x`; expected a time, 0 or more"),
        ("which", "a,b\n1,2\n", "", ": the columns are a, b; --column says which"),
        ("absent", "a,b\n1,2\n", " --column c", ": no column `c`; the columns are a, b"),
        ("beyond", "1,2\n", " --column 3", ": no column `3`; there are 2 columns"),
        (
            "head",
            "a,b\n",
            " --column b",
            ": no samples below the names of the columns; expected at least one",
        ),
        ("short", "a,b\n1,2\n1\n", " --column b", ":3: nothing; expected a time, 0 or more"),
        (
            "broken",
            "{\"rtt_ms\":1}\nfoo\n",
            "",
            ":2: not JSON; expected an object on every line, as on the first",
        ),
        ("field", "{\"a\":1}\n", "", ": no line has a field `rtt_ms`; --column names another"),
        (
            "unanswered",
            "{\"event\":\"send\",\"node\":1,\"to\":2,\"t_ms\":1}\n",
            "",
            ": a trace in which nothing that was said was answered",
        ),
        ("string", "{\"rtt_ms\":\"x\"}\n", "", ":1: `rtt_ms` is \"x\"; expected a time, 0 or more"),
    ] {
        let path = write(&folder, name, content);
        let words = format!("timeout --samples {path} --mistake-cost 1 --wait-cost 1{flags}");
        complains(&words, &format!("{path}{complaint}"));
    }
}

#[test]
fn wrong_costs_and_laws_get_one_clear_line() {
    for (flags, complaint) in [
        (
            "--exponential 1 --mistake-cost -1 --wait-cost 1",
            "--mistake-cost -1: expected a number, 0 or more",
        ),
        (
            "--exponential 1 --mistake-cost NaN --wait-cost 1",
            "--mistake-cost NaN: expected a number, 0 or more",
        ),
        (
            "--exponential 1 --mistake-cost 1 --wait-cost 0",
            "--wait-cost 0: expected a number, more than 0",
        ),
        (
            "--exponential 1 --mistake-cost 1 --wait-cost inf",
            "--wait-cost inf: expected a number, more than 0",
        ),
        (
            "--exponential 1 --mistake-cost 1e300 --wait-cost 1e-300",
            "--mistake-cost 1e300: too far above --wait-cost 1e-300 to be compared with it",
        ),
        (
            "--exponential 0 --mistake-cost 1 --wait-cost 1",
            "--exponential 0: expected a rate, more than 0",
        ),
        (
            "--lognormal 5 --mistake-cost 1 --wait-cost 1",
            "--lognormal 5: expected MEDIAN:SIGMA, both more than 0",
        ),
        (
            "--uniform 3..1 --mistake-cost 1 --wait-cost 1",
            "--uniform 3..1: expected A..B with 0 ≤ A < B",
        ),
        (
            "--exponential 1 --mistake-cost 1 --wait-cost 1 --timeout -3",
            "--timeout -3: expected a time, 0 or more",
        ),
    ] {
        complains(&format!("timeout {flags}"), complaint);
    }
}

/// The charts in the docs. `UPDATE=1` rewrites them.
#[test]
fn the_charts_of_the_docs_are_what_the_tool_draws_today() {
    let folder = scratch("charts");
    for (name, words) in [
        ("quorum", format!("{NOTES} 1e-4")),
        ("timeout-exponential", "timeout --exponential 0.1 --mistake-cost 1000 --wait-cost 1".to_owned()),
        (
            "timeout-measured",
            "timeout --samples docs/data/round-trips.csv --column rtt_ms --mistake-cost 400 --wait-cost 1".to_owned(),
        ),
    ] {
        let drawn = folder.join(format!("{name}.svg"));
        let output = vez(&format!("{words} --plot {}", drawn.to_str().unwrap()));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let drawn = fs::read_to_string(drawn).unwrap();
        let golden = root().join("docs/charts").join(format!("{name}.svg"));
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&golden, &drawn).unwrap();
        }
        let golden = fs::read_to_string(golden).unwrap_or_default();
        assert!(golden == drawn, "UPDATE=1 cargo test -p vez --test tool rewrites {name}");
    }
}
