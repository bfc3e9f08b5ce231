//! What every picture of every run must be like, whatever the run.

mod common;

use std::collections::BTreeSet;

use common::{Made, gallery, long_run, nasty};
use roxmltree::{Document, Node};
use vez_sim::What;

fn parsed(svg: &str) -> Document<'_> {
    Document::parse(svg).unwrap_or_else(|error| panic!("not well-formed: {error}"))
}

fn with_class<'a, 'd>(document: &'a Document<'d>, class: &str) -> Vec<Node<'a, 'd>> {
    let has = |node: &Node<'_, '_>| {
        node.attribute("class").is_some_and(|own| own.split(' ').any(|one| one == class))
    };
    document.descendants().filter(has).collect()
}

/// Ids of everything sent, copies included.
fn sent(made: &Made) -> BTreeSet<u64> {
    let ids = made.events.iter().filter_map(|event| match event.what {
        What::Send { id, .. } | What::Repeat { copy: id, .. } => Some(id),
        _ => None,
    });
    ids.collect()
}

#[test]
fn every_message_has_one_arrow() {
    for made in gallery() {
        let svg = vez_draw::svg(&made.run());
        let document = parsed(&svg);
        let arrows = with_class(&document, "m");
        let ids: Vec<u64> =
            arrows.iter().filter_map(|arrow| arrow.attribute("data-id")?.parse().ok()).collect();
        assert_eq!(ids.len(), sent(&made).len(), "{}", made.name);
        assert_eq!(ids.into_iter().collect::<BTreeSet<_>>(), sent(&made), "{}", made.name);
    }
}

#[test]
fn every_arrow_falls_from_its_sender_to_its_receiver() {
    for made in gallery() {
        let svg = vez_draw::svg(&made.run());
        let document = parsed(&svg);
        let heads = with_class(&document, "head")[0];
        let lanes: Vec<(String, f64)> = heads
            .children()
            .filter(|node| node.has_tag_name("text"))
            .map(|head| (head.text().unwrap().to_owned(), number(head, "x")))
            .collect();
        let x_of = |uid: u64| lanes.iter().find(|(name, _)| *name == format!("P{uid}")).unwrap().1;
        let arrows = with_class(&document, "m");
        for event in &made.events {
            let (What::Receive { from, id, .. }, Some(to)) = (&event.what, event.node) else {
                continue;
            };
            let is_it = |arrow: &&Node<'_, '_>| arrow.attribute("data-id") == Some(&id.to_string());
            let arrow = arrows.iter().find(is_it).unwrap();
            let path = arrow.children().find(|node| node.has_tag_name("path")).unwrap();
            let [x1, y1, x2, y2] = numbers(path.attribute("d").unwrap())[..] else { panic!() };
            assert!((x1 - x_of(*from)).abs() < 0.2, "{}: {id} starts elsewhere", made.name);
            assert!((x2 - x_of(to)).abs() < 5.0, "{}: {id} ends elsewhere", made.name);
            assert!(y1 < y2, "{}: {id} arrives before it is sent", made.name);
        }
    }
}

#[test]
fn everything_is_on_the_page() {
    for made in gallery() {
        let svg = vez_draw::svg(&made.run());
        let document = parsed(&svg);
        let page = numbers(document.root_element().attribute("viewBox").unwrap());
        let (width, height) = (page[2], page[3]);
        let on_page = |x: f64, y: f64, what: &str| {
            let inside = (0.0..=width).contains(&x) && (0.0..=height).contains(&y);
            assert!(inside, "{}: {what} at {x}, {y} of {width}, {height}", made.name);
        };
        let drawn = document.descendants().filter(|node| {
            !node.ancestors().any(|a| a.has_tag_name("defs") || a.has_tag_name("style"))
        });
        for node in drawn {
            match node.tag_name().name() {
                "rect" => {
                    let (x, y) = (number(node, "x"), number(node, "y"));
                    on_page(x, y, "a bar");
                    on_page(x + number(node, "width"), y + number(node, "height"), "a bar's end");
                }
                "circle" => on_page(number(node, "cx"), number(node, "cy"), "a dot"),
                "text" => {
                    let (start, end, y) = reach(node);
                    on_page(start, y, node.text().unwrap());
                    on_page(end, y, node.text().unwrap());
                }
                "path" => {
                    let d = node.attribute("d").unwrap();
                    let at = numbers(d);
                    on_page(at[0], at[1], d);
                    if d.starts_with('M') && d.contains('L') {
                        on_page(at[2], at[3], d);
                    }
                }
                _ => (),
            }
        }
    }
}

