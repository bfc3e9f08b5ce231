//! The result: one row a comparison, for people and for programs.

use std::io::{self, Write};

use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) figure: f64,
    pub(crate) unit: &'static str,
    /// What it is compared with, in the same unit.
    pub(crate) against: String,
    pub(crate) baseline: f64,
    pub(crate) ratio: f64,
    pub(crate) target: Option<Target>,
    /// Whether the target is met; `None` if there is none.
    pub(crate) ok: Option<bool>,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Target {
    AtMost(f64),
    AtLeast(f64),
}

impl Row {
    pub(crate) fn met(&self) -> bool {
        self.ok != Some(false)
    }
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct Table {
    pub(crate) rows: Vec<Row>,
    /// What could not be measured, and why.
    pub(crate) left_out: Vec<String>,
    /// What should have worked and did not.
    pub(crate) failed: Vec<String>,
}

/// Messages a second, as the table shows them.
pub(crate) const MILLIONS: &str = "M msg/s";

impl Table {
    /// `figure` against `baseline`, which is called `against`; `ratio` is held to `target`.
    pub(crate) fn compare(
        &mut self,
        name: impl Into<String>,
        (figure, unit): (f64, &'static str),
        (against, baseline): (&str, f64),
        ratio: f64,
        target: Option<Target>,
    ) {
        let ok = target.map(|target| match target {
            Target::AtMost(most) => ratio <= most,
            Target::AtLeast(least) => least <= ratio,
        });
        let (name, against) = (name.into(), against.to_owned());
        self.rows.push(Row { name, figure, unit, against, baseline, ratio, target, ok });
    }

    pub(crate) fn leave_out(&mut self, what: impl Into<String>) {
        self.left_out.push(what.into());
    }

    pub(crate) fn fail(&mut self, what: impl Into<String>) {
        self.failed.push(what.into());
    }

    pub(crate) fn all_met(&self) -> bool {
        self.failed.is_empty() && self.rows.iter().all(Row::met)
    }

    pub(crate) fn print_json(&self, out: &mut impl Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *out, self)?;
        writeln!(out)
    }

    pub(crate) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let head = ["what", "figure", "against", "", "ratio", "target", "verdict"];
        let mut lines = vec![head.map(str::to_owned)];
        lines.extend(self.rows.iter().map(cells));
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
        let widths: Vec<usize> = (0..head.len()).filter_map(width).collect();
        for line in &lines {
            for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
                let padding = " ".repeat(width - cell.chars().count());
                // Words to the left, numbers to the right.
                match column {
                    0 | 2 | 6 => write!(out, "{cell}{padding}  ")?,
                    _ => write!(out, "{padding}{cell}  ")?,
                }
            }
            writeln!(out)?;
        }
        self.left_out.iter().try_for_each(|what| writeln!(out, "left out: {what}"))?;
        self.failed.iter().try_for_each(|what| writeln!(out, "failed: {what}"))
    }
}

fn cells(row: &Row) -> [String; 7] {
    let (target, verdict) =
        (row.target.map(said), row.ok.map(|ok| if ok { "ok" } else { "short" }));
    [
        row.name.clone(),
        format!("{} {}", short(row.figure), row.unit),
        row.against.clone(),
        short(row.baseline),
        format!("{}×", short(row.ratio)),
        target.unwrap_or_default(),
        verdict.unwrap_or_default().to_owned(),
    ]
}

fn said(target: Target) -> String {
    match target {
        Target::AtMost(most) => format!("≤ {}×", short(most)),
        Target::AtLeast(least) => format!("≥ {}×", short(least)),
    }
}

/// Three digits that matter, or all of a large number.
fn short(value: f64) -> String {
    match value.abs() {
        size if size == 0.0 || size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{MILLIONS, Table, Target};

    #[test]
    fn a_missed_target_is_short_and_fails_the_table() {
        let mut table = Table::default();
        table.compare("one", (3.0, MILLIONS), ("bare", 6.0), 2.0, Some(Target::AtMost(2.0)));
        table.compare("two", (3.0, MILLIONS), ("peer", 0.1), 30.0, None);
        assert!(table.all_met());
        table.compare("three", (3.0, MILLIONS), ("peer", 1.0), 3.0, Some(Target::AtLeast(20.0)));
        assert!(!table.all_met());
        let mut text = Vec::new();
        table.print(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let verdicts: Vec<_> =
            text.lines().filter_map(|line| line.split_whitespace().last()).collect();
        assert_eq!(verdicts, ["verdict", "ok", "30.0×", "short"]);
    }
}
