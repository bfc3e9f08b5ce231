//! Who leads and who is inside, as the processes tell it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::script::Condition;

#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) seats: BTreeMap<u64, Seat>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Seat {
    pub(super) state: State,
    leader: Option<u64>,
    suspects: BTreeSet<u64>,
    waiting: bool,
    inside: bool,
    /// Since it was last told to.
    entered: bool,
    entries: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Starting,
    Up,
    Stopped,
    Down,
}

impl View {
    pub(super) fn new(ids: &[u64]) -> Self {
        Self { seats: ids.iter().map(|&id| (id, Seat::default())).collect() }
    }

    fn seat(&mut self, id: u64) -> &mut Seat {
        self.seats.entry(id).or_default()
    }

    pub(super) fn is(&self, id: u64, state: State) -> bool {
        self.seats.get(&id).is_some_and(|seat| seat.state == state)
    }

    pub(super) fn set(&mut self, id: u64, state: State) {
        let seat = self.seat(id);
        if matches!(state, State::Down | State::Starting) {
            *seat = Seat { entries: seat.entries, ..Seat::default() };
        }
        seat.state = state;
    }

    /// It is about to be told to enter.
    pub(super) fn asked(&mut self, id: u64) {
        let seat = self.seat(id);
        (seat.entered, seat.waiting) = (false, true);
    }

    /// Takes in what a process tells; what people should read of it.
    pub(super) fn hear(&mut self, id: u64, event: &Value) -> Option<String> {
        let seat = self.seat(id);
        let text = |key: &str| event[key].as_str().unwrap_or_default();
        match text("event") {
            "ready" => {
                seat.state = State::Up;
                let again = if event["again"] == true { " again" } else { "" };
                Some(format!("P{id} is up{again}"))
            }
            "notice" => seat.notice(id, text("kind"), &event["notice"]),
            "asked" => match text("wish") {
                "acquire" => {
                    seat.waiting = true;
                    Some(format!("P{id} asks to enter"))
                }
                "release" => {
                    seat.inside = false;
                    Some(format!("P{id} leaves"))
                }
                "withdraw" => {
                    seat.waiting = false;
                    Some(format!("P{id} withdraws"))
                }
                wish => Some(format!("P{id}: {wish}")),
            },
            "refused" => {
                seat.waiting &= seat.entered;
                Some(format!("P{id} refuses: {}", text("why")))
            }
            "warning" => Some(format!("P{id} warns: {}", text("text"))),
            "unexpected" => Some(format!("P{id} finds the impossible: {}", text("text"))),
            "counted" => Some(format!("P{id} counts {}", event["counts"])),
            _ => None,
        }
    }

    /// Whether what is waited for is so.
    pub(super) fn holds(&self, condition: &Condition) -> bool {
        let seat = |id: u64| self.seats.get(&id).cloned().unwrap_or_default();
        let is_up = |id: u64| self.is(id, State::Up);
        let mut up = self.seats.values().filter(|seat| seat.state == State::Up);
        match *condition {
            Condition::Ready(Some(id)) => is_up(id),
            Condition::Ready(None) => self.seats.values().all(|seat| seat.state != State::Starting),
            Condition::Leader(wanted) => {
                let Some(leader) = up.next().and_then(|seat| seat.leader) else { return false };
                is_up(leader)
                    && wanted.is_none_or(|wanted| wanted == leader)
                    && up.all(|seat| seat.leader == Some(leader))
            }
            Condition::Among(ref whom) => {
                let leader = whom.first().and_then(|&id| seat(id).leader);
                leader.is_some_and(|leader| whom.contains(&leader) && is_up(leader))
                    && whom.iter().all(|&id| is_up(id) && seat(id).leader == leader)
            }
            Condition::Leads(id) => is_up(id) && seat(id).leader == Some(id),
            Condition::Follows(id, whom) => is_up(id) && seat(id).leader == Some(whom),
            Condition::NoLeader(id) => is_up(id) && seat(id).leader.is_none(),
            Condition::Suspects(id, whom) => seat(id).suspects.contains(&whom),
            Condition::Entered(id) => seat(id).entered,
            Condition::Left(id) => seat(id).entered && !seat(id).inside,
            Condition::Idle => up.all(|seat| !seat.waiting && !seat.inside),
        }
    }

    pub(super) fn status(&self) -> String {
        let mut out = String::new();
        for (id, seat) in &self.seats {
            let state = match seat.state {
                State::Starting => "starting",
                State::Up => "up",
                State::Stopped => "stopped",
                State::Down => "down",
            };
            out += &format!("  P{id:<4} {state:<9}");
            match seat.leader {
                Some(leader) if leader == *id => out += " leads",
                Some(leader) => out += &format!(" follows P{leader}"),
                None => (),
            }
            if seat.inside {
                out += " is inside";
            } else if seat.waiting {
                out += " waits";
            }
            if seat.entries > 0 {
                out += &format!(" ({} × inside)", seat.entries);
            }
            out.push('\n');
        }
        out
    }
}

impl Seat {
    fn notice(&mut self, id: u64, kind: &str, notice: &Value) -> Option<String> {
        let inner = &notice[kind];
        let other = inner["id"].as_u64();
        match (kind, other) {
            ("Leader", Some(leader)) => {
                let is_news = self.leader.replace(leader) != Some(leader);
                let term = match inner["term"].as_u64() {
                    Some(0) | None => String::new(),
                    Some(term) => format!(" (term {term})"),
                };
                let words = match leader == id {
                    true => format!("P{id} leads{term}"),
                    false => format!("P{id} follows P{leader}{term}"),
                };
                is_news.then_some(words)
            }
            ("NoLeader", _) => self.leader.take().map(|_| format!("P{id} knows of no leader")),
            ("Suspects", Some(whom)) => {
                self.suspects.insert(whom);
                Some(format!("P{id} suspects P{whom}"))
            }
            ("Trusts", Some(whom)) => {
                self.suspects.remove(&whom);
                Some(format!("P{id} hears P{whom} again"))
            }
            ("Entered", _) => {
                (self.waiting, self.inside, self.entered) = (false, true, true);
                self.entries += 1;
                let fence = match &inner["fence"] {
                    Value::Null => String::new(),
                    Value::String(fence) => format!(" (fence {fence})"),
                    fence => format!(" (fence {fence})"),
                };
                Some(format!("P{id} enters{fence}"))
            }
            ("Expelled", _) => {
                self.inside = false;
                Some(format!("P{id} is expelled"))
            }
            _ => None,
        }
    }
}
