//! Lanes and what lasts on them: being down, slow, waiting, inside, leading; and what is cut.

use vez_core::Time;

use super::clutter::Line;
use super::{Page, px, text_width};
use crate::spells::{Condition, Cut, Spell};
use crate::words::{escape, moment, name};

impl Page<'_> {
    pub(super) fn lanes(&mut self) {
        let (top, floor) = (px(self.top), px(self.floor()));
        for lane in 0..self.scene.uids.len() {
            let x = px(self.x(lane));
            self.put(format_args!("<path class=\"lane\" d=\"M{x} {top}V{floor}\"/>"));
        }
        for index in 0..self.axis.breaks.len() {
            let (from, to) = self.axis.breaks[index];
            self.draw_break(from, to);
        }
    }

    /// Nothing happened for long: the lanes are torn, and the page says for how long.
    fn draw_break(&mut self, from: Time, to: Time) {
        let y = (self.axis.y(from) + self.axis.y(to)) / 2.0;
        let span = moment(to.saturating_sub(from));
        self.put(format_args!(
            "<text class=\"soft\" x=\"{}\" y=\"{}\" text-anchor=\"end\">⋮ {}</text>",
            px(super::LEFT - 8.0),
            px(y + 4.0),
            escape(&span)
        ));
        for lane in 0..self.scene.uids.len() {
            let x = self.x(lane);
            for (class, shift) in [("zigzag-paper", 0.0), ("zigzag", -2.5), ("zigzag", 2.5)] {
                self.put(format_args!(
                    "<path class=\"{class}\" d=\"M{} {}l4 -3l4 6l4 -3\"/>",
                    px(x - 6.0),
                    px(y + shift)
                ));
            }
        }
    }

    pub(super) fn conditions(&mut self) {
        for lane in 0..self.scene.uids.len() {
            // Wide ones first, so that the narrow stay visible on them.
            let mut spells: Vec<&Spell> = self.scene.spells[lane].iter().collect();
            spells.sort_by_key(|spell| match spell.what {
                Condition::Down => 0,
                Condition::Leads(_) => 1,
                Condition::Paused => 2,
                Condition::Waiting => 3,
                Condition::Inside(_) => 4,
            });
            for spell in spells {
                self.condition(lane, spell);
            }
        }
    }

    fn condition(&mut self, lane: usize, spell: &Spell) {
        let x = self.x(lane);
        let (top, bottom) = (self.axis.y(spell.from), self.axis.y(spell.to));
        // What lasts to the end lasts as long as the lane.
        let bottom = if spell.to == self.scene.end { self.floor() } else { bottom };
        let who = name(self.scene.uids[lane]);
        let when = format!("{} to {}", moment(spell.from), moment(spell.to));
        match &spell.what {
            Condition::Down => {
                let (x, top, bottom) = (px(x), px(top), px(bottom));
                self.put(format_args!("<path class=\"gone\" d=\"M{x} {top}V{bottom}\"/>"));
                self.put(format_args!("<path class=\"down\" d=\"M{x} {top}V{bottom}\"/>"));
            }
            Condition::Paused => {
                self.bar("paused", x, 6.0, (top, bottom), &format!("{who} is slow, {when}"));
            }
            Condition::Waiting => {
                self.bar("waiting", x, 3.0, (top, bottom), &format!("{who} waits, {when}"));
            }
            Condition::Leads(term) => {
                let term = if *term == 0 { String::new() } else { format!(" in term {term}") };
                self.bar("leads", x, 3.5, (top, bottom), &format!("{who} leads{term}, {when}"));
            }
            Condition::Inside(fence) => {
                let with = fence.as_ref().map_or(String::new(), |f| format!(" with fence {f}"));
                self.bar("inside", x, 8.0, (top, bottom), &format!("{who} inside{with}, {when}"));
                self.clutter.block(x - 8.0, top, x + 8.0, bottom);
                if let Some(fence) = fence {
                    self.fence(fence, x, top, bottom);
                }
            }
        }
    }

    fn bar(&mut self, class: &str, x: f64, half: f64, (top, bottom): (f64, f64), title: &str) {
        self.put(format_args!(
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>",
            px(x - half),
            px(top),
            px(2.0 * half),
            px((bottom - top).max(2.0)),
            escape(title)
        ));
    }

    /// The fence inside the bar, along it if it is long enough, else as a bare number.
    fn fence(&mut self, fence: &str, x: f64, top: f64, bottom: f64) {
        let full = format!("fence {fence}");
        let middle = (top + bottom) / 2.0;
        let text = if text_width(&full, 10.0) + 12.0 <= bottom - top {
            let (x, y) = (px(x + 3.5), px(middle));
            format!("transform=\"matrix(0 -1 1 0 {x} {y})\">{}", escape(&full))
        } else if 14.0 <= bottom - top && text_width(fence, 10.0) <= 16.0 {
            format!("x=\"{}\" y=\"{}\">{}", px(x), px(middle + 3.5), escape(fence))
        } else {
            return;
        };
        self.put(format_args!("<text class=\"on-inside\" {text}</text>"));
    }

    /// Partitions: tinted sides with walls between them.
    pub(super) fn splits(&mut self) {
        for index in 0..self.scene.net.len() {
            let spell = &self.scene.net[index];
            let Cut::Sides(groups) = &spell.what else { continue };
            let mut sides = vec![0; self.scene.uids.len()];
            for (side, group) in groups.iter().enumerate() {
                for lane in group.iter().filter_map(|&uid| self.scene.lane(uid)) {
                    sides[lane] = side + 1;
                }
            }
            let top = self.axis.y(spell.from);
            let to_the_end = spell.to == self.scene.end;
            let bottom = if to_the_end { self.floor() } else { self.axis.y(spell.to) };
            let mut lane = 0;
            for run in sides.chunk_by(|a, b| a == b) {
                self.side(lane, run.len(), run[0] % 3, (top, bottom));
                lane += run.len();
            }
        }
    }

    fn side(&mut self, lane: usize, count: usize, tint: usize, (top, bottom): (f64, f64)) {
        let left = self.x(lane) - self.lane_gap / 2.0;
        let width = self.lane_gap * super::real(count);
        self.put(format_args!(
            "<rect class=\"side{tint}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            px(left),
            px(top),
            px(width),
            px(bottom - top)
        ));
        if 0 < lane {
            let (x, top, bottom) = (px(left), px(top), px(bottom));
            self.put(format_args!("<path class=\"wall\" d=\"M{x} {top}V{bottom}\"/>"));
        }
    }

    /// A word beside a lane, at its right or else at its left, if there is room.
    pub(super) fn beside(&mut self, lane: usize, y: f64, text: &str) {
        let (x, length) = (self.x(lane), text_width(text, 10.0));
        if self.lane_gap < length + 20.0 {
            return;
        }
        for (middle, anchor, at) in [
            (x + 11.0 + length / 2.0, "start", x + 11.0),
            (x - 11.0 - length / 2.0, "end", x - 11.0),
        ] {
            if self.clutter.place(Line::level(middle, y + 3.5, length)) {
                return self.put(format_args!(
                    "<text class=\"mark-label\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
                    px(at),
                    px(y + 3.5),
                    escape(text)
                ));
            }
        }
    }
}
