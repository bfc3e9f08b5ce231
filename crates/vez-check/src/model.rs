//! What one process does when something happens to it: a function, so that each answer is worked
//! out once and remembered.

use std::collections::VecDeque;

use vez_core::{
    Chance, Ctx, Effect, Env, Event, NodeId, Notice, Problem, Promise, Protocol, Request, Script,
    Terms, Time, Wish,
};

use crate::knowledge::Duty;
use crate::setting::Setting;

/// The algorithm, and the system it runs in.
pub(crate) struct Model<'a, P: Protocol> {
    pub(crate) setting: Setting<'a>,
    pub(crate) config: &'a P::Config,
}

/// One process with all that is its own: its user's budget and its timers too.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Local<P: Protocol> {
    pub(crate) node: NodeId,
    pub(crate) life: Life<P>,
    /// In order.
    pub(crate) armed: Vec<(P::Timer, Span)>,
    pub(crate) wishes_left: u32,
    pub(crate) suspicions_left: u32,
    pub(crate) withdrawals_left: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Life<P: Protocol> {
    Up(P),
    /// With what it will find when it comes back.
    Down(P::Durable),
}

/// How soon a timer may run out, and how soon it must. Nothing is known of either, and both are
/// zero, where timing is asynchronous.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Span {
    pub(crate) earliest: Time,
    pub(crate) latest: Time,
}

/// What can happen to a process.
#[derive(Clone, Debug)]
pub(crate) enum Cause<P: Protocol> {
    Boot,
    Ask(Request<P>),
    Hear {
        from: NodeId,
        message: P::Message,
    },
    Fire(P::Timer),
    Crash,
    Restart {
        forget: bool,
    },
    /// Time passes, for everyone alike.
    Pass(Time),
}

/// What the spec hears of a step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fact<P: Protocol> {
    Asked(Request<P>),
    Told(Notice<P>),
    Crashed,
    Restarted,
}

/// One way a step can go.
#[derive(Clone, Debug)]
pub(crate) struct Branch<P: Protocol> {
    pub(crate) next: Local<P>,
    pub(crate) sent: Vec<(NodeId, P::Message)>,
    pub(crate) facts: Vec<Fact<P>>,
    pub(crate) unexpected: Option<&'static str>,
    pub(crate) choices: Vec<u32>,
    /// The timers armed, in order, again and again.
    pub(crate) arms: Vec<P::Timer>,
}

/// A process that talks to itself for longer than this never stops.
const REACTIONS_MAX: u32 = 10_000;

impl<P: Protocol> Model<'_, P> {
    pub(crate) fn spec(&self) -> P::Problem {
        let mut terms = Terms::of::<P>(self.config, self.setting.topology);
        terms.fenced &= self.setting.judges(Promise::Fencing);
        terms.counted = self.setting.options.bounded_wait;
        P::Problem::new(self.setting.topology, terms)
    }

    pub(crate) fn unborn(&self, node: NodeId) -> Local<P> {
        let asks = self.setting.options.askers.as_ref().is_none_or(|askers| askers.contains(&node));
        Local {
            node,
            life: Life::Down(P::Durable::default()),
            armed: Vec::new(),
            wishes_left: if asks { self.setting.options.entries } else { 0 },
            suspicions_left: self.setting.options.crashes,
            withdrawals_left: self.setting.options.withdrawals,
        }
    }

    pub(crate) fn duty(&self, request: &Request<P>) -> Duty {
        let is = |wish| P::Problem::request(wish).as_ref() == Some(request);
        if is(Wish::Release) {
            Duty::Leave
        } else if is(Wish::Withdraw) {
            Duty::Withdraw
        } else if self.setting.topology.ids().any(|node| is(Wish::Suspect(node))) {
            Duty::Suspect
        } else {
            Duty::Wish
        }
    }

    /// Every way `cause` can go for `local`. With `unsent` the process crashes when what must
    /// survive is safe and nothing has left it; none, if that is the same as crashing before.
    pub(crate) fn react(&self, local: &Local<P>, cause: &Cause<P>, unsent: bool) -> Vec<Branch<P>> {
        let mut branches = Vec::new();
        let mut script = Script::default();
        while script.advance() {
            let mut chance = Recorder { script: &mut script, choices: Vec::new() };
            let branch = self.step(local, cause, unsent, &mut chance);
            let choices = chance.choices;
            branches.extend(branch.map(|branch| Branch { choices, ..branch }));
        }
        branches
    }

    fn step(
        &self,
        local: &Local<P>,
        cause: &Cause<P>,
        unsent: bool,
        chance: &mut dyn Chance,
    ) -> Option<Branch<P>> {
        let mut run = Run::new(self, local, chance);
        match (cause, &local.life) {
            (Cause::Boot, _) => run.boot(None),
            (Cause::Restart { forget }, Life::Down(saved)) => {
                run.branch.facts.push(Fact::Restarted);
                run.boot(Some(if *forget { P::Durable::default() } else { saved.clone() }));
            }
            (Cause::Crash, Life::Up(_)) => {
                run.crash();
                return Some(run.branch);
            }
            (Cause::Ask(request), Life::Up(_)) => {
                match self.duty(request) {
                    Duty::Leave => (),
                    Duty::Suspect => run.branch.next.suspicions_left -= 1,
                    Duty::Wish => run.branch.next.wishes_left -= 1,
                    Duty::Withdraw => run.branch.next.withdrawals_left -= 1,
                }
                run.branch.facts.push(Fact::Asked(request.clone()));
                run.feed(Event::Request(request.clone()));
            }
            (Cause::Hear { from, message }, Life::Up(_)) => {
                run.feed(Event::Message { from: *from, message: message.clone() });
            }
            (Cause::Fire(timer), Life::Up(_)) => {
                run.branch.next.armed.retain(|(armed, _)| armed != timer);
                run.feed(Event::Timer(*timer));
            }
            (&Cause::Pass(time), _) => {
                for (_, span) in &mut run.branch.next.armed {
                    span.earliest = span.earliest.saturating_sub(time);
                    span.latest = span.latest.saturating_sub(time);
                }
            }
            // What reaches a process that is down is lost.
            (Cause::Hear { .. }, Life::Down(_)) => return (!unsent).then_some(run.branch),
            (cause, life) => unreachable!("{cause:?} cannot happen to {life:?}"),
        }
        if unsent {
            run.effects.clear();
            run.crash();
            let is_new = run.branch.next.durable() != local.durable();
            return is_new.then_some(run.branch);
        }
        run.conclude();
        Some(run.branch)
    }
}

