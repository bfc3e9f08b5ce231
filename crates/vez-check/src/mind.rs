//! One explorer's view of the system: what it has looked up in the shared lore, laid out flat, and
//! what may happen next in a world.
//!
//! A world is a row of numbers: the spec, the weather, the processes, and what is in flight. Its
//! fingerprint is the sum of its parts' fingerprints, so that a step changes it by what the step
//! changes, and a world that has been seen before is never even put together.

use std::sync::Arc;

use vez_core::Time;

use crate::archive::{Archive, Weather, open};
use crate::code::Code;
use crate::intern::{PairMap, mix};
use crate::knowledge::{Ask, Duty, Ruling};
use crate::setting::Setting;
use crate::symmetry::{Faces, Symmetry};

pub(crate) const SPEC: usize = 0;
pub(crate) const WEATHER: usize = 1;
pub(crate) const LOCALS: usize = 2;
pub(crate) const NONE: u32 = u32::MAX;

/// One thing that may happen next, and what comes of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Action {
    pub(crate) fingerprint: u64,
    pub(crate) code: u32,
    /// Whom it happens to; `NONE` for what befalls the network.
    pub(crate) node: u32,
    /// Which of the things in flight is heard or lost.
    pub(crate) item: u32,
    pub(crate) uses_up: bool,
    /// It cannot be put off for ever.
    pub(crate) is_due: bool,
    /// The algorithm met what it says cannot be.
    pub(crate) is_unexpected: bool,
    /// Which way the step goes.
    pub(crate) branch: u32,
    pub(crate) spec: u32,
    pub(crate) weather: u32,
    pub(crate) breach: u32,
}

/// A world in which every process has just been born, and how each was.
#[derive(Clone, Debug)]
pub(crate) struct Birth {
    pub(crate) fingerprint: u64,
    pub(crate) world: Vec<u32>,
    pub(crate) boots: Vec<Action>,
}

/// How the weather changes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    Crash,
    Loss,
    Duplicate,
    Split(u32),
    Heal,
}

impl Action {
    fn of_network(world: &[u32], fingerprint: u64, code: Code) -> Self {
        Self {
            fingerprint,
            code: code.word(),
            node: NONE,
            item: NONE,
            uses_up: false,
            is_due: false,
            is_unexpected: false,
            branch: NONE,
            spec: world[SPEC],
            weather: world[WEATHER],
            breach: 0,
        }
    }
}

/// An answer of the lore, flat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flat {
    /// By how much the process alone changes the fingerprint.
    pub(crate) delta: u64,
    /// And with what it hears and what it says, where what is in flight is a plain heap.
    pub(crate) whole: u64,
    pub(crate) next: u32,
    pub(crate) testimony: u32,
    /// A range of `sent`.
    pub(crate) sent: (u32, u32),
    pub(crate) unexpected: bool,
}

#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts, not a state machine")]
pub(crate) struct LocalFacts {
    pub(crate) is_up: bool,
    pub(crate) wishes: bool,
    pub(crate) suspicions: bool,
    pub(crate) withdrawals: bool,
    pub(crate) is_over: bool,
    /// Those that may run out now: a range of `timers`.
    pub(crate) timers: (u32, u32),
    pub(crate) must_fire: bool,
    /// When the next of its timers may, or must, run out.
    pub(crate) next_moment: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueFacts {
    pub(crate) head: u32,
    /// From whom, to whom.
    pub(crate) ends: (u32, u32),
    /// What is left after the head; `NONE` if nothing.
    pub(crate) rest: u32,
    /// Its part of a fingerprint, and by how much that changes when the head is gone.
    pub(crate) part: u64,
    pub(crate) used_up: u64,
}

#[expect(clippy::struct_excessive_bools, reason = "facts of the setting, close at hand")]
pub(crate) struct Mind<'a> {
    pub(crate) archive: &'a Archive<'a>,
    pub(crate) setting: Setting<'a>,
    pub(crate) n: usize,
    pub(crate) salt: u64,
    pub(crate) is_fifo: bool,
    pub(crate) is_lossy: bool,
    pub(crate) is_wide: bool,
    /// Whether all that is said is in flight until it is heard, in no order.
    pub(crate) is_plain: bool,
    pub(crate) has_unsent: bool,
    /// Ranges of `flats`.
    pub(crate) reactions: PairMap<(u32, u32)>,
    pub(crate) flats: Vec<Flat>,
    pub(crate) sent: Vec<u32>,
    pub(crate) rulings: PairMap,
    /// And by how much the fingerprint changes.
    pub(crate) ruled: Vec<(Ruling, u64)>,
    /// By spec, then process.
    pub(crate) asks: Vec<Option<Ask>>,
    pub(crate) rests: Vec<Option<u32>>,
    pub(crate) locals: Vec<LocalFacts>,
    pub(crate) timers: Vec<u32>,
    /// Sender and receiver.
    pub(crate) packets: Vec<(u32, u32)>,
    pub(crate) queues: Vec<QueueFacts>,
    pub(crate) pushes: PairMap,
    pub(crate) weathers: Vec<Weather>,
    pub(crate) changes: PairMap,
    pub(crate) scratch: Vec<u32>,
    /// Pairs of process state and message, numbered; and what was granted to each under a spec.
    pub(crate) cases: PairMap,
    pub(crate) case_count: u32,
    pub(crate) grants: PairMap,
    /// Set where states that differ only by who is who are taken for one.
    pub(crate) symmetry: Option<Arc<Symmetry>>,
    pub(crate) faces: Faces,
}

