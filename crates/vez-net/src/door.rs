//! Where peers come in whose messages may not be lost.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;
use vez_core::NodeId;

use crate::counters::{Counters, Garbage};
use crate::group::Group;
use crate::node::Event;
use crate::tls::{self, Tls};
use crate::wire::{Frame, Frames, Greeting, Letter, VERSION, encode};

/// To a second process that claims an id, and to a first that slept while another took its place:
/// the refusals that end it.
pub(crate) const TAKEN: &str = "the id is taken by a process that is alive";
pub(crate) const OUTLIVED: &str = "the id was taken by a later process";

const GREETING_WITHIN: Duration = Duration::from_secs(3);
const PROBE_WITHIN: Duration = Duration::from_secs(1);
/// Hearing is confirmed after so many letters: no more than this is kept for nothing by who wrote
/// them. By number and not by time, because a timer would have to be set for every single letter.
const CONFIRM_AFTER: u64 = 64;
/// Strangers who have not said who they are.
const STRANGERS_MAX: usize = 64;

pub(crate) struct Door {
    /// How this process itself greets.
    pub(crate) greeting: Greeting,
    pub(crate) group: Arc<Group>,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) callers: Vec<Caller>,
}

/// What is known of one peer as a caller.
#[derive(Default)]
pub(crate) struct Caller {
    known: Mutex<Known>,
    /// The last letter heard of that life. Held while one is passed on, so that letters stay in
    /// order when a connection takes another's place.
    heard: tokio::sync::Mutex<u64>,
    connections: AtomicU64,
    /// The latest life that anybody here has heard of.
    pub(crate) latest: Arc<AtomicU64>,
}

#[derive(Default)]
struct Known {
    life: u64,
    /// How to ask whether the open connection's process is there.
    probe: Option<mpsc::Sender<oneshot::Sender<()>>>,
}

impl Door {
    pub(crate) fn callers(n: usize) -> Vec<Caller> {
        (0..n).map(|_| Caller::default()).collect()
    }

