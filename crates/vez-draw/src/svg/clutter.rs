//! What is taken on the page, so that no label is set on another or on a thick of arrows.

/// A page in small squares, row by row, each row only as long as it needs to be.
#[derive(Default)]
pub(crate) struct Clutter {
    rows: Vec<Vec<Square>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Square {
    taken: bool,
    /// How many arrows pass.
    arrows: u16,
}

/// A line of text somewhere, perhaps aslant: the middle of its baseline, its direction, its length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) direction: (f64, f64),
    pub(crate) length: f64,
}

const SIDE: f64 = 5.0;
/// How far a line of text reaches above and below its baseline.
const ABOVE: f64 = 10.0;
const BELOW: f64 = 3.0;
/// More arrows than this through a label, on average over its length, and nobody can tell which
/// one it names.
pub(crate) const ARROWS_MAX: f64 = 2.2;
/// So few that no arrow passes but perhaps at an edge.
pub(crate) const ALONE: f64 = 0.3;
/// Squares of an arrow that are looked at: enough for a wide page, few enough for a huge one.
const CROSSED_MAX: f64 = 400.0;

impl Clutter {
    /// Takes the place of a line of text; `false` if it is taken, or more than so many arrows pass
    /// there.
    pub(crate) fn place(&mut self, line: Line, arrows_max: f64) -> bool {
        let mut arrows = 0;
        for (x, y) in line.points() {
            let square = self.at(x, y);
            if square.taken {
                return false;
            }
            arrows += u32::from(square.arrows);
        }
        // Points are half a square apart: each square is met four times.
        let passing = f64::from(arrows) / 4.0 / (line.length / SIDE).max(1.0);
        if arrows_max < passing {
            return false;
        }
        for (x, y) in line.points() {
            self.at_mut(index(x), index(y)).taken = true;
        }
        true
    }

    pub(crate) fn block(&mut self, left: f64, top: f64, right: f64, bottom: f64) {
        for row in index(top)..=index(bottom) {
            for column in index(left)..=index(right) {
                self.at_mut(column, row).taken = true;
            }
        }
    }

    /// Notes that an arrow passes.
    pub(crate) fn cross(&mut self, from: (f64, f64), to: (f64, f64)) {
        let (width, height) = (to.0 - from.0, to.1 - from.1);
        let count = (width.hypot(height) / SIDE).clamp(1.0, CROSSED_MAX).floor();
        let mut i = 0.0;
        while i < count {
            let (x, y) = (from.0 + width * i / count, from.1 + height * i / count);
            let square = self.at_mut(index(x), index(y));
            square.arrows = square.arrows.saturating_add(1);
            i += 1.0;
        }
    }

    fn at(&self, x: f64, y: f64) -> Square {
        let row = self.rows.get(index(y));
        row.and_then(|row| row.get(index(x))).copied().unwrap_or_default()
    }

    fn at_mut(&mut self, column: usize, row: usize) -> &mut Square {
        if self.rows.len() <= row {
            self.rows.resize_with(row + 1, Vec::new);
        }
        let row = &mut self.rows[row];
        if row.len() <= column {
            row.resize(column + 1, Square::default());
        }
        &mut row[column]
    }
}

impl Line {
    pub(crate) fn level(x: f64, y: f64, length: f64) -> Self {
        Self { x, y, direction: (1.0, 0.0), length }
    }

    /// Points all over the text, half a square apart.
    fn points(self) -> impl Iterator<Item = (f64, f64)> {
        let (along_x, along_y) = self.direction;
        let half = SIDE / 2.0;
        let columns = (self.length / half).ceil() as i32;
        let rows = ((ABOVE + BELOW) / half).ceil() as i32;
        (0..=columns).flat_map(move |column| {
            let along = (f64::from(column) * half).min(self.length) - self.length / 2.0;
            (0..=rows).map(move |row| {
                let down = (f64::from(row) * half - ABOVE).min(BELOW);
                let x = self.x + along * along_x - down * along_y;
                (x, self.y + along * along_y + down * along_x)
            })
        })
    }
}

/// The square a coordinate is in; what is off the page is at its edge.
#[expect(clippy::cast_sign_loss, reason = "never below 0")]
fn index(at: f64) -> usize {
    (at / SIDE).max(0.0) as usize
}

#[cfg(test)]
mod tests {
    use super::{ALONE, ARROWS_MAX, Clutter, Line};

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
        clutter.cross((0.0, 94.0), (200.0, 96.0));
        assert!(!clutter.place(Line::level(100.0, 98.0, 40.0), ALONE));
        for i in 0..5 {
            clutter.cross((0.0, 90.0 + f64::from(i)), (200.0, 96.0));
        }
        assert!(!clutter.place(Line::level(100.0, 98.0, 40.0), ARROWS_MAX));
    }
}
