//! The chart laid out and painted.

use std::convert::Infallible;

use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::ranged1d::Ranged as _;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{Circle, EmptyElement, PathElement, Polygon};
use plotters::series::LineSeries;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, IntoFont as _, ShapeStyle, TextStyle};

use super::ends::{apart, rows};
use super::paint::Paint;
use super::sheet::{Sheet, UNITS_PER_PX};
use super::ticks::Stretch;
use super::{Chart, Look, Mark, Point, Series};
use crate::words::{escape, shorten, wrap};

const WIDTH: f64 = 760.0;
const MARGIN: f64 = 16.0;
const PLOT_HEIGHT: f64 = 330.0;
/// Under the plot: numbers and the name of the axis.
const FOOT: f64 = 44.0;
/// From one label at an end of a line to the next, and from the plot to the first.
const ENDS: f64 = 16.0;
const END_GAP: f64 = 18.0;
const END_WIDTH_MAX: f64 = 240.0;
/// A row of labels of marks.
const ROW: f64 = 15.0;
const TICK: f64 = 4.0;
const DOT: f64 = 4.0;

type Area<'a> = DrawingArea<Sheet<'a>, Shift>;
type Plot<'a, 'b> = ChartContext<'b, Sheet<'a>, Cartesian2d<Stretch, Stretch>>;
type Drawn = Result<(), DrawingAreaErrorKind<Infallible>>;

pub(super) fn svg(chart: &Chart) -> String {
    let page = Page::new(chart);
    let mut body = String::new();
    page.draw(&mut body).expect("a sheet takes whatever is drawn on it");
    let (width, height) = (WIDTH.round(), page.height().round());
    let title = escape(&format!("{}. {}", chart.title, chart.subtitle));
    let style = include_str!("style.css");
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"vez-chart\" role=\"img\" \
         width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <title>{title}</title>\n<style>\n{style}</style>\n\
         <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n{body}</svg>\n"
    )
}

/// The chart and where its parts go, in pixels.
struct Page<'c> {
    chart: &'c Chart,
    title: Vec<String>,
    subtitle: Vec<String>,
    x: Stretch,
    y: Stretch,
    left: f64,
    right: f64,
    plot_height: f64,
    /// Rows of the labels above the plot, one for every mark along x.
    mark_rows: Vec<usize>,
}

/// Something with its name at the right of the plot.
struct End {
    label: String,
    /// Where its line ends, in units.
    at: (i32, i32),
    series: Option<u8>,
}

impl<'c> Page<'c> {
    fn new(chart: &'c Chart) -> Self {
        let (xs, ys) = values(chart);
        let mut x = Stretch::around(&chart.x, &xs);
        let mut y = Stretch::around(&chart.y, &ys);
        let labels = chart.series.iter().map(|series| &series.label);
        let labels: Vec<&String> = labels
            .chain(chart.marks.iter().filter_map(|mark| match mark {
                Mark::Y { label, .. } => Some(label),
                Mark::X { .. } => None,
            }))
            .filter(|label| !label.is_empty())
            .collect();
        let plot_height = PLOT_HEIGHT.max(ENDS * real(labels.len()));
        let line_height = |_: &str| 2.2 * Paint::TickLabel.size();
        y.set_ticks(chart.y.scale, whole(&ys), 8, plot_height, line_height);
        let widest = y.ticks.iter().map(|tick| Paint::TickLabel.width(&tick.label));
        let left = widest.fold(24.0, f64::max) + 2.0 * TICK + 4.0;
        let widest = labels.iter().map(|label| Paint::EndLabel.width(label));
        let widest = widest.fold(0.0, f64::max).min(END_WIDTH_MAX);
        let right = if labels.is_empty() { 8.0 } else { widest + END_GAP };
        let length = WIDTH - 2.0 * MARGIN - left - right;
        let label_width = |label: &str| Paint::TickLabel.width(label) + 14.0;
        x.set_ticks(chart.x.scale, whole(&xs), 10, length, label_width);
        let wrapped = |text: &str, paint: Paint| {
            let lines = wrap(text, fitting(paint, WIDTH - 2.0 * MARGIN));
            lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>()
        };
        let title = wrapped(&chart.title, Paint::Title);
        let subtitle = wrapped(&chart.subtitle, Paint::Subtitle);
        let mut page =
            Self { chart, title, subtitle, x, y, left, right, plot_height, mark_rows: vec![] };
        let reaches: Vec<(f64, f64)> = page.marks_along_x().map(|mark| mark.reach).collect();
        page.mark_rows = rows(&reaches);
        page
    }

