use serde_json::Value;

use crate::run::{Run, until_keys};
use crate::server::with_each;

#[test]
fn a_candidate_leads_when_the_one_before_it_ends_and_observers_see_it() {
    with_each("cli-elect", |server| {
        let mut observer = Run::vez(server, &["elect", "chair", "--observe"]);
        assert_eq!(observer.line(), "-\tnobody");
        let script = "echo $VEZ_ELECTION $VEZ_VALUE $VEZ_FENCE; exec sleep 60";
        let stand = |value| {
            let args = ["elect", "chair", "--value", value, "--", "sh", "-c", script];
            Run::vez(server, &args)
        };
        let mut anna = stand("anna");
        let elected = anna.line();
        let fence = elected.strip_prefix("chair anna ").unwrap();
        assert_eq!(observer.line(), format!("{fence}\tanna"));
        let mut bert = stand("bert");
        assert_eq!(bert.note(), "vez: waiting for chair: 1 ahead, led by anna");
        anna.signal("-TERM");
        assert_eq!(anna.end().code, Some(143));
        assert!(bert.line().starts_with("chair bert "));
        assert!(observer.line().ends_with("\tbert"));
        bert.signal("-TERM");
        assert_eq!(bert.end().code, Some(143));
        assert_eq!(observer.line(), "-\tnobody");
        observer.signal("-INT");
        assert_eq!(observer.end().code, Some(130));
    });
}

#[test]
fn who_loses_stands_again_unless_told_otherwise() {
    with_each("cli-again", |server| {
        let script = "echo $VEZ_FENCE; exec sleep 60";
        let mut run = Run::vez(server, &["elect", "chair", "--", "sh", "-c", script]);
        let first: u64 = run.line().parse().unwrap();
        server.etcdctl_output(&["del", "chair/", "--prefix"]);
        let again: u64 = run.line().parse().unwrap();
        assert!(again > first);
        assert_eq!(run.note(), "vez: lost chair: the key was deleted; ending the command");
        run.signal("-TERM");
        assert_eq!(run.end().code, Some(143));

        let args = ["elect", "chair", "--once", "--format", "json", "--", "sh", "-c", script];
        let mut run = Run::vez(server, &args);
        run.line();
        assert_eq!(run.event()["event"], "elected");
        server.etcdctl_output(&["del", "chair/", "--prefix"]);
        assert_eq!(run.event()["event"], "lost");
        assert_eq!(run.end().code, Some(76));
    });
}

#[test]
fn a_command_that_ends_resigns_with_its_code() {
    with_each("cli-resign", |server| {
        let run = Run::vez(server, &["elect", "chair", "--", "sh", "-c", "exit 9"]).end();
        assert_eq!(run.code, Some(9), "{run:?}");
        assert_eq!(server.keys(), [""; 0]);
    });
}

#[test]
fn candidates_stand_beside_those_of_etcdctl() {
    with_each("cli-elect-etcdctl", |server| {
        let mut theirs = Run::start(server.etcdctl(&["elect", "chair", "theirs"]));
        assert!(theirs.line().starts_with("chair/"));
        let mut ours = Run::vez(server, &["elect", "chair", "--value", "ours"]);
        assert_eq!(ours.note(), "vez: waiting for chair: 1 ahead, led by theirs");
        let mut observer = Run::start(server.etcdctl(&["elect", "chair", "--listen"]));
        let mut seen = || {
            observer.line();
            observer.line()
        };
        assert_eq!(seen(), "theirs");
        theirs.signal("-INT");
        let _fence: u64 = ours.line().parse().unwrap();
        assert_eq!(seen(), "ours");
    });
}

#[test]
fn status_shows_who_holds_who_waits_and_who_leads() {
    with_each("cli-status", |server| {
        let empty = Run::vez(server, &["status"]).end();
        assert!(empty.stdout.starts_with("MEMBER "), "{empty:?}");
        let mut holder = Run::vez(server, &["lock", "jobs/night"]);
        let fence = holder.line();
        let mut waiting = Run::vez(server, &["lock", "jobs/night", "--", "true"]);
        waiting.note();
        let mut theirs = Run::start(server.etcdctl(&["lock", "theirs"]));
        let key = theirs.line();
        let mut leader = Run::vez(server, &["elect", "chair", "--value", "anna"]);
        leader.line();
        server.etcdctl_output(&["put", "data", "x"]);
        until_keys(server, 5);

        let text = Run::vez(server, &["status"]).end().stdout;
        let row = |name: &str| -> Vec<String> {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            line.split_whitespace().map(str::to_owned).collect()
        };
        let night = row("jobs/night");
        assert!(night[1].ends_with(&format!(":{}", holder.pid())), "{text}");
        assert_eq!(&night[3..], [fence.as_str(), "1"], "{text}");
        assert_eq!(row("theirs")[2], key.strip_prefix("theirs/").unwrap(), "{text}");
        assert_eq!(row("chair")[1], "anna", "{text}");
        assert!(!text.contains("data"), "{text}");

        let json = Run::vez(server, &["status", "jobs/", "--format", "json"]).end().stdout;
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["locks"].as_array().unwrap().len(), 1);
        assert_eq!(json["locks"][0]["holder"]["fence"].to_string(), fence);
        assert_eq!(json["locks"][0]["waiting"].as_array().unwrap().len(), 1);
        assert!(json["locks"][0]["holder"]["age_seconds"].as_u64().unwrap() < 60);
        assert_eq!(json["elections"].as_array().unwrap().len(), 0);
        assert_eq!(json["leases_total"], 4);
        assert_eq!(json["members"][0]["leader"], true);
    });
}
