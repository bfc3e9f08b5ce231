//! What the search may ask about an algorithm, whatever it is.
//!
//! Everything is asked and answered in numbers, and remembered by who asks. So only the answers
//! are compiled for each algorithm, the search once for all of them; and what is asked of a trait
//! object is asked once for each answer, not for each state.

use vez_core::{Breach, Debt, Time};

use crate::code::Code;
use crate::{Replay, Step};

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

/// What a user's request costs, and whether it may be left unmade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// Who is inside will leave.
    Leave,
    /// Who follows a dead leader may notice.
    Suspect,
    Wish,
    /// Who waits may change its mind.
    Withdraw,
}

/// What there is to know of a process in a state.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts, not a state machine")]
pub(crate) struct Portrait {
    pub(crate) is_up: bool,
    pub(crate) wishes: bool,
    pub(crate) suspicions: bool,
    pub(crate) withdrawals: bool,
    /// It has gone beyond the epochs that are explored.
    pub(crate) is_over: bool,
    /// Those that may run out now.
    pub(crate) timers: Vec<u32>,
    pub(crate) must_fire: bool,
    /// When the next of its timers may, or must, run out.
    pub(crate) next_moment: Option<Time>,
}

/// How much of everything is known. What was only imagined counts too, and is told apart in
/// `Census`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) locals: u32,
    pub(crate) packets: u32,
    pub(crate) specs: u32,
}

/// What the runs that were explored are made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Census {
    pub(crate) locals: u64,
    pub(crate) packets: u64,
    pub(crate) specs: u64,
    /// Steps of processes that were really taken.
    pub(crate) steps: u64,
}

/// Whether something is part of a run that is explored, or is only thought through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    Real,
    Imagined,
}

/// One step of a run, by all that there is to tell of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    pub(crate) code: Code,
    /// Whom it happens to, and what state that is in; `NONE` for what befalls the network.
    pub(crate) node: u32,
    pub(crate) local: u32,
    /// Which of the ways the step can go it goes.
    pub(crate) way: u32,
    /// What is heard or lost; `NONE` if nothing.
    pub(crate) packet: u32,
    pub(crate) uses_up: bool,
    /// Who is cut off, a bit each.
    pub(crate) side: u64,
}

impl Portrait {
    /// Whether two processes look the same to who does not know their names.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let facts = |it: &Self| {
            let left = (it.wishes, it.suspicions, it.withdrawals);
            (it.is_up, left, it.is_over, it.timers.len(), it.must_fire, it.next_moment)
        };
        facts(self) == facts(other)
    }

    /// Whether its user may still ask this.
    pub(crate) fn may(&self, duty: Duty) -> bool {
        match duty {
            Duty::Leave => true,
            Duty::Wish => self.wishes,
            Duty::Suspect => self.suspicions,
            Duty::Withdraw => self.withdrawals,
        }
    }
}

pub(crate) trait Knowledge: Send {
    /// Every way `code` can go for a process in this state.
    fn react(&mut self, local: u32, code: Code, case: Case) -> &[Answer];
    fn rule(&mut self, spec: u32, testimony: u32, case: Case) -> Ruling;
    /// What a run that rests here breaks, plus one; 0 if nothing.
    fn at_rest(&mut self, spec: u32) -> u32;
    fn ask(&mut self, spec: u32, node: u32) -> Option<Ask>;
    /// Every request known that suspects somebody.
    fn suspicions(&self) -> Vec<u32>;
    fn debts(&self, spec: u32) -> Vec<Debt>;
    fn portray(&mut self, local: u32) -> Portrait;
    /// Sender and receiver.
    fn ends(&self, packet: u32) -> (u32, u32);
    /// Whether a message was sent in a run that is explored.
    fn is_said(&self, packet: u32) -> bool;
    /// The number of a span of time.
    fn span(&mut self, time: Time) -> u32;
    fn extent(&self) -> Extent;
    fn census(&self) -> Census;
    /// Whether it shows in what each process did that no run goes on for ever.
    fn is_finite(&self) -> bool;
    /// By its number plus one.
    fn breach(&self, breach: u32) -> Breach;
    /// The largest wait any spec has counted.
    fn worst_wait(&self) -> Option<u64>;
    /// A run in words, and for a simulator: how everyone was born, and then its steps.
    fn tell(&self, boots: &[Move], moves: &[Move]) -> (Vec<Step>, Replay);
}