    /// Where the rows of labels of marks begin.
    fn marks_top(&self) -> f64 {
        MARGIN + 24.0 * real(self.title.len()) + 17.0 * real(self.subtitle.len()) + 26.0
    }

    fn plot_top(&self) -> f64 {
        let rows = self.mark_rows.iter().max().map_or(0, |last| last + 1);
        self.marks_top() + ROW * real(rows) + 4.0
    }

    fn height(&self) -> f64 {
        self.plot_top() + self.plot_height + FOOT + MARGIN
    }

    fn draw(&self, out: &mut String) -> Drawn {
        let (width, height) = (units(WIDTH).unsigned_abs(), units(self.height()).unsigned_abs());
        let root = Sheet::new(out, (width, height)).into_drawing_area();
        self.heading(&root)?;
        let mut plot = ChartBuilder::on(&root)
            .margin_top(units(self.plot_top()))
            .margin_bottom(units(MARGIN))
            .margin_left(units(MARGIN))
            .margin_right(units(MARGIN + self.right))
            .x_label_area_size(units(FOOT))
            .y_label_area_size(units(self.left))
            .build_cartesian_2d(self.x.clone(), self.y.clone())?;
        plot.configure_mesh()
            .bold_line_style(stroke(Paint::Grid))
            .axis_style(stroke(Paint::Axis))
            .label_style(text(Paint::TickLabel))
            .axis_desc_style(text(Paint::AxisLabel))
            .x_desc(self.chart.x.label.as_str())
            .set_all_tick_mark_size(units(TICK))
            .draw()?;
        self.marks(&root, &plot)?;
        for (series, number) in self.numbered() {
            self.line(&mut plot, series, number)?;
        }
        for (series, number) in self.numbered() {
            self.points(&mut plot, series, number)?;
        }
        self.ends(&root, &plot)
    }

    fn heading(&self, root: &Area<'_>) -> Drawn {
        let mut y = MARGIN;
        for line in &self.title {
            root.draw_text(line, &text(Paint::Title), (units(MARGIN), units(y)))?;
            y += 24.0;
        }
        for line in &self.subtitle {
            root.draw_text(line, &text(Paint::Subtitle), (units(MARGIN), units(y)))?;
            y += 17.0;
        }
        let at = (units(MARGIN), units(self.marks_top() - 18.0));
        root.draw_text(&self.chart.y.label, &text(Paint::AxisLabel), at)
    }

    fn numbered(&self) -> impl Iterator<Item = (&Series, u8)> {
        let mut fresh = (0..=u8::MAX).cycle();
        let mut numbers: Vec<u8> = Vec::new();
        for series in &self.chart.series {
            let known = series.like.and_then(|other| numbers.get(other).copied());
            numbers.push(known.or_else(|| fresh.next()).unwrap_or_default());
        }
        self.chart.series.iter().zip(numbers)
    }

    /// The parts of a series that have a place on both axes: places, and spans of y.
    fn runs(&self, series: &Series) -> Vec<Vec<Placed>> {
        let mut runs = vec![Vec::new()];
        for point in &series.points {
            match self.place(*point) {
                Some(placed) => runs.last_mut().expect("never empty").push(placed),
                None => runs.push(Vec::new()),
            }
        }
        runs.retain(|run| !run.is_empty());
        runs
    }

    fn place(&self, point: Point) -> Option<Placed> {
        let y_scale = self.chart.y.scale;
        let at = (self.chart.x.scale.place(point.x)?, y_scale.place(point.y)?);
        let span = point.span.and_then(|(low, high)| {
            // What reaches down to 0 on a logarithmic axis reaches its floor.
            let floor = self.y.range().start;
            Some((y_scale.place(low).unwrap_or(floor), y_scale.place(high)?))
        });
        Some(Placed { at, span })
    }

