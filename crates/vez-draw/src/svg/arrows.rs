//! Messages: slanted arrows that show how long each took, labelled where there is room.

use std::collections::BTreeMap;

use vez_core::Time;

use super::clutter::{ALONE, ARROWS_MAX, Line};
use super::{Page, px, real, text_width};
use crate::scene::{Fate, Flight};
use crate::story::journey;
use crate::words::escape;

/// An arrow on the page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrow {
    from: (f64, f64),
    to: (f64, f64),
    /// Where it would have arrived, had it not been lost.
    lane: f64,
    lost: bool,
}

const SIZE: f64 = 11.0;

/// A way to label an arrow: lines for a text of this length, each with the arrows it bears.
type Way<Page> = fn(&Page, Arrow, f64) -> Vec<(Line, f64)>;

/// From this distance on, words find room between the lanes.
const WIDE: f64 = 70.0;
/// Messages between the same two at the same time are drawn this far apart.
const TWINS: f64 = 3.0;

impl Page<'_> {
    pub(super) fn arrows(&mut self) {
        let flights = &self.scene.flights;
        let mut twins: BTreeMap<(u64, u64, Time, Time), u32> = BTreeMap::new();
        for flight in flights {
            let Some(mut arrow) = self.arrow(flight) else { continue };
            let twin =
                twins.entry((flight.from, flight.to, flight.sent, flight.end())).or_default();
            let shift = TWINS * f64::from((*twin).min(4));
            *twin += 1;
            arrow.from.1 += shift;
            arrow.to.1 += shift;
            self.clutter.cross(arrow.from, arrow.to);
            self.draw_arrow(flight, arrow);
            self.drawn.push((flight, arrow));
        }
    }

    /// After the marks, which come first where both want the same place.
    pub(super) fn arrow_labels(&mut self) {
        for (flight, arrow) in std::mem::take(&mut self.drawn) {
            self.label(flight, arrow);
        }
    }

    fn arrow(&self, flight: &Flight<'_>) -> Option<Arrow> {
        let (sender, receiver) = (self.scene.lane(flight.from)?, self.scene.lane(flight.to)?);
        let (begin, lane) = (self.x(sender), self.x(receiver));
        let from = (begin, self.axis.y(flight.sent));
        // What does not arrive ends between two lanes, lest it seem to reach the wrong one.
        let gaps = real(sender.abs_diff(receiver).max(1));
        let half = ((gaps / 2.0).floor() + 0.5) / gaps;
        let (share, bottom) = match flight.fate {
            Fate::Heard(at) | Fate::Lost(at, "receiver-down") => (1.0, self.axis.y(at)),
            Fate::Lost(at, cause) if at == flight.sent => {
                let wall = if cause == "cut" { self.wall(at, sender, receiver) } else { None };
                (wall.unwrap_or(half), from.1 + self.axis.flight)
            }
            Fate::Lost(at, _) => ((gaps - 0.5) / gaps, self.axis.y(at)),
            Fate::UnderWay => (half, from.1 + self.axis.flight),
        };
        let y = (from.1 + (bottom - from.1) * share).min(self.floor());
        let x = begin + (lane - begin) * share;
        let lost = matches!(flight.fate, Fate::Lost(..));
        // Short of the lane, so that heads and crosses do not sit on its marks.
        let (width, height) = (x - begin, y - from.1);
        let length = width.hypot(height).max(1.0);
        let short = if share < 1.0 { 0.0 } else { (if lost { 9.0 } else { 4.0 }) / length };
        let to = (x - width * short, y - height * short);
        Some(Arrow { from, to, lane, lost })
    }

    /// Where on its way from lane to lane a message meets the wall of a partition.
    fn wall(&self, at: Time, first: usize, last: usize) -> Option<f64> {
        // As many as there are partitions, and those are few.
        let split = self.splits.iter().rev().find(|split| split.from <= at && at <= split.to)?;
        let side = |lane: usize| split.sides[lane];
        let gaps = first.abs_diff(last);
        let lane = |step: usize| if first < last { first + step } else { first - step };
        let open = (0..gaps).take_while(|&step| side(lane(step + 1)) == side(first)).count();
        (open < gaps).then(|| (real(open) + 0.5) / real(gaps))
    }

    fn draw_arrow(&mut self, flight: &Flight<'_>, arrow: Arrow) {
        let kind = self.kinds.get(flight.kind).copied().unwrap_or_default();
        let (color, dash) = (kind % 4, (kind / 4).min(2));
        let ((x1, y1), (x2, y2)) = (arrow.from, arrow.to);
        let path = format!("M{} {}L{} {}", px(x1), px(y1), px(x2), px(y2));
        let head = match flight.fate {
            Fate::Heard(_) => format!(" marker-end=\"url(#vez-head{color})\""),
            _ => String::new(),
        };
        let faint = if flight.fate == Fate::UnderWay || arrow.lost { " lost" } else { "" };
        let steps = match flight.ended_in {
            Some(step) => format!("data-sent=\"{}\" data-step=\"{step}\"", flight.sent_in),
            None => format!("data-sent=\"{}\"", flight.sent_in),
        };
        self.put(format_args!(
            "<g class=\"m\" data-id=\"{}\" {steps}><title>{}</title>\
             <path class=\"hit\" d=\"{path}\"/>\
             <path class=\"k{color} d{dash}{faint}\" d=\"{path}\"{head}/></g>",
            flight.id,
            escape(&journey(flight))
        ));
        if arrow.lost {
            self.cross(x2, y2, 4.0);
            self.clutter.block(x2 - 4.0, y2 - 4.0, x2 + 4.0, y2 + 4.0);
        }
    }

    pub(super) fn cross(&mut self, x: f64, y: f64, size: f64) {
        let (left, right) = (px(x - size), px(x + size));
        let (top, bottom) = (px(y - size), px(y + size));
        self.put(format_args!(
            "<path class=\"cross\" d=\"M{left} {top}L{right} {bottom}M{left} {bottom}L{right} {top}\"/>"
        ));
    }

    /// Sets the longest text there is room for: all fields, their values, the kind alone.
    fn label(&mut self, flight: &Flight<'_>, arrow: Arrow) {
        let values = without_names(flight.text);
        let mut texts = vec![flight.text, &values, flight.kind];
        texts.dedup();
        let ways: [Way<Self>; 3] = [Self::between_lanes, Self::across_lanes, Self::level];
        for way in ways {
            for text in &texts {
                for (line, arrows_max) in way(self, arrow, text_width(text, SIZE)) {
                    if self.clutter.place(line, arrows_max) {
                        return self.draw_label(line, text);
                    }
                }
            }
        }
    }

    fn draw_label(&mut self, line: Line, text: &str) {
        let (c, s) = line.direction;
        self.put(format_args!(
            "<text class=\"label\" transform=\"matrix({c:.3} {s:.3} {:.3} {c:.3} {} {})\">{}</text>",
            -s,
            px(line.x),
            px(line.y),
            escape(text)
        ));
    }

    /// Along the arrow, between two lanes, nearest the receiver first: what one process sends at
    /// once fans out.
    fn between_lanes(&self, arrow: Arrow, length: f64) -> Vec<(Line, f64)> {
        let width = (arrow.to.0 - arrow.from.0).abs().max(1.0);
        let slope = width.hypot(arrow.to.1 - arrow.from.1) / width;
        if self.lane_gap * slope < length + 16.0 {
            return Vec::new();
        }
        let gaps = ((arrow.lane - arrow.from.0).abs() / self.lane_gap).round().max(1.0);
        let middles = (0..8_u32).map(|i| gaps - 0.5 - f64::from(i)).filter(|&middle| 0.0 < middle);
        let shares: Vec<f64> = middles.map(|middle| middle * self.lane_gap / width).collect();
        aslant(arrow, length, &shares)
    }

    /// Along the arrow, wherever.
    fn across_lanes(&self, arrow: Arrow, length: f64) -> Vec<(Line, f64)> {
        let shares = [0.5, 0.62, 0.38, 0.74, 0.26];
        if self.dense { Vec::new() } else { aslant(arrow, length, &shares) }
    }

    /// Level, beside the middle of an arrow too short or too steep to write along; and only where
    /// nothing else passes.
    fn level(&self, arrow: Arrow, length: f64) -> Vec<(Line, f64)> {
        let ((x1, y1), (x2, y2)) = (arrow.from, arrow.to);
        if self.dense || (y2 - y1).abs() < 0.4 * (x2 - x1).abs() {
            return Vec::new();
        }
        let (x, y) = (f64::midpoint(x1, x2), f64::midpoint(y1, y2));
        let reach = length / 2.0 + 9.0;
        let sides =
            if x1 < x2 { [(reach, -2.0), (-reach, 9.0)] } else { [(-reach, -2.0), (reach, 9.0)] };
        let (left, right) = (self.left, self.gutter_x);
        let column = |x: f64| ((x - left) / self.lane_gap - 0.5).floor();
        let inside = |x: &f64| {
            let (start, end) = (x - length / 2.0, x + length / 2.0);
            // Narrow lanes must be crossed, or nothing would ever be said.
            let crosses = WIDE < self.lane_gap && column(start) < column(end);
            left < start && end < right && !crosses
        };
        let places = sides.into_iter().map(|(dx, dy)| (x + dx, y + dy));
        let places = places.filter(|(x, _)| inside(x));
        places.map(|(x, y)| (Line::level(x, y, length), ALONE)).collect()
    }
}

