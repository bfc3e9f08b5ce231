//! Numbers in Prometheus' text format, version 0.0.4.
//!
//! The format is a dozen lines of code, and what is counted lies where it is counted, in atomics
//! that know nothing of it: a registry would be a second home for all of them.

use std::fmt::Write as _;

use super::meter::Distribution;

/// What the text is served as.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Default)]
pub(super) struct Text(String);

impl Text {
    pub(super) fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, "counter", help).sample(name, &[], value);
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str, value: impl std::fmt::Display) {
        self.head(name, "gauge", help).sample(name, &[], value);
    }

    pub(super) fn histogram(&mut self, name: &str, help: &str, found: &Distribution) {
        self.head(name, "histogram", help).distribution(name, &[], found);
    }

    /// Samples of a name follow; a name has one head.
    pub(super) fn head(&mut self, name: &str, kind: &str, help: &str) -> &mut Self {
        debug_assert!(!help.contains(['\\', '\n']), "{help}");
        writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("a string grows");
        self
    }

    pub(super) fn sample(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        value: impl std::fmt::Display,
    ) {
        self.0.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            let open = if index == 0 { '{' } else { ',' };
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            write!(self.0, "{open}{label}=\"{text}\"").expect("a string grows");
        }
        let close = if labels.is_empty() { "" } else { "}" };
        writeln!(self.0, "{close} {value}").expect("a string grows");
    }

    pub(super) fn distribution(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        found: &Distribution,
    ) {
        let bucket = format!("{name}_bucket");
        let bounds = found.cumulative().map(|(bound, count)| (bound.to_string(), count));
        for (bound, count) in bounds.chain([("+Inf".to_owned(), found.count())]) {
            let labels: Vec<(&str, &str)> =
                labels.iter().copied().chain([("le", bound.as_str())]).collect();
            self.sample(&bucket, &labels, count);
        }
        self.sample(&format!("{name}_sum"), labels, found.sum_seconds());
        self.sample(&format!("{name}_count"), labels, found.count());
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let mut text = Text::default();
        text.head("a_total", "counter", "What a is.");
        text.sample("a_total", &[("name", "say \"hi\" \\ \n"), ("b", "c")], 3);
        let expected = "# HELP a_total What a is.\n# TYPE a_total counter\n\
            a_total{name=\"say \\\"hi\\\" \\\\ \\n\",b=\"c\"} 3\n";
        assert_eq!(text.finish(), expected);
    }
}
