//! A study's outcome as a picture: what was measured, against what should be.

use vez_draw::chart::{Axis, Chart, Look, Scale, Series};
use vez_numbers::cost::{Relation, Value};

use super::{Metric, Outcome, Point, Study};

/// What is varied, in the order of [`coordinates`]: the first that is lies along the axis.
const AXES: [(&str, &str); 4] = [
    ("n", "processes"),
    ("load", "share of processes that want in"),
    ("loss", "share of messages lost"),
    ("crashes/s", "crashes of each process a second"),
];

/// The place of the sizes among what is varied.
const SIZES: usize = 0;

fn coordinates(point: &Point) -> [f64; 4] {
    [f64::from(point.nodes), point.spot.load, point.loss, point.crash_rate]
}

/// Longer names would be cut; a bound then goes by its formula, and by its colour.
const LABEL_MAX: usize = 36;

/// Draws the metric; `log` is what the user asked for, if anything.
pub fn chart(study: &Study, outcome: &Outcome, log: Option<bool>) -> Chart {
    let along = study.counts().into_iter().position(|count| 1 < count).unwrap_or(SIZES);
    let log = log.unwrap_or_else(|| along == SIZES && suits_logarithms(study, outcome));
    let mut series = Vec::new();
    for group in groups(outcome, along) {
        let first = group[0];
        let number = series.len();
        let points = group.iter().filter_map(|point| {
            let summary = point.of(study.metric)?;
            let span = match study.metric {
                Metric::Wait => (summary.p50.min(summary.mean), summary.p99.max(summary.mean)),
                _ => (summary.min, summary.max),
            };
            let span = (span.0 < span.1).then_some(span);
            Some(vez_draw::chart::Point { x: coordinates(point)[along], y: summary.mean, span })
        });
        let mut measured = Series::new(name(study, first, along), Look::PointsAndLine, points);
        if let Some((formula, line)) = formula_line(study, &group, along) {
            // What runs through its points needs one name, a bound needs its own.
            let label = format!("{} {} {}", measured.label, formula.relation.sign(), formula.text);
            measured.look = Look::Points;
            let label = match formula.relation {
                Relation::Exact | Relation::Mean => {
                    measured.label = label;
                    String::new()
                }
                _ if label.chars().count() <= LABEL_MAX => label,
                relation => format!("{} {}", relation.sign(), formula.text),
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
        x: Axis::new(
            AXES[along].1,
            if log && along == SIZES { Scale::Log2 } else { Scale::Linear },
        ),
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
    fn counts(&self) -> [usize; 4] {
        [self.nodes.len(), self.load.len(), self.loss.len(), self.crash_rate.len()]
    }
}

/// The points of each line, in order.
fn groups(outcome: &Outcome, along: usize) -> Vec<Vec<&Point>> {
    let mut groups: Vec<Vec<&Point>> = Vec::new();
    // What lies along the axis does not tell lines apart.
    let line = |point: &Point| {
        let mut rest = coordinates(point);
        rest[along] = 0.0;
        (point.spot.subject, rest)
    };
    for point in &outcome.points {
        match groups.iter_mut().find(|group| line(group[0]) == line(point)) {
            Some(group) => group.push(point),
            None => groups.push(vec![point]),
        }
    }
    for group in &mut groups {
        group.sort_by(|a, b| coordinates(a)[along].total_cmp(&coordinates(b)[along]));
    }
    groups
}

/// The algorithm, and whatever else is varied but does not lie along the axis.
fn name(study: &Study, point: &Point, along: usize) -> String {
    let mut name = point.algorithm.to_owned();
    for (axis, count) in study.counts().into_iter().enumerate() {
        if 1 < count && axis != along {
            name += &format!(", {} {}", AXES[axis].0, coordinates(point)[axis]);
        }
    }
    name
}

/// The formula along a line, if one and the same holds at every point.
fn formula_line(study: &Study, group: &[&Point], along: usize) -> Option<(Value, Vec<(f64, f64)>)> {
    let formulas: Vec<_> = group
        .iter()
        .filter_map(|p| Some((coordinates(p)[along], p.formula(study.metric)?)))
        .collect();
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
