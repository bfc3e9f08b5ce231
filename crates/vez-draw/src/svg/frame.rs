//! What surrounds the lanes: title, verdict, legend, names, axis, and the notes at the right.

use std::collections::{BTreeMap, BTreeSet};

use vez_core::Time;
use vez_sim::What;

use super::{MARGIN, Page, fitting, px, text_width};
use crate::scene::{Fate, Scene, Violation};
use crate::spells::{Condition, Cut, NetSpell};
use crate::words::{escape, link, millis, moment, name, sides, wrap};

pub(super) const HEAD_HEIGHT: f64 = 22.0;
const LEGEND_ROW: f64 = 19.0;
/// Widest note at the right, in characters.
const NOTE_CHARS: usize = 30;
const NOTE_ROW: f64 = 13.0;
/// A note that would land further than this from its moment is left to the pointer.
const NOTE_STRAY_MAX: f64 = 300.0;
/// Bars that stand side by side at most.
const SLOTS_MAX: usize = 3;

/// One thing the legend explains, and where.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) x: f64,
    pub(super) y: f64,
    symbol: Symbol,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Symbol {
    Kind(usize),
    Lost,
    Ask,
    Timer,
    Waiting,
    Inside,
    Leads,
    Cross,
    Down,
    Restart,
    Paused,
    Wall,
    Broken,
}

impl Symbol {
    fn width(self) -> f64 {
        match self {
            Self::Kind(_) | Self::Lost | Self::Wall | Self::Broken => 24.0,
            _ => 16.0,
        }
    }
}

