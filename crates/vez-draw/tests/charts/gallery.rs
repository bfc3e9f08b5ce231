//! Charts of every kind, and some that are hard to draw well.

use vez_draw::chart::{Axis, Chart, Look, Mark, Point, Scale, Series};

pub(crate) fn gallery() -> Vec<(&'static str, Chart)> {
    vec![
        ("messages", messages()),
        ("exponents", exponents()),
        ("cost", cost()),
        ("crowded", crowded()),
        ("narrow", narrow()),
        ("lonely", lonely()),
        ("empty", Chart::default()),
        ("nothing", nothing()),
        ("nasty", nasty()),
    ]
}

fn sizes() -> impl Iterator<Item = f64> {
    (1..=10).map(|power| f64::from(1 << power))
}

/// Measured points with bars against formulas, both axes logarithmic.
fn messages() -> Chart {
    let measured = sizes().map(|n| {
        let y = n * n.ln() + 2.0 * n;
        Point { x: n, y, span: Some((y * 0.8, y * 1.3)) }
    });
    Chart {
        title: "Messages to elect a leader".to_owned(),
        subtitle: "all processes start; 100 seeds a size".to_owned(),
        x: Axis::new("processes", Scale::Log2),
        y: Axis::new("messages", Scale::Log10),
        series: vec![
            Series::new("chang-roberts, measured", Look::Points, measured),
            Series::new("n H(n) + n", Look::Line, sizes().map(|n| (n, n * n.ln() + 1.6 * n))),
            Series::new("bully, n(n−1)", Look::PointsAndLine, sizes().map(|n| (n, n * (n - 1.0)))),
        ],
        marks: vec![],
    }
}

/// Far below what an `f64` can hold.
fn exponents() -> Chart {
    let risk = (17..=32).map(|m| (f64::from(m), -4.0 * f64::from(2 * m - 32) * 30.0));
    let down = (17..=32).map(|m| (f64::from(m), -40.0 * f64::from(33 - m)));
    Chart {
        title: "Safety against availability".to_owned(),
        subtitle: String::new(),
        x: Axis::new("quorum m", Scale::Linear),
        y: Axis::new("probability", Scale::Exponent),
        series: vec![
            Series::new("violated", Look::PointsAndLine, risk),
            Series::new("unavailable", Look::PointsAndLine, down),
        ],
        marks: vec![
            Mark::X { at: 24.0, label: "m = 24".to_owned() },
            Mark::X { at: 25.0, label: "smallest m for the target".to_owned() },
            Mark::Y { at: -12.0, label: "target 10⁻¹²".to_owned() },
        ],
    }
}

fn cost() -> Chart {
    let times = || (0..=200).map(|i| f64::from(i) * 0.05);
    let mistake = times().map(|t| (t, 100.0 * (-t).exp()));
    let waiting = times().map(|t| (t, 2.0 * t));
    let sum = times().map(|t| {
        let y = 2.0 * t + 100.0 * (-t).exp();
        Point { x: t, y, span: Some((y * 0.85, y * 1.1)) }
    });
    Chart {
        title: "What a timeout costs".to_owned(),
        subtitle: "C = 100, e = 2 a millisecond".to_owned(),
        x: Axis::new("timeout T (ms)", Scale::Linear).reaching(0.0),
        y: Axis::new("cost", Scale::Linear).reaching(0.0),
        series: vec![
            Series::new("expected cost", Look::Line, sum),
            Series::new("of mistakes, C·p(T)", Look::Line, mistake),
            Series::new("of waiting, e·T", Look::Line, waiting),
        ],
        marks: vec![
            Mark::X { at: 2.87, label: "C·p < E from 2.87 ms".to_owned() },
            Mark::X { at: 3.91, label: "cheapest at 3.91 ms".to_owned() },
        ],
    }
}

/// Thirty lines that end in nearly the same place.
fn crowded() -> Chart {
    let series = (0..30).map(|i| {
        let points = (0..=8).map(move |x| {
            let x = f64::from(x);
            (x * 1_000_000.0, 100_000.0 + x * (10.0 + f64::from(i)))
        });
        Series::new(format!("algorithm number {i}"), Look::PointsAndLine, points)
    });
    let marks =
        (0..12).map(|i| Mark::X { at: 3e6 + f64::from(i) * 1e5, label: format!("mark {i}") });
    Chart {
        title: "Thirty lines".to_owned(),
        x: Axis::new("steps", Scale::Linear),
        y: Axis::new("bytes", Scale::Linear),
        series: series.collect(),
        marks: marks.collect(),
        ..Chart::default()
    }
}

/// Less than a decade on both logarithmic axes.
fn narrow() -> Chart {
    Chart {
        title: "Narrow".to_owned(),
        x: Axis::new("n", Scale::Log2),
        y: Axis::new("share", Scale::Log10),
        series: vec![Series::new(
            "a",
            Look::PointsAndLine,
            [(5.0, 0.0012), (6.0, 0.0017), (7.0, 0.0094)],
        )],
        ..Chart::default()
    }
}

fn lonely() -> Chart {
    Chart {
        title: "One point".to_owned(),
        x: Axis::new("n", Scale::Linear),
        y: Axis::new("y", Scale::Log10),
        series: vec![Series::new("only", Look::Line, [(5.0, 12.0)])],
        marks: vec![Mark::Y { at: 12.0, label: "the same".to_owned() }],
        ..Chart::default()
    }
}

/// All at 0, where both axes begin.
fn nothing() -> Chart {
    Chart {
        title: "Nothing".to_owned(),
        x: Axis::new("x", Scale::Linear).reaching(0.0),
        y: Axis::new("y", Scale::Linear).reaching(0.0),
        series: vec![Series::new("none", Look::Line, [(0.0, 0.0), (0.0, 0.0)])],
        marks: vec![Mark::X { at: 0.0, label: "here".to_owned() }],
        ..Chart::default()
    }
}

/// Values without a place, and texts that are markup or too long.
fn nasty() -> Chart {
    let points =
        [(0.0, 1.0), (1.0, 0.0), (2.0, f64::NAN), (3.0, f64::INFINITY), (4.0, 5.0), (5.0, 1e9)];
    let long = "a very long label that nobody could fit beside a plot of this size, <b>&amp;</b>";
    Chart {
        title: format!("<script>alert('&')</script> {long}"),
        subtitle: [long; 4].join(" "),
        x: Axis::new(long, Scale::Linear),
        y: Axis::new(long, Scale::Log10),
        series: vec![Series::new(long, Look::PointsAndLine, points)],
        marks: vec![
            Mark::X { at: 4.9, label: long.to_owned() },
            Mark::Y { at: 0.0, label: long.to_owned() },
        ],
    }
}
