//! The lab's server, asked as a browser would ask it, and as nobody should.

mod common;

use common::lab::{Answer, Lab};
use serde_json::{Value, json};

fn bully() -> Value {
    json!({ "algorithm": "bully", "nodes": 5, "at": [{ "time": "0ms", "start": [2] }] })
}

#[test]
fn a_scenario_comes_back_as_its_run() {
    let lab = Lab::start();
    let answer = lab.post("/api/run", &json!({ "scenario": bully() }));
    assert_eq!(answer.status, 200, "{}", answer.body);
    let run = answer.json();
    assert_eq!(run["result"]["election"]["leader"], 5);
    assert_eq!(run["result"]["messages"]["total"], 16);
    assert_eq!(run["topology"]["shape"], "complete");
    assert_eq!(run["topology"]["edges"].as_array().unwrap().len(), 10);
    let events = run["events"].as_array().unwrap();
    let sends = events.iter().filter(|event| event["event"] == "send");
    assert_eq!(sends.count(), 16);
    assert_eq!(run["scenario"]["algorithm"], "bully");
}

#[test]
fn every_story_is_in_the_catalogue_and_can_be_played() {
    let lab = Lab::start();
    let catalogue = lab.get("/api/catalogue").json();
    let stories = catalogue["stories"].as_array().unwrap();
    assert!(70 <= stories.len(), "{}", stories.len());
    assert_eq!(catalogue["algorithms"].as_array().unwrap().len(), vez::registry::all().len());
    for story in stories {
        let answer = lab.post("/api/run", &json!({ "scenario": story["scenario"] }));
        assert_eq!(answer.status, 200, "{}: {}", story["id"], answer.body);
        assert!(!story["title"]["pt"].as_str().unwrap().is_empty(), "{}", story["id"]);
    }
}

#[test]
fn what_it_exports_is_what_the_command_line_makes() {
    let lab = Lab::start();
    let question = json!({ "scenario": bully() });
    for (format, start) in [
        ("toml", "algorithm = \"bully\""),
        ("mermaid", "---\ntitle: \"Bully"),
        ("svg", "<svg"),
        ("html", "<!doctype html>"),
        ("jsonl", "{\"t_ms\""),
    ] {
        let answer = lab.post(&format!("/api/export?format={format}"), &question);
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert!(answer.body.trim_start().starts_with(start), "{format}: {:.80}", answer.body);
    }
    let answer = lab.post("/api/export?format=gif", &question);
    assert_eq!(answer.error(), "format `gif`; expected toml, mermaid, svg, html, jsonl or shiviz");
}

#[test]
fn a_bad_scenario_gets_one_line_that_says_what_was_expected() {
    let lab = Lab::start();
    let refused = |scenario: Value| {
        let answer = lab.post("/api/run", &json!({ "scenario": scenario }));
        assert_eq!(answer.status, 400, "{}", answer.body);
        answer.error()
    };
    let unknown = refused(json!({ "algorithm": "buly" }));
    assert_eq!(unknown, "no algorithm is called `buly`, did you mean `bully`?");
    let misspelt = json!({ "algorithm": "bully", "at": [{ "time": "0ms", "strt": [2] }] });
    assert!(refused(misspelt).contains("did you mean `start`?"));
    let crowd = refused(json!({ "algorithm": "bully", "nodes": 501 }));
    assert_eq!(crowd, "501 processes; expected at most 500");
    assert_eq!(lab.post("/api/run", &json!({})).status, 422);
}

#[test]
fn a_run_without_end_is_cut_off() {
    let lab = Lab::start();
    let restless = json!({ "algorithm": "token-ring", "nodes": 50, "until": "3600s",
        "at": [{ "time": "3599s", "acquire": [{ "node": 2, "hold": "1ms" }] }] });
    let run = lab.post("/api/run", &json!({ "scenario": restless })).json();
    assert_eq!(run["result"]["outcome"], "limit");
    assert_eq!(run["events"].as_array().unwrap().len(), 200_000);
    assert!(0 < run["dropped"].as_u64().unwrap());
}

#[test]
fn other_pages_and_other_names_are_refused() {
    let lab = Lab::start();
    let body = json!({ "scenario": bully() }).to_string();
    let json_type = ("Content-Type", "application/json");
    let foreign =
        lab.ask("POST", "/api/run", &[json_type, ("Origin", "http://evil.example")], &body);
    assert_eq!(foreign.status, 403, "{}", foreign.body);
    let own = format!("http://{}", lab.address);
    assert_eq!(lab.ask("POST", "/api/run", &[json_type, ("Origin", &own)], &body).status, 200);
    let form = [("Content-Type", "text/plain")];
    assert_eq!(lab.ask("POST", "/api/run", &form, &body).status, 415);
    assert_eq!(lab.ask("GET", "/", &[("Host", "evil.example")], "").status, 403);
}