#[test]
fn labels_do_not_lie_on_each_other() {
    for made in gallery() {
        let svg = vez_draw::svg(&made.run());
        let document = parsed(&svg);
        let mut level: Vec<(f64, f64, f64, &str)> = Vec::new();
        let words = ["mark-label", "tick", "soft", "bad"].map(|class| with_class(&document, class));
        for node in words.iter().flatten().filter(|node| node.has_tag_name("text")) {
            let (start, end, y) = reach(*node);
            let text = node.text().unwrap();
            for &(other_start, other_end, other_y, other) in &level {
                let apart = end <= other_start || other_end <= start || 9.0 < (y - other_y).abs();
                assert!(apart, "{}: {text:?} at {y} lies on {other:?} at {other_y}", made.name);
            }
            level.push((start, end, y, text));
        }
    }
}

#[test]
fn pictures_need_nothing_but_themselves() {
    for made in gallery() {
        let run = made.run();
        for text in [vez_draw::svg(&run), vez_draw::html(&run)] {
            let text = text.replace("http://www.w3.org/2000/svg", "");
            for bad in ["http://", "https://", "@import", "src=", "href="] {
                assert!(!text.contains(bad), "{}: {bad}", made.name);
            }
        }
    }
}

#[test]
fn no_text_breaks_out_of_its_page() {
    let made = nasty();
    let html = vez_draw::html(&made.run());
    assert_eq!(html.matches("</script>").count(), 2);
    // One of the page, one of the picture.
    assert_eq!(html.matches("</style>").count(), 2);
    assert_eq!(html.matches("<b>&amp;").count(), 0);
    let start = html.find("id=\"data\">").unwrap() + "id=\"data\">".len();
    let json = &html[start..start + html[start..].find("</script>").unwrap()];
    assert!(serde_json::from_str::<serde_json::Value>(json).is_ok());
    let mermaid = vez_draw::mermaid(&made.run());
    let body = mermaid.split_once("sequenceDiagram\n").unwrap().1;
    for line in body.lines() {
        let text = line.split_once(": ").map_or("", |(_, text)| text);
        let plain = text.replace("<br/>", "");
        assert!(!plain.contains([':', '<', '>', '%', '$', '`']), "{line}");
        // Every `#` and `;` belongs to a character's number.
        assert_eq!(plain.matches('#').count(), plain.matches(';').count(), "{line}");
    }
}

#[test]
fn a_long_run_costs_no_more_an_event_than_a_short_one() {
    let (short, long) = (long_run(10_000), long_run(20_000));
    let events = real(long.events.len()) / real(short.events.len());
    let formats: [fn(&vez_draw::Run<'_>) -> String; 5] =
        [vez_draw::svg, vez_draw::html, vez_draw::mermaid, vez_draw::jsonl, vez_draw::shiviz];
    for draw in formats {
        let growth = real(draw(&long.run()).len()) / real(draw(&short.run()).len());
        assert!(growth < 1.2 * events, "{growth} for {events} times the events");
    }
}

#[test]
fn a_run_of_nothing_is_still_a_picture() {
    let mut made = common::three_take_turns();
    made.events.clear();
    let run = made.run();
    parsed(&vez_draw::svg(&run));
    assert!(vez_draw::story(&run).is_empty());
    assert!(vez_draw::mermaid(&run).contains("participant P3"));
    assert!(vez_draw::html(&run).contains("</html>"));
    assert_eq!(vez_draw::jsonl(&run), "");
}

fn real(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}

fn number(node: Node<'_, '_>, attribute: &str) -> f64 {
    node.attribute(attribute).map_or(0.0, |value| value.parse().unwrap())
}

fn numbers(text: &str) -> Vec<f64> {
    let parts = text.split(|c: char| !c.is_ascii_digit() && c != '.' && c != '-');
    parts.filter_map(|part| part.parse().ok()).collect()
}

/// Where a text starts and ends, in a font no wider than most, and the height of its baseline.
fn reach(node: Node<'_, '_>) -> (f64, f64, f64) {
    let class = node.attribute("class").unwrap_or_default();
    let size = if class == "title" { 18.0 } else { 10.0 };
    let width = real(node.text().unwrap().chars().count()) * size * 0.55;
    if let Some(transform) = node.attribute("transform") {
        let m = numbers(transform);
        let half = width / 2.0 * m[0].abs();
        return (m[4] - half, m[4] + half, m[5]);
    }
    let (x, y) = (number(node, "x"), number(node, "y"));
    match (node.attribute("text-anchor"), class) {
        (Some("end"), _) | (_, "tick") => (x - width, x, y),
        (_, "label" | "on-inside") => (x - width / 2.0, x + width / 2.0, y),
        _ if node
            .parent_element()
            .is_some_and(|p| p.attribute("class").is_some_and(|c| c.starts_with("head"))) =>
        {
            (x - width / 2.0, x + width / 2.0, y)
        }
        _ => (x, x + width, y),
    }
}
