//! Numbers as a picture: lines, points and marked values on linear or logarithmic axes.
//!
//! Made to be read without hunting: every line carries its name at its end, told apart by colour
//! (Okabe and Ito's, for all eyes) and by dashes or the shape of its points; no text lies where
//! data may be. plotters lays the chart out; what it paints, `sheet` writes with classes instead
//! of colours, so that one picture suits light and dark pages.

mod ends;
mod number;
mod paint;
mod plot;
mod sheet;
mod ticks;

pub use number::{power, readable};

/// What is drawn; [`Chart::svg`] draws it.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    pub title: String,
    pub subtitle: String,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
    pub marks: Vec<Mark>,
}

/// An axis is as long as its values need.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    /// What is measured, with its unit: `time to elect (ms)`.
    pub label: String,
    pub scale: Scale,
    /// Values that are on the axis in any case, such as 0.
    pub reach: Vec<f64>,
}

/// How values lie on an axis. What has no place on it (0 on a logarithmic one, infinities) is
/// left out, and a line is broken there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    #[default]
    Linear,
    Log2,
    Log10,
    /// Logarithmic, for values no `f64` can hold: they are given as exponents of 10.
    Exponent,
}

#[derive(Clone, Debug, Default)]
pub struct Series {
    pub label: String,
    pub look: Look,
    /// In the order in which a line joins them.
    pub points: Vec<Point>,
    /// The place of another series whose colour this one has: a formula and what it predicts.
    pub like: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Look {
    #[default]
    Line,
    Points,
    PointsAndLine,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    /// From where to where `y` may be: a bar through a point, a band along a line.
    pub span: Option<(f64, f64)>,
}

/// A value worth a line of its own right through the chart.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    X { at: f64, label: String },
    Y { at: f64, label: String },
}

impl From<(f64, f64)> for Point {
    fn from((x, y): (f64, f64)) -> Self {
        Self { x, y, span: None }
    }
}

impl Chart {
    /// One SVG picture, for light and dark pages alike, that needs nothing but itself.
    pub fn svg(&self) -> String {
        plot::svg(self)
    }
}

impl Axis {
    pub fn new(label: impl Into<String>, scale: Scale) -> Self {
        Self { label: label.into(), scale, reach: Vec::new() }
    }

    #[must_use]
    pub fn reaching(mut self, value: f64) -> Self {
        self.reach.push(value);
        self
    }
}

impl Series {
    pub fn new<P: Into<Point>>(
        label: impl Into<String>,
        look: Look,
        points: impl IntoIterator<Item = P>,
    ) -> Self {
        let points = points.into_iter().map(Into::into).collect();
        Self { label: label.into(), look, points, like: None }
    }
}

impl Scale {
    /// Where a value lies, on a line on which equal steps look equal; `None` if nowhere.
    fn place(self, value: f64) -> Option<f64> {
        let placed = match self {
            Self::Linear | Self::Exponent => value,
            Self::Log2 => value.log2(),
            Self::Log10 => value.log10(),
        };
        placed.is_finite().then_some(placed)
    }
}
