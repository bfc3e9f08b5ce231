//! Where one way on is enough.
//!
//! If a message can be heard now, and whatever else may happen to its receiver before it is heard
//! could as well happen after, with the same outcome, and nobody outside can tell, then every run
//! that puts it off has an equal one that does not. Only that one is explored.
//!
//! Nothing is put off for ever: no message that is granted this may, by way of what is said in
//! answer to it and granted too, lead to itself. So there is no endless run of granted steps, and
//! between any two stretches of them everything is explored.
//!
//! What else may happen is everything that was ever said to the receiver, in any order, except
//! what a FIFO channel keeps behind the message; and its user, its timers, and, while there may be
//! crashes, its crash: a message that is neither answered nor saved is lost on who is about to
//! crash as on who has. Whether orders
//! matter is not argued but tried, on the receiver alone. New messages may turn up after a
//! decision was based on the known ones: so decisions are tried again in the end, and the whole
//! search is repeated with what has been learnt if one does not stand.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use crate::archive::{Archive, open};
use crate::code::Code;
use crate::knowledge::{self, Answer, Knowledge};
use crate::mind::{Action, LOCALS, Mind, SPEC, WEATHER};
use crate::setting::Setting;

/// More than this many states of one process are not tried.
const STATES_MAX: usize = 100;
/// After so many trials nothing more is granted: where messages never repeat, every one of them
/// would have to be tried against every other.
const TRIALS_MAX: u64 = 200_000;

/// Tries out orders of events, which are only imagined: nothing that comes of them is taken for
/// something that was said.
pub(crate) struct Oracle<'a> {
    archive: &'a Archive<'a>,
    notes: Mutex<Notes>,
}

/// A message about to be heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Case {
    local: u32,
    packet: u32,
    spec: u32,
    may_crash: bool,
}

#[derive(Default)]
struct Notes {
    /// Everything that was found to commute.
    granted: BTreeSet<Case>,
    /// What is said in answer to each message that was granted. No way round.
    answers: BTreeMap<u32, BTreeSet<u32>>,
    trials: u64,
}

impl<'a> Oracle<'a> {
    pub(crate) fn new(archive: &'a Archive<'a>) -> Self {
        Self { archive, notes: Mutex::default() }
    }

    /// Whether hearing it can be brought forward before anything else that may happen to the
    /// process, as far as is known. It is answered by `sent`.
    fn grants(&self, case: Case, sent: &[u32]) -> bool {
        let mut notes = open(&self.notes);
        let grants = notes.trials < TRIALS_MAX
            && !notes.leads_back(case.packet, sent)
            && self.tries(&mut notes, case);
        if grants {
            notes.granted.insert(case);
            notes.answers.entry(case.packet).or_default().extend(sent);
        }
        grants
    }

    /// Whether all that was granted is granted still. Forgets what it was.
    pub(crate) fn stands(&self) -> bool {
        let mut notes = open(&self.notes);
        let Notes { granted, .. } = std::mem::take(&mut *notes);
        granted.iter().all(|&case| self.tries(&mut notes, case))
    }

    fn tries(&self, notes: &mut Notes, case: Case) -> bool {
        let Case { local, packet, spec, may_crash } = case;
        let mut lore = open(&self.archive.lore);
        let setting = self.archive.setting;
        let (from, to) = lore.ends(packet);
        let others = (0..lore.extent().packets).filter(|&other| {
            let (sender, receiver) = lore.ends(other);
            let is_behind = setting.is_fifo() && sender == from;
            lore.is_said(other) && receiver == to && other != packet && !is_behind
        });
        let others = others.map(Code::Hear).collect();
        let heard = Code::Hear(packet);
        let node = to;
        let mut trial =
            Trial { lore: &mut **lore, setting, node, heard, others, may_crash, count: 0 };
        // A process may be led where it can never be, and say so.
        let commutes = catch_unwind(AssertUnwindSafe(|| trial.commutes((local, spec))));
        notes.trials += trial.count;
        commutes.unwrap_or(false)
    }
}

impl Notes {
    fn leads_back(&self, packet: u32, sent: &[u32]) -> bool {
        let mut ways: Vec<u32> = sent.to_vec();
        let mut seen = BTreeSet::new();
        while let Some(next) = ways.pop() {
            if next == packet {
                return true;
            }
            if seen.insert(next) {
                ways.extend(self.answers.get(&next).into_iter().flatten());
            }
        }
        false
    }
}

/// Whether one message can be brought forward before anything else.
struct Trial<'a, 'b> {
    lore: &'a mut (dyn Knowledge + 'b),
    setting: Setting<'a>,
    node: u32,
    heard: Code,
    /// What else the process may be told meanwhile.
    others: Vec<Code>,
    may_crash: bool,
    count: u64,
}

impl Trial<'_, '_> {
    fn commutes(&mut self, start: (u32, u32)) -> bool {
        let mut seen = BTreeSet::from([start]);
        let mut queue = VecDeque::from([start]);
        while let Some((local, spec)) = queue.pop_front() {
            if STATES_MAX < seen.len() || !self.is_quiet(local) {
                return false;
            }
            let mut events = self.own_events(local, spec);
            events.extend_from_slice(&self.others);
            self.add_crashes(local, &mut events);
            self.count += events.len() as u64;
            for event in events {
                let Some(testimony) = self.swaps(local, event) else { return false };
                let next = self.only(local, event).expect("it swaps").next;
                let ruling = match testimony {
                    0 => (spec, 0),
                    _ => {
                        let ruling = self.lore.rule(spec, testimony, knowledge::Case::Imagined);
                        (ruling.spec, ruling.breach)
                    }
                };
                if ruling.1 == 0 && seen.insert((next, ruling.0)) {
                    queue.push_back((next, ruling.0));
                }
            }
        }
        true
    }

