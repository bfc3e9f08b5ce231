//! The step loop: processes, what is in flight between them, and the clock.

mod ending;
mod planned;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::{hint, mem};

use vez_core::kind::{Kind, kind_of};
use vez_core::problem::{Court, Tally};
use vez_core::{
    Breach, Ctx, Effect, Ending, Env, Event, NodeId, Notice, Problem, Protocol, Reaction, Seeded,
    Terms, Time, Topology, Wish,
};

use planned::Choices;

use crate::network::{Fate, Wires};
use crate::plan::{Directions, Forget};
use crate::users::Users;
use crate::{Happening, Input, LossCause, Messages, Observer, Plan, Queue, Report, Who};

/// What the nearer caches of a processor hold, in bytes: a rough guess that only speed rests on.
const CACHE: usize = 1 << 18;

/// A system of processes and everything in flight between them.
pub(crate) struct World<'a, P: Protocol, O> {
    topology: &'a Topology,
    config: &'a P::Config,
    plan: &'a Plan,
    observer: O,
    now: Time,
    /// When something last happened; a timer that was disarmed is nothing.
    last: Time,
    /// `None` while down.
    processes: Vec<Option<P>>,
    /// Whether they are too many for the nearer caches.
    is_large: bool,
    /// What those that are down will find when they come back.
    saved: BTreeMap<NodeId, P::Durable>,
    paused: BTreeMap<NodeId, Time>,
    /// Who crashes in its next step, between saving and sending.
    doomed: BTreeSet<NodeId>,
    users: Users,
    /// Indices into the plan's inputs, by moment; and how many have happened.
    agenda: Vec<u32>,
    happened: usize,
    flights: Queue<P::Message>,
    timers: Queue<P::Timer>,
    /// The armed timers of each process, each with its current deadline's entry in the queue.
    /// Empty until the first is armed.
    armed: Vec<Vec<(P::Timer, u64)>>,
    /// What a process says to itself, heard as soon as its step is over.
    local: VecDeque<P::Message>,
    wires: Wires<'a>,
    choices: Choices<'a>,
    clock_draws: Seeded,
    /// Reused by every step.
    effects: Vec<Effect<P>>,
    spec: P::Problem,
    tally: <P::Problem as Problem>::Tally,
    breaches: Vec<Breach>,
    broken: Vec<(Time, Breach)>,
    by_kind: Vec<(&'static str, u64)>,
    seq: u64,
    /// How often a timer was armed.
    arms: u64,
    /// Every wish was met, and the algorithm would go on for ever.
    content: bool,
    /// Everything processes reacted to, requests and words to oneself included.
    reactions: u64,
    steps: u64,
    rounds: u64,
    messages: Messages,
    unexpected: u64,
    unexpected_first: Option<(Time, NodeId, &'static str)>,
}

impl<'a, P: Protocol, O: Observer<P>> World<'a, P, O> {
    pub(crate) fn new(
        topology: &'a Topology,
        config: &'a P::Config,
        plan: &'a Plan,
        observer: O,
    ) -> Self {
        let mut agenda: Vec<u32> = (0..plan.inputs.len() as u32).collect();
        agenda.sort_by_key(|&index| plan.inputs[index as usize].0);
        Self {
            topology,
            config,
            plan,
            observer,
            now: Time::ZERO,
            last: Time::ZERO,
            processes: Vec::with_capacity(topology.n() as usize),
            is_large: CACHE < topology.n() as usize * size_of::<Option<P>>(),
            saved: BTreeMap::new(),
            paused: BTreeMap::new(),
            doomed: BTreeSet::new(),
            users: Users::default(),
            agenda,
            happened: 0,
            flights: Queue::default(),
            timers: Queue::default(),
            armed: Vec::new(),
            local: VecDeque::new(),
            wires: Wires::new(&plan.network, topology.n(), plan.seed),
            choices: Choices { told: plan.choices.iter(), drawn: Seeded::stream(plan.seed, 2) },
            clock_draws: Seeded::stream(plan.seed, 3),
            effects: Vec::new(),
            spec: P::Problem::new(topology, Terms::of::<P>(config, topology)),
            tally: <P::Problem as Problem>::Tally::new(topology),
            breaches: Vec::new(),
            broken: Vec::new(),
            by_kind: Vec::new(),
            seq: 0,
            arms: 0,
            content: false,
            reactions: 0,
            steps: 0,
            rounds: 0,
            messages: Messages::default(),
            unexpected: 0,
            unexpected_first: None,
        }
    }

    /// Runs to the end: rest, the deadline, or, where the processes never rest, the moment when
    /// every wish has been met.
    pub(crate) fn run(mut self) -> (Report, O) {
        let until = self.plan.until.or(P::META.restless).unwrap_or(Time::MAX);
        for node in self.topology.ids() {
            self.processes.push(None);
            self.boot(node, None);
        }
        let ending = loop {
            let Some(next) = self.next_moment() else { break Ending::Quiescent };
            if until < next {
                (self.now, self.last) = (until, until);
                break Ending::Deadline;
            }
            self.now = next;
            if let Err(ending) = self.live_through(next) {
                break ending;
            }
        };
        self.finish(ending)
    }

    /// Everything of one moment: what is asked and done from outside, then what arrives, then
    /// what runs out. After each, whatever it caused at this same moment takes its place.
    fn live_through(&mut self, now: Time) -> Result<(), Ending> {
        while let Some(&index) = self.agenda.get(self.happened)
            && self.plan.inputs[index as usize].0 == now
        {
            self.go_on()?;
            self.happened += 1;
            let plan = self.plan;
            self.happen(&plan.inputs[index as usize].1);
        }
        loop {
            self.go_on()?;
            if self.users.next_time() == Some(now) {
                if let Some((node, wish)) = self.users.next_deed() {
                    self.wish(node, wish);
                }
            } else if self.flights.is_due(now) {
                let item = self.flights.take();
                if self.is_large {
                    self.read_ahead();
                }
                self.arrive(item.key, item.seq, item.what);
            } else if self.timers.is_due(now) {
                let item = self.timers.take();
                self.fire(NodeId((item.key >> 32) as u32), item.what, item.seq);
            } else {
                return Ok(());
            }
        }
    }

    /// Whether there is a reason to stop in the middle of a moment.
    #[inline]
    fn go_on(&self) -> Result<(), Ending> {
        if self.content {
            return Err(Ending::Quiescent);
        }
        if self.plan.steps_max < self.reactions {
            return Err(Ending::Limit);
        }
        Ok(())
    }

    fn next_moment(&self) -> Option<Time> {
        let input = self.agenda.get(self.happened).map(|&i| self.plan.inputs[i as usize].0);
        let earlier = |one: Option<Time>, other: Option<Time>| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            _ => one.or(other),
        };
        let outside = earlier(input, self.users.next_time());
        earlier(outside, earlier(self.flights.next_time(), self.timers.next_time()))
    }

    fn happen(&mut self, input: &Input) {
        self.last = self.now;
        match *input {
            Input::Start(who) => self.each(who, |world, node| world.wish(node, Wish::Start)),
            Input::Suspect(node, of) => self.wish(node, Wish::Suspect(of)),
            Input::Acquire(who, hold) => self.each(who, |world, node| {
                if world.is_up(node) && world.users.want(node, hold) {
                    world.wish(node, Wish::Acquire);
                }
            }),
            Input::Withdraw(node) => self.wish(node, Wish::Withdraw),
            Input::Crash(node) => self.crash(node),
            Input::CrashUnsent(node) => {
                self.doomed.insert(node);
            }
            Input::Restart(node, forget) => self.restart(node, forget),
            Input::Pause(node, span) => {
                let until = self.now + span;
                self.paused.insert(node, until);
                self.show(|| Happening::Paused { node, until });
            }
            Input::Partition(ref groups) => {
                self.wires.partition(groups, self.topology.n());
                self.show(|| Happening::Partitioned { groups });
            }
            Input::Cut(from, to, directions) => {
                let both = directions == Directions::Both;
                self.wires.cut(from, to);
                if both {
                    self.wires.cut(to, from);
                }
                self.show(|| Happening::Cut { from, to, both });
            }
            Input::Heal(from, to, directions) => {
                let both = directions == Directions::Both;
                self.wires.heal(from, to);
                if both {
                    self.wires.heal(to, from);
                }
                self.show(|| Happening::Healed { from, to, both });
            }
            Input::HealAll => {
                self.wires.heal_all();
                self.show(|| Happening::HealedAll);
            }
        }
    }

    fn each(&mut self, who: Who, mut act: impl FnMut(&mut Self, NodeId)) {
        match who {
            Who::One(node) => act(self, node),
            Who::All => self.topology.ids().for_each(|node| act(self, node)),
        }
    }

    /// Passes a wish of the local user on. The dead are not asked, the slow hear it later, and
    /// what has become pointless meanwhile is dropped.
    fn wish(&mut self, node: NodeId, wish: Wish) {
        let request = request_for::<P>(wish);
        if !self.is_up(node) || !self.spec.may(node, &request) {
            return;
        }
        if let Some(until) = self.paused_until(node) {
            return self.users.ask_at(until, node, wish);
        }
        self.last = self.now;
        let court = &mut Court { topology: self.topology, breaches: &mut self.breaches };
        self.spec.on_request(node, &request, court);
        self.tally.on_request(self.now, node, &request);
        self.show(|| Happening::Asked { node, request: &request });
        if P::META.restless.is_some() && self.nothing_left_after(node) {
            self.content = true;
            return;
        }
        self.react(node, Event::Request(request));
        if matches!(wish, Wish::Release | Wish::Withdraw) {
            self.next_wish(node);
        }
    }

    /// Its wish is over; if it has another, it asks.
    fn next_wish(&mut self, node: NodeId) {
        if self.users.done(node) {
            self.users.ask_at(self.now, node, Wish::Acquire);
        }
    }

    /// Reads the processes that will hear the next few messages, all together: one by one, each
    /// when its turn comes, the processor would wait for each.
    #[inline]
    fn read_ahead(&self) {
        let read = self.flights.ahead().iter().map(|item| {
            let node = NodeId((item.key >> 32) as u32);
            (u64::from(self.is_up(node)), self.topology.uid(node))
        });
        hint::black_box(read.fold(0, |sum, (up, uid)| sum ^ up ^ uid));
    }

    fn arrive(&mut self, key: u64, id: u64, message: P::Message) {
        let (node, from) = (NodeId((key >> 32) as u32), NodeId(key as u32));
        self.last = self.now;
        if !self.wires.is_up(from, node) {
            return self.lose(id, LossCause::Cut);
        }
        if !self.is_up(node) {
            self.messages.to_crashed += 1;
            self.show(|| Happening::Lost { id, cause: LossCause::ReceiverDown });
            return;
        }
        if let Some(until) = self.paused_until(node) {
            return self.flights.push(until, key, id, message);
        }
        self.steps += 1;
        self.show(|| Happening::Heard { node, from, id, message: &message });
        // As `react` does, but in place.
        self.step(node, Event::Message { from, message });
        self.conclude(node);
    }

    fn fire(&mut self, node: NodeId, timer: P::Timer, seq: u64) {
        let armed = &mut self.armed[node.index()];
        let Some(index) = armed.iter().position(|&entry| entry == (timer, seq)) else { return };
        if let Some(until) = self.paused_until(node) {
            return self.timers.push(until, u64::from(node.0) << 32, seq, timer);
        }
        self.armed[node.index()].swap_remove(index);
        self.last = self.now;
        self.steps += 1;
        self.show(|| Happening::Fired { node, timer });
        self.react(node, Event::Timer(timer));
    }

    fn boot(&mut self, node: NodeId, saved: Option<P::Durable>) {
        self.steps += 1;
        let env = Env { me: node, topology: self.topology, config: self.config };
        let process = P::start(saved, &mut Ctx::new(env, &mut self.choices, &mut self.effects));
        self.rounds = self.rounds.max(process.epoch());
        self.processes[node.index()] = Some(process);
        self.show(|| Happening::Booted { node });
        self.conclude(node);
    }

    /// Feeds an event to a process that is up, and carries out what it wants done; then it hears
    /// what it said to itself.
    #[inline(never)]
    fn react(&mut self, node: NodeId, event: Event<P>) {
        self.step(node, event);
        self.conclude(node);
    }

    #[inline]
    fn step(&mut self, node: NodeId, event: Event<P>) {
        let process = self.processes[node.index()].as_mut().expect("only the living react");
        let env = Env { me: node, topology: self.topology, config: self.config };
        process.step(event, &mut Ctx::new(env, &mut self.choices, &mut self.effects));
        self.rounds = self.rounds.max(process.epoch());
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "on the way of every message: a tenth of a run")]
    fn conclude(&mut self, node: NodeId) {
        self.end_step(node);
        if !self.local.is_empty() {
            self.hear_itself(node);
        }
    }

    #[cold]
    fn hear_itself(&mut self, node: NodeId) {
        while let Some(message) = self.local.pop_front() {
            if self.plan.steps_max < self.reactions {
                return self.local.clear();
            }
            self.step(node, Event::Message { from: node, message });
            self.end_step(node);
        }
    }

    /// Ends a step: what must survive is safe, then what was said leaves.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "on the way of every message: a tenth of a run")]
    fn end_step(&mut self, node: NodeId) {
        self.reactions += 1;
        if O::WATCHES {
            let process = self.processes[node.index()].as_ref().expect("it just ran");
            let what = Happening::Now { node, process };
            self.observer.on(self.now, self.topology, what);
        }
        if !self.doomed.is_empty() && self.doomed.remove(&node) {
            self.effects.clear();
            return self.crash(node);
        }
        self.carry_out(node);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "on the way of every message: a tenth of a run")]
    fn carry_out(&mut self, node: NodeId) {
        // Taken from the end, one by one, they need no second list.
        self.effects.reverse();
        loop {
            // A message is counted where it lies: it has only just been written, in parts, and
            // the processor waits before it can be read as a whole.
            if let Some(Effect::Send { to, message }) = self.effects.last()
                && *to != node
            {
                let kind = kind_of(message);
                self.count(kind);
            }
            match self.effects.pop() {
                Some(Effect::Send { to, message }) if to != node => self.send(node, to, message),
                Some(other) => self.carry_out_other(node, other),
                None => return,
            }
        }
    }

    /// Apart from sending, which is most of what is done, and is done faster alone.
    #[inline(never)]
    fn carry_out_other(&mut self, node: NodeId, effect: Effect<P>) {
        match effect {
            Effect::Send { message, .. } => self.local.push_back(message),
            Effect::Arm { timer, after } => self.arm(node, timer, *after.start(), *after.end()),
            Effect::Disarm { timer } => self.disarm(node, timer),
            Effect::Notify(notice) => self.tell(node, &notice),
            Effect::Unexpected(what) => {
                self.unexpected += 1;
                self.unexpected_first.get_or_insert((self.now, node, what));
                self.show(|| Happening::Unexpected { node, what });
            }
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "on the way of every message: a tenth of a run")]
    fn send(&mut self, from: NodeId, to: NodeId, message: P::Message) {
        self.seq += 1;
        let id = self.seq;
        self.show(|| Happening::Sent { node: from, to, id, message: &message });
        if !self.wires.is_up(from, to) {
            return self.lose(id, LossCause::Cut);
        }
        let key = u64::from(to.0) << 32 | u64::from(from.0);
        let plan = self.plan;
        if !plan.messages.is_empty()
            && let Some(delays) = plan.messages.get(&self.sent())
        {
            return self.send_as_planned(key, id, &message, delays);
        }
        match self.wires.fate(self.now, from, to) {
            Fate::Lost => self.lose(id, LossCause::Chance),
            Fate::Arrives(at) => self.flights.push(at, key, id, message),
            Fate::ArrivesTwice(at, again) => {
                self.seq += 1;
                let copy = self.seq;
                self.messages.duplicated += 1;
                self.show(|| Happening::Repeated { id, copy });
                self.flights.push(at, key, id, message.clone());
                self.flights.push(again, key, copy, message);
            }
        }
    }

    #[inline]
    fn count(&mut self, kind: Kind) {
        let index = kind.index as usize;
        if self.by_kind.len() <= index {
            self.by_kind.resize(index + 1, ("", 0));
        }
        let (name, count) = &mut self.by_kind[index];
        if *count == 0 {
            *name = kind.name;
        }
        *count += 1;
    }

    fn lose(&mut self, id: u64, cause: LossCause) {
        self.messages.lost += 1;
        self.show(|| Happening::Lost { id, cause });
    }

    fn arm(&mut self, node: NodeId, timer: P::Timer, earliest: Time, latest: Time) {
        let width = latest.saturating_sub(earliest).as_micros();
        let drawn = match width {
            0 => earliest,
            _ => earliest + Time::from_micros(self.clock_draws.below_u64(width + 1)),
        };
        self.arms += 1;
        let until = match self.plan.timers.get(&self.arms) {
            Some(&span) => self.now + span,
            None => self.now + self.on_own_clock(node, drawn),
        };
        self.seq += 1;
        self.timers.push(until, u64::from(node.0) << 32, self.seq, timer);
        if self.armed.is_empty() {
            self.armed = vec![Vec::new(); self.topology.n() as usize];
        }
        let armed = &mut self.armed[node.index()];
        armed.retain(|&(other, _)| other != timer);
        armed.push((timer, self.seq));
        self.show(|| Happening::Armed { node, timer, until });
    }

    fn disarm(&mut self, node: NodeId, timer: P::Timer) {
        let Some(armed) = self.armed.get_mut(node.index()) else { return };
        let before = armed.len();
        armed.retain(|&(other, _)| other != timer);
        if armed.len() < before {
            self.show(|| Happening::Disarmed { node, timer });
        }
    }

    fn tell(&mut self, node: NodeId, notice: &Notice<P>) {
        self.show(|| Happening::Told { node, notice });
        let court = &mut Court { topology: self.topology, breaches: &mut self.breaches };
        self.spec.on_notice(node, notice, court);
        self.tally.on_notice(self.now, node, notice);
        self.note_breaches();
        match P::Problem::reaction(notice) {
            Reaction::None => (),
            Reaction::Hold => self.users.entered(node, self.now),
            Reaction::Outside => self.next_wish(node),
        }
    }

    fn note_breaches(&mut self) {
        if self.breaches.is_empty() {
            return;
        }
        for breach in mem::take(&mut self.breaches) {
            self.show(|| Happening::Broken(&breach));
            if !self.broken.iter().any(|(_, known)| known.promise == breach.promise) {
                self.broken.push((self.now, breach));
            }
        }
    }

    fn crash(&mut self, node: NodeId) {
        let Some(process) = self.processes[node.index()].take() else { return };
        self.saved.insert(node, process.durable());
        if let Some(armed) = self.armed.get_mut(node.index()) {
            armed.clear();
        }
        self.local.clear();
        self.doomed.remove(&node);
        self.paused.remove(&node);
        self.users.crashed(node);
        self.spec.on_crash(node);
        self.tally.on_crash(self.now, node);
        self.show(|| Happening::Crashed { node });
    }

    fn restart(&mut self, node: NodeId, forget: Forget) {
        self.crash(node);
        let amnesia = self.plan.amnesia || forget == Forget::Everything;
        let saved = self.saved.remove(&node).unwrap_or_default();
        self.spec.on_restart(node);
        self.tally.on_restart(node);
        self.show(|| Happening::Restarted { node, forgot: amnesia });
        self.boot(node, Some(if amnesia { P::Durable::default() } else { saved }));
    }

    #[inline]
    fn is_up(&self, node: NodeId) -> bool {
        self.processes[node.index()].is_some()
    }

    #[inline]
    fn paused_until(&mut self, node: NodeId) -> Option<Time> {
        if self.paused.is_empty() {
            return None;
        }
        let until = *self.paused.get(&node)?;
        if self.now < until {
            return Some(until);
        }
        self.paused.remove(&node);
        self.show(|| Happening::Resumed { node });
        None
    }

    #[inline]
    fn show<'b>(&mut self, what: impl FnOnce() -> Happening<'b, P>) {
        if O::WATCHES {
            self.observer.on(self.now, self.topology, what());
        }
    }
}

/// Scenarios are checked against the problem before they run.
fn request_for<P: Protocol>(wish: Wish) -> vez_core::Request<P> {
    let request = P::Problem::request(wish);
    request.unwrap_or_else(|| panic!("{wish:?} makes no sense for {}", P::META.name))
}
