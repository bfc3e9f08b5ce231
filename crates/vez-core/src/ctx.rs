use std::ops::RangeInclusive;

use crate::{Chance, NodeId, Notice, Protocol, Time, Topology};

/// What a process may see and do during one step.
///
/// Sending is saying: nothing leaves until the step is over and its durable state
/// is safe. There is deliberately no `now()`; time exists only as timers, so the
/// model checker may fire any armed timer at any moment.
pub struct Ctx<'a, P: Protocol> {
    env: Env<'a, P::Config>,
    chance: &'a mut dyn Chance,
    effects: &'a mut Vec<Effect<P>>,
}

/// The read-only half of a context.
#[derive(Debug)]
pub struct Env<'a, C> {
    pub me: NodeId,
    pub topology: &'a Topology,
    pub config: &'a C,
}

/// What a process asks its driver to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect<P: Protocol> {
    Send {
        to: NodeId,
        message: P::Message,
    },
    Arm {
        timer: P::Timer,
        after: RangeInclusive<Time>,
    },
    Disarm {
        timer: P::Timer,
    },
    Notify(Notice<P>),
    /// Something the algorithm's assumptions rule out has happened.
    Unexpected(&'static str),
}

impl<'a, P: Protocol> Ctx<'a, P> {
    /// For drivers. `effects` is reused from step to step, so that a step
    /// allocates nothing once the buffer has grown.
    pub fn new(
        env: Env<'a, P::Config>,
        chance: &'a mut dyn Chance,
        effects: &'a mut Vec<Effect<P>>,
    ) -> Self {
        Self { env, chance, effects }
    }

    /// Says `message` to `to`. A message to oneself is a local call: heard as soon as this step is
    /// over, never lost, never counted.
    pub fn send(&mut self, to: NodeId, message: P::Message) {
        self.effects.push(Effect::Send { to, message });
    }

    /// Says `message` to every other process.
    pub fn broadcast(&mut self, message: &P::Message) {
        for peer in self.peers() {
            self.send(peer, message.clone());
        }
    }

    pub fn arm(&mut self, timer: P::Timer, after: Time) {
        self.arm_within(timer, after..=after);
    }

    /// Arms a timer to run out at a random moment. The driver draws the moment:
    /// chance that only moves time is none of the model checker's business.
    pub fn arm_within(&mut self, timer: P::Timer, after: RangeInclusive<Time>) {
        self.effects.push(Effect::Arm { timer, after });
    }

    pub fn disarm(&mut self, timer: P::Timer) {
        self.effects.push(Effect::Disarm { timer });
    }

    /// Tells the local user.
    pub fn notify(&mut self, notice: Notice<P>) {
        self.effects.push(Effect::Notify(notice));
    }

    /// Reports, and otherwise ignores, what cannot happen under the algorithm's
    /// assumptions. A violation in tests, a warning and a counter in production:
    /// no peer can crash us by talking nonsense.
    pub fn unexpected(&mut self, what: &'static str) {
        self.effects.push(Effect::Unexpected(what));
    }

    /// A choice in `0..bound`: random in a run, every one of them in a check.
    pub fn choose(&mut self, bound: u32) -> u32 {
        self.chance.below(bound)
    }

    pub fn me(&self) -> NodeId {
        self.env.me
    }

    pub fn uid(&self) -> u64 {
        self.env.topology.uid(self.env.me)
    }

    pub fn config(&self) -> &'a P::Config {
        self.env.config
    }

    /// The system's wiring. The reference outlives the borrow of `self`, so that
    /// `for peer in ctx.peers() { ctx.send(..) }` compiles.
    pub fn topology(&self) -> &'a Topology {
        self.env.topology
    }

    /// Every process but this one.
    pub fn peers(&self) -> impl Iterator<Item = NodeId> + use<P> {
        let me = self.env.me;
        self.env.topology.ids().filter(move |&id| id != me)
    }

    /// The processes this one has a link to.
    pub fn neighbors(&self) -> impl Iterator<Item = NodeId> + use<'a, P> {
        self.env.topology.neighbors(self.env.me)
    }

    /// The next process on the ring, in the direction of travel.
    pub fn next(&self) -> NodeId {
        self.env.topology.next(self.env.me)
    }

    /// What elections by merit compare of this process.
    pub fn rank(&self) -> (u64, u64) {
        self.env.topology.rank(self.env.me)
    }

    /// Runs a step of a protocol nested in this one, lifting what it says.
    /// Returns the step's result and the notices meant for this protocol.
    pub fn embed<Q, R>(
        &mut self,
        config: &Q::Config,
        message: impl Fn(Q::Message) -> P::Message,
        timer: impl Fn(Q::Timer) -> P::Timer,
        step: impl FnOnce(&mut Ctx<'_, Q>) -> R,
    ) -> (R, Vec<Notice<Q>>)
    where
        Q: Protocol,
    {
        let mut inner = Vec::new();
        let env = Env { me: self.env.me, topology: self.env.topology, config };
        let result = step(&mut Ctx::new(env, self.chance, &mut inner));
        let mut notices = Vec::new();
        for effect in inner {
            match effect {
                Effect::Send { to, message: m } => self.send(to, message(m)),
                Effect::Arm { timer: t, after } => self.arm_within(timer(t), after),
                Effect::Disarm { timer: t } => self.disarm(timer(t)),
                Effect::Notify(notice) => notices.push(notice),
                Effect::Unexpected(what) => self.unexpected(what),
            }
        }
        (result, notices)
    }
}
