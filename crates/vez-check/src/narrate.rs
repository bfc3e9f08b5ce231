//! A run in words, and on a clock for a simulator.

use std::collections::BTreeMap;

use vez_core::{NodeId, Problem, Protocol, Reaction, Request, Time, Topology, Wish};

use crate::code::Code;
use crate::knowledge::Move;
use crate::lore::{Lore, Packet};
use crate::mind::NONE;
use crate::model::{Branch, Cause, Fact, Life};
use crate::{Act, Deed, Replay, Step};

/// What never happens within a run.
const FAR: Time = Time::from_secs(3600);

/// Tells a run: its steps, and how to have a simulator take the same.
pub(crate) fn narrate<P: Protocol>(
    lore: &Lore<'_, P>,
    boots: &[Move],
    moves: &[Move],
) -> (Vec<Step>, Replay) {
    let mut teller = Teller::<P> {
        lore,
        topology: lore.model.setting.topology,
        now: Time::ZERO,
        numbers: BTreeMap::new(),
        sent: 0,
        flights: BTreeMap::new(),
        arms: 0,
        armed: Vec::new(),
        visits: BTreeMap::new(),
        replay: Replay::default(),
    };
    for boot in boots {
        let branch = teller.branch(boot);
        teller.carry_out(&branch, 0);
    }
    let mut steps = Vec::new();
    for step in moves {
        if let Code::Pass(_) = step.code {
            continue; // On the simulator's clock every timer runs as long as it is told to.
        }
        teller.now += Time::from_millis(1);
        steps.push(teller.tell(step));
    }
    let Teller { flights, mut replay, .. } = teller;
    replay.messages = flights.into_iter().map(|(number, (_, delays))| (number, delays)).collect();
    (steps, replay)
}

struct Teller<'a, P: Protocol> {
    lore: &'a Lore<'a, P>,
    topology: &'a Topology,
    now: Time,
    /// The numbers of the copies of each packet in flight, oldest first.
    numbers: BTreeMap<u32, Vec<u64>>,
    sent: u64,
    /// When each message was sent, and how long it took each time it was heard.
    flights: BTreeMap<u64, (Time, Vec<Time>)>,
    arms: u64,
    /// The last arming of each timer: of whom, which, its number, when.
    armed: Vec<(NodeId, P::Timer, u64, Time)>,
    /// Whose wish is which input, and since when it has been inside.
    visits: BTreeMap<NodeId, (usize, Time)>,
    replay: Replay,
}