/// Lines along an arrow, a little above it, or below where no other could claim them, at these
/// shares of its way.
fn aslant(arrow: Arrow, length: f64, shares: &[f64]) -> Vec<(Line, f64)> {
    let ((x1, y1), (x2, y2)) = (arrow.from, arrow.to);
    let (width, height) = (x2 - x1, y2 - y1);
    let reach = width.hypot(height).max(1.0);
    let sign = if width < 0.0 { -1.0 } else { 1.0 };
    let direction = (sign * width / reach, sign * height / reach);
    let half = length / 2.0 + 7.0;
    let fits = |&&share: &&f64| half <= share * reach && half <= (1.0 - share) * reach;
    let line = |&share: &f64, rise: f64, arrows_max: f64| {
        let x = x1 + width * share + rise * direction.1;
        let y = y1 + height * share - rise * direction.0;
        (Line { x, y, direction, length }, arrows_max)
    };
    let fitting: Vec<&f64> = shares.iter().filter(fits).collect();
    let above = fitting.iter().map(|share| line(share, 3.5, ARROWS_MAX));
    above.chain(fitting.iter().map(|share| line(share, -11.5, ALONE))).collect()
}

/// `Ok(request=1, fence=2)` as `Ok(1, 2)`.
fn without_names(text: &str) -> String {
    let mut out = String::new();
    for (i, part) in text.split_inclusive([',', '(', ' ', '[']).enumerate() {
        let value = match part.split_once('=') {
            Some((_, value)) if i > 0 => value,
            _ => part,
        };
        out.push_str(value);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::without_names;

    #[test]
    fn fields_lose_their_names_but_not_their_values() {
        assert_eq!(without_names("Ok(request=1, fence=2)"), "Ok(1, 2)");
        assert_eq!(without_names("Token(queue=[P1, P2], last=[a=1])"), "Token([P1, P2], [1])");
        assert_eq!(without_names("Ping"), "Ping");
    }
}
