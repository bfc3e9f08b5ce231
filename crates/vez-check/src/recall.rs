//! Looking things up: first in one's own notes, then in the shared archive.

use crate::archive::{Weather, open};
use crate::code::Code;
use crate::knowledge::{Ask, Case, Ruling};
use crate::mind::{Change, Flat, LocalFacts, Mind, NONE, OF_ITEM, OF_SPEC, QueueFacts};

impl Mind<'_> {
    /// The ways `word` can go for `local`: a range of `flats`.
    #[inline]
    pub(crate) fn answers(&mut self, local: u32, word: u32) -> (u32, u32) {
        match self.reactions.get(local, word) {
            Some(range) => range,
            None => self.learn_answers(local, word),
        }
    }

    #[cold]
    fn learn_answers(&mut self, local: u32, word: u32) -> (u32, u32) {
        let first = self.flats.len() as u32;
        let code = Code::of(word);
        let heard = match code.bare() {
            Code::Hear(packet) => self.part(OF_ITEM, packet),
            _ => 0,
        };
        let mut lore = open(&self.archive.lore);
        for answer in lore.react(local, code, Case::Real) {
            let start = self.sent.len() as u32;
            self.sent.extend(&answer.sent);
            let delta = self.becoming(local, answer.next);
            let said = answer.sent.iter().map(|&packet| self.part(OF_ITEM, packet));
            self.flats.push(Flat {
                delta,
                whole: said.fold(delta.wrapping_sub(heard), u64::wrapping_add),
                next: answer.next,
                testimony: answer.testimony,
                sent: (start, self.sent.len() as u32),
                unexpected: answer.unexpected,
            });
        }
        if let Some(symmetry) = &self.symmetry {
            symmetry.react(&mut **lore, local, code);
        }
        drop(lore);
        let range = (first, self.flats.len() as u32);
        self.reactions.insert(local, word, range);
        range
    }

    /// What the spec makes of what it hears, and by how much that changes the fingerprint.
    #[inline]
    pub(crate) fn ruling(&mut self, spec: u32, testimony: u32) -> (Ruling, u64) {
        match self.rulings.get(spec, testimony) {
            Some(index) => self.ruled[index as usize],
            None => {
                let mut lore = open(&self.archive.lore);
                let ruling = lore.rule(spec, testimony, Case::Real);
                if let Some(symmetry) = &self.symmetry {
                    symmetry.rule(&mut **lore, spec, testimony);
                }
                drop(lore);
                let change = self.part(OF_SPEC, ruling.spec);
                let change = change.wrapping_sub(self.part(OF_SPEC, spec));
                self.rulings.insert(spec, testimony, self.ruled.len() as u32);
                self.ruled.push((ruling, change));
                (ruling, change)
            }
        }
    }

    /// What a run that rests here breaks, plus one; 0 if nothing.
    pub(crate) fn at_rest(&mut self, spec: u32) -> u32 {
        let index = spec as usize;
        if self.rests.len() <= index {
            self.rests.resize(index + 1, None);
        }
        *self.rests[index].get_or_insert_with(|| open(&self.archive.lore).at_rest(spec))
    }

    #[inline]
    pub(crate) fn ask(&mut self, spec: u32, node: u32) -> Option<Ask> {
        let index = spec as usize * self.n + node as usize;
        if self.asks.len() <= index {
            let mut lore = open(&self.archive.lore);
            for spec in (self.asks.len() / self.n) as u32..lore.extent().specs {
                for node in 0..self.n as u32 {
                    self.asks.push(lore.ask(spec, node));
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
        let mut lore = open(&self.archive.lore);
        for id in self.locals.len() as u32..lore.extent().locals {
            let portrait = lore.portray(id);
            let first = self.timers.len() as u32;
            self.timers.extend(portrait.timers);
            self.locals.push(LocalFacts {
                is_up: portrait.is_up,
                wishes: portrait.wishes,
                suspicions: portrait.suspicions,
                withdrawals: portrait.withdrawals,
                is_over: portrait.is_over,
                timers: (first, self.timers.len() as u32),
                must_fire: portrait.must_fire,
                next_moment: portrait.next_moment,
            });
        }
    }

    #[inline]
    pub(crate) fn packet(&mut self, id: u32) -> (u32, u32) {
        if self.packets.len() <= id as usize {
            self.learn_packets();
        }
        self.packets[id as usize]
    }

    #[cold]
    fn learn_packets(&mut self) {
        let lore = open(&self.archive.lore);
        for id in self.packets.len() as u32..lore.extent().packets {
            self.packets.push(lore.ends(id));
        }
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
        let mut queues = open(&self.archive.queues);
        let mut id = self.queues.len();
        // What is left of a queue is a queue, and may be new itself.
        while id < queues.len() {
            let (head, rest) = {
                let packets = queues.get(id as u32);
                (packets[0], packets[1..].to_vec())
            };
            let rest = if rest.is_empty() { NONE } else { queues.id(rest) };
            let ends = self.packet(head);
            let part = self.part(OF_ITEM, id as u32);
            let left = if rest == NONE { 0 } else { self.part(OF_ITEM, rest) };
            let used_up = left.wrapping_sub(part);
            self.queues.push(QueueFacts { head, ends, rest, part, used_up });
            id += 1;
        }
    }

    /// The queue after `packet` joined it; `NONE` is the empty queue.
    pub(crate) fn push(&mut self, queue: u32, packet: u32) -> u32 {
        if let Some(longer) = self.pushes.get(queue, packet) {
            return longer;
        }
        let mut queues = open(&self.archive.queues);
        let mut packets = match queue {
            NONE => Vec::new(),
            queue => queues.get(queue).clone(),
        };
        packets.push(packet);
        let longer = queues.id(packets);
        drop(queues);
        self.pushes.insert(queue, packet, longer);
        longer
    }

    #[inline]
    pub(crate) fn weather(&mut self, id: u32) -> Weather {
        if self.weathers.len() <= id as usize {
            self.learn_weathers();
        }
        self.weathers[id as usize]
    }

    #[cold]
    fn learn_weathers(&mut self) {
        let weathers = open(&self.archive.weathers);
        for id in self.weathers.len() as u32..weathers.len() as u32 {
            self.weathers.push(*weathers.get(id));
        }
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
        let changed = open(&self.archive.weathers).id(weather);
        self.changes.insert(id, key, changed);
        changed
    }

    /// Whether a process of this world has gone beyond the epochs that are explored.
    pub(crate) fn is_over(&mut self, local: u32) -> bool {
        self.local(local).is_over
    }
}
