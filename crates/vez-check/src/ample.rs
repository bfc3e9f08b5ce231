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
//! what a FIFO channel keeps behind the message; and its user, and its timers. Whether orders
//! matter is not argued but tried, on the receiver alone. New messages may turn up after a
//! decision was based on the known ones: so decisions are tried again in the end, and the whole
//! search is repeated with what has been learnt if one does not stand.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use vez_core::{NodeId, Protocol};

use crate::code::Code;
use crate::lore::{Answer, Lore, Packet};
use crate::mind::{Action, LOCALS, Mind, SPEC, WEATHER, open};
use crate::model::{Duty, Model};

/// More than this many states of one process are not tried.
const STATES_MAX: usize = 100;
/// After so many trials nothing more is granted: where messages never repeat, every one of them
/// would have to be tried against every other.
const TRIALS_MAX: u64 = 200_000;

/// Tries out orders of events, in a lore of its own: what is only imagined must not be taken for
/// something that was said.
pub(crate) struct Oracle<'a, P: Protocol> {
    real: &'a Mutex<Lore<'a, P>>,
    model: &'a Model<'a, P>,
    inner: Mutex<Inner<'a, P>>,
}

struct Inner<'a, P: Protocol> {
    guess: Lore<'a, P>,
    /// For each real message, its number here, its sender and its receiver.
    packets: Vec<(u32, u32, u32)>,
    /// Everything that was found to commute: process state, message, spec.
    granted: BTreeSet<(u32, u32, u32)>,
    /// What is said in answer to each message that was granted, by real numbers. No way round.
    answers: BTreeMap<u32, BTreeSet<u32>>,
    trials: u64,
}

impl<'a, P: Protocol> Oracle<'a, P> {
    pub(crate) fn new(real: &'a Mutex<Lore<'a, P>>) -> Self {
        let model = open(real).model;
        let (packets, granted, answers) = (Vec::new(), BTreeSet::new(), BTreeMap::new());
        let inner = Inner { guess: Lore::new(model), packets, granted, answers, trials: 0 };
        Self { real, model, inner: Mutex::new(inner) }
    }

    /// Whether hearing `packet` can be brought forward before anything else that may happen to
    /// `local`, as far as is known. It is answered by `sent`.
    fn grants(&self, local: u32, packet: u32, spec: u32, sent: &[u32]) -> bool {
        let mut inner = open(&self.inner);
        let grants = inner.trials < TRIALS_MAX
            && !inner.leads_back(packet, sent)
            && inner.tries(self, local, packet, spec);
        if grants {
            inner.granted.insert((local, packet, spec));
            inner.answers.entry(packet).or_default().extend(sent);
        }
        grants
    }

    /// Whether all that was granted is granted still. Forgets what it was.
    pub(crate) fn stands(&self) -> bool {
        let mut inner = open(&self.inner);
        let granted = std::mem::take(&mut inner.granted);
        inner.answers.clear();
        inner.trials = 0;
        granted.iter().all(|&(local, packet, spec)| inner.tries(self, local, packet, spec))
    }
}

