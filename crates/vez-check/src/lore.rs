//! All that has been learnt of the system so far, shared by all who explore it: every process
//! state, message and spec state by number, and what follows from what.
//!
//! **Invariant:** what a number stands for never changes.

use vez_core::problem::Court;
use vez_core::{Breach, Debt, Ending, NodeId, Problem, Protocol, Request, Time};

use crate::code::Code;
use crate::intern::{Intern, PairMap};
use crate::model::{Cause, Duty, Fact, Local, Model};

/// A message on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Packet<M> {
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    pub(crate) message: M,
}

/// What is left of the budgets for faults, and how the system is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Weather {
    pub(crate) crashes: u32,
    pub(crate) losses: u32,
    pub(crate) duplicates: u32,
    pub(crate) partitions: u32,
    /// Who is on the other side, a bit each; 0 while whole.
    pub(crate) side: u64,
}

impl Weather {
    pub(crate) fn separates(self, from: u32, to: u32) -> bool {
        (self.side >> from ^ self.side >> to) & 1 == 1
    }
}

/// One way a step goes, in numbers.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) next: u32,
    /// What the spec hears; 0 if nothing.
    pub(crate) testimony: u32,
    pub(crate) sent: Vec<u32>,
    pub(crate) unexpected: bool,
}

/// What the spec makes of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ruling {
    pub(crate) spec: u32,
    /// The breach of a promise that is judged, plus one; 0 if there is none.
    pub(crate) breach: u32,
}

/// What a user may ask now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) request: u32,
    pub(crate) duty: Duty,
}

pub(crate) struct Lore<'a, P: Protocol> {
    pub(crate) model: &'a Model<'a, P>,
    pub(crate) locals: Intern<Local<P>>,
    pub(crate) packets: Intern<Packet<P::Message>>,
    pub(crate) timers: Intern<(NodeId, P::Timer)>,
    pub(crate) spans: Intern<Time>,
    pub(crate) queues: Intern<Vec<u32>>,
    pub(crate) weathers: Intern<Weather>,
    pub(crate) specs: Intern<P::Problem>,
    requests: Intern<Request<P>>,
    testimonies: Intern<(NodeId, Vec<Fact<P>>)>,
    reactions: PairMap,
    answers: Vec<Vec<Answer>>,
    pub(crate) breaches: Vec<Breach>,
    /// The largest wait any spec has counted.
    pub(crate) worst_wait: Option<u64>,
}

impl<'a, P: Protocol> Lore<'a, P> {
    pub(crate) fn new(model: &'a Model<'a, P>) -> Self {
        let mut lore = Self {
            model,
            locals: Intern::default(),
            packets: Intern::default(),
            timers: Intern::default(),
            spans: Intern::default(),
            queues: Intern::default(),
            weathers: Intern::default(),
            specs: Intern::default(),
            requests: Intern::default(),
            testimonies: Intern::default(),
            reactions: PairMap::default(),
            answers: Vec::new(),
            breaches: Vec::new(),
            worst_wait: None,
        };
        lore.testimonies.id((NodeId(0), Vec::new()));
        lore.specs.id(model.spec());
        lore.weathers.id(Weather {
            crashes: model.options.crashes,
            losses: model.options.losses,
            duplicates: model.options.duplicates,
            partitions: model.options.partitions,
            side: 0,
        });
        for node in model.topology.ids() {
            lore.locals.id(model.unborn(node));
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

    pub(crate) fn react(&mut self, local: u32, code: Code) -> &[Answer] {
        let word = code.word();
        let index = match self.reactions.get(local, word) {
            Some(index) => index,
            None => {
                let cause = self.cause(code);
                let branches = self.model.react(self.locals.get(local), &cause, code.is_unsent());
                let answers = branches.into_iter().map(|branch| {
                    let from = branch.next.node;
                    let sent = branch.sent.into_iter();
                    let sent =
                        sent.map(|(to, message)| self.packets.id(Packet { from, to, message }));
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
                let index = self.answers.len() as u32 - 1;
                self.reactions.insert(local, word, index);
                index
            }
        };
        &self.answers[index as usize]
    }

    pub(crate) fn rule(&mut self, spec: u32, testimony: u32) -> Ruling {
        let mut next = self.specs.get(spec).clone();
        let mut breaches = Vec::new();
        let court = &mut Court { topology: self.model.topology, breaches: &mut breaches };
        let &(node, ref facts) = self.testimonies.get(testimony);
        for fact in facts {
            match fact {
                Fact::Asked(request) => next.on_request(node, request, court),
                Fact::Told(notice) => next.on_notice(node, notice, court),
                Fact::Crashed => next.on_crash(node),
                Fact::Restarted => next.on_restart(node),
            }
        }
        self.worst_wait = self.worst_wait.max(next.worst_wait());
        Ruling { spec: self.specs.id(next), breach: self.file(breaches) }
    }

    /// What a run that rests here breaks.
    pub(crate) fn at_rest(&mut self, spec: u32) -> u32 {
        let mut breaches = Vec::new();
        let court = &mut Court { topology: self.model.topology, breaches: &mut breaches };
        self.specs.get(spec).at_rest(Ending::Quiescent, court);
        self.file(breaches)
    }

    fn file(&mut self, breaches: Vec<Breach>) -> u32 {
        let judged = |breach: &Breach| self.model.judges(breach.promise);
        let Some(breach) = breaches.into_iter().find(judged) else { return 0 };
        let known = self.breaches.iter().position(|other| *other == breach);
        let index = known.unwrap_or_else(|| {
            self.breaches.push(breach);
            self.breaches.len() - 1
        });
        index as u32 + 1
    }

    pub(crate) fn ask(&mut self, spec: u32, node: NodeId) -> Option<Ask> {
        let request = self.specs.get(spec).next_request(node)?;
        let duty = self.model.duty(&request);
        Some(Ask { request: self.requests.id(request), duty })
    }

    pub(crate) fn debts(&self, spec: u32) -> Vec<Debt> {
        let debts = self.specs.get(spec).debts().into_iter();
        debts.filter(|debt| self.model.judges(debt.promise)).collect()
    }

    /// How many steps of processes were really taken.
    pub(crate) fn steps(&self) -> u64 {
        self.answers.len() as u64
    }
}
