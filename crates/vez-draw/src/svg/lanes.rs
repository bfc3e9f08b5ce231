//! Lanes and what lasts on them: being down, slow, waiting, inside, leading; and what is cut.

use vez_core::Time;

use super::clutter::{ALONE, ARROWS_MAX, Line};
use super::{Page, px, text_width};
use crate::scene::Scene;
use crate::spells::{Condition, Cut, NetSpell, Spell};
use crate::words::{about, escape, moment, name};

/// A partition, with the side of every lane.
pub(super) struct Split {
    pub(super) from: Time,
    pub(super) to: Time,
    pub(super) sides: Vec<usize>,
}

pub(super) fn splits(scene: &Scene<'_>) -> Vec<Split> {
    let split = |spell: &NetSpell| {
        let Cut::Sides(groups) = &spell.what else { return None };
        // Who is in no group is on a side with the others that are not.
        let mut sides = vec![0; scene.uids.len()];
        for (group, side) in groups.iter().zip(1..) {
            for lane in group.iter().filter_map(|&uid| scene.lane(uid)) {
                sides[lane] = side;
            }
        }
        Some(Split { from: spell.from, to: spell.to, sides })
    };
    scene.net.iter().filter_map(split).collect()
}

/// How far from its lane a word begins: beyond bars and stars.
const BESIDE: f64 = 14.0;

impl Page<'_> {
    pub(super) fn lanes(&mut self) {
        let (top, floor) = (px(self.top), px(self.floor()));
        for lane in 0..self.scene.uids.len() {
            let x = px(self.x(lane));
            self.put(format_args!("<path class=\"lane\" d=\"M{x} {top}V{floor}\"/>"));
        }
    }

    pub(super) fn breaks(&mut self) {
        for index in 0..self.axis.breaks.len() {
            let (from, to) = self.axis.breaks[index];
            self.draw_break(from, to);
        }
    }

    /// Nothing happened for long: the lanes are torn, and the page says for how long.
    fn draw_break(&mut self, from: Time, to: Time) {
        let y = f64::midpoint(self.axis.y(from), self.axis.y(to));
        let span = about(to.saturating_sub(from));
        self.put(format_args!(
            "<text class=\"soft\" x=\"{}\" y=\"{}\" text-anchor=\"end\">⋮ {}</text>",
            px(self.left - 8.0),
            px(y + 4.0),
            escape(&span)
        ));
        for lane in 0..self.scene.uids.len() {
            let x = self.x(lane);
            for (class, shift) in [("zigzag-paper", 0.0), ("zigzag", -3.0), ("zigzag", 3.0)] {
                self.put(format_args!(
                    "<path class=\"{class}\" d=\"M{} {}l7 -3l7 6l7 -3\"/>",
                    px(x - 10.5),
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
                Condition::Paused => 1,
                Condition::Leads(_) => 2,
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
        let bottom = if spell.open { self.floor() } else { bottom };
        let who = name(self.scene.uids[lane]);
        let when = format!("{} to {}", moment(spell.from), moment(spell.to));
        match &spell.what {
            Condition::Down => {
                let (x, top, bottom) = (px(x), px(top), px(bottom));
                self.put(format_args!("<path class=\"gone\" d=\"M{x} {top}V{bottom}\"/>"));
                self.put(format_args!("<path class=\"down\" d=\"M{x} {top}V{bottom}\"/>"));
            }
            Condition::Paused => {
                self.bar("paused", x, 12.0, (top, bottom), &format!("{who} is slow, {when}"));
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
            }
        }
    }

    fn bar(&mut self, class: &str, x: f64, half: f64, (top, bottom): (f64, f64), title: &str) {
        self.clutter.block(x - half, top, x + half, bottom);
        self.put(format_args!(
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>",
            px(x - half),
            px(top),
            px(2.0 * half),
            px((bottom - top).max(2.0)),
            escape(title)
        ));
    }

    /// After the arrows, which would strike them through.
    pub(super) fn fences(&mut self) {
        for lane in 0..self.scene.uids.len() {
            for spell in &self.scene.spells[lane] {
                let Condition::Inside(Some(fence)) = &spell.what else { continue };
                let (top, bottom) = (self.axis.y(spell.from), self.axis.y(spell.to));
                let bottom = if spell.open { self.floor() } else { bottom };
                self.fence(fence, self.x(lane), top, bottom);
            }
        }
    }

    /// The fence inside the bar, along it if it is long enough, else as a bare number.
    fn fence(&mut self, fence: &str, x: f64, top: f64, bottom: f64) {
        let full = format!("fence {fence}");
        let length = text_width(&full, 10.0);
        let end = top + length + 12.0;
        let torn = self.axis.breaks.partition_point(|&(from, _)| self.axis.y(from) < top);
        let whole = self.axis.breaks.get(torn).is_none_or(|&(from, to)| {
            end < f64::midpoint(self.axis.y(from), self.axis.y(to)) - 6.0
        });
        let text = if end <= bottom && whole {
            let (x, y) = (px(x + 3.5), px(top + length / 2.0 + 6.0));
            format!("transform=\"matrix(0 -1 1 0 {x} {y})\">{}", escape(&full))
        } else if 14.0 <= bottom - top && text_width(fence, 10.0) <= 16.0 {
            format!("x=\"{}\" y=\"{}\">{}", px(x), px(top + 14.0), escape(fence))
        } else {
            return;
        };
        self.put(format_args!("<text class=\"on-inside\" {text}</text>"));
    }

    /// Partitions: tinted sides with walls between them.
    pub(super) fn draw_splits(&mut self) {
        for index in 0..self.splits.len() {
            let Split { from, to, ref sides } = self.splits[index];
            let bottom = if to == self.scene.end { self.floor() } else { self.axis.y(to) };
            let runs: Vec<(usize, usize)> =
                sides.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
            let mut lane = 0;
            for (side, count) in runs {
                self.side(lane, count, side % 3, (self.axis.y(from), bottom));
                lane += count;
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

    /// A word beside a lane, at its right or else at its left; `false` if there is no room.
    pub(super) fn beside(&mut self, lane: usize, y: f64, text: &str) -> bool {
        let (x, length) = (self.x(lane), text_width(text, 10.0));
        if self.lane_gap < length + BESIDE + 6.0 {
            return false;
        }
        let (right, left, edge) = (x + BESIDE, x - BESIDE, self.gutter_x + 14.0);
        let places = [(right + length / 2.0, "start", right), (left - length / 2.0, "end", left)];
        // Where no arrow passes if that can be had.
        for ((middle, anchor, at), arrows_max) in
            [ALONE, ARROWS_MAX].into_iter().flat_map(|max| places.map(|place| (place, max)))
        {
            let inside = self.left < middle - length / 2.0 && middle + length / 2.0 < edge;
            if inside && self.clutter.place(Line::level(middle, y + 3.5, length), arrows_max) {
                self.put(format_args!(
                    "<text class=\"mark-label\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
                    px(at),
                    px(y + 3.5),
                    escape(text)
                ));
                return true;
            }
        }
        false
    }
}