    fn line(&self, plot: &mut Plot<'_, '_>, series: &Series, number: u8) -> Drawn {
        if series.look == Look::Points {
            return Ok(());
        }
        for run in self.runs(series) {
            if series.look == Look::Line {
                let spans: Vec<_> = run.iter().filter_map(|p| Some((p.at.0, p.span?))).collect();
                let over = spans.iter().map(|&(x, (_, high))| (x, high));
                let back = spans.iter().rev().map(|&(x, (low, _))| (x, low));
                let band: Vec<(f64, f64)> = over.chain(back).collect();
                if !band.is_empty() {
                    plot.draw_series([Polygon::new(band, Paint::Band(number).colour().filled())])?;
                }
            }
            let line = LineSeries::new(run.iter().map(|p| p.at), stroke(Paint::Line(number)));
            plot.draw_series(line)?;
        }
        Ok(())
    }

    fn points(&self, plot: &mut Plot<'_, '_>, series: &Series, number: u8) -> Drawn {
        for placed in self.runs(series).into_iter().flatten() {
            // A lone point of a line has no length to be seen by.
            if series.look == Look::Line && 1 < series.points.len() {
                continue;
            }
            let (x, y) = placed.at;
            if let Some((low, high)) = placed.span {
                let bar = PathElement::new([(x, low), (x, high)], stroke(Paint::Bar(number)));
                plot.draw_series([bar])?;
            }
            let fill = Paint::Dot(number).colour().filled();
            match corners(number) {
                None => {
                    plot.draw_series([Circle::new((x, y), units(DOT), fill)])?;
                }
                Some(corners) => {
                    let scaled = corners.iter().map(|&(dx, dy)| (units(dx * DOT), units(dy * DOT)));
                    let shape = Polygon::new(scaled.collect::<Vec<_>>(), fill);
                    plot.draw_series([EmptyElement::at((x, y)) + shape])?;
                }
            }
        }
        Ok(())
    }

    fn marks(&self, root: &Area<'_>, plot: &Plot<'_, '_>) -> Drawn {
        let (across, down) = plot.plotting_area().get_pixel_range();
        for (mark, &row) in self.marks_along_x().zip(&self.mark_rows) {
            let x = plot.backend_coord(&(mark.place, 0.0)).0;
            let y = units(self.marks_top() + ROW * real(row));
            let line = vec![(x, y + units(ROW - 3.0)), (x, down.end)];
            root.draw(&PathElement::new(line, stroke(Paint::Mark)))?;
        }
        // After all lines, so that a label may interrupt the line of a row above it.
        for (mark, &row) in self.marks_along_x().zip(&self.mark_rows) {
            let y = units(self.marks_top() + ROW * real(row));
            let at = (units(f64::midpoint(mark.reach.0, mark.reach.1)), y);
            let style = text(Paint::MarkLabel).pos(Pos::new(HPos::Center, VPos::Top));
            root.draw_text(&mark.label, &style, at)?;
        }
        for mark in &self.chart.marks {
            let Mark::Y { at, .. } = mark else { continue };
            if let Some(place) = self.chart.y.scale.place(*at) {
                let y = plot.backend_coord(&(0.0, place)).1;
                let line = vec![(across.start, y), (across.end, y)];
                root.draw(&PathElement::new(line, stroke(Paint::Mark)))?;
            }
        }
        Ok(())
    }

    fn marks_along_x(&self) -> impl Iterator<Item = Labelled> {
        let (start, end) = (MARGIN + self.left, WIDTH - MARGIN - self.right);
        self.chart.marks.iter().filter_map(move |mark| {
            let Mark::X { at, label } = mark else { return None };
            let place = self.chart.x.scale.place(*at)?;
            let range = self.x.range();
            let x = start + (place - range.start) / (range.end - range.start) * (end - start);
            let label = shorten(label, fitting(Paint::MarkLabel, WIDTH - 2.0 * MARGIN));
            let width = Paint::MarkLabel.width(&label);
            let left = (x - width / 2.0).clamp(MARGIN, WIDTH - MARGIN - width);
            Some(Labelled { place, label, reach: (left, left + width) })
        })
    }