#[test]
fn only_the_page_s_own_files_can_be_had() {
    let lab = Lab::start();
    for path in [
        "/lab/../src/lib.rs",
        "/lab/%2e%2e/src/lib.rs",
        "/lab//etc/passwd",
        "/lab/../../../Cargo.toml",
        "/lab/js/../../src/lab/mod.js",
        "/etc/passwd",
    ] {
        assert_eq!(lab.get(path).status, 404, "{path}");
    }
    let page = lab.get("/");
    assert_eq!((page.status, page.header("x-content-type-options")), (200, "nosniff"));
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
    assert_eq!(lab.ask("DELETE", "/", &[], "").status, 404);
}

#[test]
fn too_large_a_question_is_refused() {
    let lab = Lab::start();
    let body = format!("{{\"scenario\": \"{}\"}}", "x".repeat(1 << 20));
    let answer: Answer =
        lab.ask("POST", "/api/run", &[("Content-Type", "application/json")], &body);
    assert_eq!(answer.status, 413, "{}", answer.body);
}

/// Asks how far a search is until it is over.
fn outcome(lab: &Lab, wanted: &Value) -> Value {
    let begun = lab.post("/api/check", wanted);
    assert_eq!(begun.status, 202, "{}", begun.body);
    let path = format!("/api/check/{}", begun.json()["id"]);
    loop {
        let standing = lab.get(&path).json();
        if standing["state"] == "done" {
            return standing;
        }
    }
}

#[test]
fn a_search_finds_the_shortest_way_to_break_a_promise_and_the_lab_plays_it() {
    let lab = Lab::start();
    let scenario = json!({ "algorithm": "bully", "nodes": 3 });
    let wanted = json!({ "scenario": scenario, "without": ["synchrony"], "crashes": 0 });
    let standing = outcome(&lab, &wanted);
    let broken = &standing["outcome"]["broken"];
    assert_eq!(
        (&broken["promise"], broken["steps"].as_array().unwrap().len()),
        (&json!("uniqueness"), 3)
    );
    let run = lab.post("/api/run", &json!({ "scenario": broken["scenario"] })).json();
    let promises = run["result"]["promises"].as_array().unwrap();
    let uniqueness = promises.iter().find(|promise| promise["name"] == "uniqueness").unwrap();
    assert_eq!(uniqueness["kept"], false);
}

#[test]
fn a_search_that_breaks_nothing_says_that_everything_is_kept() {
    let lab = Lab::start();
    let scenario = json!({ "algorithm": "ricart-agrawala", "nodes": 3 });
    let standing = outcome(&lab, &json!({ "scenario": scenario }));
    let outcome = &standing["outcome"];
    assert_eq!((&outcome["complete"], &outcome["broken"]), (&json!(true), &Value::Null));
    assert!(outcome["promises"].as_array().unwrap().iter().all(|p| p["judgement"] == "kept"));
}

#[test]
fn searches_can_be_cancelled_and_are_few() {
    let lab = Lab::start();
    let large = json!({ "scenario": { "algorithm": "ricart-agrawala", "nodes": 6 }, "entries": 3 });
    let ids: Vec<Value> =
        (0..2).map(|_| lab.post("/api/check", &large).json()["id"].clone()).collect();
    let third = lab.post("/api/check", &large);
    assert_eq!(
        (third.status, third.error()),
        (429, "2 searches are under way; cancel one, or wait".to_owned())
    );
    for id in &ids {
        assert_eq!(lab.ask("DELETE", &format!("/api/check/{id}"), &[], "").status, 204);
    }
    for id in &ids {
        let path = format!("/api/check/{id}");
        let standing = loop {
            let standing = lab.get(&path).json();
            if standing["state"] == "done" {
                break standing;
            }
        };
        assert_eq!(standing["outcome"]["stopped"], "cancelled");
    }
    assert_eq!(lab.get("/api/check/99").status, 404);
    let crowd = json!({ "scenario": { "algorithm": "bully", "nodes": 13 } });
    assert_eq!(lab.post("/api/check", &crowd).status, 400);
}
