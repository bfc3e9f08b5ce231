//! The same two systems written for `stateright`, as its users write them: actors, one timer for
//! each thing a user or a process may do of itself. What they count is asserted to be what we
//! count.

use std::borrow::Cow;

use stateright::actor::{Actor, ActorModel, Id, Network, Out, model_timeout};
use stateright::{Checker, Expectation, Model};

/// How many different states there are; and that nothing is wrong in any.
pub(crate) fn agrawala(n: usize, threads: usize) -> u64 {
    let model = ActorModel::new((), ())
        .actors((0..n).map(|_| Agrawala { n }))
        .init_network(Network::new_unordered_nonduplicating([]))
        .property(Expectation::Always, "mutual exclusion", |_, state| {
            let held =
                |process: &&std::sync::Arc<Process>| matches!(process.state, State::Held { .. });
            state.actor_states.iter().filter(held).count() <= 1
        });
    count(&model.checker().threads(threads).spawn_bfs().join())
}

pub(crate) fn ring(n: usize, threads: usize) -> u64 {
    let model = ActorModel::new((), ())
        .actors((0..n).map(|_| Ring { n }))
        .init_network(Network::new_ordered([]))
        .property(Expectation::Always, "one leader", |_, state| {
            let leaders = state.actor_states.iter().enumerate();
            leaders.filter(|(index, member)| member.leader == Some(*index)).count() <= 1
        });
    count(&model.checker().threads(threads).spawn_bfs().join())
}

fn count<M: Model>(checker: &impl Checker<M>) -> u64
where
    M::State: Clone + PartialEq + std::fmt::Debug,
    M::Action: Clone + PartialEq + std::fmt::Debug,
{
    checker.assert_properties();
    checker.unique_state_count() as u64
}

struct Agrawala {
    n: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Process {
    clock: u8,
    state: State,
    /// A set, a bit each.
    deferred: u8,
    /// As the timer says; but sets of timers are fingerprinted without a mark between one
    /// process's and the next's, so that states that differ only there would be taken for one.
    wishes: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    Released,
    Wanted { time: u8, awaiting: u8 },
    Held { time: u8 },
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Message {
    Request(u8),
    Agree,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Wish {
    Acquire,
    Release,
}

impl Actor for Agrawala {
    type Msg = Message;
    type State = Process;
    type Timer = Wish;
    type Random = ();
    type Storage = ();

    fn on_start(&self, _id: Id, _storage: &Option<()>, out: &mut Out<Self>) -> Process {
        out.set_timer(Wish::Acquire, model_timeout());
        Process { clock: 0, state: State::Released, deferred: 0, wishes: true }
    }

    fn on_timeout(&self, id: Id, state: &mut Cow<'_, Process>, wish: &Wish, out: &mut Out<Self>) {
        let process = state.to_mut();
        match wish {
            Wish::Acquire => {
                process.clock += 1;
                process.wishes = false;
                let everyone = (1 << self.n) - 1;
                let awaiting = everyone & !(1 << usize::from(id));
                process.state = State::Wanted { time: process.clock, awaiting };
                for peer in (0..self.n).filter(|&peer| peer != usize::from(id)) {
                    out.send(peer.into(), Message::Request(process.clock));
                }
            }
            Wish::Release => {
                process.state = State::Released;
                let deferred = std::mem::take(&mut process.deferred);
                for peer in (0..self.n).filter(|peer| deferred >> peer & 1 == 1) {
                    out.send(peer.into(), Message::Agree);
                }
            }
        }
    }

    fn on_msg(
        &self,
        id: Id,
        state: &mut Cow<'_, Process>,
        from: Id,
        message: Message,
        out: &mut Out<Self>,
    ) {
        let process = state.to_mut();
        match message {
            Message::Request(theirs) => {
                process.clock = process.clock.max(theirs);
                let defers = match process.state {
                    State::Released => false,
                    State::Wanted { time, .. } => (time, id) < (theirs, from),
                    State::Held { .. } => true,
                };
                if defers {
                    process.deferred |= 1 << usize::from(from);
                } else {
                    out.send(from, Message::Agree);
                }
            }
            Message::Agree => {
                let State::Wanted { time, awaiting } = &mut process.state else { return };
                let time = *time;
                *awaiting &= !(1 << usize::from(from));
                if *awaiting == 0 {
                    process.state = State::Held { time };
                    out.set_timer(Wish::Release, model_timeout());
                }
            }
        }
    }
}

struct Ring {
    n: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Member {
    participant: bool,
    leader: Option<usize>,
    /// As the timer says.
    may_start: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Word {
    Election(usize),
    Elected(usize),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Start;

impl Ring {
    /// Descending.
    fn uid(&self, id: Id) -> usize {
        self.n - usize::from(id)
    }

    fn say(&self, id: Id, word: Word, out: &mut Out<Self>) {
        out.send(Id::from((usize::from(id) + 1) % self.n), word);
    }

    fn stand(&self, id: Id, member: &mut Member, out: &mut Out<Self>) {
        (member.participant, member.may_start) = (true, false);
        out.cancel_timer(Start);
        self.say(id, Word::Election(self.uid(id)), out);
    }

    fn follow(member: &mut Member, leader: usize) {
        (member.participant, member.leader) = (false, Some(leader));
    }
}

impl Actor for Ring {
    type Msg = Word;
    type State = Member;
    type Timer = Start;
    type Random = ();
    type Storage = ();

    fn on_start(&self, _id: Id, _storage: &Option<()>, out: &mut Out<Self>) -> Member {
        out.set_timer(Start, model_timeout());
        Member { participant: false, leader: None, may_start: true }
    }

    fn on_timeout(&self, id: Id, state: &mut Cow<'_, Member>, _start: &Start, out: &mut Out<Self>) {
        self.stand(id, state.to_mut(), out);
    }

    fn on_msg(
        &self,
        id: Id,
        state: &mut Cow<'_, Member>,
        _from: Id,
        word: Word,
        out: &mut Out<Self>,
    ) {
        let me = usize::from(id);
        match word {
            Word::Election(uid) if uid > self.uid(id) => {
                (state.to_mut().participant, state.to_mut().may_start) = (true, false);
                out.cancel_timer(Start);
                self.say(id, Word::Election(uid), out);
            }
            Word::Election(uid) if uid == self.uid(id) => {
                Self::follow(state.to_mut(), me);
                self.say(id, Word::Elected(me), out);
            }
            Word::Election(_) if state.participant => (),
            Word::Election(_) => self.stand(id, state.to_mut(), out),
            Word::Elected(leader) if leader == me => (),
            Word::Elected(leader) => {
                Self::follow(state.to_mut(), leader);
                self.say(id, Word::Elected(leader), out);
            }
        }
    }
}
