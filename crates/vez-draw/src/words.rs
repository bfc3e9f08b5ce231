//! Short ways to say things: names, moments, what a user asks and is told.

use serde_json::Value;
use vez_core::Time;

pub(crate) fn name(uid: u64) -> String {
    format!("P{uid}")
}

/// `P1, P2, P5–P9`: three or more in a row are told by the first and the last.
pub(crate) fn names(uids: &[u64]) -> String {
    let mut parts = Vec::new();
    let mut rest = uids;
    while let [first, ..] = rest {
        let row =
            rest.iter().zip(*first..=u64::MAX).take_while(|&(uid, next)| *uid == next).count();
        match row {
            1 | 2 => parts.extend(rest[..row].iter().map(|&uid| name(uid))),
            _ => parts.push(format!("{}–{}", name(*first), name(rest[row - 1]))),
        }
        rest = &rest[row..];
    }
    parts.join(", ")
}

/// Milliseconds without trailing zeros.
pub(crate) fn millis(time: Time) -> String {
    let (whole, rest) = (time.as_micros() / 1_000, time.as_micros() % 1_000);
    match rest {
        0 => whole.to_string(),
        _ => format!("{whole}.{rest:03}").trim_end_matches('0').to_owned(),
    }
}

/// `5 ms`, `12.5 s`.
pub(crate) fn moment(time: Time) -> String {
    if time < Time::from_secs(10) {
        return format!("{} ms", millis(time));
    }
    // A thousandth of a second is a thousandth of a millisecond, a thousand times.
    format!("{} s", millis(Time::from_micros(time.as_micros() / 1_000)))
}

/// A span to three digits: `10.9 ms`, `5 s`.
pub(crate) fn about(span: Time) -> String {
    let micros = span.as_micros();
    let digits = micros.checked_ilog10().unwrap_or_default();
    let unit = 10_u64.pow(digits.saturating_sub(2));
    let rounded = Time::from_micros((micros + unit / 2) / unit * unit);
    if rounded < Time::from_secs(1) {
        return format!("{} ms", millis(rounded));
    }
    format!("{} s", millis(Time::from_micros(rounded.as_micros() / 1_000)))
}

/// What a user does when it makes this request, after its name.
pub(crate) fn asked(request: &Value, kind: &str, text: &str) -> String {
    match kind {
        "Acquire" => "asks to enter".to_owned(),
        "Release" => "leaves".to_owned(),
        "Withdraw" => "stops waiting".to_owned(),
        "Start" => "starts an election".to_owned(),
        "Suspect" => match request["Suspect"].as_u64() {
            Some(uid) => format!("suspects {}", name(uid)),
            None => "suspects another".to_owned(),
        },
        _ => format!("is asked {text}"),
    }
}

/// What a user is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Enters(Option<String>),
    Expelled,
    /// In this term; 0 where there are none.
    Leads(u64),
    Follows(u64, u64),
    NoLeader,
    Other(String),
}

pub(crate) fn told(node: Option<u64>, notice: &Value, kind: &str, text: &str) -> Told {
    let inner = &notice[kind];
    let term = inner["term"].as_u64().unwrap_or_default();
    match (kind, inner["id"].as_u64()) {
        ("Entered", _) => Told::Enters(match &inner["fence"] {
            Value::Null => None,
            Value::String(fence) => Some(fence.clone()),
            fence => Some(fence.to_string()),
        }),
        ("Expelled", _) => Told::Expelled,
        ("Leader", Some(leader)) if Some(leader) == node => Told::Leads(term),
        ("Leader", Some(leader)) => Told::Follows(leader, term),
        ("NoLeader", _) => Told::NoLeader,
        _ => Told::Other(text.to_owned()),
    }
}

impl Told {
    /// After the name of the one who is told.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Enters(None) => "enters".to_owned(),
            Self::Enters(Some(fence)) => format!("enters (fence {fence})"),
            Self::Expelled => "is put out".to_owned(),
            Self::Leads(0) => "declares itself leader".to_owned(),
            Self::Leads(term) => format!("declares itself leader (term {term})"),
            Self::Follows(leader, 0) => format!("follows {}", name(*leader)),
            Self::Follows(leader, term) => format!("follows {} (term {term})", name(*leader)),
            Self::NoLeader => "knows no leader".to_owned(),
            Self::Other(text) => format!("is told {text}"),
        }
    }
}

/// `P1, P2 | P3`.
pub(crate) fn sides(groups: &[Vec<u64>]) -> String {
    let sides: Vec<String> = groups.iter().map(|group| names(group)).collect();
    sides.join(" | ")
}

/// `P1–P2`, or `P1→P2` where only one direction is meant.
pub(crate) fn link(from: u64, to: u64, both: bool) -> String {
    format!("{}{}{}", name(from), if both { "–" } else { "→" }, name(to))
}

/// At most `max` characters, the last of them `…` if there were more.
pub(crate) fn shorten(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some(_) => text.chars().take(max - 1).chain(['…']).collect(),
    }
}

/// Lines of at most `width` characters, broken between words where there are any.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        while !word.is_empty() {
            let line = lines.last_mut().expect("there is always one");
            let room = width.saturating_sub(line.chars().count() + usize::from(!line.is_empty()));
            if room < word.len() && !line.is_empty() {
                lines.push(String::new());
                continue;
            }
            line.push_str(if line.is_empty() { "" } else { " " });
            line.extend(word.drain(..word.len().min(room.max(1))));
        }
    }
    lines
}

/// For XML and HTML alike; what neither may hold becomes a space.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' => out.push('\n'),
            '\u{fffe}' | '\u{ffff}' => out.push(' '),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use vez_core::Time;

    use super::{about, escape, millis, moment, names, shorten, wrap};

    #[test]
    fn rows_of_three_are_told_by_their_ends() {
        assert_eq!(names(&[1, 2, 5, 6, 7, 9]), "P1, P2, P5–P7, P9");
        assert_eq!(names(&[3, 2, 1]), "P3, P2, P1");
        assert_eq!(names(&[u64::MAX]), format!("P{}", u64::MAX));
        assert_eq!(names(&[]), "");
    }

    #[test]
    fn times_are_short() {
        assert_eq!(millis(Time::from_micros(2_530)), "2.53");
        assert_eq!(moment(Time::from_millis(5)), "5 ms");
        assert_eq!(moment(Time::from_millis(12_500)), "12.5 s");
        assert_eq!(about(Time::from_micros(10_943)), "10.9 ms");
        assert_eq!(about(Time::from_millis(4_998)), "5 s");
        assert_eq!(about(Time::ZERO), "0 ms");
    }

    #[test]
    fn long_text_is_cut_or_wrapped() {
        assert_eq!(shorten("ação", 4), "ação");
        assert_eq!(shorten("ações", 4), "açõ…");
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh i", 3), ["abc", "def", "gh", "i"]);
        assert_eq!(wrap("", 3), [""]);
    }

    #[test]
    fn nothing_breaks_out_of_markup() {
        assert_eq!(escape("<a b='\"&\u{1}"), "&lt;a b=&#39;&quot;&amp; ");
    }
}
