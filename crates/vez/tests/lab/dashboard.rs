//! What the dashboard's page asks of the service, and what nobody else may.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Answer, Lab};
use crate::service::Clients;

fn names(lines: &Value) -> Vec<String> {
    let lines = lines["lines"].as_array().expect("lines").iter();
    lines.map(|line| line["name"].as_str().expect("a name").to_owned()).collect()
}

#[tokio::test]
async fn locks_elections_and_leases_are_seen_with_who_and_how_long() {
    let lab = Lab::service(&[]);
    let clients = Clients::of(&lab).await;
    for id in 1..=4 {
        clients.lease(id, 600).await;
    }
    clients.stand("backup", 1, "web-1:42 since 2026-03-01T10:00:00Z").await;
    clients.stand("backup", 2, "web-2:43 since 2026-03-01T10:00:05Z").await;
    clients.campaign("primary", 3, "10.0.0.7:5432").await;
    clients.stand("not-a-lock", 4, "").await;
    clients.revoke(4).await;
    let seen = lab.get("/api/service").json();
    let locks = &seen["locks"];
    assert_eq!((names(locks), &locks["total"]), (vec!["backup".to_owned()], &json!(1)));
    let line = &locks["lines"][0];
    assert_eq!(line["first"]["who"], "web-1:42");
    assert_eq!(
        (&line["waiting_total"], &line["waiting"][0]["who"]),
        (&json!(1), &json!("web-2:43"))
    );
    assert_eq!(line["first"]["ttl_ms"], 600_000);
    assert_eq!(line["first"]["since"]["least"], false);
    let election = &seen["elections"]["lines"][0];
    assert_eq!(
        (&election["name"], &election["first"]["who"]),
        (&json!("primary"), &json!("10.0.0.7:5432"))
    );
    assert_eq!(
        (&seen["leases"]["total"], &seen["held"], &seen["waiting"]),
        (&json!(3), &json!(2), &json!(1))
    );
    assert_eq!(seen["members"][0]["leads"], true);
    let history = seen["history"].as_array().expect("a history");
    let last = history.last().expect("something happened");
    assert_eq!((&last["what"], &last["why"]), (&json!("ended"), &json!("lease-revoked")));
    assert_eq!((&last["name"], &last["lease"]), (&json!("not-a-lock"), &json!("4")));
    let number = last["number"].as_u64().expect("a number");
    let seen = lab.get(&format!("/api/service?after={number}")).json();
    assert_eq!(seen["history"], json!([]));
    assert_eq!(seen["may_release"], false);
    assert_eq!(lab.get("/api/service?nonsense=1").status, 400);
}

#[tokio::test]
async fn of_many_locks_a_page_is_shown_and_any_is_found() {
    let lab = Lab::service(&[]);
    let clients = Clients::of(&lab).await;
    clients.lease(7, 600).await;
    clients.lease(8, 600).await;
    for number in 0..230 {
        clients.stand(&format!("job/{number:03}"), 7, "").await;
    }
    clients.stand("job/100", 8, "").await;
    let first = lab.get("/api/service?order=name").json();
    assert_eq!((&first["locks"]["total"], names(&first["locks"]).len()), (&json!(230), 100));
    assert_eq!(names(&first["locks"])[0], "job/000");
    let last = lab.get("/api/service?order=name&locks=200").json();
    assert_eq!(
        (names(&last["locks"]).len(), &names(&last["locks"])[29]),
        (30, &"job/229".to_owned())
    );
    let beyond = lab.get("/api/service?locks=9999").json();
    assert_eq!((names(&beyond["locks"]).len(), &beyond["locks"]["total"]), (0, &json!(230)));
    assert_eq!(names(&lab.get("/api/service?order=waiting").json()["locks"])[0], "job/100");
    let found = lab.get("/api/service?search=B%2F12").json();
    assert_eq!(
        (&found["locks"]["total"], &names(&found["locks"])[0]),
        (&json!(10), &"job/120".to_owned())
    );
}

