//! A sequence diagram as a lecturer would draw it, for Mermaid.
//!
//! Mermaid draws level arrows only, so each stands where its message arrives or is lost.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use vez_sim::What;

use crate::Run;
use crate::scene::{Fate, Flight, Scene, Violation};
use crate::spells::Condition;
use crate::steps::Step;
use crate::words::{Told, asked, link, moment, name, shorten, sides, told, wrap};

/// The run as a Mermaid `sequenceDiagram`.
pub fn mermaid(run: &Run<'_>) -> String {
    let scene = Scene::new(run);
    let mut diagram = Diagram::new(&scene);
    diagram.participants();
    for index in 0..scene.steps.len() {
        diagram.step(index);
    }
    for flight in &scene.flights {
        if flight.fate == Fate::UnderWay {
            diagram.arrow("--)", flight, " (still under way)");
        }
    }
    diagram.finish()
}

struct Diagram<'a> {
    scene: &'a Scene<'a>,
    out: String,
    /// Who is drawn as inside.
    active: BTreeSet<u64>,
    /// Everything from the first broken promise on is set on red.
    broken: bool,
}

/// Widest note and label, in characters.
const WIDTH: usize = 36;
/// Most changes of a state that a note tells, and the longest label, in characters.
const CHANGES_MAX: usize = 3;
const LABEL_MAX: usize = 60;
/// Vermilion, thin enough for dark pages too.
const RED: &str = "rgba(213, 94, 0, 0.18)";

impl<'a> Diagram<'a> {
    fn new(scene: &'a Scene<'a>) -> Self {
        let title = format!("{} – {}", scene.run.title, scene.run.subtitle);
        let out = format!("---\ntitle: {}\n---\nsequenceDiagram\n", yaml(&title));
        Self { scene, out, active: BTreeSet::new(), broken: false }
    }

    fn line(&mut self, text: &str) {
        writeln!(self.out, "    {text}").expect("to a string");
    }

    fn participants(&mut self) {
        for (lane, &uid) in self.scene.uids.iter().enumerate() {
            let crashes = self.scene.spells[lane].iter().any(|spell| spell.what == Condition::Down);
            let mark = if crashes { " ✝" } else { "" };
            let name = name(uid);
            self.line(&format!("participant {name} as {name}{mark}"));
        }
    }

    fn step(&mut self, index: usize) {
        let step = &self.scene.steps[index];
        let violations = self.scene.violations(index);
        if violations.iter().any(|violation| violation.claimed) {
            self.redden();
        }
        match &step.cause().what {
            What::Receive { id, .. } => {
                if let Some(flight) = self.scene.flight(*id) {
                    self.arrow("->>", flight, if flight.copy { " (copy)" } else { "" });
                }
            }
            What::Lose { id, cause } => self.lost(*id, cause),
            _ => (),
        }
        self.enter_or_leave(step);
        self.note(step, &self.scene.changes[index]);
        for event in step.events.iter().skip(1) {
            if let What::Lose { id, cause } = &event.what {
                self.lost(*id, cause);
            }
        }
        for Violation { at, promise, detail, claimed, .. } in violations {
            let remark = if *claimed { "" } else { ", not promised" };
            let text = format!("✘ {promise} broken at {}{remark}: {detail}", moment(*at));
            self.note_over_all(&text);
        }
    }

    fn arrow(&mut self, arrow: &str, flight: &Flight<'_>, remark: &str) {
        let label = format!("{}{remark}", shorten(flight.text, LABEL_MAX));
        let label = lines(&wrap(&label, WIDTH));
        self.line(&format!("{}{arrow}{}: {label}", name(flight.from), name(flight.to)));
    }

    fn lost(&mut self, id: u64, cause: &str) {
        let Some(flight) = self.scene.flight(id) else { return };
        let remark = match cause {
            "receiver-down" => format!(" ({} is down)", name(flight.to)),
            "cut" => " (cut)".to_owned(),
            _ => " (lost)".to_owned(),
        };
        self.arrow("--x", flight, &remark);
    }

    /// Mermaid refuses to end what has not begun.
    fn enter_or_leave(&mut self, step: &Step<'_>) {
        for event in step.events {
            let Some(uid) = event.node else { continue };
            match &event.what {
                What::Notice { kind: "Entered", .. } if self.active.insert(uid) => {
                    self.line(&format!("activate {}", name(uid)));
                }
                What::Notice { kind: "Expelled", .. }
                | What::Request { kind: "Release", .. }
                | What::Crash
                    if self.active.remove(&uid) =>
                {
                    self.line(&format!("deactivate {}", name(uid)));
                }
                _ => (),
            }
        }
    }