    pub(crate) async fn run(self: Arc<Self>, listener: TcpListener) {
        let strangers = Arc::new(Semaphore::new(STRANGERS_MAX));
        // Who is inside goes when the door does.
        let mut guests = JoinSet::new();
        loop {
            while guests.try_join_next().is_some() {}
            let Ok(turn) = Arc::clone(&strangers).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, _)) => {
                    let door = Arc::clone(&self);
                    guests.spawn(async move {
                        // What goes wrong is the caller's to mend: it calls again.
                        let _ = door.admit(stream, turn).await;
                    });
                }
                // Out of files, say: others may close some.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    async fn admit(
        &self,
        stream: tokio::net::TcpStream,
        turn: tokio::sync::OwnedSemaphorePermit,
    ) -> io::Result<()> {
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        let accepted = timeout(GREETING_WITHIN, tls::accept(stream, self.tls.as_deref()));
        let stream = accepted.await.map_err(late)?.inspect_err(|_| self.garbage(Garbage::Tls))?;
        let (reader, mut writer) = tokio::io::split(stream);
        let mut frames = Frames::new(reader);
        let greeting = match timeout(GREETING_WITHIN, frames.next()).await.map_err(late)? {
            Ok(Frame::Hello(greeting)) => greeting,
            Ok(_) => {
                self.garbage(Garbage::Frame);
                return Ok(());
            }
            Err(error) => {
                if error.kind() == io::ErrorKind::InvalidData {
                    self.garbage(Garbage::Frame);
                }
                return Err(error);
            }
        };
        let mut bytes = Vec::new();
        match self.objection(greeting).await {
            Err(why) => {
                self.garbage(Garbage::Stranger);
                encode(&Frame::Refused(why), &mut bytes);
                writer.write_all(&bytes).await?;
                writer.flush().await
            }
            Ok(node) => {
                drop(turn);
                let (probe, probes) = mpsc::channel(1);
                let caller = &self.callers[node.index()];
                let connection = 1 + caller.connections.fetch_add(1, Ordering::Relaxed);
                let heard = self.settle(node, greeting.life, probe).await;
                encode(&Frame::Welcome { life: self.greeting.life, heard }, &mut bytes);
                writer.write_all(&bytes).await?;
                writer.flush().await?;
                let ended = self.listen(node, connection, frames, writer, probes).await;
                if caller.connections.load(Ordering::Relaxed) == connection {
                    lock(&caller.known).probe = None;
                }
                if ended.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::InvalidData) {
                    self.garbage(Garbage::Frame);
                }
                ended
            }
        }
    }

    /// Who it is, if it may come in.
    async fn objection(&self, greeting: Greeting) -> Result<NodeId, String> {
        let Greeting { version, group, id, life } = greeting;
        if version != VERSION {
            return Err(format!("speaks version {version}; expected {VERSION}"));
        }
        if group != self.greeting.group {
            return Err("is of another group, epoch or algorithm".to_owned());
        }
        let node = self.group.node(id).map_err(|error| error.to_string())?;
        if self.group.member(node).left {
            return Err(format!("{id} has left the group"));
        }
        if id == self.greeting.id {
            return Err(TAKEN.to_owned());
        }
        let caller = &self.callers[node.index()];
        let (known, probe) = {
            let known = lock(&caller.known);
            (known.life, known.probe.clone())
        };
        if life < known {
            return Err(OUTLIVED.to_owned());
        }
        if known < life
            && let Some(probe) = probe
        {
            let (answer, answered) = oneshot::channel();
            let asked = probe.send(answer).await.is_ok();
            if asked && matches!(timeout(PROBE_WITHIN, answered).await, Ok(Ok(()))) {
                return Err(TAKEN.to_owned());
            }
        }
        Ok(node)
    }

    /// From now on this life is the one that is heard. The last letter heard of it.
    async fn settle(
        &self,
        node: NodeId,
        life: u64,
        probe: mpsc::Sender<oneshot::Sender<()>>,
    ) -> u64 {
        let caller = &self.callers[node.index()];
        let mut heard = caller.heard.lock().await;
        let mut known = lock(&caller.known);
        known.probe = Some(probe);
        caller.latest.fetch_max(life, Ordering::Relaxed);
        if known.life != life {
            known.life = life;
            *heard = 0;
        }
        *heard
    }

    async fn listen<R, W>(
        &self,
        node: NodeId,
        connection: u64,
        mut frames: Frames<R>,
        mut writer: W,
        mut probes: mpsc::Receiver<oneshot::Sender<()>>,
    ) -> io::Result<()>
    where
        R: tokio::io::AsyncRead + Unpin,
        W: tokio::io::AsyncWrite + Unpin,
    {
        let caller = &self.callers[node.index()];
        let mut bytes = Vec::new();
        let mut confirmed = 0;
        let mut asking: Option<oneshot::Sender<()>> = None;
        loop {
            bytes.clear();
            tokio::select! {
                frame = frames.next() => match frame? {
                    Frame::Letter(Letter { number, parcel }) => {
                        let mut last = match caller.heard.try_lock() {
                            Ok(last) => last,
                            Err(_) => caller.heard.lock().await,
                        };
                        if caller.connections.load(Ordering::Relaxed) != connection {
                            return Ok(());
                        }
                        if *last < number {
                            *last = number;
                            let event = Event::Heard { from: node, parcel };
                            self.events.send(event).await.map_err(io::Error::other)?;
                        }
                        if CONFIRM_AFTER <= number.saturating_sub(confirmed) {
                            confirmed = number;
                            encode(&Frame::Heard(number), &mut bytes);
                        }
                    }
                    Frame::Here => {
                        // Nobody may be waiting for it any more.
                        asking.take().map(|answer| answer.send(()));
                    }
                    _ => return Err(io::ErrorKind::InvalidData.into()),
                },
                Some(answer) = probes.recv() => {
                    asking = Some(answer);
                    encode(&Frame::Probe, &mut bytes);
                }
            }
            if !bytes.is_empty() {
                writer.write_all(&bytes).await?;
                writer.flush().await?;
            }
        }
    }

    fn garbage(&self, what: Garbage) {
        self.counters.garbage(what);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
