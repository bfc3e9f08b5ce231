//! What every chart must be like, whatever it shows.

mod gallery;

use gallery::gallery;
use roxmltree::{Document, Node};
use vez_draw::chart::{Axis, Chart, Look, Scale, Series};

fn number(node: Node<'_, '_>, attribute: &str) -> f64 {
    node.attribute(attribute).map_or(0.0, |value| value.parse().unwrap())
}

fn numbers(text: &str) -> Vec<f64> {
    let parts = text.split(|c: char| !c.is_ascii_digit() && c != '.' && c != '-');
    parts.filter_map(|part| part.parse().ok()).collect()
}

fn of_class<'a, 'd>(document: &'a Document<'d>, class: &str) -> Vec<Node<'a, 'd>> {
    let has = |node: &Node<'_, '_>| {
        node.attribute("class").is_some_and(|own| own.split(' ').any(|one| one == class))
    };
    document.descendants().filter(has).collect()
}

/// Left, top, right and bottom of a text in a font as wide as most.
fn place(node: Node<'_, '_>) -> (f64, f64, f64, f64) {
    let size = match node.attribute("class").unwrap() {
        "title" => 18.0,
        "subtitle" | "axis-label" | "end-label" => 12.0,
        _ => 11.0,
    };
    let chars = u32::try_from(node.text().unwrap_or_default().chars().count()).unwrap();
    let width = f64::from(chars) * size * 0.55;
    let (x, y) = (number(node, "x"), number(node, "y"));
    let left = match node.attribute("text-anchor") {
        Some("end") => x - width,
        Some("middle") => x - width / 2.0,
        _ => x,
    };
    (left, y - 0.75 * size, left + width, y + 0.2 * size)
}

#[test]
fn all_that_is_drawn_is_on_the_page() {
    for (name, chart) in gallery() {
        let svg = chart.svg();
        let document = Document::parse(&svg).unwrap_or_else(|error| panic!("{name}: {error}"));
        let page = numbers(document.root_element().attribute("viewBox").unwrap());
        let inside = |x: f64, y: f64, what: &str| {
            let inside = (0.0..=page[2]).contains(&x) && (0.0..=page[3]).contains(&y);
            assert!(inside, "{name}: {what:?} at {x}, {y} of {page:?}");
        };
        for node in document.descendants() {
            match node.tag_name().name() {
                "text" => {
                    let (left, top, right, bottom) = place(node);
                    inside(left, top, node.text().unwrap_or_default());
                    inside(right, bottom, node.text().unwrap_or_default());
                }
                "path" => {
                    let path = node.attribute("d").unwrap();
                    numbers(path).chunks(2).for_each(|at| inside(at[0], at[1], path));
                }
                "circle" => inside(number(node, "cx"), number(node, "cy"), "a point"),
                _ => (),
            }
        }
    }
}

#[test]
fn no_text_lies_on_another() {
    for (name, chart) in gallery() {
        let svg = chart.svg();
        let document = Document::parse(&svg).unwrap();
        let texts: Vec<_> =
            document.descendants().filter(|node| node.has_tag_name("text")).collect();
        for (index, &one) in texts.iter().enumerate() {
            for &other in &texts[..index] {
                let (a, b) = (place(one), place(other));
                let apart = a.2 <= b.0 || b.2 <= a.0 || a.3 <= b.1 || b.3 <= a.1;
                assert!(apart, "{name}: {:?} lies on {:?}", one.text(), other.text());
            }
        }
    }
}

#[test]
fn every_series_that_has_a_place_has_its_name_at_its_end() {
    for (name, chart) in gallery().into_iter().filter(|(name, _)| *name != "nasty") {
        let svg = chart.svg();
        let document = Document::parse(&svg).unwrap();
        let named: Vec<_> =
            of_class(&document, "end-label").iter().map(|n| n.text().unwrap()).collect();
        let labels: Vec<_> = chart.series.iter().map(|series| series.label.as_str()).collect();
        assert_eq!(named, labels, "{name}");
    }
}

