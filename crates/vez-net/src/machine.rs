//! One process with its algorithm's types erased: bytes and names in, bytes and names out.
//!
//! What is generic stops here, so that the driver is compiled once.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;

use serde_json::Value;
use vez_core::kind::kind_of;
use vez_core::problem::Court;
use vez_core::{
    Ctx, Effect, Env, Event, Meta, NodeId, Problem, Protocol, Reaction, Seeded, Terms, Time,
    Topology, Wish,
};
use vez_sim::{Picture, describe};

/// A process, whatever its algorithm.
pub trait Machine: Send {
    fn meta(&self) -> Meta;
    fn topology(&self) -> &Topology;
    /// Boots it; `saved` is what its last life wrote down. Fails if that cannot be read.
    fn boot(&mut self, saved: Option<&[u8]>, out: &mut Outbox) -> Result<(), String>;
    fn ask(&mut self, wish: Wish, out: &mut Outbox) -> Asked;
    /// Whether the message could be read.
    fn hear(&mut self, from: NodeId, payload: &[u8], out: &mut Outbox) -> bool;
    fn fire(&mut self, timer: u32, out: &mut Outbox);
}

/// What became of a wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Done,
    /// It makes no sense, and why.
    Refused(&'static str),
}

/// What a step wants done, in order.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Whether to tell in words what happens.
    pub tells: bool,
    /// Whether anything outlives the process.
    pub keeps: bool,
    /// What must survive, if that changed: to be safe before anything else is done.
    pub durable: Option<Vec<u8>>,
    pub effects: Vec<Out>,
    /// How the cause reads: kind and text.
    pub cause: Option<(&'static str, String)>,
    pub asked: Option<Value>,
    /// The state after the step, and what of it changed.
    pub state: Option<(Value, Vec<String>)>,
}

