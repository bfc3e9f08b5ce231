//! Many traces made one, in an order in which it can have happened: what a process knew comes
//! before what it did, and where nobody knew of each other, the clocks on the wall decide.

use serde_json::json;
use vez_core::Time;

use crate::log::Line;

/// The events of all, in order, at moments that never run backwards.
#[derive(Clone, Debug, Default)]
pub struct Merged {
    pub lines: Vec<Line>,
    /// How often no order agreed with what the processes knew: the traces contradict each other.
    pub contradictions: u64,
}

/// Merges the events of the processes `ids` (in index order) and of whoever put faults into them.
pub fn merge(events: Vec<Line>, ids: &[u64]) -> Merged {
    let mut merged = Loom::default().weave(events, ids);
    end_pauses(&mut merged.lines);
    merged
}

/// Merges a trace that still grows, a stretch at a time.
#[derive(Clone, Debug, Default)]
pub struct Loom {
    /// When the first thing happened.
    first: Option<Time>,
    /// When the last thing did, from then on.
    now: Time,
}

impl Loom {
    /// Merges what happened after everything merged before.
    pub fn weave(&mut self, events: Vec<Line>, ids: &[u64]) -> Merged {
        let Some(least) = events.iter().map(|line| line.at).min() else {
            return Merged::default();
        };
        let first = *self.first.get_or_insert(least);
        Weave::new(lanes(events, ids)).run(first, &mut self.now)
    }

    /// A moment, as what was merged counts it.
    pub fn since_first(&self, at: Time) -> Time {
        self.first.map_or(Time::ZERO, |first| at.max(first) - first)
    }
}

/// A pause is written down when it begins; how long it was shows when it is over.
fn end_pauses(lines: &mut [Line]) {
    for index in 0..lines.len() {
        let Line { at, node, ref event, .. } = lines[index];
        if lines[index].kind() != "pause" || !event["until_ms"].is_null() {
            continue;
        }
        let ends = |line: &&Line| line.node == node && matches!(line.kind(), "resume" | "crash");
        let end = lines[index..].iter().find(ends).or(lines.last()).map_or(at, |line| line.at);
        let begun = event["t_ms"].as_f64().unwrap_or_default();
        lines[index].event["until_ms"] = (begun + (end - at).as_millis_f64()).into();
    }
}

fn lanes(events: Vec<Line>, ids: &[u64]) -> Vec<Vec<Line>> {
    let mut lanes: Vec<Vec<Line>> = vec![Vec::new(); ids.len() + 1];
    let mut crashes: Vec<Vec<Line>> = vec![Vec::new(); ids.len()];
    for line in events {
        let place = line.node.and_then(|node| ids.iter().position(|&id| id == node));
        match place {
            Some(place) if line.life.is_some() => lanes[place].push(line),
            Some(place) if line.kind() == "crash" => crashes[place].push(line),
            _ => lanes[ids.len()].push(line),
        }
    }
    lanes[ids.len()].sort_by_key(|line| line.at);
    for (lane, crashes) in lanes.iter_mut().zip(crashes) {
        // Lives one after the other, each in the order it was written.
        lane.sort_by_key(|line| line.life);
        *lane = with_crashes(std::mem::take(lane), crashes);
    }
    lanes
}

/// Between two lives there is a crash: where it was noted, or right after the last thing the
/// earlier one did. Another at the end, if it was noted.
fn with_crashes(lane: Vec<Line>, mut crashes: Vec<Line>) -> Vec<Line> {
    crashes.sort_by_key(|line| line.at);
    let mut whole: Vec<Line> = Vec::with_capacity(lane.len() + crashes.len());
    let mut crashes = crashes.into_iter().peekable();
    for mut line in lane {
        let last = whole.last().filter(|last| last.life != line.life);
        if let Some(last) = last {
            let mut crash = Line {
                at: last.at,
                node: line.node,
                life: None,
                clock: Vec::new(),
                event: json!({ "event": "crash" }),
            };
            while let Some(noted) = crashes.next_if(|noted| noted.at <= line.at) {
                crash.at = crash.at.max(noted.at);
            }
            if line.kind() == "boot" {
                // Whoever comes back without a word of the past has none.
                line.event["event"] = "restart".into();
                line.event["forgot"] = true.into();
            }
            whole.push(crash);
        }
        whole.push(line);
    }
    whole.extend(crashes.last());
    whole
}

