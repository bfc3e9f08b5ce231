//! A study's outcome as a picture: what was measured, against what should be.

use vez_draw::chart::{Axis, Chart, Look, Scale, Series};
use vez_numbers::cost::{Relation, Value};

use super::{Metric, Outcome, Point, Study};

/// What lies along the axis: the first thing that is varied.
struct Along {
    label: &'static str,
    value: fn(&Point) -> f64,
    is_size: bool,
}

/// Draws the metric; `log` is what the user asked for, if anything.
pub fn chart(study: &Study, outcome: &Outcome, log: Option<bool>) -> Chart {
    let along = study.along();
    let log = log.unwrap_or_else(|| along.is_size && suits_logarithms(study, outcome));
    let mut series = Vec::new();
    for group in groups(outcome, &along) {
        let first = group[0];
        let number = series.len();
        let points = group.iter().filter_map(|point| {
            let summary = point.of(study.metric)?;
            let span = match study.metric {
                Metric::Wait => (summary.p50.min(summary.mean), summary.p99.max(summary.mean)),
                _ => (summary.min, summary.max),
            };
            let span = (span.0 < span.1).then_some(span);
            Some(vez_draw::chart::Point { x: (along.value)(point), y: summary.mean, span })
        });
        let mut measured = Series::new(name(study, first, &along), Look::PointsAndLine, points);
        if let Some((formula, line)) = formula_line(study, &group, &along) {
            // What runs through its points needs one name, a bound needs its own.
            let label = format!("{} {} {}", measured.label, formula.relation.sign(), formula.text);
            measured.look = Look::Points;
            let label = match formula.relation {
                Relation::Exact | Relation::Mean => {
                    measured.label = label;
                    String::new()
                }
                _ => label,
            };
            let line = Series { like: Some(number), ..Series::new(label, Look::Line, line) };
            series.extend([measured, line]);
        } else {
            series.push(measured);
        }
    }
    let scale = if log { Scale::Log10 } else { Scale::Linear };
    let y = Axis::new(study.measured(), scale);
    let y = if log { y } else { y.reaching(0.0) };
    Chart {
        title: title(study),
        subtitle: format!("{}; {}", study.conditions(), key(study.metric)),
        x: Axis::new(along.label, if log && along.is_size { Scale::Log2 } else { Scale::Linear }),
        y,
        series,
        marks: Vec::new(),
    }
}

fn title(study: &Study) -> String {
    let measured = study.measured().trim_end_matches(" (ms)");
    let mut letters = measured.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

fn key(metric: Metric) -> &'static str {
    match metric {
        Metric::Wait => "points are means, bars reach from the median to the 99th percentile",
        _ => "points are means, bars reach from the least to the most",
    }
}

/// Sizes that double want a logarithmic axis, and so do costs that grow with them.
fn suits_logarithms(study: &Study, outcome: &Outcome) -> bool {
    let sizes = outcome.points.iter().map(|point| point.nodes);
    let (least, most) = (sizes.clone().min().unwrap_or(1), sizes.max().unwrap_or(1));
    let grows = matches!(study.metric, Metric::Messages | Metric::Time | Metric::Wait);
    grows && least * 8 <= most
}

impl Study {
    fn along(&self) -> Along {
        let along = |label, value, is_size| Along { label, value, is_size };
        if self.nodes.len() == 1 && self.load.len() > 1 {
            return along("share of processes that want in", |p| p.spot.load, false);
        }
        if self.nodes.len() == 1 && self.loss.len() > 1 {
            return along("share of messages lost", |p| p.loss, false);
        }
        if self.nodes.len() == 1 && self.crash_rate.len() > 1 {
            return along("crashes of each process a second", |p| p.crash_rate, false);
        }
        along("processes", |point| f64::from(point.nodes), true)
    }
}

/// The points of each line, in order.
fn groups<'a>(outcome: &'a Outcome, along: &Along) -> Vec<Vec<&'a Point>> {
    let mut groups: Vec<Vec<&Point>> = Vec::new();
    let rest = |point: &Point| {
        let spot = point.spot;
        let all = [f64::from(spot.n), spot.load, spot.loss, spot.crash_rate];
        let own = (along.value)(point);
        // The one value that lies along the axis does not tell lines apart.
        let index = match along.label {
            "processes" => 0,
            "share of processes that want in" => 1,
            "share of messages lost" => 2,
            _ => 3,
        };
        let mut all = all;
        debug_assert!((all[index] - own).abs() < f64::EPSILON * own.abs().max(1.0));
        all[index] = 0.0;
        (spot.subject, all)
    };
    for point in &outcome.points {
        match groups.iter_mut().find(|group| rest(group[0]) == rest(point)) {
            Some(group) => group.push(point),
            None => groups.push(vec![point]),
        }
    }
    for group in &mut groups {
        group.sort_by(|a, b| (along.value)(a).total_cmp(&(along.value)(b)));
    }
    groups
}

/// The algorithm, and whatever else is varied but does not lie along the axis.
fn name(study: &Study, point: &Point, along: &Along) -> String {
    let mut parts = vec![point.algorithm.to_owned()];
    let varied = [
        ("load", study.load.len(), point.spot.load, "share of processes that want in"),
        ("loss", study.loss.len(), point.loss, "share of messages lost"),
        ("crashes/s", study.crash_rate.len(), point.crash_rate, "crashes of each process a second"),
    ];
    for (word, count, value, label) in varied {
        if 1 < count && label != along.label {
            parts.push(format!("{word} {value}"));
        }
    }
    parts.join(", ")
}

/// The formula along a line, if one and the same holds at every point.
fn formula_line(
    study: &Study,
    group: &[&Point],
    along: &Along,
) -> Option<(Value, Vec<(f64, f64)>)> {
    let formulas: Vec<_> =
        group.iter().filter_map(|p| Some(((along.value)(p), p.formula(study.metric)?))).collect();
    // Of a single process everything is 0, whatever the formula.
    let formula = formulas.iter().map(|(_, formula)| formula).find(|f| f.text != "0")?;
    let same = |other: &Value| (other.text, other.relation) == (formula.text, formula.relation);
    let line: Vec<(f64, f64)> = formulas
        .iter()
        .filter(|(_, other)| same(other))
        .map(|(x, other)| (*x, other.value))
        .collect();
    (1 < line.len()).then_some((*formula, line))
}