impl<P: Protocol> Local<P> {
    pub(crate) fn process(&self) -> Option<&P> {
        match &self.life {
            Life::Up(process) => Some(process),
            Life::Down(_) => None,
        }
    }

    pub(crate) fn durable(&self) -> P::Durable {
        match &self.life {
            Life::Up(process) => process.durable(),
            Life::Down(saved) => saved.clone(),
        }
    }
}

/// A step under way.
struct Run<'a, P: Protocol> {
    model: &'a Model<'a, P>,
    chance: &'a mut dyn Chance,
    branch: Branch<P>,
    effects: Vec<Effect<P>>,
    /// What it said to itself.
    local: VecDeque<P::Message>,
}

impl<'a, P: Protocol> Run<'a, P> {
    fn new(model: &'a Model<'a, P>, local: &Local<P>, chance: &'a mut dyn Chance) -> Self {
        let branch = Branch {
            next: local.clone(),
            sent: Vec::new(),
            facts: Vec::new(),
            unexpected: None,
            choices: Vec::new(),
            arms: Vec::new(),
        };
        Self { model, chance, branch, effects: Vec::new(), local: VecDeque::new() }
    }

    fn boot(&mut self, saved: Option<P::Durable>) {
        let Model { setting: Setting { topology, .. }, config } = *self.model;
        let env = Env { me: self.branch.next.node, topology, config };
        let process = P::start(saved, &mut Ctx::new(env, self.chance, &mut self.effects));
        self.branch.next.life = Life::Up(process);
    }

    fn feed(&mut self, event: Event<P>) {
        let Model { setting: Setting { topology, .. }, config } = *self.model;
        let env = Env { me: self.branch.next.node, topology, config };
        let Life::Up(process) = &mut self.branch.next.life else { unreachable!("it is up") };
        process.step(event, &mut Ctx::new(env, self.chance, &mut self.effects));
    }

    fn crash(&mut self) {
        let next = &mut self.branch.next;
        next.life = Life::Down(next.durable());
        next.armed.clear();
        self.branch.facts.push(Fact::Crashed);
    }

    /// Carries out what was said; then what the process said to itself is heard.
    fn conclude(&mut self) {
        let me = self.branch.next.node;
        for _ in 0..REACTIONS_MAX {
            for effect in std::mem::take(&mut self.effects) {
                self.carry_out(effect);
            }
            let Some(message) = self.local.pop_front() else { return };
            self.feed(Event::Message { from: me, message });
        }
        self.branch.unexpected.get_or_insert("it talks to itself without end");
    }

    fn carry_out(&mut self, effect: Effect<P>) {
        let Branch { next, sent, facts, unexpected, arms, .. } = &mut self.branch;
        match effect {
            Effect::Send { to, message } if to == next.node => self.local.push_back(message),
            Effect::Send { to, message } => sent.push((to, message)),
            Effect::Arm { timer, after } => {
                arms.push(timer);
                let span = match self.model.setting.is_synchronous() {
                    true => Span { earliest: *after.start(), latest: *after.end() },
                    false => Span::default(),
                };
                match next.armed.binary_search_by_key(&timer, |&(armed, _)| armed) {
                    Ok(place) => next.armed[place].1 = span,
                    Err(place) => next.armed.insert(place, (timer, span)),
                }
            }
            Effect::Disarm { timer } => next.armed.retain(|&(armed, _)| armed != timer),
            Effect::Notify(notice) => facts.push(Fact::Told(notice)),
            Effect::Unexpected(what) => {
                unexpected.get_or_insert(what);
            }
        }
    }
}

/// Remembers the choices a step made, so that a run can be told to make the same.
struct Recorder<'a> {
    script: &'a mut Script,
    choices: Vec<u32>,
}

impl Chance for Recorder<'_> {
    fn below(&mut self, bound: u32) -> u32 {
        let choice = self.script.below(bound);
        self.choices.push(choice);
        choice
    }
}
