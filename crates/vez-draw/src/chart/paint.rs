//! What a stroke or a text is, carried through plotters in place of a colour.

use plotters::style::RGBColor;

/// Everything that is painted, by its meaning. Numbers are those of series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    Grid,
    Axis,
    Title,
    Subtitle,
    TickLabel,
    AxisLabel,
    MarkLabel,
    EndLabel,
    Mark,
    Line(u8),
    Band(u8),
    Bar(u8),
    Dot(u8),
    Leader(u8),
}

/// As many as are told apart; the next ones differ from the first in dashes and points.
const COLOURS: u8 = 7;
const DASHES: u8 = 4;

impl Paint {
    pub(super) fn colour(self) -> RGBColor {
        let (role, number) = match self {
            Self::Grid => (0, 0),
            Self::Axis => (1, 0),
            Self::Title => (2, 0),
            Self::Subtitle => (3, 0),
            Self::TickLabel => (4, 0),
            Self::AxisLabel => (5, 0),
            Self::MarkLabel => (6, 0),
            Self::EndLabel => (7, 0),
            Self::Mark => (8, 0),
            Self::Line(number) => (9, number),
            Self::Band(number) => (10, number),
            Self::Bar(number) => (11, number),
            Self::Dot(number) => (12, number),
            Self::Leader(number) => (13, number),
        };
        RGBColor(role, number, 0)
    }

    pub(super) fn of_colour((role, number, _): (u8, u8, u8)) -> Self {
        let plain = [
            Self::Grid,
            Self::Axis,
            Self::Title,
            Self::Subtitle,
            Self::TickLabel,
            Self::AxisLabel,
            Self::MarkLabel,
            Self::EndLabel,
            Self::Mark,
        ];
        match role {
            9 => Self::Line(number),
            10 => Self::Band(number),
            11 => Self::Bar(number),
            12 => Self::Dot(number),
            13 => Self::Leader(number),
            role => plain.get(usize::from(role)).copied().unwrap_or(Self::Mark),
        }
    }

    /// The classes that `style.css` gives a look.
    pub(super) fn class(self) -> String {
        match self {
            Self::Grid => "grid".to_owned(),
            Self::Axis => "axis".to_owned(),
            Self::Title => "title".to_owned(),
            Self::Subtitle => "subtitle".to_owned(),
            Self::TickLabel => "tick".to_owned(),
            Self::AxisLabel => "axis-label".to_owned(),
            Self::MarkLabel => "mark-label".to_owned(),
            Self::EndLabel => "end-label".to_owned(),
            Self::Mark => "mark".to_owned(),
            Self::Line(number) => format!("line s{} d{}", number % COLOURS, number % DASHES),
            Self::Band(number) => format!("band f{}", number % COLOURS),
            Self::Bar(number) => format!("bar s{}", number % COLOURS),
            Self::Dot(number) => format!("dot f{}", number % COLOURS),
            Self::Leader(number) => format!("leader s{}", number % COLOURS),
        }
    }

    /// Of a text, in pixels; the same as in `style.css`.
    pub(super) fn size(self) -> f64 {
        match self {
            Self::Title => 18.0,
            Self::Subtitle | Self::EndLabel | Self::AxisLabel => 12.0,
            _ => 11.0,
        }
    }

    /// How wide a text is at most, whatever sans-serif font the reader has.
    pub(super) fn width(self, text: &str) -> f64 {
        let em = if self == Self::Title { 0.64 } else { 0.6 };
        let chars = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        f64::from(chars) * self.size() * em
    }
}

#[cfg(test)]
mod tests {
    use super::Paint;

    #[test]
    fn paint_survives_the_way_through_plotters() {
        let numbered = [Paint::Line, Paint::Band, Paint::Bar, Paint::Dot, Paint::Leader];
        let plain = [Paint::Grid, Paint::Axis, Paint::Title, Paint::Subtitle, Paint::TickLabel];
        let more = [Paint::AxisLabel, Paint::MarkLabel, Paint::EndLabel, Paint::Mark];
        for paint in plain.into_iter().chain(more).chain(numbered.map(|of| of(5))) {
            let colour = paint.colour();
            assert_eq!(Paint::of_colour((colour.0, colour.1, colour.2)), paint);
        }
    }
}