impl<P: Protocol> Teller<'_, P> {
    fn tell(&mut self, step: &Move) -> Step {
        let code = step.code;
        if step.node == NONE {
            return self.tell_network(step);
        }
        let branch = self.branch(step);
        let node = NodeId(step.node);
        let name = self.topology.name(node);
        if code.is_unsent() {
            self.input(Act::CrashUnsent(node));
        }
        let (mut text, deed) = match self.lore.cause(code) {
            Cause::Ask(request) => self.tell_ask(node, &request),
            Cause::Hear { from, message } => {
                let number = self.hear(step.packet, step.uses_up);
                let from_name = self.topology.name(from);
                let is_up = self.lore.locals.get(step.local).process().is_some();
                let text = match (is_up, step.uses_up) {
                    (false, _) => format!("{name} is down and misses {message:?} of {from_name}"),
                    (true, true) => format!("{name} hears {message:?} from {from_name}"),
                    (true, false) => {
                        format!("{name} hears {message:?} from {from_name}, which may come again")
                    }
                };
                (text, Deed::Hear { node, from, number })
            }
            Cause::Fire(timer) => {
                let number = self.fire(node, timer);
                (format!("{name}: {timer:?} runs out"), Deed::Fire { node, number })
            }
            Cause::Crash => {
                self.input(Act::Crash(node));
                (format!("{name} crashes"), Deed::Crash { node })
            }
            Cause::Restart { forget } => {
                self.input(Act::Restart { node, forget });
                let how = if forget { " and has forgotten everything" } else { "" };
                (format!("{name} comes back{how}"), Deed::Restart { node, forget })
            }
            Cause::Boot | Cause::Pass(_) => unreachable!("everyone was born before the first step"),
        };
        for fact in &branch.facts {
            match fact {
                Fact::Told(notice) => {
                    text.push_str(&format!("; told {notice:?}"));
                    if P::Problem::reaction(notice) == Reaction::Hold
                        && let Some((_, since)) = self.visits.get_mut(&node)
                    {
                        *since = self.now;
                    }
                }
                Fact::Crashed if code.is_unsent() => {
                    text.push_str("; it saves, and crashes before anything leaves it");
                }
                Fact::Asked(_) | Fact::Crashed | Fact::Restarted => (),
            }
        }
        self.carry_out(&branch, step.side);
        Step { text, deed }
    }

    fn tell_ask(&mut self, node: NodeId, request: &Request<P>) -> (String, Deed) {
        let is = |wish: &Wish| P::Problem::request(*wish).as_ref() == Some(request);
        let suspects = self.topology.ids().map(Wish::Suspect);
        let wishes = [Wish::Start, Wish::Acquire, Wish::Release, Wish::Withdraw];
        let wish = wishes.into_iter().chain(suspects).find(is).expect("a request is a wish");
        match wish {
            Wish::Start => self.input(Act::Start(node)),
            Wish::Suspect(of) => self.input(Act::Suspect(node, of)),
            Wish::Acquire => {
                self.visits.insert(node, (self.replay.inputs.len(), self.now));
                self.input(Act::Acquire(node, FAR));
            }
            Wish::Release => {
                if let Some((input, since)) = self.visits.remove(&node) {
                    self.replay.inputs[input].1 = Act::Acquire(node, self.now - since);
                }
            }
            Wish::Withdraw => {
                self.visits.remove(&node);
                self.input(Act::Withdraw(node));
            }
        }
        let text = format!("{} asks: {request:?}", self.topology.name(node));
        (text, Deed::Ask { node, wish })
    }

    fn tell_network(&mut self, step: &Move) -> Step {
        let (text, deed) = match step.code {
            Code::Split(side) => {
                let is_far = |node: &NodeId| side >> node.0 & 1 == 1;
                let (far, near): (Vec<NodeId>, Vec<NodeId>) = self.topology.ids().partition(is_far);
                let side = u64::from(side);
                self.input(Act::Split { side });
                let (far, near) = (self.topology.names(far), self.topology.names(near));
                (format!("{far} cannot reach {near} any more"), Deed::Split { side })
            }
            Code::Heal => {
                self.input(Act::Heal);
                ("everyone can reach everyone again".to_owned(), Deed::Heal)
            }
            _ => {
                let Packet { from, to, message } = self.lore.packets.get(step.packet).clone();
                let (from, to) = (self.topology.name(from), self.topology.name(to));
                let number = self.lose(step.packet);
                (format!("{message:?} from {from} to {to} is lost"), Deed::Lose { number })
            }
        };
        Step { text, deed }
    }

    fn input(&mut self, act: Act) {
        self.replay.inputs.push((self.now, act));
    }

    /// The step as the process took it.
    fn branch(&self, step: &Move) -> Branch<P> {
        let cause = self.lore.cause(step.code);
        let local = self.lore.locals.get(step.local);
        let mut branches = self.lore.model.react(local, &cause, step.code.is_unsent());
        branches.swap_remove(step.way as usize)
    }

    fn carry_out(&mut self, branch: &Branch<P>, side: u64) {
        let from = branch.next.node;
        for (to, message) in &branch.sent {
            self.sent += 1;
            if (side >> from.0 ^ side >> to.0) & 1 == 1 {
                continue; // The simulator loses it too.
            }
            let packet = Packet { from, to: *to, message: message.clone() };
            let packet = self.lore.packets.find(&packet).expect("it was sent before");
            self.numbers.entry(packet).or_default().push(self.sent);
            self.flights.insert(self.sent, (self.now, vec![FAR]));
        }
        for &timer in &branch.arms {
            self.arms += 1;
            self.armed.retain(|&(node, other, ..)| (node, other) != (from, timer));
            self.armed.push((from, timer, self.arms, self.now));
            self.replay.timers.push((self.arms, FAR));
        }
        self.replay.choices.extend(&branch.choices);
        if matches!(branch.next.life, Life::Down(_)) {
            self.visits.remove(&from);
        }
    }

    fn hear(&mut self, packet: u32, uses_up: bool) -> u64 {
        let numbers = self.numbers.get_mut(&packet).expect("it was in flight");
        let number = if uses_up { numbers.remove(0) } else { numbers[0] };
        let (since, delays) = self.flights.get_mut(&number).expect("it was sent");
        delays.retain(|&delay| delay != FAR);
        delays.push(self.now - *since);
        if !uses_up {
            delays.push(FAR);
        }
        number
    }

    fn lose(&mut self, packet: u32) -> u64 {
        let numbers = self.numbers.get_mut(&packet).expect("it was in flight");
        let number = numbers.remove(0);
        let (_, delays) = self.flights.get_mut(&number).expect("it was sent");
        delays.retain(|&delay| delay != FAR);
        number
    }

    fn fire(&mut self, node: NodeId, timer: P::Timer) -> u64 {
        let is_it =
            |&&(other, armed, ..): &&(NodeId, P::Timer, u64, Time)| (other, armed) == (node, timer);
        let &(.., number, since) = self.armed.iter().find(is_it).expect("it was armed");
        self.replay.timers[number as usize - 1].1 = self.now - since;
        number
    }
}
