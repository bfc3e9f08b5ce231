//! When each revision was made, as well as its age deserves.
//!
//! A mark for every revision would grow for ever. What is older may be known less exactly: a mark
//! is let go when those beside it say the same to within a sixty-fourth of its age. A few thousand
//! marks then reach back for years, however many revisions and locks there were.

use std::time::Duration;

/// Errors are at most the age divided by this.
const EXACTNESS: u32 = 64;
/// So many new ones before old ones are let go.
const SLACK: usize = 4096;

#[derive(Debug)]
pub(crate) struct Times {
    /// Revisions and when they were made, both growing; never empty.
    marks: Vec<(i64, Duration)>,
    /// How many there may be before some are let go.
    most: usize,
}

impl Times {
    /// What was made up to this revision was made before `now`; nobody knows when.
    pub(crate) fn new(revision: i64, now: Duration) -> Self {
        Self { marks: vec![(revision, now)], most: SLACK }
    }

    pub(crate) fn mark(&mut self, revision: i64, now: Duration) {
        if self.marks.last().is_some_and(|(last, _)| revision <= *last) {
            return;
        }
        self.marks.push((revision, now));
        if self.most < self.marks.len() {
            self.thin(now);
            self.most = self.marks.len() + SLACK;
        }
    }

    /// When a revision was made; and whether that is known, or only that it was not later.
    pub(crate) fn when(&self, revision: i64) -> (Duration, bool) {
        // What was made lately is asked for most: it is looked for from the end, in ever longer
        // steps.
        let (mut from, mut step) = (self.marks.len(), 1);
        while 0 < from && revision < self.marks[from - 1].0 {
            from = from.saturating_sub(step);
            step *= 2;
        }
        let from = from.saturating_sub(1);
        let after = from + self.marks[from..].partition_point(|(marked, _)| *marked <= revision);
        let (_, at) = self.marks[after.saturating_sub(1)];
        (at, self.marks[0].0 < revision)
    }

    fn thin(&mut self, now: Duration) {
        let mut kept: Vec<(i64, Duration)> = Vec::with_capacity(self.marks.len());
        for (index, &(revision, at)) in self.marks.iter().enumerate() {
            let is_needless = match (kept.last(), self.marks.get(index + 1)) {
                // The first two say from where on anything is known.
                (Some((_, before)), Some((_, after))) if 1 < index => {
                    after.saturating_sub(*before) <= now.saturating_sub(at) / EXACTNESS
                }
                _ => false,
            };
            if !is_needless {
                kept.push((revision, at));
            }
        }
        self.marks = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_revision_keeps_its_time_to_within_a_part_of_its_age() {
        let mut times = Times::new(10, Duration::ZERO);
        let mut truth = Vec::new();
        let mut now = Duration::ZERO;
        for step in 0..400_000_u64 {
            // Bursts, and pauses of very different lengths.
            let pause = if step % 997 == 0 { 1 << (step % 37) } else { 20 };
            now += Duration::from_micros(pause);
            let revision = 11 + step.cast_signed();
            times.mark(revision, now);
            truth.push((revision, now));
        }
        assert!(times.marks.len() < 3 * SLACK, "{} marks", times.marks.len());
        for (revision, at) in truth {
            let (said, is_known) = times.when(revision);
            let error = at.abs_diff(said);
            let age = now.saturating_sub(at);
            assert!(is_known && error <= age / (EXACTNESS - 1), "{revision}: {error:?} of {age:?}");
        }
    }

    #[test]
    fn of_what_was_before_only_that_is_said() {
        let mut times = Times::new(10, Duration::from_secs(5));
        times.mark(11, Duration::from_secs(7));
        assert_eq!(times.when(3), (Duration::from_secs(5), false));
        assert_eq!(times.when(10), (Duration::from_secs(5), false));
        assert_eq!(times.when(11), (Duration::from_secs(7), true));
        assert_eq!(times.when(12), (Duration::from_secs(7), true));
    }
}
