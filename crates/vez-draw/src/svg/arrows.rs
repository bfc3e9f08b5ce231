//! Messages: slanted arrows that show how long each took, labelled where there is room.

use super::clutter::Line;
use super::{Page, px, text_width};
use crate::scene::{Fate, Flight};
use crate::story::journey;
use crate::words::escape;

/// An arrow on the page.
#[derive(Clone, Copy, Debug)]
struct Arrow {
    from: (f64, f64),
    to: (f64, f64),
    /// Where it would have arrived, had it not been lost.
    lane: f64,
    lost: bool,
}

/// How much of the way a message is drawn that was lost as it left, or on arrival, or that is
/// still under way.
const LOST_LEAVING: f64 = 0.5;
const LOST_ARRIVING: f64 = 0.85;
const UNDER_WAY: f64 = 0.6;
const SIZE: f64 = 11.0;

impl Page<'_> {
    pub(super) fn arrows(&mut self) {
        let flights = &self.scene.flights;
        let arrows: Vec<Option<Arrow>> = flights.iter().map(|flight| self.arrow(flight)).collect();
        for arrow in arrows.iter().flatten() {
            self.clutter.cross(arrow.from, arrow.to);
        }
        for (flight, arrow) in flights.iter().zip(&arrows) {
            if let Some(arrow) = arrow {
                self.draw_arrow(flight, *arrow);
            }
        }
    }

    /// After the marks, which come first where both want the same place.
    pub(super) fn arrow_labels(&mut self) {
        for flight in &self.scene.flights {
            if let Some(arrow) = self.arrow(flight) {
                self.label(flight, arrow);
            }
        }
    }

    fn arrow(&self, flight: &Flight<'_>) -> Option<Arrow> {
        let start = self.x(self.scene.lane(flight.from)?);
        let lane = self.x(self.scene.lane(flight.to)?);
        let from = (start, self.axis.y(flight.sent));
        let (share, bottom) = match flight.fate {
            Fate::Heard(at) => (1.0, self.axis.y(at)),
            Fate::Lost(at, _) if at == flight.sent => (LOST_LEAVING, from.1 + self.axis.flight),
            Fate::Lost(at, "receiver-down") => (1.0, self.axis.y(at)),
            Fate::Lost(at, _) => (LOST_ARRIVING, self.axis.y(at)),
            Fate::UnderWay => (UNDER_WAY, from.1 + self.axis.flight),
        };
        let y = (from.1 + (bottom - from.1) * share).min(self.floor());
        let x = start + (lane - start) * share;
        let lost = matches!(flight.fate, Fate::Lost(..));
        // Short of the lane, so that heads and crosses do not sit on its marks.
        let (width, height) = (x - start, y - from.1);
        let length = width.hypot(height).max(1.0);
        let short = if share < 1.0 { 0.0 } else { (if lost { 9.0 } else { 4.0 }) / length };
        let to = (x - width * short, y - height * short);
        Some(Arrow { from, to, lane, lost })
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
        for text in texts {
            for line in self.lines(arrow, text_width(text, SIZE)) {
                if self.clutter.place(line) {
                    let (c, s) = line.direction;
                    return self.put(format_args!(
                        "<text class=\"label\" transform=\"matrix({c:.3} {s:.3} {:.3} {c:.3} {} {})\">\
                         {}</text>",
                        -s,
                        px(line.x),
                        px(line.y),
                        escape(text)
                    ));
                }
            }
        }
    }

    /// Where a text of this length could go: between two lanes, nearest the receiver first, since
    /// what one process sends at once fans out; else along the arrow, wherever.
    fn lines(&self, arrow: Arrow, length: f64) -> Vec<Line> {
        let ((x1, y1), (x2, y2)) = (arrow.from, arrow.to);
        let (width, height) = (x2 - x1, y2 - y1);
        let reach = width.hypot(height).max(1.0);
        let sign = if width < 0.0 { -1.0 } else { 1.0 };
        let direction = (sign * width / reach, sign * height / reach);
        let mut shares = Vec::new();
        if length + 16.0 <= self.lane_gap * reach / width.abs().max(1.0) {
            let gaps = ((arrow.lane - x1).abs() / self.lane_gap).round().max(1.0);
            let mut middle = gaps - 0.5;
            while 0.0 < middle && shares.len() < 8 {
                shares.push(middle * self.lane_gap / width.abs().max(1.0));
                middle -= 1.0;
            }
        } else {
            shares.extend([0.5, 0.62, 0.38, 0.74, 0.26]);
        }
        let fits = |&share: &f64| {
            let half = length / 2.0 + 7.0;
            half <= share * reach && half <= (1.0 - share) * reach
        };
        let line = |share: f64| {
            // A little above the arrow.
            let (x, y) = (x1 + width * share, y1 + height * share);
            let (x, y) = (x + 3.5 * direction.1, y - 3.5 * direction.0);
            Line { x, y, direction, length }
        };
        shares.into_iter().filter(fits).map(line).collect()
    }
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