/// The parts of a fingerprint, by what they are of.
pub(crate) const OF_SPEC: u64 = 1 << 40;
pub(crate) const OF_WEATHER: u64 = 2 << 40;
pub(crate) const OF_LOCAL: u64 = 3 << 40;
pub(crate) const OF_ITEM: u64 = 4 << 40;

#[inline]
fn part(of: u64, id: u32, salt: u64) -> u64 {
    mix((of | u64::from(id)) ^ salt)
}

impl<'a> Mind<'a> {
    pub(crate) fn new(archive: &'a Archive<'a>) -> Self {
        let setting = archive.setting;
        Self {
            archive,
            setting,
            n: setting.topology.n() as usize,
            salt: mix(setting.options.salt),
            is_fifo: setting.is_fifo(),
            is_lossy: setting.is_lossy(),
            is_wide: setting.options.wide,
            is_plain: setting.is_plain(),
            has_unsent: setting.options.unsent,
            reactions: PairMap::default(),
            flats: Vec::new(),
            sent: Vec::new(),
            rulings: PairMap::default(),
            ruled: Vec::new(),
            asks: Vec::new(),
            rests: Vec::new(),
            locals: Vec::new(),
            timers: Vec::new(),
            packets: Vec::new(),
            queues: Vec::new(),
            pushes: PairMap::default(),
            weathers: Vec::new(),
            changes: PairMap::default(),
            scratch: Vec::new(),
            cases: PairMap::default(),
            case_count: 0,
            grants: PairMap::default(),
            symmetry: None,
            faces: Faces::default(),
        }
    }

    /// The worlds in which every process has just been born.
    pub(crate) fn births(&mut self) -> Vec<Birth> {
        let mut world = vec![0, 0];
        world.extend(0..self.n as u32);
        let mut births =
            vec![Birth { fingerprint: self.fingerprint(&world), world, boots: vec![] }];
        let mut actions = Vec::new();
        for node in 0..self.n as u32 {
            let mut next = Vec::new();
            for Birth { fingerprint, world, boots } in births {
                actions.clear();
                self.happen(&world, fingerprint, node, Code::Boot, NONE, &mut actions);
                for action in &actions {
                    let mut born = Vec::new();
                    self.build(&world, action, &mut born);
                    let boots = boots.iter().chain([action]).copied().collect();
                    next.push(Birth { fingerprint: action.fingerprint, world: born, boots });
                }
            }
            births = next;
        }
        births
    }

    pub(crate) fn fingerprint(&self, world: &[u32]) -> u64 {
        self.sum(world, self.salt)
    }

    /// The other half of a wide fingerprint; 0, where there is none.
    pub(crate) fn second(&self, world: &[u32]) -> u64 {
        match self.is_wide {
            true => self.sum(world, mix(self.salt)).max(1),
            false => 0,
        }
    }

