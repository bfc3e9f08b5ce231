//! Traces as real processes leave them, good and bad, before the judge.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::binary::scratch;

fn judge(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_vez")).arg("judge").args(args).output().unwrap()
}

fn header(node: u64) -> String {
    let members: Vec<String> =
        (1..=2).map(|id| format!(r#"{{"id":{id},"address":"127.0.0.1:{id}"}}"#)).collect();
    let members = members.join(",");
    format!(
        r#"{{"event":"header","algorithm":"ricart-agrawala","node":{node},"life":9,"group":{{"name":"vez","epoch":0,"node":[{members}]}}}}"#
    ) + "\n"
}

fn line(at: u64, node: u64, clock: [u64; 2], rest: &str) -> String {
    format!(r#"{{"t_ms":{at},"node":{node},"life":9,"clock":{clock:?},{rest}}}"#) + "\n"
}

const ASKS: &str = r#""event":"request","request":"Acquire","kind":"Acquire","text":"Acquire""#;
const LEAVES: &str = r#""event":"request","request":"Release","kind":"Release","text":"Release""#;
const ENTERS: &str =
    r#""event":"notice","notice":{"Entered":{"fence":null}},"kind":"Entered","text":"Entered""#;

/// The first is inside from 2 to 4 by its own clock; the second, whose clock is slow by 3, enters
/// knowing so much of the first.
fn traces(name: &str, known: u64) -> PathBuf {
    let folder = scratch(&format!("judge-{name}"));
    let first = [line(1, 1, [1, 0], ASKS), line(2, 1, [2, 0], ENTERS), line(4, 1, [3, 0], LEAVES)];
    let second =
        [line(0, 2, [0, 1], ASKS), line(3, 2, [known, 2], ENTERS), line(3, 2, [known, 3], LEAVES)];
    fs::write(folder.join("1.jsonl"), header(1) + &first.concat()).unwrap();
    fs::write(folder.join("2.jsonl"), header(2) + &second.concat()).unwrap();
    folder
}

fn path(folder: &Path) -> &str {
    folder.to_str().unwrap()
}

#[test]
fn what_a_process_knew_decides_and_not_its_clock() {
    let in_turn = traces("in-turn", 3);
    let output = judge(&[path(&in_turn), "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["algorithm"], "ricart-agrawala");
    assert_eq!(result["mutex"]["entries"][1]["node"], 2);
    assert_eq!(result["mutex"]["entries"][0]["entered_ms"], 2.0);
    let together = traces("together", 2);
    let output = judge(&[path(&together), "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["promises"][0]["name"], "mutual-exclusion");
    assert_eq!(result["promises"][0]["detail"], "P2 entered while P1 was inside");
}

#[test]
fn half_a_line_is_left_out_with_a_word() {
    let folder = traces("half", 3);
    let file = folder.join("2.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{text}{{\"t_ms\":9,\"no")).unwrap();
    let output = judge(&[path(&folder)]);
    assert_eq!(output.status.code(), Some(0));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("2.jsonl, line 5: half a line"), "{told}");
}

#[test]
fn who_waits_when_nothing_more_can_come_is_in_a_deadlock_and_else_only_waits() {
    const BOOTS: &str = r#""event":"boot""#;
    const ARMS: &str = r#""event":"arm","kind":"Message","text":"t","until_ms":9"#;
    let broken = |name: &str, more: &str| {
        let folder = scratch(&format!("judge-{name}"));
        let first = [line(1, 1, [1, 0], BOOTS), line(2, 1, [2, 0], ASKS)];
        fs::write(folder.join("1.jsonl"), header(1) + &first.concat()).unwrap();
        fs::write(folder.join("2.jsonl"), header(2) + more).unwrap();
        let result: serde_json::Value =
            serde_json::from_slice(&judge(&[path(&folder), "--format", "json"]).stdout).unwrap();
        assert!(result.get("rounds").is_none(), "{result}");
        let promises = result["promises"].as_array().unwrap().iter();
        let broken = promises.filter(|promise| promise["kept"] == false);
        let names = broken.map(|promise| promise["name"].as_str().unwrap().to_owned());
        (result["outcome"].as_str().unwrap().to_owned(), names.collect::<Vec<_>>())
    };
    let both = ["no-deadlock", "no-starvation"].map(str::to_owned).to_vec();
    let starves = vec!["no-starvation".to_owned()];
    let boots = line(1, 2, [0, 1], BOOTS);
    assert_eq!(broken("rests", &boots), ("quiescent".to_owned(), both));
    // A timer may yet fire; and of a process without a trace nothing is known.
    let armed = boots + &line(2, 2, [0, 2], ARMS);
    assert_eq!(broken("armed", &armed), ("deadline".to_owned(), starves.clone()));
    assert_eq!(broken("unknown", ""), ("deadline".to_owned(), starves));
}

#[test]
fn who_died_inside_is_no_longer_there() {
    let folder = traces("died", 2);
    let file = folder.join("1.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = text.lines().take(3).collect();
    fs::write(&file, lines.join("\n") + "\n").unwrap();
    assert_eq!(judge(&[path(&folder)]).status.code(), Some(1));
    let crash = r#"{"t_ms":2.5,"node":1,"event":"crash"}"#;
    fs::write(folder.join("cluster.jsonl"), crash).unwrap();
    let output = judge(&[path(&folder)]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn every_picture_can_be_made_of_it() {
    let folder = traces("pictures", 3);
    for (format, start) in [
        ("mermaid", "---\ntitle: \"Ricart"),
        ("svg", "<svg"),
        ("html", "<!doctype html>"),
        ("jsonl", "{\"t_ms\":0.0,\"node\":2,\"event\":\"request\""),
        ("shiviz", "(?<host>"),
    ] {
        let output = judge(&[path(&folder), "--format", format]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.starts_with(start), "{format}: {}", &text[..80]);
    }
}

#[test]
fn what_is_no_trace_is_named_by_file_and_line() {
    let folder = traces("wrong", 3);
    let file = folder.join("1.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("\"t_ms\":2", "\"t_sm\":2", 1)).unwrap();
    let output = judge(&[path(&folder)]);
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("1.jsonl, line 3: expected t_ms"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    assert_eq!(judge(&["nowhere.jsonl"]).status.code(), Some(2));
    let folder = traces("asked-twice", 3);
    let file = folder.join("1.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text + &line(5, 1, [4, 0], ASKS) + &line(6, 1, [5, 0], ASKS)).unwrap();
    let told = String::from_utf8(judge(&[path(&folder)]).stderr).unwrap();
    assert!(told.contains("no user may ask this now"), "{told}");
    let told = String::from_utf8(judge(&[path(&folder), "--crashed", "9"]).stderr).unwrap();
    assert!(told.contains("--crashed: no node has the id 9"), "{told}");
}