    /// What its user and its timers may do.
    fn own_events(&mut self, local: u32, spec: u32) -> Vec<Code> {
        let mut events = Vec::new();
        let process = self.lore.portray(local);
        if !process.is_up {
            // Where timing is synchronous nobody comes back while the message is in flight.
            if self.setting.options.restarts && !self.setting.is_synchronous() {
                events.push(Code::Restart { forget: false });
                if self.setting.options.amnesia {
                    events.push(Code::Restart { forget: true });
                }
            }
            return events;
        }
        // Another's crash may give its user something to ask.
        if self.may_crash && process.suspicions {
            events.extend(self.lore.suspicions().into_iter().map(Code::Ask));
        }
        if let Some(ask) = self.lore.ask(spec, self.node)
            && process.may(ask.duty)
        {
            events.push(Code::Ask(ask.request));
        }
        // Where timing is synchronous no timer runs out while the message is in flight.
        if !self.setting.is_synchronous() {
            events.extend(process.timers.into_iter().map(Code::Fire));
        }
        events
    }

    /// While there may be crashes, this process may crash, also after an event before it has sent.
    fn add_crashes(&mut self, local: u32, events: &mut Vec<Code>) {
        if !self.may_crash {
            return;
        }
        if self.setting.options.unsent {
            let unsent: Vec<Code> = events.iter().map(|event| Code::Unsent(event.word())).collect();
            let differs =
                |&code: &Code| !self.lore.react(local, code, knowledge::Case::Imagined).is_empty();
            events.extend(unsent.into_iter().filter(differs));
        }
        if self.lore.portray(local).is_up {
            events.push(Code::Crash);
        }
    }

    /// The one way a step can go; `None` if there are several.
    fn only(&mut self, local: u32, code: Code) -> Option<Answer> {
        match self.lore.react(local, code, knowledge::Case::Imagined) {
            [only] => Some(only.clone()),
            _ => None,
        }
    }

    /// Whether hearing it here shows nobody anything.
    fn is_quiet(&mut self, local: u32) -> bool {
        let Some(answer) = self.only(local, self.heard) else { return false };
        if self.may_crash && self.setting.options.unsent && self.lore.portray(local).is_up {
            let unsent = Code::Unsent(self.heard.word());
            if !self.lore.react(local, unsent, knowledge::Case::Imagined).is_empty() {
                return false;
            }
        }
        answer.testimony == 0 && !self.lore.portray(answer.next).is_over
    }

    /// Whether both orders come to the same; if so, what the spec hears of the event.
    fn swaps(&mut self, local: u32, event: Code) -> Option<u32> {
        let first = self.only(local, event)?;
        let then = self.only(first.next, self.heard)?;
        let heard_first = self.only(local, self.heard)?;
        if let Code::Fire(timer) = event
            && !self.lore.portray(heard_first.next).timers.contains(&timer)
        {
            return None;
        }
        let event_then = self.only(heard_first.next, event)?;
        let is_same = then.next == event_then.next
            && then.testimony == 0
            && first.testimony == event_then.testimony
            && self.says_the_same([&first.sent, &then.sent], [&heard_first.sent, &event_then.sent]);
        is_same.then_some(first.testimony)
    }

    /// Whether the same is said, on a FIFO channel to each in the same order.
    fn says_the_same(&self, one: [&[u32]; 2], other: [&[u32]; 2]) -> bool {
        let (mut one, mut other) = (one.concat(), other.concat());
        if self.setting.is_fifo() {
            let to = |packet: &u32| self.lore.ends(*packet).1;
            one.sort_by_key(to);
            other.sort_by_key(to);
        } else {
            one.sort_unstable();
            other.sort_unstable();
        }
        one == other
    }
}

impl Mind<'_> {
    /// One of these actions that is enough, if there is one.
    pub(crate) fn ample(
        &mut self,
        oracle: &Oracle<'_>,
        world: &[u32],
        actions: &[Action],
    ) -> Option<usize> {
        let weather = self.weather(world[WEATHER]);
        if self.is_lossy
            || 0 < weather.losses + weather.duplicates + weather.partitions
            || weather.side != 0
        {
            return None;
        }
        actions.iter().position(|action| {
            let Code::Hear(packet) = Code::of(action.code) else { return false };
            let flat = self.flats[action.branch as usize];
            if flat.testimony != 0 || self.is_over(flat.next) {
                return false;
            }
            let local = world[LOCALS + action.node as usize];
            if !self.local(local).is_up {
                // Nobody will ever hear it.
                return !self.setting.options.restarts || self.setting.is_synchronous();
            }
            let may_crash = 0 < weather.crashes;
            self.is_granted(oracle, Case { local, packet, spec: world[SPEC], may_crash }, flat.sent)
        })
    }

    fn is_granted(&mut self, oracle: &Oracle<'_>, asked: Case, sent: (u32, u32)) -> bool {
        let Case { local, packet, spec, may_crash } = asked;
        let case = self.cases.get(local, packet).unwrap_or_else(|| {
            let case = self.case_count;
            self.case_count += 1;
            self.cases.insert(local, packet, case);
            case
        });
        let case = 2 * case + u32::from(may_crash);
        match self.grants.get(case, spec) {
            Some(granted) => granted == 1,
            None => {
                let sent = &self.sent[sent.0 as usize..sent.1 as usize];
                let granted = oracle.grants(asked, sent);
                self.grants.insert(case, spec, u32::from(granted));
                granted
            }
        }
    }
}
