//! Looking things up: first in one's own notes, then in the shared lore.

use vez_core::{NodeId, Protocol, Time};

use crate::code::Code;
use crate::lore::{Ask, Packet, Ruling, Weather};
use crate::mind::{Change, Flat, LocalFacts, Mind, NONE, QueueFacts, open};

impl<P: Protocol> Mind<'_, P> {
    /// The ways `word` can go for `local`: a range of `flats`.
    #[inline]
    pub(crate) fn answers(&mut self, local: u32, word: u32) -> (u32, u32) {
        match self.reactions.get(local, word) {
            Some(index) => self.answers[index as usize],
            None => self.learn_answers(local, word),
        }
    }

    #[cold]
    fn learn_answers(&mut self, local: u32, word: u32) -> (u32, u32) {
        let first = self.flats.len() as u32;
        let mut lore = open(self.lore);
        for answer in lore.react(local, Code::of(word)) {
            let start = self.sent.len() as u32;
            self.sent.extend(&answer.sent);
            self.flats.push(Flat {
                next: answer.next,
                testimony: answer.testimony,
                sent: (start, self.sent.len() as u32),
                unexpected: answer.unexpected,
                delta: self.becoming(local, answer.next),
            });
        }
        drop(lore);
        let range = (first, self.flats.len() as u32);
        self.reactions.insert(local, word, self.answers.len() as u32);
        self.answers.push(range);
        range
    }

    #[inline]
    pub(crate) fn ruling(&mut self, spec: u32, testimony: u32) -> Ruling {
        match self.rulings.get(spec, testimony) {
            Some(index) => self.ruled[index as usize],
            None => {
                let ruling = open(self.lore).rule(spec, testimony);
                self.rulings.insert(spec, testimony, self.ruled.len() as u32);
                self.ruled.push(ruling);
                ruling
            }
        }
    }

    /// What a run that rests here breaks, plus one; 0 if nothing.
    pub(crate) fn at_rest(&mut self, spec: u32) -> u32 {
        let index = spec as usize;
        if self.rests.len() <= index {
            self.rests.resize(index + 1, None);
        }
        *self.rests[index].get_or_insert_with(|| open(self.lore).at_rest(spec))
    }

    #[inline]
    pub(crate) fn ask(&mut self, spec: u32, node: u32) -> Option<Ask> {
        let index = spec as usize * self.n + node as usize;
        if self.asks.len() <= index {
            let mut lore = open(self.lore);
            for spec in self.asks.len() / self.n..lore.specs.len() {
                for node in 0..self.n as u32 {
                    self.asks.push(lore.ask(spec as u32, NodeId(node)));
                }
            }
        }
        self.asks[index]
    }

    #[inline]
    pub(crate) fn local(&mut self, id: u32) -> LocalFacts {
        if self.locals.len() <= id as usize {
            self.learn_locals();
        }
        self.locals[id as usize]
    }

    #[cold]
    fn learn_locals(&mut self) {
        let mut lore = open(self.lore);
        for id in self.locals.len()..lore.locals.len() {
            let local = lore.locals.get(id as u32);
            let (node, armed) = (local.node, local.armed.clone());
            let ready = armed.iter().filter(|(_, span)| span.earliest == Time::ZERO);
            let ready: Vec<P::Timer> = ready.map(|&(timer, _)| timer).collect();
            let moments = armed.iter().flat_map(|(_, span)| [span.earliest, span.latest]);
            let facts = LocalFacts {
                is_up: local.process().is_some(),
                wishes: 0 < local.wishes_left,
                suspicions: 0 < local.suspicions_left,
                is_over: local
                    .process()
                    .is_some_and(|process| self.model.options.epoch_max < process.epoch()),
                timers: (self.timers.len() as u32, (self.timers.len() + ready.len()) as u32),
                must_fire: armed.iter().any(|(_, span)| span.latest == Time::ZERO),
                next_moment: moments.filter(|&moment| Time::ZERO < moment).min(),
            };
            self.timers.extend(ready.into_iter().map(|timer| lore.timers.id((node, timer))));
            self.locals.push(facts);
        }
    }

    #[inline]
    pub(crate) fn packet(&mut self, id: u32) -> (u32, u32) {
        if self.packets.len() <= id as usize {
            let lore = open(self.lore);
            for id in self.packets.len()..lore.packets.len() {
                let packet = lore.packets.get(id as u32);
                self.packets.push((packet.from.0, packet.to.0));
            }
        }
        self.packets[id as usize]
    }

    #[inline]
    pub(crate) fn queue(&mut self, id: u32) -> QueueFacts {
        if self.queues.len() <= id as usize {
            self.learn_queues();
        }
        self.queues[id as usize]
    }

    #[cold]
    fn learn_queues(&mut self) {
        let mut lore = open(self.lore);
        let mut id = self.queues.len();
        // What is left of a queue is a queue, and may be new itself.
        while id < lore.queues.len() {
            let (head, rest) = {
                let packets = lore.queues.get(id as u32);
                (packets[0], packets[1..].to_vec())
            };
            let rest = if rest.is_empty() { NONE } else { lore.queues.id(rest) };
            let Packet { from, to, .. } = lore.packets.get(head);
            self.queues.push(QueueFacts { head, rest, ends: (from.0, to.0) });
            id += 1;
        }
    }

    /// The queue after `packet` joined it; `NONE` is the empty queue.
    pub(crate) fn push(&mut self, queue: u32, packet: u32) -> u32 {
        if let Some(longer) = self.pushes.get(queue, packet) {
            return longer;
        }
        let mut lore = open(self.lore);
        let mut packets = match queue {
            NONE => Vec::new(),
            queue => lore.queues.get(queue).clone(),
        };
        packets.push(packet);
        let longer = lore.queues.id(packets);
        drop(lore);
        self.pushes.insert(queue, packet, longer);
        longer
    }

    #[inline]
    pub(crate) fn weather(&mut self, id: u32) -> Weather {
        if self.weathers.len() <= id as usize {
            let lore = open(self.lore);
            for id in self.weathers.len()..lore.weathers.len() {
                self.weathers.push(*lore.weathers.get(id as u32));
            }
        }
        self.weathers[id as usize]
    }

    /// The weather after a change.
    pub(crate) fn change(&mut self, id: u32, change: Change) -> u32 {
        let key = match change {
            Change::Crash => 0,
            Change::Loss => 1,
            Change::Duplicate => 2,
            Change::Heal => 3,
            Change::Split(side) => 4 + side,
        };
        if let Some(changed) = self.changes.get(id, key) {
            return changed;
        }
        let mut weather = self.weather(id);
        match change {
            Change::Crash => weather.crashes -= 1,
            Change::Loss => weather.losses -= 1,
            Change::Duplicate => weather.duplicates -= 1,
            Change::Heal => weather.side = 0,
            Change::Split(side) => {
                weather.partitions -= 1;
                weather.side = u64::from(side);
            }
        }
        let changed = open(self.lore).weathers.id(weather);
        self.changes.insert(id, key, changed);
        changed
    }

    /// Whether a process of this world has gone beyond the epochs that are explored.
    pub(crate) fn is_over(&mut self, local: u32) -> bool {
        self.local(local).is_over
    }
}
