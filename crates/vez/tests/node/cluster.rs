//! Every algorithm as real processes, killed, stopped, restarted and cut off; and judged.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Runs a cluster; standard input is the script.
fn cluster(args: &[&str], script: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_vez"))
        .arg("cluster")
        .args(args)
        .args(["--format", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// What came out, whatever it was.
#[track_caller]
fn judged(args: &[&str], script: &str, code: i32) -> Value {
    let output = cluster(args, script);
    let told = String::from_utf8_lossy(&output.stderr);
    let result = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(code), "{args:?}\n{told}\n{result}");
    serde_json::from_str(&result).unwrap()
}

#[track_caller]
fn kept(args: &[&str], script: &str) -> Value {
    let result = judged(args, script, 0);
    for promise in result["promises"].as_array().unwrap() {
        assert!(promise["kept"] == true || promise["claimed"] == false, "{args:?}: {promise}");
    }
    assert_eq!(result["unexpected"], 0, "{args:?}");
    result
}

fn broken(result: &Value) -> Vec<&str> {
    let promises = result["promises"].as_array().unwrap().iter();
    promises.filter(|p| p["kept"] == false).map(|p| p["name"].as_str().unwrap()).collect()
}

fn entries(result: &Value) -> usize {
    result["mutex"]["entries"].as_array().unwrap().len()
}

const PATIENT_BULLY: [&str; 5] =
    ["bully", "--set", "answer_within=300ms", "--set", "victory_within=900ms"];
const SHORT_DETECTOR: &str =
    "detector={ kind = \"heartbeat\", period = \"50ms\", tick = \"50ms\", timeout = \"400ms\" }";
const SHORT_ELECTION: &str = "election={ answer_within = \"200ms\", victory_within = \"600ms\" }";

#[test]
fn every_mutual_exclusion_keeps_its_promises_as_real_processes() {
    for entry in vez::registry::all().iter().filter(|entry| entry.problem == "mutex") {
        let script = "acquire all 2ms\nwait idle\nacquire 2 1ms\nacquire 4 1ms\nwait idle\n";
        let mut args = vec![entry.meta.name, "--nodes", "4"];
        if entry.meta.name == "quorum" {
            // By arrival, four who ask at once may each get one of four.
            args.extend(["--set", "order=timestamp"]);
        }
        let result = kept(&args, script);
        assert!(5 <= entries(&result), "{}: {result}", entry.meta.name);
        assert_eq!(result["mutex"]["waiting"], serde_json::json!([]), "{}", entry.meta.name);
    }
}

#[test]
fn every_election_keeps_its_promises_as_real_processes() {
    for entry in vez::registry::all().iter().filter(|entry| entry.problem == "election") {
        // Where all are alike nobody can be told whom to follow.
        let tells_all = entry.meta.name != "anonymous-ring";
        let wanted = if tells_all { "wait leader" } else { "wait leads 2" };
        let script = format!("elect 2\n{wanted}\n");
        let result = kept(&[entry.meta.name, "--nodes", "4"], &script);
        assert_eq!(result["election"]["leader"].is_u64(), tells_all, "{result}");
        assert!(!result["election"]["declarations"].as_array().unwrap().is_empty(), "{result}");
    }
}

#[test]
fn the_bully_replaces_a_killed_leader_and_gives_way_when_it_comes_back() {
    let script = "elect 1\nwait leader 5\nkill 5\nsuspect 2 5\nwait leader 4\n\
                  start 5\nelect 5\nwait leader 5\n";
    let result = kept(&PATIENT_BULLY, script);
    assert_eq!(result["election"]["leader"], 5);
    let failure = &result["election"]["failures"][0];
    assert_eq!((failure["node"].as_u64(), failure["led"].as_bool()), (Some(5), Some(true)));
}

#[test]
fn a_stopped_leader_is_taken_for_a_dead_one_and_there_are_two() {
    let script = "elect 1\nwait leader 5\nstop 5\nsuspect 1 5\nwait follows 1 4\n\
                  cont 5\nelect 5\nwait leader 5\n";
    let result = judged(&PATIENT_BULLY, script, 1);
    assert!(broken(&result).contains(&"uniqueness"), "{result}");
    assert_eq!(result["election"]["leader"], 5);
}

#[test]
fn the_list_ring_steps_over_the_dead() {
    let args = ["list-ring", "--nodes", "5", "--set", "skip_within=300ms", "--set", "pick=max"];
    let script = "elect 2\nwait leader 5\nkill 5\nkill 3\nelect 2\nwait leader 4\n\
                  start 3\nelect 3\nwait leader 4\n";
    assert_eq!(kept(&args, script)["election"]["leader"], 4);
}

#[test]
fn the_token_ring_steps_over_the_dead_and_makes_a_new_token() {
    let args = [
        "token-ring",
        "--nodes",
        "4",
        "--set",
        "hold=5ms",
        "--set",
        "hop_within=300ms",
        "--set",
        "lap_within=2s",
    ];
    let script = "acquire 3 1ms\nwait left 3\nkill 2\nacquire 4 1ms\nwait left 4\n\
                  acquire 1\nwait entered 1\nkill 1\nacquire 3 1ms\nwait left 3\n\
                  start 2\nacquire 2 1ms\nwait left 2\nwait idle\n";
    assert_eq!(entries(&kept(&args, script)), 5);
}

#[test]
fn a_quorum_that_remembers_survives_kills_and_the_smaller_side_waits() {
    let args = ["quorum", "--nodes", "5", "--set", "durable=true", "--set", "retry_after=300ms"];
    let script = "partition 1,2/3,4,5\nacquire 1\nacquire 4 1ms\nwait left 4\n\
                  heal\nwait entered 1\nrelease 1\nwait idle\n\
                  acquire 5\nwait entered 5\nkill 1\nkill 2\nstart 1\nstart 2\n\
                  acquire 1\nrelease 5\nwait entered 1\nrelease 1\nwait idle\n";
    assert_eq!(entries(&kept(&args, script)), 4);
}

#[test]
fn who_is_watched_is_replaced_without_being_asked() {
    let args = ["monitored", "--nodes", "4", "--set", SHORT_DETECTOR, "--set", SHORT_ELECTION];
    let script = "elect 1\nwait leader 4\nkill 4\nwait leader 3\nstart 4\nwait ready 4\n\
                  elect 4\nwait leader 4\n";
    let result = kept(&args, script);
    assert_eq!(result["election"]["leader"], 4);
    // On a busy machine it may have been suspected before it was killed; that it failed is known.
    assert_eq!(result["election"]["failures"][0]["node"], 4, "{result}");
}

#[test]
fn only_the_larger_side_of_a_partition_elects_and_all_agree_when_it_is_over() {
    let args = ["weighted-majority", "--nodes", "5", "--set", "check_quorum=true"];
    let script = "elect 1\nwait leader\npartition 1,2/3,4,5\nwait leader among 3,4,5\n\
                  wait no-leader 1\nwait no-leader 2\nheal\nwait leader\n\
                  stop 3\nkill 4\nwait leader among 1,2,5\ncont 3\nstart 4\nwait leader\n";
    assert!(kept(&args, script)["election"]["leader"].is_u64());
}

#[test]
fn a_killed_coordinator_is_replaced_and_work_goes_on() {
    let args =
        ["elected-coordinator", "--nodes", "4", "--set", SHORT_DETECTOR, "--set", SHORT_ELECTION];
    let script = "acquire 2 1ms\nwait left 2\nkill 4\nacquire 1 1ms\nwait left 1\n\
                  start 4\nacquire 3 1ms\nwait left 3\nwait idle\n";
    assert_eq!(entries(&kept(&args, script)), 3);
}

#[test]
fn connections_that_break_at_random_lose_nothing_and_repeat_nothing() {
    let mut script = "loss 0.05\n".to_owned();
    for _ in 0..15 {
        script += "acquire all 0\nwait idle\n";
    }
    let result = kept(&["ricart-agrawala", "--nodes", "4", "--seed", "7"], &script);
    assert_eq!(entries(&result), 60);
    // Three requests and three replies for each; not one more was heard, and none less.
    assert_eq!(result["messages"]["total"], 360);
    assert_eq!(result["messages"]["duplicated"], 0);
    assert_eq!(result["steps"], 4 + 360);
}

#[test]
fn a_script_that_fails_says_at_which_line() {
    let failed = |script: &str| {
        let output = cluster(&["bully", "--nodes", "2"], script);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let told = failed("elect 1\nhop 3\n");
    assert!(told.contains("line 2: hop 3: `hop 3` is no command"), "{told}");
    let told = failed("\nwait leads 1 within 50ms\n");
    assert!(told.contains("line 2: wait leads 1 within 50ms"), "{told}");
    for line in ["kill 9\n", "suspect 1 9\n"] {
        let told = failed(line);
        assert!(told.contains("no process has the uid 9"), "{told}");
    }
    let told = failed("cont 1\n");
    assert!(told.contains("P1 is not stopped"), "{told}");
}