impl<P: Protocol> Inner<'_, P> {
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

    fn tries(&mut self, oracle: &Oracle<'_, P>, local: u32, packet: u32, spec: u32) -> bool {
        let (local, spec) = {
            let real = open(oracle.real);
            for id in self.packets.len()..real.packets.len() {
                let known: &Packet<P::Message> = real.packets.get(id as u32);
                let ends = (known.from.0, known.to.0);
                self.packets.push((self.guess.packets.id(known.clone()), ends.0, ends.1));
            }
            (real.locals.get(local).clone(), real.specs.get(spec).clone())
        };
        let node = local.node;
        let (heard, from, _) = self.packets[packet as usize];
        let is_fifo = oracle.model.is_fifo();
        let others = self.packets.iter().filter(|&&(id, sender, to)| {
            to == node.0 && id != heard && !(is_fifo && sender == from)
        });
        let others: Vec<Code> = others.map(|&(id, ..)| Code::Hear(id)).collect();
        let start = (self.guess.locals.id(local), self.guess.specs.id(spec));
        let trial = AssertUnwindSafe(|| self.commutes(node, start, Code::Hear(heard), &others));
        // A process may be led where it can never be, and say so.
        catch_unwind(trial).unwrap_or(false)
    }

    fn commutes(&mut self, node: NodeId, start: (u32, u32), heard: Code, others: &[Code]) -> bool {
        let mut seen = BTreeSet::from([start]);
        let mut queue = VecDeque::from([start]);
        while let Some((local, spec)) = queue.pop_front() {
            if STATES_MAX < seen.len() || !self.is_quiet(local, heard) {
                return false;
            }
            let mut events = self.own_events(node, local, spec);
            events.extend_from_slice(others);
            self.trials += events.len() as u64;
            for event in events {
                let Some(testimony) = self.swaps(local, heard, event) else { return false };
                let next = self.only(local, event).expect("it swaps").next;
                let ruling = match testimony {
                    0 => (spec, 0),
                    _ => {
                        let ruling = self.guess.rule(spec, testimony);
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
    fn own_events(&mut self, node: NodeId, local: u32, spec: u32) -> Vec<Code> {
        let guess = &mut self.guess;
        let mut events = Vec::new();
        let process = guess.locals.get(local).clone();
        if let Some(ask) = guess.ask(spec, node)
            && match ask.duty {
                Duty::Leave => true,
                Duty::Wish => 0 < process.wishes_left,
                Duty::Suspect => 0 < process.suspicions_left,
            }
        {
            events.push(Code::Ask(ask.request));
        }
        // Where timing is synchronous no timer runs out while the message is in flight.
        if !guess.model.is_synchronous() {
            for &(timer, _) in &process.armed {
                events.push(Code::Fire(guess.timers.id((node, timer))));
            }
        }
        events
    }

    /// The one way a step can go; `None` if there are several.
    fn only(&mut self, local: u32, code: Code) -> Option<Answer> {
        match self.guess.react(local, code) {
            [only] => Some(only.clone()),
            _ => None,
        }
    }

    /// Whether hearing it here shows nobody anything.
    fn is_quiet(&mut self, local: u32, heard: Code) -> bool {
        let Some(answer) = self.only(local, heard) else { return false };
        let next = self.guess.locals.get(answer.next);
        let epoch = next.process().map_or(0, P::epoch);
        answer.testimony == 0 && epoch <= self.guess.model.options.epoch_max
    }

    /// Whether both orders come to the same; if so, what the spec hears of the event.
    fn swaps(&mut self, local: u32, heard: Code, event: Code) -> Option<u32> {
        let first = self.only(local, event)?;
        let then = self.only(first.next, heard)?;
        let heard_first = self.only(local, heard)?;
        if let Code::Fire(timer) = event {
            let (_, timer) = *self.guess.timers.get(timer);
            let after = self.guess.locals.get(heard_first.next);
            if !after.armed.iter().any(|&(armed, _)| armed == timer) {
                return None;
            }
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
        if self.guess.model.is_fifo() {
            let to = |packet: &u32| self.guess.packets.get(*packet).to;
            one.sort_by_key(to);
            other.sort_by_key(to);
        } else {
            one.sort_unstable();
            other.sort_unstable();
        }
        one == other
    }
}

impl<P: Protocol> Mind<'_, P> {
    /// One of these actions that is enough, if there is one.
    pub(crate) fn ample(
        &mut self,
        oracle: &Oracle<'_, P>,
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
                return !self.model.options.restarts;
            }
            if 0 < weather.crashes {
                return false;
            }
            self.is_granted(oracle, (local, packet, world[SPEC]), flat.sent)
        })
    }

    fn is_granted(
        &mut self,
        oracle: &Oracle<'_, P>,
        (local, packet, spec): (u32, u32, u32),
        sent: (u32, u32),
    ) -> bool {
        let case = self.cases.get(local, packet).unwrap_or_else(|| {
            let case = self.case_count;
            self.case_count += 1;
            self.cases.insert(local, packet, case);
            case
        });
        match self.grants.get(case, spec) {
            Some(granted) => granted == 1,
            None => {
                let sent = &self.sent[sent.0 as usize..sent.1 as usize];
                let granted = oracle.grants(local, packet, spec, sent);
                self.grants.insert(case, spec, u32::from(granted));
                granted
            }
        }
    }
}
