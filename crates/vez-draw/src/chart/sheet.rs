//! The sheet plotters paints on: SVG whose elements have classes, not colours.

use std::convert::Infallible;
use std::fmt::Write as _;

use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
};

use super::paint::Paint;
use crate::words::escape;

/// plotters counts in whole units; a tenth of a pixel is fine enough.
pub(super) const UNITS_PER_PX: i32 = 10;

/// Elements are written to `out`.
pub(super) struct Sheet<'a> {
    out: &'a mut String,
    size: (u32, u32),
}

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

impl<'a> Sheet<'a> {
    /// Of this size, in units.
    pub(super) fn new(out: &'a mut String, size: (u32, u32)) -> Self {
        Self { out, size }
    }

    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.out, "{element}").expect("to a string");
    }
}

impl DrawingBackend for Sheet<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    fn draw_pixel(&mut self, at: BackendCoord, colour: BackendColor) -> Drawn {
        self.draw_rect(at, (at.0 + UNITS_PER_PX, at.1 + UNITS_PER_PX), &colour, true)
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Drawn {
        self.draw_path([from, to], style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        (left, top): BackendCoord,
        (right, bottom): BackendCoord,
        style: &S,
        _fill: bool,
    ) -> Drawn {
        let (width, height) = (px(right - left), px(bottom - top));
        let (x, y, class) = (px(left), px(top), class(style));
        self.put(format_args!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        ));
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        let path = joined(path);
        self.put(format_args!("<path class=\"{}\" d=\"{path}\"/>", class(style)));
        Ok(())
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        (x, y): BackendCoord,
        radius: u32,
        style: &S,
        _fill: bool,
    ) -> Drawn {
        let (x, y, class) = (px(x), px(y), class(style));
        let radius = px(i32::try_from(radius).unwrap_or(i32::MAX));
        self.put(format_args!("<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>"));
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> Drawn {
        let path = joined(corners);
        self.put(format_args!("<path class=\"{}\" d=\"{path}Z\"/>", class(style)));
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> Drawn {
        let paint = Paint::of_colour(style.color().rgb);
        let anchor = match style.anchor().h_pos {
            HPos::Left => "",
            HPos::Center => " text-anchor=\"middle\"",
            HPos::Right => " text-anchor=\"end\"",
        };
        // From where plotters means to the baseline, as a share of the size.
        let down = match style.anchor().v_pos {
            VPos::Top => 0.8,
            VPos::Center => 0.35,
            VPos::Bottom => -0.2,
        };
        let units = (down * paint.size() * f64::from(UNITS_PER_PX)).round() as i32;
        let (x, y, class) = (px(at.0), px(at.1 + units), paint.class());
        let text = escape(text);
        self.put(format_args!("<text class=\"{class}\"{anchor} x=\"{x}\" y=\"{y}\">{text}</text>"));
        Ok(())
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        style: &S,
    ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
        let paint = Paint::of_colour(style.color().rgb);
        let units = |px: f64| (px * f64::from(UNITS_PER_PX)).round().max(0.0);
        #[expect(clippy::cast_sign_loss, reason = "never below 0")]
        let size = (units(paint.width(text)) as u32, units(paint.size()) as u32);
        Ok(size)
    }
}

fn class<S: BackendStyle>(style: &S) -> String {
    Paint::of_colour(style.color().rgb).class()
}

fn joined(points: impl IntoIterator<Item = BackendCoord>) -> String {
    let mut path = String::new();
    for (x, y) in points {
        let step = if path.is_empty() { 'M' } else { 'L' };
        write!(path, "{step}{} {}", px(x), px(y)).expect("to a string");
    }
    path
}

fn px(units: i32) -> String {
    let (sign, units) = (if units < 0 { "-" } else { "" }, units.unsigned_abs());
    match (units / UNITS_PER_PX.unsigned_abs(), units % UNITS_PER_PX.unsigned_abs()) {
        (whole, 0) => format!("{sign}{whole}"),
        (whole, tenth) => format!("{sign}{whole}.{tenth}"),
    }
}