    fn ends(&self, root: &Area<'_>, plot: &Plot<'_, '_>) -> Drawn {
        let (across, down) = plot.plotting_area().get_pixel_range();
        let mut ends = Vec::new();
        for (series, number) in self.numbered() {
            let last = self.runs(series).last().and_then(|run| run.last().map(|p| p.at));
            if let (Some(last), false) = (last, series.label.is_empty()) {
                let at = plot.backend_coord(&last);
                ends.push(End { label: series.label.clone(), at, series: Some(number) });
            }
        }
        for mark in &self.chart.marks {
            let Mark::Y { at, label } = mark else { continue };
            if let Some(place) = self.chart.y.scale.place(*at) {
                let at = (across.end, plot.backend_coord(&(0.0, place)).1);
                ends.push(End { label: label.clone(), at, series: None });
            }
        }
        let heights: Vec<f64> = ends.iter().map(|end| f64::from(end.at.1)).collect();
        let (top, bottom) = (f64::from(down.start), f64::from(down.end));
        let placed = apart(&heights, f64::from(units(ENDS)), top, bottom);
        let column = across.end + units(END_GAP - 4.0);
        for (end, height) in ends.iter().zip(placed) {
            let y = height.round() as i32;
            let paint = end.series.map_or(Paint::Mark, Paint::Leader);
            let elbow = (across.end + units(2.0), end.at.1);
            let leader = vec![end.at, elbow, (column - units(3.0), y)];
            root.draw(&PathElement::new(leader, stroke(paint)))?;
            let paint = if end.series.is_some() { Paint::EndLabel } else { Paint::MarkLabel };
            let style = text(paint).pos(Pos::new(HPos::Left, VPos::Center));
            root.draw_text(
                &shorten(&end.label, fitting(paint, END_WIDTH_MAX)),
                &style,
                (column, y),
            )?;
        }
        Ok(())
    }
}

/// A point where it is drawn, before it becomes pixels.
#[derive(Clone, Copy)]
struct Placed {
    at: (f64, f64),
    span: Option<(f64, f64)>,
}

/// A mark along x: where it is, and from where to where its label reaches, in pixels.
struct Labelled {
    place: f64,
    label: String,
    reach: (f64, f64),
}

/// All values along x and along y.
fn values(chart: &Chart) -> (Vec<f64>, Vec<f64>) {
    let (mut xs, mut ys) = (Vec::new(), Vec::new());
    for point in chart.series.iter().flat_map(|series| &series.points) {
        xs.push(point.x);
        ys.push(point.y);
        ys.extend(point.span.iter().flat_map(|&(low, high)| [low, high]));
    }
    for mark in &chart.marks {
        match mark {
            Mark::X { at, .. } => xs.push(*at),
            Mark::Y { at, .. } => ys.push(*at),
        }
    }
    (xs, ys)
}

fn whole(values: &[f64]) -> bool {
    values.iter().all(|value| value.fract() == 0.0)
}

/// The shape of a point, as corners around its middle; a circle has none.
fn corners(number: u8) -> Option<&'static [(f64, f64)]> {
    match number % 6 {
        0 => None,
        1 => Some(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        2 => Some(&[(0.0, -1.2), (1.15, 0.8), (-1.15, 0.8)]),
        3 => Some(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
        4 => Some(&[(0.0, 1.2), (1.15, -0.8), (-1.15, -0.8)]),
        _ => Some(&[
            (-0.4, -1.2),
            (0.4, -1.2),
            (0.4, -0.4),
            (1.2, -0.4),
            (1.2, 0.4),
            (0.4, 0.4),
            (0.4, 1.2),
            (-0.4, 1.2),
            (-0.4, 0.4),
            (-1.2, 0.4),
            (-1.2, -0.4),
            (-0.4, -0.4),
        ]),
    }
}

/// How many characters surely fit.
#[expect(clippy::cast_sign_loss, reason = "widths are never below 0")]
fn fitting(paint: Paint, width: f64) -> usize {
    (width / paint.width("m")) as usize
}

fn stroke(paint: Paint) -> ShapeStyle {
    paint.colour().stroke_width(1)
}

fn text(paint: Paint) -> TextStyle<'static> {
    let size = paint.size() * f64::from(UNITS_PER_PX);
    let font = ("sans-serif", size).into_font();
    TextStyle { font, color: paint.colour().to_backend_color(), pos: Pos::default() }
}

fn units(px: f64) -> i32 {
    (px * f64::from(UNITS_PER_PX)).round() as i32
}

fn real(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