#[derive(Debug)]
pub enum Out {
    Send { to: NodeId, payload: Vec<u8>, kind: &'static str, text: String },
    Arm { timer: u32, after: RangeInclusive<Time>, kind: &'static str, text: String },
    Disarm { timer: u32, kind: &'static str, text: String },
    Notice { kind: &'static str, text: String, value: Value, reaction: Reaction },
    Unexpected(&'static str),
}

impl Outbox {
    pub fn clear(&mut self) {
        self.durable = None;
        self.effects.clear();
        self.cause = None;
        self.asked = None;
        self.state = None;
    }
}

pub struct Process<P: Protocol> {
    me: NodeId,
    topology: Arc<Topology>,
    config: P::Config,
    chance: Seeded,
    state: Option<P>,
    /// What its own user has asked and been told: who asks out of turn is refused.
    user: P::Problem,
    saved: P::Durable,
    shown: Option<Picture>,
    /// Timers by number, in the order first seen.
    timers: Vec<P::Timer>,
    effects: Vec<Effect<P>>,
    own: VecDeque<P::Message>,
}

/// A process that talks to itself for longer than this never stops.
const OWN_MAX: u32 = 10_000;

impl<P: Protocol> Process<P> {
    pub fn new(me: NodeId, topology: Arc<Topology>, config: P::Config, seed: u64) -> Self {
        let user = P::Problem::new(&topology, Terms::of::<P>(&config, &topology));
        Self {
            user,
            me,
            topology,
            config,
            chance: Seeded(seed),
            state: None,
            saved: P::Durable::default(),
            shown: None,
            timers: Vec::new(),
            effects: Vec::new(),
            own: VecDeque::new(),
        }
    }

    fn step(&mut self, event: Event<P>) {
        let env = Env { me: self.me, topology: &self.topology, config: &self.config };
        let state = self.state.as_mut().expect("a process is booted before it hears anything");
        state.step(event, &mut Ctx::new(env, &mut self.chance, &mut self.effects));
    }

    /// Takes in what the step said; then the process hears what it said to itself.
    fn conclude(&mut self, out: &mut Outbox) {
        for _ in 0..OWN_MAX {
            for effect in std::mem::take(&mut self.effects) {
                self.carry_out(effect, out);
            }
            let Some(message) = self.own.pop_front() else { break };
            self.step(Event::Message { from: self.me, message });
        }
        let state = self.state.as_ref().expect("it is up");
        if out.keeps {
            let durable = state.durable();
            if durable != self.saved {
                out.durable = Some(postcard::to_allocvec(&durable).expect("plain data"));
                self.saved = durable;
            }
        }
        if out.tells {
            let picture = describe(state);
            let changed = picture.changes(self.shown.as_ref(), &self.topology);
            if !changed.is_empty() {
                let changed = if self.shown.is_none() { Vec::new() } else { changed };
                out.state = Some((picture.json(&self.topology), changed));
                self.shown = Some(picture);
            }
        }
    }

    fn carry_out(&mut self, effect: Effect<P>, out: &mut Outbox) {
        let topology = &self.topology;
        out.effects.push(match effect {
            Effect::Send { to, message } if to == self.me => {
                self.own.push_back(message);
                return;
            }
            Effect::Send { to, message } => Out::Send {
                to,
                payload: postcard::to_allocvec(&message).expect("plain data"),
                kind: named(&message, out.tells),
                text: told(&message, out.tells, topology),
            },
            Effect::Arm { timer, after } => Out::Arm {
                kind: named(&timer, out.tells),
                text: told(&timer, out.tells, topology),
                after,
                timer: number(&mut self.timers, timer),
            },
            Effect::Disarm { timer } => Out::Disarm {
                kind: named(&timer, out.tells),
                text: told(&timer, out.tells, topology),
                timer: number(&mut self.timers, timer),
            },
            Effect::Notify(notice) => {
                let court = &mut Court { topology, breaches: &mut Vec::new() };
                self.user.on_notice(self.me, &notice, court);
                let picture = describe(&notice);
                Out::Notice {
                    kind: kind_of(&notice).name,
                    text: picture.text(topology),
                    value: picture.json(topology),
                    reaction: P::Problem::reaction(&notice),
                }
            }
            Effect::Unexpected(what) => Out::Unexpected(what),
        });
    }
}

impl<P: Protocol> Machine for Process<P> {
    fn meta(&self) -> Meta {
        P::META
    }

    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn boot(&mut self, saved: Option<&[u8]>, out: &mut Outbox) -> Result<(), String> {
        let saved: Option<P::Durable> = match saved {
            None => None,
            Some([]) => Some(P::Durable::default()),
            Some(bytes) => Some(postcard::from_bytes(bytes).map_err(|error| error.to_string())?),
        };
        self.saved = saved.clone().unwrap_or_default();
        let env = Env { me: self.me, topology: &self.topology, config: &self.config };
        let ctx = &mut Ctx::new(env, &mut self.chance, &mut self.effects);
        self.state = Some(P::start(saved, ctx));
        self.conclude(out);
        Ok(())
    }

    fn ask(&mut self, wish: Wish, out: &mut Outbox) -> Asked {
        let Some(request) = P::Problem::request(wish) else {
            return Asked::Refused("this algorithm cannot be asked that");
        };
        if !self.user.may(self.me, &request) {
            return Asked::Refused("not now: it is waiting, or inside, or neither");
        }
        let court = &mut Court { topology: &self.topology, breaches: &mut Vec::new() };
        self.user.on_request(self.me, &request, court);
        if out.tells {
            let picture = describe(&request);
            out.asked = Some(picture.json(&self.topology));
            out.cause = Some((kind_of(&request).name, picture.text(&self.topology)));
        }
        self.step(Event::Request(request));
        self.conclude(out);
        Asked::Done
    }

    fn hear(&mut self, from: NodeId, payload: &[u8], out: &mut Outbox) -> bool {
        let Ok(message) = postcard::from_bytes::<P::Message>(payload) else { return false };
        if out.tells {
            out.cause = Some((kind_of(&message).name, told(&message, true, &self.topology)));
        }
        self.step(Event::Message { from, message });
        self.conclude(out);
        true
    }

    fn fire(&mut self, timer: u32, out: &mut Outbox) {
        let timer = self.timers[timer as usize];
        if out.tells {
            out.cause = Some((kind_of(&timer).name, told(&timer, true, &self.topology)));
        }
        self.step(Event::Timer(timer));
        self.conclude(out);
    }
}

/// An algorithm has a handful of timers, or one for each peer.
fn number<T: PartialEq>(known: &mut Vec<T>, value: T) -> u32 {
    let place = known.iter().position(|other| *other == value);
    place.unwrap_or_else(|| {
        known.push(value);
        known.len() - 1
    }) as u32
}

fn named<T: serde::Serialize>(value: &T, tells: bool) -> &'static str {
    if tells { kind_of(value).name } else { "" }
}

fn told<T: serde::Serialize>(value: &T, tells: bool, topology: &Topology) -> String {
    if tells { describe(value).text(topology) } else { String::new() }
}