/// The message kinds of a run, in the order of their colours.
pub(super) fn kinds(scene: &Scene<'_>) -> BTreeMap<&'static str, usize> {
    let mut kinds = BTreeMap::new();
    for flight in &scene.flights {
        let next = kinds.len();
        kinds.entry(flight.kind).or_insert(next);
    }
    kinds
}

/// A moment on the axis, in milliseconds, no finer than anyone reads off an axis.
fn number(time: Time) -> String {
    millis(Time::from_micros((time.as_micros() + 5) / 10 * 10))
}

/// Room for the numbers of the axis and the lengths of what it leaves out.
pub(super) fn numbers_width(scene: &Scene<'_>) -> f64 {
    let fraction = scene.run.events.iter().any(|event| event.at.as_micros() % 1_000 != 0);
    let longest = millis(scene.end).split('.').next().map_or(1, str::len);
    let chars = longest + if fraction { 3 } else { 0 };
    (super::real(chars) * 11.0 * 0.6 + 12.0).max(50.0)
}

/// Explains what occurs in this run, and nothing else.
pub(super) fn legend(
    scene: &Scene<'_>,
    kinds: &BTreeMap<&'static str, usize>,
    width: f64,
    top: f64,
) -> Vec<Entry> {
    let mut all: BTreeSet<(Symbol, &str)> =
        kinds.iter().map(|(&kind, &index)| (Symbol::Kind(index), kind)).collect();
    if scene.flights.iter().any(|flight| matches!(flight.fate, Fate::Lost(..))) {
        all.insert((Symbol::Lost, "lost"));
    }
    for event in scene.run.events {
        all.extend(match event.what {
            What::Request { .. } => Some((Symbol::Ask, "request")),
            What::Timer { .. } => Some((Symbol::Timer, "timer runs out")),
            What::Crash => Some((Symbol::Cross, "crash")),
            What::Restart { .. } => Some((Symbol::Restart, "restart")),
            What::Partition { .. } => Some((Symbol::Wall, "partition")),
            What::Violation { .. } => Some((Symbol::Broken, "promise broken")),
            _ => None,
        });
    }
    for spell in scene.spells.iter().flatten() {
        all.insert(match spell.what {
            Condition::Down => (Symbol::Down, "down"),
            Condition::Paused => (Symbol::Paused, "slow"),
            Condition::Waiting => (Symbol::Waiting, "waits"),
            Condition::Inside(_) => (Symbol::Inside, "inside"),
            Condition::Leads(_) => (Symbol::Leads, "leads"),
        });
    }
    let (mut x, mut y) = (MARGIN, top);
    let mut entries = Vec::new();
    for (symbol, text) in all {
        let taken = symbol.width() + 6.0 + text_width(text, 11.0) + 12.0;
        if width - MARGIN < x + taken && MARGIN < x {
            (x, y) = (MARGIN, y + LEGEND_ROW);
        }
        entries.push(Entry { x, y, symbol, text: text.to_owned() });
        x += taken;
    }
    entries
}

impl Page<'_> {
    pub(super) fn definitions(&mut self) {
        self.out += "<defs>\n";
        for color in 0..4 {
            self.put(format_args!(
                "<marker id=\"vez-head{color}\" viewBox=\"0 0 10 8\" refX=\"9\" refY=\"4\" \
                 markerWidth=\"9\" markerHeight=\"7\" markerUnits=\"userSpaceOnUse\" \
                 orient=\"auto\"><path class=\"h{color}\" d=\"M0 0L10 4L0 8z\"/></marker>"
            ));
        }
        self.put(format_args!(
            "<pattern id=\"vez-hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
             patternTransform=\"rotate(45)\"><path class=\"hatch\" d=\"M0 0V6\"/></pattern>\n</defs>"
        ));
    }

    pub(super) fn caption(&mut self) {
        let run = self.scene.run;
        let fit = |text: &str, size: f64| escape(&fitting(text, size, self.width - 2.0 * MARGIN));
        let broken: Vec<String> = run
            .report
            .promises
            .iter()
            .filter(|verdict| verdict.claimed && !verdict.kept)
            .map(|verdict| verdict.promise.name().to_owned())
            .collect();
        let (class, verdict) = match broken.as_slice() {
            [] => ("good", "✔ every promise kept".to_owned()),
            broken => ("bad", format!("✘ broken: {}", broken.join(", "))),
        };
        let total = run.report.messages.total;
        let plural = if total == 1 { "" } else { "s" };
        let subtitle =
            format!("{} · {total} message{plural} · {}", run.subtitle, moment(run.report.time));
        let (title, subtitle) = (fit(run.title, 18.0), fit(&subtitle, 11.0));
        let verdict = fit(&verdict, 11.5);
        self.put(format_args!(
            "<text class=\"title\" x=\"{MARGIN}\" y=\"28\">{title}</text>\n\
             <text class=\"soft\" x=\"{MARGIN}\" y=\"46\">{subtitle}</text>\n\
             <text class=\"{class}\" x=\"{MARGIN}\" y=\"63\">{verdict}</text>"
        ));
    }

    pub(super) fn draw_legend(&mut self) {
        self.put(format_args!("<g class=\"legend\">"));
        for index in 0..self.legend.len() {
            let Entry { x, y, symbol, ref text } = self.legend[index];
            let text = escape(text);
            self.symbol(symbol, x, y);
            self.put(format_args!(
                "<text x=\"{}\" y=\"{}\">{text}</text>",
                px(x + symbol.width() + 6.0),
                px(y + 4.0)
            ));
        }
        self.put(format_args!("</g>"));
    }

    fn symbol(&mut self, symbol: Symbol, x: f64, y: f64) {
        let middle = x + symbol.width() / 2.0;
        let bar = |class: &str, half: f64| {
            format!(
                "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"14\"/>",
                px(middle - half),
                px(y - 7.0),
                px(2.0 * half)
            )
        };
        let level =
            |class: &str| format!("<path class=\"{class}\" d=\"M{} {}h24\"/>", px(x), px(y));
        let drawn = match symbol {
            Symbol::Kind(kind) => {
                let (color, dash) = (kind % 4, (kind / 4).min(2));
                format!(
                    "<g class=\"m\"><path class=\"k{color} d{dash}\" d=\"M{} {}h24\" \
                     marker-end=\"url(#vez-head{color})\"/></g>",
                    px(x),
                    px(y)
                )
            }
            Symbol::Lost => {
                self.cross(x + 20.0, y, 4.0);
                format!(
                    "<g class=\"m\"><path class=\"k3 lost\" d=\"M{} {}h20\"/></g>",
                    px(x),
                    px(y)
                )
            }
            Symbol::Ask => return self.draw_shape_named("ask", middle, y),
            Symbol::Timer => return self.draw_shape_named("timer", middle, y),
            Symbol::Cross => return self.draw_shape_named("cross", middle, y),
            Symbol::Restart => return self.draw_shape_named("restart", middle, y),
            Symbol::Waiting => bar("waiting", 3.0),
            Symbol::Inside => bar("inside", 8.0),
            Symbol::Paused => bar("paused", 8.0),
            Symbol::Leads => return self.star(middle, y),
            Symbol::Down => {
                format!("<path class=\"down\" d=\"M{} {}v14\"/>", px(middle), px(y - 7.0))
            }
            Symbol::Wall => level("wall"),
            Symbol::Broken => level("broken"),
        };
        self.put(format_args!("{drawn}"));
    }

    /// The names of the lanes, above and, where the page is long, below.
    pub(super) fn heads(&mut self) {
        let below = self.height > 900.0;
        let mut rows = vec![("head top", self.top - HEAD_HEIGHT)];
        if below {
            rows.push(("head", self.floor() + 4.0));
            self.height = self.height.max(self.floor() + HEAD_HEIGHT + 14.0);
        }
        for (class, y) in rows {
            self.put(format_args!("<g class=\"{class}\">"));
            for lane in 0..self.scene.uids.len() {
                let (x, name) = (self.x(lane), name(self.scene.uids[lane]));
                let width = (text_width(&name, 13.0) + 12.0).max(34.0);
                self.put(format_args!(
                    "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{HEAD_HEIGHT}\" rx=\"5\"/>\
                     <text x=\"{}\" y=\"{}\">{name}</text>",
                    px(x - width / 2.0),
                    px(y),
                    px(width),
                    px(x),
                    px(y + 15.5)
                ));
            }
            self.put(format_args!("</g>"));
        }
    }

    pub(super) fn grid(&mut self) {
        let right = self.gutter_x - 6.0;
        self.put(format_args!(
            "<text class=\"tick\" x=\"{}\" y=\"{}\">ms</text>",
            px(self.left - 8.0),
            px(self.top + 2.0)
        ));
        for tick in self.axis.ticks() {
            let y = self.axis.y(tick);
            self.put(format_args!(
                "<path class=\"grid\" d=\"M{} {}H{}\"/><text class=\"tick\" x=\"{}\" y=\"{}\">{}</text>",
                px(self.left),
                px(y),
                px(right),
                px(self.left - 8.0),
                px(y + 4.0),
                number(tick)
            ));
        }
    }

    /// A line across everything at the moment a promise broke.
    pub(super) fn violations(&mut self) {
        let right = px(self.gutter_x + 8.0);
        for Violation { at, promise, detail, claimed, first, .. } in &self.scene.violations {
            let class = match (claimed, first) {
                (false, _) => "unclaimed",
                (true, true) => "broken",
                (true, false) => "broken again",
            };
            let title = format!("{} · {promise} broken: {detail}", moment(*at));
            self.put(format_args!(
                "<path class=\"{class}\" d=\"M{} {}H{right}\"><title>{}</title></path>",
                px(self.left),
                px(self.axis.y(*at)),
                escape(&title)
            ));
        }
    }

    /// The notes at the right: what broke, what was cut and for how long.
    pub(super) fn gutter(&mut self) {
        let mut notes: Vec<(Time, &str, Vec<String>)> = Vec::new();
        for violation in self.scene.violations.iter().filter(|violation| violation.first) {
            let remark = if violation.claimed { "" } else { " (not promised)" };
            let mut lines = vec![format!("✘ {}{remark}", violation.promise)];
            lines.extend(wrap(violation.detail, NOTE_CHARS));
            notes.push((violation.at, if violation.claimed { "bad" } else { "soft" }, lines));
        }
        let bars = cuts(&self.scene.net);
        let mut slots = [f64::NEG_INFINITY; SLOTS_MAX];
        for bar in &bars {
            self.net_bar(bar, &mut slots);
            notes.push((bar.from, "soft", bar.lines.clone()));
        }
        notes.sort_by_key(|note| note.0);
        let mut free = f64::NEG_INFINITY;
        for (at, class, lines) in notes {
            let wanted = self.axis.y(at) + 4.0;
            let y = wanted.max(free);
            if wanted + NOTE_STRAY_MAX < y {
                continue;
            }
            free = self.note(y, class, &lines);
        }
        self.height = self.height.max(free + 10.0);
    }

    fn net_bar(&mut self, bar: &NetBar, slots: &mut [f64]) {
        let (top, bottom) = (self.axis.y(bar.from), self.axis.y(bar.to));
        let Some(slot) = slots.iter().position(|&end| end < top) else { return };
        slots[slot] = bottom;
        let x = px(self.gutter_x + 2.0 + 6.0 * super::real(slot));
        let title = format!("{}, {} to {}", bar.lines.join(" "), moment(bar.from), moment(bar.to));
        self.put(format_args!(
            "<path class=\"net\" d=\"M{x} {}V{}\"><title>{}</title></path>",
            px(top),
            px(bottom),
            escape(&title)
        ));
    }

    /// Sets a note and says where the next may begin.
    fn note(&mut self, y: f64, class: &str, lines: &[String]) -> f64 {
        let x = px(self.gutter_x + 6.0 * super::real(SLOTS_MAX) + 4.0);
        let mut y = y;
        for (i, line) in lines.iter().enumerate() {
            let class = if i == 0 { class } else { "soft" };
            self.put(format_args!(
                "<text class=\"{class}\" x=\"{x}\" y=\"{}\">{}</text>",
                px(y),
                escape(line)
            ));
            y += NOTE_ROW;
        }
        y + 5.0
    }
}

/// A cut, for its whole length.
struct NetBar {
    from: Time,
    to: Time,
    lines: Vec<String>,
}

/// Both directions of a link cut and mended together are one.
fn cuts(net: &[NetSpell]) -> Vec<NetBar> {
    let mut bars = Vec::new();
    let mut rest = net;
    while let [spell, later @ ..] = rest {
        rest = later;
        let lines = match &spell.what {
            Cut::Sides(groups) => {
                let mut lines = vec!["network split".to_owned()];
                lines.extend(wrap(&sides(groups), NOTE_CHARS));
                lines
            }
            Cut::Link(from, to) => {
                let back = NetSpell { what: Cut::Link(*to, *from), ..spell.clone() };
                let both = later.first() == Some(&back);
                if both {
                    rest = &later[1..];
                }
                vec![format!("cut {}", link(*from, *to, both))]
            }
        };
        bars.push(NetBar { from: spell.from, to: spell.to, lines });
    }
    bars
}