struct Weave {
    lanes: Vec<Vec<Line>>,
    /// For each lane and place: its own count there, or at the next place that has one.
    own: Vec<Vec<u64>>,
    /// The next of each lane.
    heads: Vec<usize>,
}

impl Weave {
    fn new(lanes: Vec<Vec<Line>>) -> Self {
        let own = |(index, lane): (usize, &Vec<Line>)| {
            let mut next = u64::MAX;
            let mut own = vec![0; lane.len()];
            for (place, line) in lane.iter().enumerate().rev() {
                next = line.clock.get(index).copied().unwrap_or(next);
                own[place] = next;
            }
            own
        };
        let own = lanes.iter().enumerate().map(own).collect();
        Self { heads: vec![0; lanes.len()], own, lanes }
    }

    fn run(mut self, first: Time, now: &mut Time) -> Merged {
        let mut merged = Merged::default();
        while let Some((lane, is_causal)) = self.next() {
            let mut line = self.lanes[lane][self.heads[lane]].clone();
            self.heads[lane] += 1;
            merged.contradictions += u64::from(!is_causal);
            *now = (*now).max(line.at.max(first) - first);
            line.at = *now;
            merged.lines.push(line);
        }
        merged
    }

    /// The lane whose head comes next, and whether nothing that head knows of is still to come.
    fn next(&self) -> Option<(usize, bool)> {
        let open = || (0..self.lanes.len()).filter(|&i| self.heads[i] < self.lanes[i].len());
        let at = |&lane: &usize| self.lanes[lane][self.heads[lane]].at;
        let ready = open().filter(|&lane| self.is_ready(lane)).min_by_key(at);
        let lane = ready.or_else(|| open().min_by_key(at))?;
        Some((lane, ready.is_some()))
    }