    fn sum(&self, world: &[u32], salt: u64) -> u64 {
        let mut sum = part(OF_SPEC, world[SPEC], salt);
        sum = sum.wrapping_add(part(OF_WEATHER, world[WEATHER], salt));
        for &local in &world[LOCALS..LOCALS + self.n] {
            sum = sum.wrapping_add(part(OF_LOCAL, local, salt));
        }
        for &item in &world[LOCALS + self.n..] {
            sum = sum.wrapping_add(part(OF_ITEM, item, salt));
        }
        sum
    }

    #[inline]
    pub(crate) fn part(&self, of: u64, id: u32) -> u64 {
        part(of, id, self.salt)
    }

    /// Adds everything that may happen next in `world`. Whether any of it is due.
    pub(crate) fn expand(
        &mut self,
        world: &[u32],
        fingerprint: u64,
        actions: &mut Vec<Action>,
    ) -> bool {
        let before = actions.len();
        let net = &world[LOCALS + self.n..];
        let weather = self.weather(world[WEATHER]);
        let may_time_pass = !self.setting.is_synchronous() || net.is_empty();
        for node in 0..self.n as u32 {
            let local = self.local(world[LOCALS + node as usize]);
            if !local.is_up {
                if may_time_pass && self.setting.options.restarts {
                    self.come_back(world, fingerprint, node, actions);
                }
                continue;
            }
            if let Some(ask) = self.ask(world[SPEC], node)
                && match ask.duty {
                    Duty::Leave => true,
                    Duty::Wish => local.wishes,
                    Duty::Suspect => local.suspicions,
                    Duty::Withdraw => local.withdrawals,
                }
            {
                let first = actions.len();
                self.befall(world, fingerprint, node, Code::Ask(ask.request), NONE, actions);
                if ask.duty != Duty::Leave {
                    actions[first..].iter_mut().for_each(|action| action.is_due = false);
                }
            }
            if may_time_pass {
                for index in local.timers.0..local.timers.1 {
                    let timer = self.timers[index as usize];
                    self.befall(world, fingerprint, node, Code::Fire(timer), NONE, actions);
                }
            }
            if 0 < weather.crashes {
                let first = actions.len();
                self.happen(world, fingerprint, node, Code::Crash, NONE, actions);
                self.charge(world, Change::Crash, &mut actions[first..]);
            }
        }
        if self.setting.is_synchronous() && net.is_empty() {
            self.expand_time(world, fingerprint, actions);
        }
        self.expand_net(world, fingerprint, weather, actions);
        if 0 < weather.partitions || weather.side != 0 {
            self.expand_partitions(world, fingerprint, weather, actions);
        }
        actions[before..].iter().any(|action| action.is_due)
    }

    /// Where all that was said has been heard, time passes until a timer may run out; never
    /// beyond the moment when one must.
    fn expand_time(&mut self, world: &[u32], fingerprint: u64, actions: &mut Vec<Action>) {
        let locals = &world[LOCALS..LOCALS + self.n];
        let mut moment = None;
        for &local in locals {
            let facts = self.local(local);
            if facts.must_fire {
                return;
            }
            moment = [moment, facts.next_moment].into_iter().flatten().min();
        }
        let Some(moment) = moment else { return };
        let span = open(&self.archive.lore).span(moment);
        let code = Code::Pass(span);
        let mut after = fingerprint;
        for &local in locals {
            let (flat, _) = self.answers(local, code.word());
            after = after.wrapping_add(self.flats[flat as usize].delta);
        }
        actions.push(Action { is_due: true, ..Action::of_network(world, after, code) });
    }

