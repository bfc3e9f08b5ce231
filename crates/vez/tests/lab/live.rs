//! A cluster of real processes on the lab's page.

use std::time::Duration;

use fantoccini::key::Key;
use serde_json::{Value, json};

use crate::browser::{Browser, Manner, is_there};
use crate::client::Lab;

const BULLY: [&str; 7] =
    ["bully", "--nodes", "3", "--set", "answer_within=200ms", "--set", "victory_within=600ms"];

/// Everything that has happened, once it is so.
fn until(lab: &Lab, what: &str, is_so: impl Fn(&[Value]) -> bool) -> Value {
    for _ in 0..600 {
        let answer = lab.get("/api/live?from=0");
        assert_eq!(answer.status, 200, "{}", answer.body);
        let stretch = answer.json();
        if is_so(stretch["events"].as_array().unwrap()) {
            return stretch;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("never: {what}");
}

fn follows(events: &[Value], leader: u64) -> usize {
    let told = events.iter().filter(|event| event["notice"]["Leader"]["id"] == leader);
    let nodes: std::collections::BTreeSet<_> = told.map(|event| event["node"].as_u64()).collect();
    nodes.len()
}

#[test]
fn what_processes_do_is_merged_and_judged_as_it_happens_and_they_can_be_told_more() {
    let mut lab = Lab::cluster(&BULLY);
    assert_eq!(lab.get("/api/catalogue").json()["live"], true);
    let say = |line: &str| lab.post("/api/live", &json!({ "line": line }));
    until(&lab, "they boot", |events| events.iter().filter(|e| e["event"] == "boot").count() == 3);
    assert_eq!(say("elect 1").status, 200);
    let stretch = until(&lab, "3 leads", |events| follows(events, 3) == 3);
    assert_eq!(stretch["scenario"]["algorithm"], "bully");
    assert_eq!(stretch["topology"]["nodes"].as_array().unwrap().len(), 3);
    let light = |stretch: &Value, name: &str| {
        let promises = stretch["promises"].as_array().unwrap().clone();
        promises.into_iter().find(|promise| promise["name"] == name).unwrap()["kept"].clone()
    };
    assert_eq!(light(&stretch, "uniqueness"), true);
    // What has been fetched is not fetched again.
    let next = stretch["next"].as_u64().unwrap();
    let later = lab.get(&format!("/api/live?from={next}")).json();
    assert_eq!(later["events"], json!([]));
    // A stopped leader is taken for a dead one, and then there are two.
    assert_eq!(say("stop 3").status, 200);
    assert_eq!(say("suspect 1 3").status, 200);
    let stretch = until(&lab, "2 leads", |events| follows(events, 2) == 2);
    let is_pause = |event: &&Value| event["event"] == "pause" && event["node"] == 3;
    assert!(stretch["events"].as_array().unwrap().iter().any(|event| is_pause(&event)));
    assert_eq!(light(&stretch, "uniqueness"), false);
    for (line, why) in [
        ("kill 9", "no process has the uid 9"),
        ("dance", "`dance` is no command"),
        ("quit", "`quit` is for the console"),
        ("sleep 100s", "`sleep 100s` is for the console"),
    ] {
        let refused = say(line);
        assert_eq!(refused.status, 400, "{line}");
        assert!(refused.error().contains(why), "{}", refused.error());
    }
    assert_eq!(say(&"x".repeat(300)).status, 400);
    let foreign = [("Content-Type", "application/json"), ("Origin", "http://evil.example")];
    assert_eq!(lab.ask("POST", "/api/live", &foreign, "{\"line\":\"kill 1\"}").status, 403);
    assert_eq!(lab.ask("POST", "/api/live", &[], "{\"line\":\"kill 1\"}").status, 415);
    lab.tell("cont 3\nquit\n");
    assert_eq!(lab.ended(), Some(1));
}

#[test]
fn where_no_cluster_runs_there_is_nothing_live() {
    let lab = Lab::start();
    assert_eq!(lab.get("/api/catalogue").json()["live"], false);
    assert_eq!(lab.get("/api/live?from=0").status, 404);
    assert_eq!(lab.post("/api/live", &json!({ "line": "kill 1" })).status, 404);
}

#[tokio::test]
async fn the_page_goes_along_acts_on_the_processes_and_can_look_back() {
    if !is_there() {
        return;
    }
    let page = Browser::at(Lab::cluster(&BULLY), Manner::default(), "/").await;
    page.until("lab.side?.live && lab.timeline.n === 3").await;
    page.click("process-1").await;
    page.click("menu-start").await;
    let leads = "lab.timeline.processes.condition(2, lab.side.position).leader === 2";
    page.until(leads).await;
    page.click("process-3").await;
    page.click("menu-crash").await;
    page.until("!lab.timeline.processes.condition(2, lab.side.position).up").await;
    // A step back stays where it is while the cluster goes on.
    page.special(Key::Left).await;
    page.until("document.querySelector('[data-testid=follow]').ariaPressed === 'false'").await;
    let stays = page.value("lab.side.position").await;
    assert_eq!(page.lab.post("/api/live", &json!({ "line": "start 3" })).status, 200);
    page.until("lab.side.live.events.some((event) => event.event === 'restart')").await;
    assert_eq!(page.value("lab.side.position").await, stays);
    page.key('n').await;
    page.until("lab.timeline.processes.condition(2, lab.side.position).up").await;
    page.until("document.querySelector('[data-testid=follow]').ariaPressed === 'true'").await;
    page.click("tab-edit").await;
    assert!(page.read("edit-live").await.contains("real"));
    page.click("switch-language").await;
    assert!(page.read("follow").await.contains("Ao vivo"));
    page.until("document.querySelector('[data-testid=edit-live]').textContent.includes('reais')")
        .await;
    assert_eq!(
        page.value("!!document.querySelector('[data-testid=promise-uniqueness]')").await,
        json!(true)
    );
    page.close().await;
}
