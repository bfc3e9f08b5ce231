//! What is known of one algorithm: every process state, message and spec state by number, and
//! what follows from what.

use vez_core::problem::Court;
use vez_core::{Breach, Debt, Ending, NodeId, Problem, Protocol, Request, Time, Wish};

use crate::code::Code;
use crate::intern::{Intern, PairMap};
use crate::knowledge::{
    Answer, Ask, Case, Census, Duty, Extent, Knowledge, Move, Portrait, Ruling,
};
use crate::model::{Cause, Fact, Local, Model};
use crate::narrate::narrate;
use crate::order;
use crate::{Replay, Step};

/// A message on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Packet<M> {
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    pub(crate) message: M,
}

pub(crate) struct Lore<'a, P: Protocol> {
    pub(crate) model: Model<'a, P>,
    pub(crate) locals: Intern<Local<P>>,
    pub(crate) packets: Intern<Packet<P::Message>>,
    timers: Intern<(NodeId, P::Timer)>,
    spans: Intern<Time>,
    specs: Intern<P::Problem>,
    requests: Intern<Request<P>>,
    testimonies: Intern<(NodeId, Vec<Fact<P>>)>,
    reactions: PairMap,
    answers: Vec<Vec<Answer>>,
    /// What each of them answers.
    asked: Vec<(u32, Code)>,
    /// What is part of a run that is explored.
    real: Real,
    breaches: Vec<Breach>,
    worst_wait: Option<u64>,
}

#[derive(Default)]
struct Real {
    locals: Marks,
    packets: Marks,
    specs: Marks,
    reactions: Marks,
}

/// Some of the numbers there are.
#[derive(Default)]
struct Marks {
    is_marked: Vec<bool>,
    count: u64,
}

impl Marks {
    fn mark(&mut self, id: u32) {
        let index = id as usize;
        if self.is_marked.len() <= index {
            self.is_marked.resize(index + 1, false);
        }
        self.count += u64::from(!self.is_marked[index]);
        self.is_marked[index] = true;
    }

    fn has(&self, id: u32) -> bool {
        self.is_marked.get(id as usize) == Some(&true)
    }
}

impl<'a, P: Protocol> Lore<'a, P> {
    /// The first spec, and the processes before they are born, have the first numbers.
    pub(crate) fn new(model: Model<'a, P>) -> Self {
        let mut lore = Self {
            model,
            locals: Intern::default(),
            packets: Intern::default(),
            timers: Intern::default(),
            spans: Intern::default(),
            specs: Intern::default(),
            requests: Intern::default(),
            testimonies: Intern::default(),
            reactions: PairMap::default(),
            answers: Vec::new(),
            asked: Vec::new(),
            real: Real::default(),
            breaches: Vec::new(),
            worst_wait: None,
        };
        lore.testimonies.id((NodeId(0), Vec::new()));
        let first = lore.specs.id(lore.model.spec());
        lore.real.specs.mark(first);
        for node in lore.model.setting.topology.ids() {
            lore.locals.id(lore.model.unborn(node));
        }
        lore
    }

    /// What `code` stands for, to the process it happens to.
    pub(crate) fn cause(&self, code: Code) -> Cause<P> {
        match code.bare() {
            Code::Hear(packet) => {
                let Packet { from, message, .. } = self.packets.get(packet);
                Cause::Hear { from: *from, message: message.clone() }
            }
            Code::Ask(request) => Cause::Ask(self.requests.get(request).clone()),
            Code::Fire(timer) => Cause::Fire(self.timers.get(timer).1),
            Code::Crash => Cause::Crash,
            Code::Restart { forget } => Cause::Restart { forget },
            Code::Boot => Cause::Boot,
            Code::Pass(span) => Cause::Pass(*self.spans.get(span)),
            code => unreachable!("{code:?} happens to the network"),
        }
    }

    fn learn(&mut self, local: u32, code: Code) -> u32 {
        let cause = self.cause(code);
        let branches = self.model.react(self.locals.get(local), &cause, code.is_unsent());
        let answers = branches.into_iter().map(|branch| {
            let from = branch.next.node;
            let sent = branch.sent.into_iter();
            let sent = sent.map(|(to, message)| self.packets.id(Packet { from, to, message }));
            Answer {
                sent: sent.collect(),
                testimony: match branch.facts.is_empty() {
                    true => 0,
                    false => self.testimonies.id((from, branch.facts)),
                },
                next: self.locals.id(branch.next),
                unexpected: branch.unexpected.is_some(),
            }
        });
        let answers = answers.collect();
        self.answers.push(answers);
        self.asked.push((local, code));
        self.answers.len() as u32 - 1
    }

    fn file(&mut self, breaches: Vec<Breach>) -> u32 {
        let judged = |breach: &Breach| self.model.setting.judges(breach.promise);
        let Some(breach) = breaches.into_iter().find(judged) else { return 0 };
        let known = self.breaches.iter().position(|other| *other == breach);
        let index = known.unwrap_or_else(|| {
            self.breaches.push(breach);
            self.breaches.len() - 1
        });
        index as u32 + 1
    }
}