#[test]
fn colours_are_left_to_the_style_so_that_dark_pages_have_theirs() {
    for (name, chart) in gallery() {
        let svg = chart.svg();
        let (head, body) = svg.split_once("</style>").unwrap();
        assert!(head.contains("prefers-color-scheme: dark"));
        let document = Document::parse(&svg).unwrap();
        for node in document.descendants() {
            for bad in ["fill", "stroke", "style", "opacity", "href", "font-family"] {
                assert!(!node.has_attribute(bad), "{name}: {bad}");
            }
            let classes = node.attribute("class").unwrap_or_default();
            for class in classes.split(' ').filter(|class| !class.is_empty() && *class != "d0") {
                assert!(head.contains(&format!(".{class}")), "{name}: nothing styles {class}");
            }
        }
        assert!(!body.contains("http"), "{name}");
    }
}

#[test]
fn points_lie_where_their_values_say() {
    let chart = Chart {
        x: Axis::new("x", Scale::Linear),
        y: Axis::new("y", Scale::Log10),
        series: vec![Series::new("", Look::Points, [(0.0, 1.0), (5.0, 10.0), (10.0, 1_000.0)])],
        ..Chart::default()
    };
    let svg = chart.svg();
    let document = Document::parse(&svg).unwrap();
    let at: Vec<_> = of_class(&document, "dot")
        .into_iter()
        .map(|n| (number(n, "cx"), number(n, "cy")))
        .collect();
    let [a, b, c] = at[..] else { panic!("{at:?}") };
    assert!(((b.0 - a.0) - (c.0 - b.0)).abs() < 0.3, "{at:?}");
    assert!((2.0 * (a.1 - b.1) - (b.1 - c.1)).abs() < 0.4, "{at:?}");
    // Numbers stand where their values are: each tick's label under its point.
    let ticks = of_class(&document, "tick");
    let tick = |text: &str, attribute: &str| {
        let is_it = |node: &&Node<'_, '_>| node.text() == Some(text);
        number(*ticks.iter().find(is_it).unwrap_or_else(|| panic!("no {text}")), attribute)
    };
    assert!((tick("10", "y") - b.1).abs() < 5.0);
    assert!((tick("1,000", "y") - c.1).abs() < 5.0);
}

#[test]
fn a_line_is_broken_where_a_value_has_no_place() {
    let chart = Chart {
        y: Axis::new("", Scale::Log10),
        series: vec![Series::new(
            "",
            Look::Line,
            [(0.0, 1.0), (1.0, 2.0), (2.0, 0.0), (3.0, 4.0), (4.0, 5.0)],
        )],
        ..Chart::default()
    };
    let svg = chart.svg();
    let document = Document::parse(&svg).unwrap();
    assert_eq!(of_class(&document, "line").len(), 2);
}

#[test]
fn the_same_chart_is_the_same_picture() {
    for (name, chart) in gallery() {
        assert_eq!(chart.svg(), chart.svg(), "{name}");
    }
}

#[test]
fn a_series_like_another_has_its_colour_and_takes_none() {
    let line = |label: &str, y: f64| Series::new(label, Look::Line, [(1.0, y), (2.0, y)]);
    let formula = Series { like: Some(0), ..line("formula", 2.0) };
    let chart = Chart {
        series: vec![line("first", 1.0), formula, line("second", 3.0)],
        ..Chart::default()
    };
    let svg = chart.svg();
    let document = Document::parse(&svg).unwrap();
    let lines = of_class(&document, "line");
    let colour = |node: &Node<'_, '_>| {
        let class = node.attribute("class").unwrap_or_default();
        let mut colours = class.split(' ').filter(|one| one.starts_with('s'));
        colours.next().map(str::to_owned)
    };
    let colours: Vec<_> = lines.iter().map(colour).collect();
    assert_eq!(colours.len(), 3, "{colours:?}");
    assert_eq!(colours[0], colours[1]);
    assert_ne!(colours[0], colours[2]);
    assert_eq!(colours[2].as_deref(), Some("s1"));
}
