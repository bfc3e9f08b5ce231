//! What the words and diagrams must say of runs in which it matters.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Made, gallery, lease_outlived, long_idle, lossy, split_brain, three_take_turns};
use vez_sim::What;

fn story(made: &Made) -> String {
    vez_draw::story(&made.run()).join("\n")
}

#[test]
fn the_story_tells_causes_with_their_effects() {
    let story = story(&three_take_turns());
    for line in [
        "    0 ms  P2 asks to enter: sends Request(1) to P1",
        "    2 ms  P2 hears Ok(request=1, fence=1) from P1: enters (fence 1)",
        "    5 ms  P2 leaves: sends Release(request=1, fence=1) to P1",
    ] {
        assert!(story.lines().any(|told| told == line), "{line}\nnot in\n{story}");
    }
    assert!(!story.contains("boots"), "{story}");
}

#[test]
fn the_story_tells_of_faults() {
    let split = story(&split_brain());
    for part in [
        "the network splits: P1–P3 | P4–P6",
        "(cut off from P4–P6)",
        "the network is whole again",
        "the link P1–P6 is cut",
        "the link P1–P6 is mended",
        "P3's timer Answer runs out: declares itself leader, sends Coord(4) to all others",
    ] {
        assert!(split.contains(part), "{part}\nnot in\n{split}");
    }
    let lossy = story(&lossy());
    for part in ["(lost on the way to P4)", ", a copy", "P5 is down", "having forgotten everything"]
    {
        assert!(lossy.contains(part), "{part}\nnot in\n{lossy}");
    }
}

#[test]
fn broken_promises_stand_out() {
    let made = lease_outlived();
    let run = made.run();
    let broken = "P3 entered while P2 was inside";
    let line = vez_draw::story(&run).into_iter().find(|line| line.contains(broken)).unwrap();
    assert!(line.starts_with('✘'), "{line}");
    let mermaid = vez_draw::mermaid(&run);
    let red = mermaid.split_once("    rect rgba(").expect("a red block").1;
    assert!(red.contains(broken) && red.ends_with("\n    end\n"), "{red}");
    assert!(vez_draw::svg(&run).contains("class=\"broken\""));
    assert!(vez_draw::html(&run).contains("✘ a promise broken"));
    // What nobody promised is told once, and breaks nothing.
    let story = story(&lossy());
    assert_eq!(story.matches("(not promised)").count(), 1, "{story}");
}

#[test]
fn mermaid_opens_and_closes_in_pairs() {
    for made in gallery() {
        let mut active = BTreeSet::new();
        let mermaid = vez_draw::mermaid(&made.run());
        for line in mermaid.lines().map(str::trim) {
            if let Some(who) = line.strip_prefix("activate ") {
                assert!(active.insert(who), "{}: {line} twice", made.name);
            } else if let Some(who) = line.strip_prefix("deactivate ") {
                assert!(active.remove(who), "{}: {line} before", made.name);
            }
        }
        let arrows = mermaid.matches("->>").count() + mermaid.matches("--x").count();
        if made.name != "nasty" {
            let under_way = mermaid.matches("--)").count();
            let sent = |what: &What| matches!(what, What::Send { .. } | What::Repeat { .. });
            let sent = made.events.iter().filter(|event| sent(&event.what)).count();
            assert_eq!(arrows + under_way, sent, "{}", made.name);
        }
    }
}

#[test]
fn an_idle_stretch_is_cut_short_and_said_to_be() {
    let made = long_idle();
    let svg = vez_draw::svg(&made.run());
    assert!(svg.contains("⋮ 5 s"), "{svg}");
    let height = svg.split("height=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(height.parse::<f64>().unwrap() < 1_000.0, "{height} px");
}

#[test]
fn vector_clocks_know_exactly_what_was_heard() {
    for made in [three_take_turns(), split_brain(), lossy()] {
        let log = vez_draw::shiviz(&made.run());
        let mut lines = log.lines();
        assert_eq!(lines.next(), Some(r"(?<host>\S*) (?<clock>{.*})\n(?<event>.*)"));
        assert_eq!(lines.next(), Some(""));
        let mut last: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        while let (Some(head), Some(event)) = (lines.next(), lines.next()) {
            let (host, clock) = head.split_once(' ').unwrap();
            let clock: BTreeMap<String, u64> = serde_json::from_str(clock).unwrap();
            let before = last.get(host).cloned().unwrap_or_default();
            let own = |clock: &BTreeMap<String, u64>| clock.get(host).copied().unwrap_or_default();
            assert_eq!(own(&clock), own(&before) + 1, "{head}");
            // Nobody forgets, and nobody knows more of another than that one has done.
            for (other, count) in &clock {
                assert!(before.get(other) <= Some(count), "{head}");
                let done = last.get(other).map_or(0, |clock| clock[other]);
                assert!(other == host || *count <= done, "{head}");
            }
            // Only what is heard brings news.
            if event.contains(" hears ") {
                let sender = event.rsplit(' ').next().unwrap();
                assert!(clock.contains_key(sender), "{head}\n{event}");
            } else {
                assert_eq!(clock.len(), before.len().max(1), "{head}\n{event}");
            }
            last.insert(host.to_owned(), clock);
        }
    }
}

#[test]
fn every_line_of_json_is_an_event() {
    let made = lossy();
    let jsonl = vez_draw::jsonl(&made.run());
    assert_eq!(jsonl.lines().count(), made.events.len());
    for line in jsonl.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(event["t_ms"].is_f64() && event["event"].is_string(), "{line}");
    }
}
