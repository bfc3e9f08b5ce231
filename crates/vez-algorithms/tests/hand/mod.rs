//! A run played by hand: the test says who asks what and which message arrives next, so that it
//! can be as unlucky as it likes.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::collections::{BTreeMap, VecDeque};

use vez_core::kind::kind_of;
use vez_core::problem::{MutexNotice, MutexRequest};
use vez_core::{Ctx, Effect, Env, Event, Mutex, NodeId, Protocol, Seeded, Topology};

pub(crate) struct Hand<P: Protocol<Problem = Mutex>> {
    topology: Topology,
    config: P::Config,
    processes: Vec<P>,
    /// What is on its way, by (from, to), oldest first.
    flights: BTreeMap<(NodeId, NodeId), VecDeque<P::Message>>,
    inside: Vec<u64>,
    /// Everyone who ever entered, in order.
    pub(crate) entered: Vec<u64>,
    pub(crate) unexpected: Vec<&'static str>,
}

impl<P: Protocol<Problem = Mutex>> Hand<P> {
    /// `n` processes with uids `1..=n`, wired as their algorithm likes it.
    pub(crate) fn new(n: u32, config: P::Config) -> Self {
        let topology = Topology::of(P::META.layout, n).unwrap();
        P::validate(&config, &topology).unwrap();
        let (flights, inside) = (BTreeMap::new(), Vec::new());
        let (entered, unexpected, processes) = (Vec::new(), Vec::new(), Vec::new());
        let mut hand = Self { topology, config, processes, flights, inside, entered, unexpected };
        for node in hand.topology.ids() {
            let mut effects = Vec::new();
            let env = Env { me: node, topology: &hand.topology, config: &hand.config };
            let process = P::start(None, &mut Ctx::new(env, &mut Seeded(0), &mut effects));
            hand.processes.push(process);
            hand.carry_out(node, effects);
        }
        hand
    }

    pub(crate) fn acquire(&mut self, uid: u64) {
        self.step(self.node(uid), Event::Request(MutexRequest::Acquire));
    }

    pub(crate) fn release(&mut self, uid: u64) {
        assert!(self.inside.contains(&uid), "P{uid} is not inside");
        self.inside.retain(|&inside| inside != uid);
        self.step(self.node(uid), Event::Request(MutexRequest::Release));
    }

    pub(crate) fn withdraw(&mut self, uid: u64) {
        self.step(self.node(uid), Event::Request(MutexRequest::Withdraw));
    }

    pub(crate) fn fire(&mut self, uid: u64, timer: P::Timer) {
        self.step(self.node(uid), Event::Timer(timer));
    }

    /// The oldest message from one to the other arrives. Its kind.
    pub(crate) fn deliver(&mut self, from: u64, to: u64) -> &'static str {
        let link = (self.node(from), self.node(to));
        let message = self.flights.get_mut(&link).and_then(VecDeque::pop_front);
        self.hear(link, message.unwrap_or_else(|| panic!("nothing from P{from} to P{to}")))
    }

    /// The newest arrives, overtaking all others.
    pub(crate) fn deliver_newest(&mut self, from: u64, to: u64) -> &'static str {
        let link = (self.node(from), self.node(to));
        let message = self.flights.get_mut(&link).and_then(VecDeque::pop_back);
        self.hear(link, message.unwrap_or_else(|| panic!("nothing from P{from} to P{to}")))
    }

    /// Everything on its way arrives, and everything that causes, in order on every link.
    pub(crate) fn deliver_all(&mut self) {
        while let Some((&(from, to), _)) = self.flights.iter().find(|(_, queue)| !queue.is_empty())
        {
            self.deliver(self.topology.uid(from), self.topology.uid(to));
        }
    }

    /// As if the other had said this.
    pub(crate) fn say(&mut self, from: u64, to: u64, message: P::Message) {
        let link = (self.node(from), self.node(to));
        self.flights.entry(link).or_default().push_back(message);
    }

    /// The kinds of what is on its way from one to the other, oldest first.
    pub(crate) fn on_the_way(&self, from: u64, to: u64) -> Vec<&'static str> {
        let queue = self.flights.get(&(self.node(from), self.node(to)));
        queue
            .map_or(Vec::new(), |queue| queue.iter().map(|message| kind_of(message).name).collect())
    }

    /// Who is inside now.
    pub(crate) fn inside(&self) -> &[u64] {
        &self.inside
    }

    fn node(&self, uid: u64) -> NodeId {
        self.topology.find(uid).unwrap()
    }

    fn hear(&mut self, (from, to): (NodeId, NodeId), message: P::Message) -> &'static str {
        let kind = kind_of(&message).name;
        self.step(to, Event::Message { from, message });
        kind
    }

    fn step(&mut self, node: NodeId, event: Event<P>) {
        let mut effects = Vec::new();
        let env = Env { me: node, topology: &self.topology, config: &self.config };
        let process = &mut self.processes[node.index()];
        process.step(event, &mut Ctx::new(env, &mut Seeded(0), &mut effects));
        self.carry_out(node, effects);
    }

    fn carry_out(&mut self, node: NodeId, effects: Vec<Effect<P>>) {
        let mut local = Vec::new();
        for effect in effects {
            match effect {
                Effect::Send { to, message } if to == node => local.push(message),
                Effect::Send { to, message } => {
                    self.flights.entry((node, to)).or_default().push_back(message);
                }
                Effect::Notify(MutexNotice::Entered { .. }) => {
                    self.inside.push(self.topology.uid(node));
                    self.entered.push(self.topology.uid(node));
                }
                Effect::Notify(MutexNotice::Expelled) => unreachable!("none of these expel"),
                Effect::Unexpected(what) => self.unexpected.push(what),
                // The test fires the timers it wants fired.
                Effect::Arm { .. } | Effect::Disarm { .. } => (),
            }
        }
        for message in local {
            self.step(node, Event::Message { from: node, message });
        }
    }
}