    fn is_ready(&self, lane: usize) -> bool {
        let knows = &self.lanes[lane][self.heads[lane]].clock;
        knows.iter().enumerate().filter(|&(other, _)| other != lane).all(|(other, &known)| {
            let next = self.own.get(other).and_then(|own| own.get(self.heads[other]));
            next.is_none_or(|&next| known < next)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, merge};
    use proptest::prelude::*;
    use serde_json::json;
    use vez_core::Time;

    fn line(at: u64, node: u64, life: u64, clock: &[u64], event: &str) -> Line {
        let (life, clock) = (Some(life), clock.to_vec());
        let event = json!({ "event": event });
        Line { at: Time::from_millis(at), node: Some(node), life, clock, event }
    }

    fn told(lines: Vec<Line>) -> Vec<String> {
        let merged = merge(lines, &[1, 2]);
        assert_eq!(merged.contradictions, 0);
        let tell = |line: &Line| {
            format!("{} {} {}", line.at.as_millis_f64(), line.node.unwrap_or(0), line.kind())
        };
        merged.lines.iter().map(tell).collect()
    }

    #[test]
    fn who_heard_comes_after_who_said_whatever_the_clocks_say() {
        // The second's clock is a second behind.
        let lines = vec![
            line(1_000, 1, 5, &[1, 0], "boot"),
            line(1_010, 1, 5, &[2, 0], "send"),
            line(1, 2, 5, &[0, 1], "boot"),
            line(11, 2, 5, &[2, 2], "receive"),
            line(1_020, 1, 5, &[3, 2], "receive"),
        ];
        let expected =
            ["0 2 boot", "999 1 boot", "1009 1 send", "1009 2 receive", "1019 1 receive"];
        assert_eq!(told(lines), expected);
    }

    #[test]
    fn who_comes_back_crashed_after_its_last_deed_unless_somebody_saw_when() {
        let back = |at| {
            vec![
                line(1, 1, 5, &[1, 0], "boot"),
                line(9, 1, 6, &[50, 0], "boot"),
                line(at, 2, 5, &[0, 1], "boot"),
            ]
        };
        let expected = ["0 1 boot", "0 1 crash", "4 2 boot", "8 1 restart"];
        assert_eq!(told(back(5)), expected);
        let mut seen = back(5);
        seen.push(Line { life: None, clock: Vec::new(), ..line(7, 1, 0, &[], "crash") });
        assert_eq!(told(seen), ["0 1 boot", "4 2 boot", "6 1 crash", "8 1 restart"]);
    }

    #[test]
    fn who_never_comes_back_is_down_only_if_somebody_saw_it() {
        let mut lines = vec![line(1, 1, 5, &[1, 0], "boot"), line(2, 2, 5, &[0, 1], "boot")];
        assert_eq!(told(lines.clone()), ["0 1 boot", "1 2 boot"]);
        lines.push(Line { life: None, clock: Vec::new(), ..line(3, 2, 0, &[], "crash") });
        assert_eq!(told(lines).last().unwrap(), "2 2 crash");
    }

    #[test]
    fn a_pause_lasts_until_it_is_over_or_its_process_is() {
        let fault =
            |at, node, what| Line { life: None, clock: vec![], ..line(at, node, 0, &[], what) };
        let mut lines = vec![line(1, 1, 5, &[1, 0], "boot"), line(9, 2, 5, &[0, 1], "boot")];
        lines.extend([fault(2, 1, "pause"), fault(5, 1, "resume"), fault(6, 1, "pause")]);
        let merged = merge(lines, &[1, 2]);
        let ends: Vec<_> =
            merged.lines.iter().filter_map(|line| line.event["until_ms"].as_f64()).collect();
        assert_eq!(ends, [3.0, 3.0]);
    }

    #[test]
    fn what_is_merged_bit_by_bit_is_merged_as_at_once() {
        let lines: Vec<Line> = (0..40)
            .map(|at| line(at + 3, 1 + at % 2, 5, &[at / 2 + 1 - at % 2, at.div_ceil(2)], "boot"))
            .collect();
        let whole = merge(lines.clone(), &[1, 2]).lines;
        let mut loom = super::Loom::default();
        let parts = lines.chunks(7).flat_map(|part| loom.weave(part.to_vec(), &[1, 2]).lines);
        assert_eq!(parts.collect::<Vec<_>>(), whole);
        assert_eq!(loom.since_first(Time::from_millis(8)), Time::from_millis(5));
    }

    proptest! {
        /// Processes step, or hear what another knew a moment ago; their clocks are off by
        /// anything.
        #[test]
        fn nothing_comes_before_what_it_knows_of(
            skews in prop::collection::vec(0..1_000_u64, 3),
            deeds in prop::collection::vec((0..3_usize, 0..3_usize), 1..60),
        ) {
            let mut clocks = vec![vec![0_u64; 3]; 3];
            let mut lines = Vec::new();
            for (moment, &(who, from)) in deeds.iter().enumerate() {
                let heard = clocks[from].clone();
                clocks[who].iter_mut().zip(heard).for_each(|(mine, its)| *mine = its.max(*mine));
                clocks[who][who] += 1;
                let at = skews[who] + moment as u64;
                lines.push(line(at, who as u64, 1, &clocks[who], "receive"));
            }
            let merged = merge(lines, &[0, 1, 2]);
            prop_assert_eq!(merged.contradictions, 0);
            prop_assert_eq!(merged.lines.len(), deeds.len());
            for (index, earlier) in merged.lines.iter().enumerate() {
                for later in &merged.lines[index + 1..] {
                    prop_assert!(earlier.at <= later.at);
                    let is_backwards = later.clock != earlier.clock
                        && later.clock.iter().zip(&earlier.clock).all(|(l, e)| l <= e);
                    prop_assert!(!is_backwards, "{:?} before {:?}", earlier.clock, later.clock);
                }
            }
        }
    }
}
