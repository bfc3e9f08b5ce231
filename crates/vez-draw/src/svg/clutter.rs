//! What is taken on the page, so that no label is set on another or on a thick of arrows.

use std::collections::{BTreeMap, BTreeSet};

/// A page in small squares.
#[derive(Default)]
pub(crate) struct Clutter {
    taken: BTreeSet<(i32, i32)>,
    arrows: BTreeMap<(i32, i32), u32>,
}

/// A line of text somewhere, perhaps aslant: the middle of its baseline, its direction, its length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) direction: (f64, f64),
    pub(crate) length: f64,
}

const SQUARE: f64 = 5.0;
/// How far a line of text reaches above and below its baseline.
const ABOVE: f64 = 10.0;
const BELOW: f64 = 3.0;
/// More arrows than this under a label, on average, and nobody can tell which one it names.
pub(crate) const ARROWS_MAX: f64 = 2.2;
/// So few that no arrow passes but perhaps at an edge.
pub(crate) const ALONE: f64 = 0.3;

impl Clutter {
    /// Takes the place of a line of text; `false` if it is taken, or more than so many arrows pass
    /// there.
    pub(crate) fn place(&mut self, line: Line, arrows_max: f64) -> bool {
        let squares = line.squares();
        if squares.iter().any(|square| self.taken.contains(square)) {
            return false;
        }
        let arrows: u32 = squares.iter().filter_map(|square| self.arrows.get(square)).sum();
        let along = (line.length / SQUARE).max(1.0);
        if arrows_max < f64::from(arrows) / along {
            return false;
        }
        self.taken.extend(squares);
        true
    }

    pub(crate) fn block(&mut self, left: f64, top: f64, right: f64, bottom: f64) {
        for x in square(left)..=square(right) {
            self.taken.extend((square(top)..=square(bottom)).map(|y| (x, y)));
        }
    }

    /// Notes that an arrow passes.
    pub(crate) fn cross(&mut self, from: (f64, f64), to: (f64, f64)) {
        let (width, height) = (to.0 - from.0, to.1 - from.1);
        let count = (width.hypot(height) / SQUARE).clamp(1.0, CROSSED_MAX) as u32;
        for i in 0..count {
            let share = f64::from(i) / f64::from(count);
            let at = (square(from.0 + width * share), square(from.1 + height * share));
            *self.arrows.entry(at).or_default() += 1;
        }
    }
}

/// Squares of an arrow that are looked at: enough for a wide page, few enough for a huge one.
const CROSSED_MAX: f64 = 400.0;

impl Line {
    pub(crate) fn level(x: f64, y: f64, length: f64) -> Self {
        Self { x, y, direction: (1.0, 0.0), length }
    }

    fn squares(&self) -> BTreeSet<(i32, i32)> {
        let (along_x, along_y) = self.direction;
        let half = SQUARE / 2.0;
        let columns = (self.length / half).ceil() as i32;
        let rows = ((ABOVE + BELOW) / half).ceil() as i32;
        let mut squares = BTreeSet::new();
        for column in 0..=columns {
            let along = (f64::from(column) * half).min(self.length) - self.length / 2.0;
            for row in 0..=rows {
                let down = (f64::from(row) * half - ABOVE).min(BELOW);
                let x = self.x + along * along_x - down * along_y;
                let y = self.y + along * along_y + down * along_x;
                squares.insert((square(x), square(y)));
            }
        }
        squares
    }
}

fn square(at: f64) -> i32 {
    (at / SQUARE).floor() as i32
}

#[cfg(test)]
mod tests {
    use super::{ARROWS_MAX, Clutter, Line};

    #[test]
    fn no_label_is_set_on_another() {
        let mut clutter = Clutter::default();
        assert!(clutter.place(Line::level(100.0, 100.0, 60.0), ARROWS_MAX));
        assert!(!clutter.place(Line::level(120.0, 104.0, 60.0), ARROWS_MAX));
        assert!(clutter.place(Line::level(100.0, 130.0, 60.0), ARROWS_MAX));
        clutter.block(300.0, 90.0, 310.0, 110.0);
        assert!(!clutter.place(Line::level(290.0, 100.0, 40.0), ARROWS_MAX));
    }

    #[test]
    fn a_label_among_many_arrows_is_left_out() {
        let mut clutter = Clutter::default();
        for i in 0..5 {
            clutter.cross((0.0, 90.0 + f64::from(i)), (200.0, 96.0));
        }
        assert!(!clutter.place(Line::level(100.0, 98.0, 40.0), ARROWS_MAX));
    }
}