type Headers<'a> = &'a [(&'a str, &'a str)];

/// Asks for a release as the page does; headers may be replaced, or left out if empty.
fn release(lab: &Lab, body: &Value, other: Headers<'_>) -> Answer {
    let (origin, token) = (format!("http://{}", lab.address), lab.token());
    let mut headers = vec![
        ("Content-Type", "application/json"),
        ("Origin", origin.as_str()),
        ("X-Vez-Token", token.as_str()),
    ];
    for (name, value) in other {
        headers.retain(|(known, _)| known != name);
        if !value.is_empty() {
            headers.push((name, value));
        }
    }
    lab.ask("POST", "/api/service/release", &headers, &body.to_string())
}

#[tokio::test]
async fn a_lock_is_released_by_hand_and_its_next_gets_it() {
    let lab = Lab::service(&[]);
    let clients = Clients::of(&lab).await;
    clients.lease(1, 600).await;
    clients.lease(2, 600).await;
    clients.locked("door", 1).await;
    let waiting = clients.lock("door", 2);
    clients.until_standing("door", 2).await;
    let first = lab.get("/api/service").json()["locks"]["lines"][0]["first"].clone();
    let whom = json!({ "id": first["id"], "fence": first["fence"] });
    let answer = release(&lab, &whom, &[]);
    assert_eq!((answer.status, answer.json()), (200, json!({ "released": true })));
    assert_eq!(waiting.await.expect("it ends").expect("it is granted"), "door/2");
    let again = release(&lab, &whom, &[]);
    assert_eq!(again.status, 409, "{}", again.body);
    let history = lab.get("/api/service").json()["history"].clone();
    let by_hand = |one: &&Value| one["why"] == "by-hand" && one["lease"] == "1";
    assert_eq!(history.as_array().expect("a history").iter().filter(by_hand).count(), 1);
}

#[tokio::test]
async fn a_late_click_never_releases_a_newer_grant() {
    let lab = Lab::service(&[]);
    let clients = Clients::of(&lab).await;
    clients.lease(1, 600).await;
    let key = clients.locked("door", 1).await;
    let first = lab.get("/api/service").json()["locks"]["lines"][0]["first"].clone();
    clients.unlock(&key).await;
    // The same key, by the same lease: another grant.
    clients.locked("door", 1).await;
    let late = release(&lab, &json!({ "id": first["id"], "fence": first["fence"] }), &[]);
    assert_eq!(late.status, 409, "{}", late.body);
    assert_eq!(names(&lab.get("/api/service").json()["locks"]), ["door"]);
}

