//! A space–time diagram: a lane for every process, time down the page, messages aslant.

mod arrows;
mod axis;
mod clutter;
mod frame;
mod lanes;
mod marks;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use vez_sim::What;

use crate::Run;
use crate::scene::{Flight, Scene};
use crate::words::{escape, name, shorten};
use arrows::Arrow;
use axis::Axis;
use clutter::Clutter;
use lanes::Split;

/// The run as one SVG picture, for light and dark pages alike.
pub fn svg(run: &Run<'_>) -> String {
    picture(&Scene::new(run), Setting { lanes_width: LANES_WIDTH, captioned: true })
}

/// What surrounds the picture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// What all lanes together should take, if none gets too narrow or too wide by it.
    pub(crate) lanes_width: f64,
    /// Whether the picture says what it shows and how it ended.
    pub(crate) captioned: bool,
}

pub(crate) fn picture(scene: &Scene<'_>, setting: Setting) -> String {
    let mut page = Page::new(scene, setting);
    page.draw_splits();
    page.grid();
    page.lanes();
    page.conditions();
    page.breaks();
    page.violations();
    page.arrows();
    page.fences();
    page.marks();
    page.gutter();
    page.heads();
    page.finish()
}

/// The page while it is being drawn.
struct Page<'a> {
    scene: &'a Scene<'a>,
    setting: Setting,
    axis: Axis,
    /// Where the first lane's column begins, right of the numbers of the axis.
    left: f64,
    lane_gap: f64,
    legend: Vec<frame::Entry>,
    /// Where the lanes begin and the notes at the right.
    top: f64,
    gutter_x: f64,
    width: f64,
    height: f64,
    /// Message kinds in the order of their colours.
    kinds: BTreeMap<&'static str, usize>,
    splits: Vec<Split>,
    /// So many messages at once that most labels would name the wrong one.
    dense: bool,
    clutter: Clutter,
    /// The arrows still without a label.
    drawn: Vec<(&'a Flight<'a>, Arrow)>,
    out: String,
}

/// Where the title, the lines under it and the legend begin.
const MARGIN: f64 = 16.0;
/// Narrowest page: a title, a verdict and a legend fit.
const WIDTH_MIN: f64 = 600.0;
/// All lanes together share this width on a page of their own; each is within these bounds.
const LANES_WIDTH: f64 = 1_250.0;
const LANE_GAP_MIN: f64 = 44.0;
const LANE_GAP_MAX: f64 = 190.0;
/// More messages at one moment than this are drawn thin.
const DENSE: f64 = 80.0;
/// Room for the notes at the right.
const NOTES_WIDTH: f64 = 216.0;

impl<'a> Page<'a> {
    fn new(scene: &'a Scene<'a>, setting: Setting) -> Self {
        let n = real(scene.uids.len());
        let longest = scene.uids.iter().map(|&uid| text_width(&name(uid), 13.0));
        let narrowest = longest.fold(LANE_GAP_MIN, |widest, width| widest.max(width + 14.0));
        let lane_gap = (setting.lanes_width / n).clamp(narrowest, LANE_GAP_MAX.max(narrowest));
        let left = MARGIN + frame::numbers_width(scene);
        let gutter_x = left + lane_gap * n + 6.0;
        let noted = !scene.net.is_empty()
            || scene.run.events.iter().any(|event| matches!(event.what, What::Violation { .. }));
        let gutter = if noted { NOTES_WIDTH } else { MARGIN };
        let width = (gutter_x + gutter).max(WIDTH_MIN);
        let kinds = frame::kinds(scene);
        let legend_top = if setting.captioned { 82.0 } else { 20.0 };
        let legend = frame::legend(scene, &kinds, width, legend_top);
        let legend_bottom = legend.last().map_or(legend_top, |entry| entry.y + 14.0);
        let top = legend_bottom + frame::HEAD_HEIGHT + 14.0;
        let axis = Axis::new(scene, top + 18.0);
        let height = axis.bottom() + 34.0;
        let splits = lanes::splits(scene);
        let dense = DENSE < axis::crowd(scene);
        let (clutter, drawn, out) = (Clutter::default(), Vec::new(), String::new());
        Self {
            scene,
            setting,
            axis,
            left,
            lane_gap,
            legend,
            top,
            gutter_x,
            width,
            height,
            kinds,
            splits,
            dense,
            clutter,
            drawn,
            out,
        }
    }

    fn x(&self, lane: usize) -> f64 {
        self.left + self.lane_gap * (real(lane) + 0.5)
    }

    /// Where the lanes end.
    fn floor(&self) -> f64 {
        self.axis.bottom() + 14.0
    }

    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.out, "{element}").expect("to a string");
    }

    fn finish(mut self) -> String {
        let body = std::mem::take(&mut self.out);
        let (width, height) = (px(self.width), px(self.height));
        let title = format!("{}, {}", self.scene.run.title, self.scene.run.subtitle);
        self.put(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{}\" role=\"img\" \
             width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
             <title>{}</title>",
            if self.dense { "vez dense" } else { "vez" },
            escape(&title)
        ));
        self.put(format_args!("<style>\n{}</style>", include_str!("style.css")));
        self.definitions();
        self.put(format_args!(
            "<rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n{body}"
        ));
        if self.setting.captioned {
            self.caption();
        }
        self.draw_legend();
        self.out += "</svg>\n";
        self.out
    }
}

/// A coordinate: tenths of a pixel are fine enough.
fn px(value: f64) -> String {
    let tenths = (value * 10.0).round() as i64;
    match (tenths / 10, (tenths % 10).abs()) {
        (whole, 0) => whole.to_string(),
        (0, tenth) if tenths < 0 => format!("-0.{tenth}"),
        (whole, tenth) => format!("{whole}.{tenth}"),
    }
}

fn real(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// As much of a text as fits.
fn fitting(text: &str, size: f64, width: f64) -> String {
    let mut chars = text.chars().count();
    while 1 < chars && width < real(chars) * size * 0.6 {
        chars -= 1;
    }
    shorten(text, chars)
}

/// How wide a text is at most, whatever sans-serif font the reader has.
fn text_width(text: &str, size: f64) -> f64 {
    real(text.chars().count()) * size * 0.6
}
