//! What a holder says of itself in its key, for others to read: `web-1:4242 since
//! 2026-03-01T10:00:00Z`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Who holds a lock, and since when by its own clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) who: String,
    /// As it was written.
    pub(crate) since: String,
}

const SINCE: &str = " since ";

impl Holder {
    /// This process, as of now.
    pub(crate) fn now() -> Self {
        Self { who: who_am_i(), since: written(since_epoch().as_secs()) }
    }

    /// Reads what a holder wrote; nothing if it is something else.
    pub(crate) fn parse(value: &[u8]) -> Option<Self> {
        let (who, since) = std::str::from_utf8(value).ok()?.rsplit_once(SINCE)?;
        read(since)?;
        Some(Self { who: who.to_owned(), since: since.to_owned() })
    }

    pub(crate) fn value(&self) -> String {
        format!("{}{SINCE}{}", self.who, self.since)
    }

    /// How long ago that was, by this machine's clock.
    pub(crate) fn age(&self) -> Option<Duration> {
        let since = Duration::from_secs(read(&self.since)?);
        Some(since_epoch().saturating_sub(since))
    }
}

/// `host:pid`.
pub(crate) fn who_am_i() -> String {
    let system = rustix::system::uname();
    format!("{}:{}", system.nodename().to_string_lossy(), std::process::id())
}

/// A length of time as people say it: `42s`, `3m 5s`, `2h 10m`, `5d 3h`.
pub(crate) fn age(age: Duration) -> String {
    let seconds = age.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {}s", seconds % 60),
        (0, _, _) => format!("{hours}h {}m", minutes % 60),
        _ => format!("{days}d {}h", hours % 24),
    }
}

#[expect(clippy::disallowed_methods, reason = "people read it; nothing is decided by it")]
fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Seconds since 1970 as a date in UTC.
fn written(seconds: u64) -> String {
    let (mut day, second) = (seconds / 86400, seconds % 86400);
    let mut year = 1970;
    while day >= days_in(year) {
        day -= days_in(year);
        year += 1;
    }
    let mut month = 1;
    while day >= days_of(year, month) {
        day -= days_of(year, month);
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", day + 1)
}

/// And back.
fn read(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let sane = (1970..10_000).contains(&year) && (1..=12).contains(&month);
    if !sane || !(1..=31).contains(&day) {
        return None;
    }
    let days: u64 = (1970..year).map(days_in).sum();
    let days = days + (1..month).map(|month| days_of(year, month)).sum::<u64>() + day - 1;
    (hour < 24 && minute < 60 && second < 61)
        .then_some(days * 86400 + hour * 3600 + minute * 60 + second)
}

fn numbers(text: &str, mark: char) -> Option<[u64; 3]> {
    let numbers: Option<Vec<u64>> = text.split(mark).map(|part| part.parse().ok()).collect();
    numbers?.try_into().ok()
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_in(year: u64) -> u64 {
    365 + u64::from(is_leap(year))
}

fn days_of(year: u64, month: u64) -> u64 {
    match month {
        2 => 28 + u64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