    fn expand_net(
        &mut self,
        world: &[u32],
        fingerprint: u64,
        weather: Weather,
        actions: &mut Vec<Action>,
    ) {
        let may_crash = self.has_unsent && 0 < weather.crashes;
        if self.is_plain && weather.losses + weather.duplicates == 0 && !may_crash {
            return self.hear(world, fingerprint, actions);
        }
        let is_fifo = self.is_fifo;
        let net = &world[LOCALS + self.n..];
        for (index, &item) in net.iter().enumerate() {
            if index > 0 && net[index - 1] == item {
                continue; // Of equal messages one is as good as another.
            }
            let packet = if is_fifo { self.queue(item).head } else { item };
            let (from, to) = self.packet(packet);
            if weather.separates(from, to) {
                if !self.is_lossy {
                    let lost = self.lose(world, fingerprint, index);
                    actions.push(Action { is_due: true, ..lost });
                }
                continue;
            }
            let code = Code::Hear(packet);
            self.befall(world, fingerprint, to, code, index as u32, actions);
            if self.is_lossy {
                continue;
            }
            if 0 < weather.losses {
                let first = actions.len();
                actions.push(self.lose(world, fingerprint, index));
                self.charge(world, Change::Loss, &mut actions[first..]);
            }
            if 0 < weather.duplicates {
                let first = actions.len();
                self.happen(world, fingerprint, to, code, index as u32, actions);
                self.keep(world, &mut actions[first..]);
                self.charge(world, Change::Duplicate, &mut actions[first..]);
            }
        }
    }

    fn expand_partitions(
        &mut self,
        world: &[u32],
        fingerprint: u64,
        weather: Weather,
        actions: &mut Vec<Action>,
    ) {
        let first = actions.len();
        if weather.side != 0 {
            actions.push(Action::of_network(world, fingerprint, Code::Heal));
            self.charge(world, Change::Heal, &mut actions[first..]);
            actions[first].is_due = true;
            return;
        }
        // The last process is always on the near side: half the splits are the other half's.
        for side in 1..1_u32 << (self.n - 1) {
            let first = actions.len();
            actions.push(Action::of_network(world, fingerprint, Code::Split(side)));
            self.charge(world, Change::Split(side), &mut actions[first..]);
        }
    }

    fn come_back(&mut self, world: &[u32], fingerprint: u64, node: u32, actions: &mut Vec<Action>) {
        let first = actions.len();
        self.befall(world, fingerprint, node, Code::Restart { forget: false }, NONE, actions);
        if self.setting.options.amnesia {
            self.befall(world, fingerprint, node, Code::Restart { forget: true }, NONE, actions);
        }
        actions[first..].iter_mut().for_each(|action| action.is_due = false);
    }

    fn lose(&mut self, world: &[u32], fingerprint: u64, index: usize) -> Action {
        let item = world[LOCALS + self.n + index];
        let fingerprint = fingerprint.wrapping_add(self.used_up(item));
        let action = Action::of_network(world, fingerprint, Code::Lose);
        Action { item: index as u32, uses_up: true, ..action }
    }

    /// Has `code` happen to a process, and, where crashes may fall there, has it crash after it
    /// has saved and before it has sent.
    #[inline]
    fn befall(
        &mut self,
        world: &[u32],
        fingerprint: u64,
        node: u32,
        code: Code,
        item: u32,
        actions: &mut Vec<Action>,
    ) {
        self.happen(world, fingerprint, node, code, item, actions);
        if self.has_unsent && 0 < self.weather(world[WEATHER]).crashes {
            let first = actions.len();
            let unsent = Code::Unsent(code.word());
            self.happen(world, fingerprint, node, unsent, item, actions);
            self.charge(world, Change::Crash, &mut actions[first..]);
        }
    }

    /// Marks actions as optional and paid for out of a budget.
    fn charge(&mut self, world: &[u32], change: Change, actions: &mut [Action]) {
        let id = self.change(world[WEATHER], change);
        let difference =
            self.part(OF_WEATHER, id).wrapping_sub(self.part(OF_WEATHER, world[WEATHER]));
        for action in actions {
            (action.weather, action.is_due) = (id, false);
            action.fingerprint = action.fingerprint.wrapping_add(difference);
        }
    }

    /// Leaves what was heard in flight.
    fn keep(&mut self, world: &[u32], actions: &mut [Action]) {
        for action in actions {
            let item = world[LOCALS + self.n + action.item as usize];
            let change = self.used_up(item);
            action.fingerprint = action.fingerprint.wrapping_sub(change);
            action.uses_up = false;
        }
    }

    /// By how much the fingerprint changes when the first of `item` is gone.
    #[inline]
    pub(crate) fn used_up(&mut self, item: u32) -> u64 {
        match self.is_fifo {
            true => self.queue(item).used_up,
            false => 0_u64.wrapping_sub(self.part(OF_ITEM, item)),
        }
    }
}