    /// What happened at a process, in one note: cause, news, then the changed state.
    fn note(&mut self, step: &Step<'_>, changes: &[String]) {
        let event = step.cause();
        if matches!(event.what, What::Partition { .. } | What::Cut { .. } | What::Heal { .. }) {
            let text = network(&event.what);
            return self.note_over_all(&format!("{text} at {}", moment(event.at)));
        }
        let Some(uid) = event.node else { return };
        let mut text: Vec<String> = happened(&event.what).into_iter().collect();
        for event in step.events {
            match &event.what {
                What::Notice { notice, kind, text: said } => {
                    text.extend(news(&told(event.node, notice, kind, said), changes));
                }
                What::Unexpected { text: what } => text.push(format!("impossible: {what}")),
                _ => (),
            }
        }
        let mut text: Vec<String> = text.iter().flat_map(|text| wrap(text, WIDTH)).collect();
        let shown = changes.iter().take(CHANGES_MAX);
        text.extend(shown.map(|part| shorten(&part.replacen(": ", " = ", 1), WIDTH)));
        if CHANGES_MAX < changes.len() {
            text.push(format!("… and {} more", changes.len() - CHANGES_MAX));
        }
        if !text.is_empty() {
            self.line(&format!("Note over {}: {}", name(uid), lines(&text)));
        }
    }

    fn note_over_all(&mut self, text: &str) {
        let uids = &self.scene.uids;
        let (first, last) = (name(uids[0]), name(uids[uids.len() - 1]));
        let over = if first == last { first } else { format!("{first},{last}") };
        let text = lines(&wrap(text, 2 * WIDTH));
        self.line(&format!("Note over {over}: {text}"));
    }

    fn redden(&mut self) {
        if !self.broken {
            self.broken = true;
            self.line(&format!("rect {RED}"));
        }
    }

    fn finish(mut self) -> String {
        if self.broken {
            self.line("end");
        }
        self.out
    }
}

/// What, other than a message, made a process act.
fn happened(what: &What) -> Option<String> {
    Some(match what {
        What::Request { request, kind, text } => asked(request, kind, text),
        What::Timer { text, .. } => format!("timer {text} runs out"),
        What::Crash => "✝ crashes".to_owned(),
        What::Restart { forgot: false } => "restarts".to_owned(),
        What::Restart { forgot: true } => "restarts, forgot everything".to_owned(),
        What::Pause { until } => format!("paused until {}", moment(*until)),
        What::Resume => "goes on".to_owned(),
        _ => return None,
    })
}

fn news(notice: &Told, changes: &[String]) -> Option<String> {
    match notice {
        Told::Leads(0) => Some("★ leads".to_owned()),
        Told::Leads(term) => Some(format!("★ leads (term {term})")),
        // The changed state says it already.
        Told::Follows(leader, _) if changes.iter().any(|c| c.ends_with(&name(*leader))) => None,
        other => Some(other.words()),
    }
}

fn network(what: &What) -> String {
    match what {
        What::Partition { groups } => format!("network splits: {}", sides(groups)),
        What::Cut { from, to, both } => format!("link {} cut", link(*from, *to, *both)),
        What::Heal { link: Some((from, to, both)) } => {
            format!("link {} mended", link(*from, *to, *both))
        }
        _ => "network whole again".to_owned(),
    }
}

/// Lines of text, with everything Mermaid gives a meaning to written as its number.
fn lines(lines: &[String]) -> String {
    let escaped: Vec<String> = lines.iter().map(|line| escape(line)).collect();
    escaped.join("<br/>")
}

fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '#' | ';' | ':' | '<' | '>' | '&' | '%' | '$' | '\\' | '`' => {
                write!(out, "#{};", u32::from(c)).expect("to a string");
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// The title is read as YAML.
fn yaml(text: &str) -> String {
    serde_json::to_string(&text.replace(char::is_control, " ")).expect("a string is plain data")
}

#[cfg(test)]
mod tests {
    use super::{escape, lines};

    #[test]
    fn what_mermaid_would_misread_is_a_number() {
        assert_eq!(escape("a:b;c#d<e>"), "a#58;b#59;c#35;d#60;e#62;");
        assert_eq!(lines(&["one".to_owned(), "two\n".to_owned()]), "one<br/>two ");
    }
}