#[tokio::test]
async fn nobody_else_can_release_anything() {
    let lab = Lab::service(&[]);
    let clients = Clients::of(&lab).await;
    clients.lease(1, 600).await;
    clients.locked("door", 1).await;
    let first = lab.get("/api/service").json()["locks"]["lines"][0]["first"].clone();
    let whom = json!({ "id": first["id"], "fence": first["fence"] });
    let token = lab.token();
    let (short, other) = (&token[..63], "0".repeat(64));
    let longer = format!("{token}0");
    let refused: [(Headers<'_>, u16, &str); 10] = [
        (&[("X-Vez-Token", "")], 403, "needs the token"),
        (&[("X-Vez-Token", short)], 403, "needs the token"),
        (&[("X-Vez-Token", &longer)], 403, "needs the token"),
        (&[("X-Vez-Token", &other)], 403, "needs the token"),
        (&[("Origin", "")], 403, "own page"),
        (&[("Origin", "http://evil.example")], 403, "own page"),
        (&[("Origin", "null")], 403, "own page"),
        (&[("Host", "evil.example")], 403, "not to the name"),
        (&[("Host", "evil.example"), ("Origin", "http://evil.example")], 403, "not to the name"),
        (&[("Content-Type", "text/plain")], 415, "application/json"),
    ];
    for (headers, status, why) in refused {
        let answer = release(&lab, &whom, headers);
        assert_eq!(answer.status, status, "{headers:?}: {}", answer.body);
        assert!(answer.error().contains(why), "{headers:?}: {}", answer.error());
    }
    for body in [json!({ "id": "zz", "fence": 1 }), json!({ "id": "", "fence": 1 })] {
        assert_eq!(release(&lab, &body, &[]).status, 400, "{body}");
    }
    assert_eq!(release(&lab, &json!({ "id": "64" }), &[]).status, 422);
    assert_eq!(lab.get("/api/service/release").status, 405);
    assert_eq!(names(&lab.get("/api/service").json()["locks"]), ["door"], "it is still held");
    assert_eq!(release(&lab, &whom, &[]).status, 200, "with everything in order it is released");
}

#[test]
fn the_token_is_its_owners_and_new_each_time() {
    let mut lab = Lab::service(&[]);
    let first = lab.token();
    assert!(first.len() == 64 && first.bytes().all(|byte| byte.is_ascii_hexdigit()), "{first}");
    let directory = lab.directory.clone().expect("it serves");
    let file = directory.join("data/dashboard-token");
    let mode = std::fs::metadata(file).expect("there is one").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let url = format!("http://{}/#token={first}", lab.address);
    assert!(lab.log().contains(&url), "{}", lab.log());
    lab.directory = None;
    drop(lab);
    let lab = Lab::service_in(directory, &[]);
    assert_ne!(lab.token(), first);
}

#[test]
fn pages_are_where_they_are_said_to_be_and_ask_nobody_else() {
    let lab = Lab::service(&[]);
    for (path, has) in [("/", "/lab/dashboard/js/main.js"), ("/lab", "/lab/js/main.js")] {
        let answer = lab.get(path);
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.body.contains(has), "{path}");
        let policy = answer.header("content-security-policy");
        assert!(policy.contains("default-src 'none'") && policy.contains("connect-src 'self'"));
        assert!(!policy.contains("http") && !policy.contains('*'), "{policy}");
    }
    assert_eq!(lab.get("/api/catalogue").status, 200);
    assert_eq!(lab.ask("GET", "/", &[("Host", "evil.example")], "").status, 403);
    assert_eq!(lab.ask("GET", "/api/service", &[("Host", "evil.example")], "").status, 403);
}

#[tokio::test]
async fn what_happens_to_locks_is_logged_for_machines() {
    let lab = Lab::service(&["--log-format", "json"]);
    let clients = Clients::of(&lab).await;
    clients.lease(0xa1, 2).await;
    clients.lease(2, 600).await;
    clients.locked("door", 0xa1).await;
    let waiting = clients.lock("door", 2);
    // Not kept alive, the first lease runs out.
    waiting.await.expect("it ends").expect("it is granted");
    let find = |message: &str| {
        let log = lab.log();
        let lines = log.lines().filter(|line| line.starts_with('{'));
        let mut lines = lines.map(|line| serde_json::from_str::<Value>(line).expect(line));
        lines.find(|line| line["message"] == message)
    };
    let logged = async {
        while find("handed over").is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), logged).await.expect("it is logged");
    let taken = find("taken away").expect("it comes before");
    assert_eq!((&taken["lock"], &taken["lease"]), (&json!("door"), &json!("a1")));
    assert_eq!((&taken["why"], &taken["level"]), (&json!("lease expired"), &json!("INFO")));
    let held = taken["held_ms"].as_u64().expect("how long");
    assert!((1900..30_000).contains(&held), "{held}");
    let waited = find("handed over").expect("it is there")["waited_ms"].as_u64();
    assert!(waited.is_some_and(|waited| waited <= held + 100), "{waited:?} of {held}");
    assert_eq!(find("granted"), None, "what is ordinary is said to who asks for it");
}