impl<P: Protocol> Knowledge for Lore<'_, P> {
    fn react(&mut self, local: u32, code: Code, case: Case) -> &[Answer] {
        let word = code.word();
        let index = self.reactions.get(local, word).unwrap_or_else(|| {
            let index = self.learn(local, code);
            self.reactions.insert(local, word, index);
            index
        });
        let answers = &self.answers[index as usize];
        if case == Case::Real {
            self.real.reactions.mark(index);
            for answer in answers {
                self.real.locals.mark(answer.next);
                answer.sent.iter().for_each(|&packet| self.real.packets.mark(packet));
            }
        }
        answers
    }

    fn rule(&mut self, spec: u32, testimony: u32, case: Case) -> Ruling {
        let mut next = self.specs.get(spec).clone();
        let mut breaches = Vec::new();
        let topology = self.model.setting.topology;
        let court = &mut Court { topology, breaches: &mut breaches };
        let &(node, ref facts) = self.testimonies.get(testimony);
        for fact in facts {
            match fact {
                Fact::Asked(request) => next.on_request(node, request, court),
                Fact::Told(notice) => next.on_notice(node, notice, court),
                Fact::Crashed => next.on_crash(node),
                Fact::Restarted => next.on_restart(node),
            }
        }
        let wait = next.worst_wait();
        let ruling = Ruling { spec: self.specs.id(next), breach: self.file(breaches) };
        if case == Case::Real {
            self.worst_wait = self.worst_wait.max(wait);
            self.real.specs.mark(ruling.spec);
        }
        ruling
    }

    fn at_rest(&mut self, spec: u32) -> u32 {
        let mut breaches = Vec::new();
        let topology = self.model.setting.topology;
        let court = &mut Court { topology, breaches: &mut breaches };
        self.specs.get(spec).at_rest(Ending::Quiescent, court);
        self.file(breaches)
    }

    fn ask(&mut self, spec: u32, node: u32) -> Option<Ask> {
        let (spec, node) = (self.specs.get(spec), NodeId(node));
        // Who can do nothing but wait can give up waiting.
        let withdraw = || {
            let withdrawal = P::Problem::request(Wish::Withdraw)?;
            let may = 0 < self.model.setting.options.withdrawals && spec.may(node, &withdrawal);
            may.then_some(withdrawal)
        };
        let request = spec.next_request(node).or_else(withdraw)?;
        let duty = self.model.duty(&request);
        Some(Ask { request: self.requests.id(request), duty })
    }

    fn suspicions(&self) -> Vec<u32> {
        let is_suspicion = |&id: &u32| self.model.duty(self.requests.get(id)) == Duty::Suspect;
        (0..self.requests.len() as u32).filter(is_suspicion).collect()
    }

    fn debts(&self, spec: u32) -> Vec<Debt> {
        let debts = self.specs.get(spec).debts().into_iter();
        debts.filter(|debt| self.model.setting.judges(debt.promise)).collect()
    }

    fn portray(&mut self, local: u32) -> Portrait {
        let local = self.locals.get(local);
        let is_ready = |span: crate::model::Span| span.earliest == Time::ZERO;
        let ready = local.armed.iter().filter(|&&(_, span)| is_ready(span));
        let moments = local.armed.iter().flat_map(|(_, span)| [span.earliest, span.latest]);
        let topology = self.model.setting.topology;
        let age = local.process().map_or(0, |process| process.age(topology));
        Portrait {
            is_up: local.process().is_some(),
            wishes: 0 < local.wishes_left,
            suspicions: 0 < local.suspicions_left,
            withdrawals: 0 < local.withdrawals_left,
            is_over: self.model.setting.options.epoch_max < age,
            timers: ready.map(|&(timer, _)| self.timers.id((local.node, timer))).collect(),
            must_fire: local.armed.iter().any(|(_, span)| span.latest == Time::ZERO),
            next_moment: moments.filter(|&moment| Time::ZERO < moment).min(),
        }
    }

    fn ends(&self, packet: u32) -> (u32, u32) {
        let packet = self.packets.get(packet);
        (packet.from.0, packet.to.0)
    }

    fn is_said(&self, packet: u32) -> bool {
        self.real.packets.has(packet)
    }

    fn span(&mut self, time: Time) -> u32 {
        self.spans.id(time)
    }

    fn extent(&self) -> Extent {
        Extent {
            locals: self.locals.len() as u32,
            packets: self.packets.len() as u32,
            specs: self.specs.len() as u32,
        }
    }

    fn census(&self) -> Census {
        let Real { locals, packets, specs, reactions } = &self.real;
        Census {
            locals: locals.count,
            packets: packets.count,
            specs: specs.count,
            steps: reactions.count,
        }
    }

    // Where every process goes one way only, all come to a halt, and from then on do nothing
    // but hear what changes none of them. If no such message leads to itself, those run out too.
    fn is_finite(&self) -> bool {
        let mut becomes = vec![Vec::new(); self.locals.len()];
        let mut answers = vec![Vec::new(); self.packets.len()];
        for (index, &(local, code)) in (0..).zip(&self.asked) {
            if !self.real.reactions.has(index) {
                continue;
            }
            for answer in &self.answers[index as usize] {
                match code {
                    _ if answer.next != local => becomes[local as usize].push(answer.next),
                    Code::Hear(packet) => answers[packet as usize].extend(&answer.sent),
                    // It changes another: one whose timer is set.
                    Code::Pass(_) => (),
                    _ => return false,
                }
            }
        }
        !order::goes_round(&becomes) && !order::goes_round(&answers)
    }

    fn breach(&self, breach: u32) -> Breach {
        self.breaches[breach as usize - 1].clone()
    }

    fn worst_wait(&self) -> Option<u64> {
        self.worst_wait
    }

    fn tell(&self, boots: &[Move], moves: &[Move]) -> (Vec<Step>, Replay) {
        narrate(self, boots, moves)
    }
}
