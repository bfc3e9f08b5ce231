//! What happens at one moment of a lane: steps, requests, timers, crashes, leaders.

use std::collections::BTreeMap;

use vez_core::Time;
use vez_sim::What;

use super::{Page, px};
use crate::spells::Condition;
use crate::steps::Step;
use crate::story::tell;
use crate::words::{escape, moment, name};

/// A step has one shape; the first of these that occurs at a moment is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Shape {
    Cross,
    Restart,
    Ask,
    Timer,
    Dot,
}

/// Most lines a mark says when pointed at.
const LINES_MAX: usize = 14;

impl Page<'_> {
    pub(super) fn marks(&mut self) {
        // Steps of one process at one moment share a mark.
        let mut groups: BTreeMap<(usize, Time), Vec<usize>> = BTreeMap::new();
        for (index, step) in self.scene.steps.iter().enumerate() {
            if let Some(lane) = step.node().and_then(|uid| self.scene.lane(uid))
                && shape(step).is_some()
            {
                groups.entry((lane, step.at())).or_default().push(index);
            }
        }
        for &(lane, at) in groups.keys() {
            let (x, y) = (self.x(lane), self.axis.y(at));
            self.clutter.block(x - 4.0, y - 4.0, x + 4.0, y + 4.0);
        }
        for (&(lane, at), steps) in &groups {
            self.mark(lane, at, steps);
        }
        let mut words: BTreeMap<(usize, Time), Vec<String>> = BTreeMap::new();
        for (&place, steps) in &groups {
            let said = steps.iter().filter_map(|&index| word(&self.scene.steps[index]));
            words.entry(place).or_default().extend(said);
        }
        self.stars(&mut words);
        for ((lane, at), words) in words {
            let y = self.axis.y(at);
            // All in one line, or one each way.
            if words.is_empty() || self.beside(lane, y, &words.join(", ")) {
                continue;
            }
            for word in words {
                self.beside(lane, y, &word);
            }
        }
        self.arrow_labels();
    }

    fn mark(&mut self, lane: usize, at: Time, steps: &[usize]) {
        let mut shapes: Vec<Shape> =
            steps.iter().filter_map(|&index| shape(&self.scene.steps[index])).collect();
        shapes.sort_unstable();
        shapes.dedup();
        if shapes.len() > 1 {
            shapes.retain(|&shape| shape != Shape::Dot);
        }
        let indices: Vec<String> = steps.iter().map(usize::to_string).collect();
        let title = self.mark_title(at, steps);
        self.put(format_args!(
            "<g class=\"step\" data-lane=\"{lane}\" data-y=\"{}\" data-steps=\"{}\">\
             <title>{}</title>",
            px(self.axis.y(at)),
            indices.join(" "),
            escape(&title)
        ));
        let (x, y) = (self.x(lane), self.axis.y(at));
        for shape in shapes {
            self.draw_shape(shape, x, y);
        }
        self.put(format_args!("</g>"));
    }

    fn mark_title(&self, at: Time, steps: &[usize]) -> String {
        let mut lines = vec![moment(at)];
        let told = steps.iter().filter_map(|&index| tell(self.scene, index));
        lines.extend(told);
        if LINES_MAX < lines.len() {
            let more = lines.len() - LINES_MAX;
            lines.truncate(LINES_MAX);
            lines.push(format!("… and {more} more"));
        }
        let last = steps.iter().rev().find(|&&i| !self.scene.changes[i].is_empty());
        if let Some(&index) = last {
            lines.push(format!("now {}", self.scene.changes[index].join(", ")));
        }
        lines.join("\n")
    }

    pub(super) fn draw_shape_named(&mut self, shape: &str, x: f64, y: f64) {
        let shape = match shape {
            "cross" => Shape::Cross,
            "restart" => Shape::Restart,
            "ask" => Shape::Ask,
            _ => Shape::Timer,
        };
        self.draw_shape(shape, x, y);
    }

    fn draw_shape(&mut self, shape: Shape, x: f64, y: f64) {
        match shape {
            Shape::Cross => self.cross(x, y, 5.5),
            Shape::Restart => self.put(format_args!(
                "<path class=\"restart\" d=\"M{} {}l6 10h-12z\"/>",
                px(x),
                px(y - 6.0)
            )),
            Shape::Ask => self.put(format_args!(
                "<path class=\"ask\" d=\"M{} {}l-9 -4.5v9z\"/>",
                px(x + 3.0),
                px(y)
            )),
            Shape::Timer => self.put(format_args!(
                "<path class=\"timer\" d=\"M{} {}h9l-9 10h9z\"/>",
                px(x - 4.5),
                px(y - 5.0)
            )),
            Shape::Dot => self.put(format_args!(
                "<circle class=\"dot\" cx=\"{}\" cy=\"{}\" r=\"2.8\"/>",
                px(x),
                px(y)
            )),
        }
    }

    fn stars(&mut self, words: &mut BTreeMap<(usize, Time), Vec<String>>) {
        for lane in 0..self.scene.uids.len() {
            for spell in &self.scene.spells[lane] {
                let Condition::Leads(term) = spell.what else { continue };
                let (x, y) = (self.x(lane), self.axis.y(spell.from));
                self.star(x, y);
                self.clutter.block(x - 8.0, y - 8.0, x + 8.0, y + 8.0);
                let word =
                    if term == 0 { "leads".to_owned() } else { format!("leads, term {term}") };
                words.entry((lane, spell.from)).or_default().push(word);
            }
        }
    }

    pub(super) fn star(&mut self, x: f64, y: f64) {
        self.put(format_args!(
            "<path class=\"star\" d=\"M{} {}l2.4 5.5 6 .6 -4.5 4 1.3 5.9 -5.2 -3.1 -5.2 3.1 \
             1.3 -5.9 -4.5 -4 6 -.6z\"/>",
            px(x),
            px(y - 9.0)
        ));
    }
}

/// How a step is drawn; what is not worth telling is not drawn.
fn shape(step: &Step<'_>) -> Option<Shape> {
    match step.cause().what {
        What::Crash => Some(Shape::Cross),
        What::Restart { .. } => Some(Shape::Restart),
        What::Request { .. } => Some(Shape::Ask),
        What::Timer { .. } => Some(Shape::Timer),
        What::Receive { .. } => Some(Shape::Dot),
        What::Boot => {
            let acts = |what: &What| matches!(what, What::Send { .. } | What::Notice { .. });
            step.events.iter().any(|event| acts(&event.what)).then_some(Shape::Dot)
        }
        _ => None,
    }
}

/// A word to set beside a step that is not just the hearing of a message.
fn word(step: &Step<'_>) -> Option<String> {
    Some(match &step.cause().what {
        What::Crash => "crash".to_owned(),
        What::Restart { forgot: false } => "restart".to_owned(),
        What::Restart { forgot: true } => "restart, forgot".to_owned(),
        What::Request { kind: "Acquire", .. } => "asks".to_owned(),
        What::Request { kind: "Release", .. } => "leaves".to_owned(),
        What::Request { kind: "Withdraw", .. } => "withdraws".to_owned(),
        What::Request { kind: "Start", .. } => "starts".to_owned(),
        What::Request { request, kind: "Suspect", .. } => match request["Suspect"].as_u64() {
            Some(uid) => format!("suspects {}", name(uid)),
            None => "suspects".to_owned(),
        },
        What::Timer { text, .. } | What::Request { text, .. } => text.clone(),
        _ => return None,
    })
}
