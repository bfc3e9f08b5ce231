//! The driver: feeds one process what happens to it, and carries out what it wants done.
//!
//! The driver's law: what must survive is on the disk before anything of the step leaves.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use vez_core::{Channel, NodeId, Reaction, Seeded, Time, Wish};
use vez_sim::What;

use crate::clock::{self, VectorClock};
use crate::counters::Counters;
use crate::door::{OUTLIVED, TAKEN};
use crate::group::{Group, GroupError};
use crate::machine::{Asked, Machine, Out, Outbox};
use crate::record::Record;
use crate::store::Store;
use crate::tls::Tls;
use crate::ways::{Call, Ways};
use crate::wire::{Greeting, Parcel, VERSION, digest};

/// How a process is run.
pub struct Settings {
    pub group: Group,
    pub id: u64,
    /// Where it keeps what must survive; nowhere if `None`.
    pub data: Option<PathBuf>,
    pub record: Option<Record>,
    pub tls: Option<Tls>,
    /// Whether to listen beyond this machine without certificates.
    pub insecure: bool,
    pub seed: u64,
}

/// What a process's user may order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Wish(Wish),
    /// Ask to enter; leave after this long.
    Visit(Time),
    /// Report what has been counted.
    Count,
    Stop,
}

/// What a process's user is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// It listens and has booted.
    Ready {
        address: String,
        life: u64,
        again: bool,
    },
    Notice {
        kind: &'static str,
        text: String,
        value: Value,
    },
    /// A wish that was passed on.
    Asked(Wish),
    /// An order that makes no sense now.
    Refused(&'static str),
    Unexpected(&'static str),
    /// Something went wrong that it can live with; each is said once.
    Warning(String),
    Counted(Vec<(&'static str, u64)>),
}

#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    #[error("{0}")]
    Group(#[from] GroupError),
    #[error("cannot listen on {0}: {1}")]
    Listen(String, io::Error),
    #[error("{0} is not of this machine alone: give certificates, or say --insecure")]
    Open(String),
    #[error("{0}: {1}")]
    Data(PathBuf, io::Error),
    #[error("{0}: what was saved is of another algorithm: {1}")]
    Foreign(PathBuf, String),
    #[error("cannot write the trace: {0}")]
    Trace(io::Error),
    #[error("id {id}: {why}, says {peer}")]
    Taken { id: u64, why: String, peer: u64 },
}

/// What happens to a process from outside.
pub(crate) enum Event {
    Heard { from: NodeId, parcel: Parcel },
    Refused { peer: u64, why: String },
}

/// As many events wait for a process; then who brings them waits.
const EVENTS_MAX: usize = 1024;

pub struct Node {
    me: NodeId,
    id: u64,
    life: u64,
    n: u32,
    machine: Box<dyn Machine>,
    data: Option<PathBuf>,
    store: Option<Store>,
    record: Option<Record>,
    clock: VectorClock,
    /// The next message's number.
    messages: u64,
    timers: BTreeMap<u32, Instant>,
    chance: Seeded,
    leave_at: Option<Instant>,
    visit: Option<Time>,
    ways: Ways,
    events: mpsc::Receiver<Event>,
    counters: Arc<Counters>,
    address: String,
    tasks: JoinSet<()>,
}

impl Node {
    /// Listens, and finds what its last life left. Nothing has been booted yet.
    pub async fn open(machine: Box<dyn Machine>, settings: Settings) -> Result<Self, NodeError> {
        let Settings { group, id, data, mut record, tls, insecure, seed } = settings;
        let (me, group) = (group.node(id)?, Arc::new(group));
        let n = group.members.len() as u32;
        let store = match &data {
            Some(path) => {
                Some(Store::open(path).map_err(|error| NodeError::Data(path.clone(), error))?)
            }
            None => None,
        };
        let life = store.as_ref().map_or_else(|| clock::now().as_micros() as u64, Store::life);
        let digest = digest(&[machine.meta().name, &group.agreed()]);
        if let Some(record) = &mut record {
            let written = record.head(machine.meta().name, id, life, &group);
            written.map_err(NodeError::Trace)?;
        }
        let greeting = Greeting { version: VERSION, group: digest, id, life };
        let counters = Arc::new(Counters::default());
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let mut tasks = JoinSet::new();
        let call = Call { group: &group, id, greeting, events: sender, counters: &counters };
        let is_lossy = machine.meta().channel == Channel::Lossy;
        let (ways, address) = call.open(is_lossy, tls, insecure, &mut tasks).await?;
        let first = clock::first_count(life);
        Ok(Self {
            me,
            id,
            life,
            n,
            machine,
            data,
            store,
            record,
            clock: VectorClock::new(n, me, first),
            messages: first,
            timers: BTreeMap::new(),
            chance: Seeded::stream(seed, 1),
            leave_at: None,
            visit: None,
            ways,
            events,
            counters,
            address,
            tasks,
        })
    }

    /// Lives until it is told to stop. After that its address and its directory are free.
    pub async fn run(
        mut self,
        orders: mpsc::Receiver<Order>,
        told: mpsc::UnboundedSender<Told>,
    ) -> Result<(), NodeError> {
        let ended = self.live(orders, told).await;
        self.tasks.shutdown().await;
        ended
    }

    async fn live(
        &mut self,
        mut orders: mpsc::Receiver<Order>,
        told: mpsc::UnboundedSender<Told>,
    ) -> Result<(), NodeError> {
        let (tells, keeps) = (self.record.is_some(), self.store.is_some());
        let mut out = Outbox { tells, keeps, ..Outbox::default() };
        let counters = Arc::clone(&self.counters);
        // Lasts from turn to turn: to begin waiting anew would cost every message a lock.
        let warned = counters.warned();
        tokio::pin!(warned);
        self.boot(&mut out, &told)?;
        let mut was_alarm = false;
        loop {
            out.clear();
            let moment = self.next_alarm();
            let is_due = moment.is_some_and(|moment| moment <= Instant::now());
            // What is due at once needs no waiting, as long as others have their turns, too.
            if is_due && !was_alarm {
                was_alarm = true;
                self.ring(&mut out, &told)?;
                continue;
            }
            was_alarm = false;
            let alarm = async {
                match moment {
                    // A sleep lasts a millisecond at least.
                    Some(_) if is_due => (),
                    Some(moment) => sleep_until(moment).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // No dice for every message. Who is flooded still obeys, and timers had their turn.
                biased;
                order = orders.recv() => match order {
                    None | Some(Order::Stop) => return Ok(()),
                    Some(order) => self.obey(order, &mut out, &told)?,
                },
                event = self.events.recv() => match event {
                    Some(Event::Heard { from, parcel }) => {
                        self.hear(from, &parcel, &mut out, &told)?;
                    }
                    Some(Event::Refused { peer, why }) if why == TAKEN || why == OUTLIVED => {
                        return Err(NodeError::Taken { id: self.id, why, peer });
                    }
                    Some(Event::Refused { peer, why }) => {
                        self.counters.warn(format!("{peer} refuses us: {why}"));
                    }
                    None => return Ok(()),
                },
                () = &mut warned => {
                    warned.set(counters.warned());
                    for warning in counters.take_warnings() {
                        say(&told, Told::Warning(warning));
                    }
                }
                () = alarm => self.ring(&mut out, &told)?,
            }
        }
    }

    /// When a timer rings next, or a visit is over.
    fn next_alarm(&self) -> Option<Instant> {
        self.timers.values().copied().chain(self.leave_at).min()
    }

    /// Does what is due.
    fn ring(
        &mut self,
        out: &mut Outbox,
        told: &mpsc::UnboundedSender<Told>,
    ) -> Result<(), NodeError> {
        if self.leave_at.is_some_and(|at| at <= Instant::now()) {
            self.leave_at = None;
            return self.ask(Wish::Release, out, told);
        }
        let Some((_, timer)) = self.timers.iter().map(|(&timer, &at)| (at, timer)).min() else {
            return Ok(());
        };
        self.timers.remove(&timer);
        self.machine.fire(timer, out);
        let cause = |(kind, text)| What::Timer { kind, text };
        let cause = out.cause.take().map(cause);
        self.conclude(cause, out, told)
    }

    fn boot(
        &mut self,
        out: &mut Outbox,
        told: &mpsc::UnboundedSender<Told>,
    ) -> Result<(), NodeError> {
        let left = self.store.as_ref().and_then(|store| store.left().map(<[u8]>::to_vec));
        let again = left.is_some();
        let address = self.address.clone();
        say(told, Told::Ready { address, life: self.life, again });
        let path = self.data.clone().unwrap_or_default();
        let booted = self.machine.boot(left.as_deref(), out);
        booted.map_err(|error| NodeError::Foreign(path, error))?;
        let cause = if again { What::Restart { forgot: false } } else { What::Boot };
        self.conclude(Some(cause), out, told)
    }

    fn hear(
        &mut self,
        from: NodeId,
        parcel: &Parcel,
        out: &mut Outbox,
        told: &mpsc::UnboundedSender<Told>,
    ) -> Result<(), NodeError> {
        if !self.machine.hear(from, &parcel.payload, out) {
            self.counters.unreadable();
            return Ok(());
        }
        self.clock.merge(&parcel.clock);
        let from = self.machine.topology().uid(from);
        let cause = |(kind, text)| What::Receive { from, id: parcel.id, kind, text };
        let cause = out.cause.take().map(cause);
        self.conclude(cause, out, told)
    }

    fn obey(
        &mut self,
        order: Order,
        out: &mut Outbox,
        told: &mpsc::UnboundedSender<Told>,
    ) -> Result<(), NodeError> {
        match order {
            Order::Wish(wish) => {
                if wish == Wish::Acquire {
                    self.visit = None;
                }
                self.ask(wish, out, told)
            }
            Order::Visit(hold) => {
                self.visit = Some(hold);
                self.ask(Wish::Acquire, out, told)
            }
            Order::Count => {
                say(told, Told::Counted(self.counters.list()));
                Ok(())
            }
            Order::Stop => Ok(()),
        }
    }

    fn ask(
        &mut self,
        wish: Wish,
        out: &mut Outbox,
        told: &mpsc::UnboundedSender<Told>,
    ) -> Result<(), NodeError> {
        match self.machine.ask(wish, out) {
            Asked::Done => {
                say(told, Told::Asked(wish));
                let asked = out.asked.take().zip(out.cause.take());
                let cause =
                    asked.map(|(request, (kind, text))| What::Request { request, kind, text });
                self.conclude(cause, out, told)
            }
            Asked::Refused(why) => {
                say(told, Told::Refused(why));
                Ok(())
            }
        }
    }

    /// Saves, writes the trace, and only then lets anything leave.
    fn conclude(
        &mut self,
        cause: Option<What>,
        out: &mut Outbox,
        told: &mpsc::UnboundedSender<Told>,
    ) -> Result<(), NodeError> {
        if let (Some(durable), Some(store)) = (out.durable.take(), &mut self.store) {
            let path = self.data.clone().unwrap_or_default();
            store.save(durable).map_err(|error| NodeError::Data(path, error))?;
        }
        self.clock.tick(self.me);
        let mut events: Vec<What> = cause.into_iter().collect();
        if let Some((state, changed)) = out.state.take() {
            events.push(What::State { state, changed });
        }
        let mut sends = Vec::new();
        for effect in out.effects.drain(..) {
            self.carry_out(effect, &mut events, &mut sends, told);
        }
        if let Some(record) = &mut self.record {
            let written = record.write(self.id, self.life, &self.clock, events);
            written.map_err(NodeError::Trace)?;
        }
        for (to, parcel) in sends {
            self.ways.send(to, parcel);
        }
        Ok(())
    }

    fn carry_out(
        &mut self,
        effect: Out,
        events: &mut Vec<What>,
        sends: &mut Vec<(NodeId, Parcel)>,
        told: &mpsc::UnboundedSender<Told>,
    ) {
        let tells = self.record.is_some();
        let mut tell = |what: What| {
            if tells {
                events.push(what);
            }
        };
        match effect {
            Out::Send { to, payload, kind, text } => {
                self.messages += 1;
                let id = self.messages * u64::from(self.n) + u64::from(self.me.0);
                sends.push((to, Parcel { id, clock: self.clock.clone(), payload }));
                let to = self.machine.topology().uid(to);
                tell(What::Send { to, id, kind, text, message: Value::Null });
            }
            Out::Arm { timer, after, kind, text } => {
                let width = after.end().as_micros() - after.start().as_micros();
                let extra = self.chance.below_u64(width.saturating_add(1));
                let micros = after.start().as_micros().saturating_add(extra);
                self.timers.insert(timer, Instant::now() + Duration::from_micros(micros));
                if tells {
                    let until = Time::from_micros(clock::now().as_micros() as u64 + micros);
                    tell(What::Arm { kind, text, until });
                }
            }
            Out::Disarm { timer, kind, text } => {
                self.timers.remove(&timer);
                tell(What::Disarm { kind, text });
            }
            Out::Notice { kind, text, value, reaction } => {
                self.leave_at = match (reaction, self.visit) {
                    (Reaction::Hold, Some(hold)) => {
                        Some(Instant::now() + Duration::from_micros(hold.as_micros()))
                    }
                    (Reaction::Outside, _) => None,
                    _ => self.leave_at,
                };
                say(told, Told::Notice { kind, text: text.clone(), value: value.clone() });
                tell(What::Notice { notice: value, kind, text });
            }
            Out::Unexpected(text) => {
                say(told, Told::Unexpected(text));
                tell(What::Unexpected { text });
            }
        }
    }
}

fn say(told: &mpsc::UnboundedSender<Told>, what: Told) {
    // Whoever listened may have gone; the process lives on.
    let _ = told.send(what);
}
