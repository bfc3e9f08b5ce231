//! The way to one peer where nothing may be lost: letters are numbered, kept until they have been
//! heard, and sent again on the next connection.
//!
//! **Invariant:** what was meant for one life of the peer never reaches another: a letter is meant
//! for the life that had last been heard of, on any connection, when it was written. A broken
//! connection between two live processes loses nothing and repeats nothing.
//!
//! Where messages may be lost but must not be read by others, the same way serves: then nothing is
//! kept, and what cannot go at once is lost.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::counters::Counters;
use crate::node::Event;
use crate::tls::{self, Tls};
use crate::wire::{Frame, Frames, Greeting, Letter, Parcel, encode};

/// A peer that is down or slow is remembered this much; beyond it, the newest is dropped.
pub(crate) const WAITING_MAX: usize = 1 << 16;
/// Where messages may be lost, no more than this waits for a connection that is slow.
pub(crate) const LOSSY_MAX: usize = 1 << 10;
const RETRY_FIRST: Duration = Duration::from_millis(10);
const RETRY_MAX: Duration = Duration::from_millis(250);
const ANSWER_WITHIN: Duration = Duration::from_secs(3);
/// As much as is written at once.
const BATCH: usize = 1 << 16;

pub(crate) struct Link {
    pub(crate) peer: u64,
    pub(crate) address: String,
    pub(crate) greeting: Greeting,
    pub(crate) tls: Option<Arc<Tls>>,
    /// Whether messages may be lost: then none is kept.
    pub(crate) is_lossy: bool,
    /// Each with the life of the peer it is meant for; 0 for whichever answers first.
    pub(crate) letters: mpsc::Receiver<(u64, Parcel)>,
    /// The peer's latest life that anybody here has heard of.
    pub(crate) latest: Arc<AtomicU64>,
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) counters: Arc<Counters>,
}

/// What has been said and not been heard, and for which life.
#[derive(Default)]
struct Waiting {
    letters: VecDeque<Written>,
    /// The number of the last letter.
    last: u64,
}

/// A letter as it is sent, once or again.
struct Written {
    /// The life it is meant for.
    life: u64,
    number: u64,
    frame: Vec<u8>,
}

impl Waiting {
    fn add(&mut self, (life, parcel): (u64, Parcel)) -> bool {
        if WAITING_MAX <= self.letters.len() {
            return false;
        }
        self.last += 1;
        let (number, mut frame) = (self.last, Vec::new());
        encode(&Frame::Letter(Letter { number, parcel }), &mut frame);
        self.letters.push_back(Written { life, number, frame });
        true
    }

    fn heard(&mut self, number: u64) {
        while self.letters.front().is_some_and(|letter| letter.number <= number) {
            self.letters.pop_front();
        }
    }

    /// A life has answered. It gets nothing that was meant for an earlier one. How many letters
    /// were dropped.
    fn meet(&mut self, life: u64, heard: u64) -> usize {
        self.heard(heard);
        let before = self.letters.len();
        self.letters.retain(|letter| letter.life == 0 || life <= letter.life);
        // What was for anybody is for this one from now on.
        self.letters.iter_mut().for_each(|letter| letter.life = life.max(letter.life));
        before - self.letters.len()
    }
}

impl Link {
    /// Connects, and connects again, until the process ends.
    pub(crate) async fn run(mut self) {
        let mut waiting = Waiting::default();
        let mut pause = RETRY_FIRST;
        loop {
            match self.talk(&mut waiting).await {
                Ok(()) => return,
                Err(End::Refused(why)) => {
                    if self.events.send(Event::Refused { peer: self.peer, why }).await.is_err() {
                        return;
                    }
                }
                Err(End::Broken(talked)) if talked => pause = RETRY_FIRST,
                Err(End::Broken(_)) => (),
            }
            // What is said meanwhile waits; the rest of the queue is bounded by the channel.
            let deadline = sleep(pause);
            tokio::pin!(deadline);
            loop {
                tokio::select! {
                    () = &mut deadline => break,
                    parcel = self.letters.recv() => match parcel {
                        Some(parcel) => self.keep(&mut waiting, parcel),
                        None => return,
                    },
                }
                self.lose(&mut waiting);
            }
            pause = (pause * 2).min(RETRY_MAX);
        }
    }

    fn keep(&self, waiting: &mut Waiting, parcel: (u64, Parcel)) {
        if !waiting.add(parcel) {
            self.counters.overflowed(self.peer);
        }
    }

    /// Nobody is there to hear what may be lost.
    fn lose(&self, waiting: &mut Waiting) {
        if self.is_lossy {
            waiting.letters.drain(..).for_each(|_| self.counters.unsent());
        }
    }

    /// One connection, until it breaks; `Ok` when nobody will say anything more.
    async fn talk(&mut self, waiting: &mut Waiting) -> Result<(), End> {
        let unsaid = |_| End::Broken(false);
        let connected = timeout(ANSWER_WITHIN, tls::connect(&self.address, self.tls.as_deref()));
        let stream = connected.await.map_err(|_| End::Broken(false))?.map_err(unsaid)?;
        let (reader, mut writer) = tokio::io::split(stream);
        let mut frames = Frames::new(reader);
        let mut bytes = Vec::new();
        encode(&Frame::Hello(self.greeting), &mut bytes);
        writer.write_all(&bytes).await.map_err(unsaid)?;
        writer.flush().await.map_err(unsaid)?;
        let answer = timeout(ANSWER_WITHIN, frames.next()).await;
        match answer.map_err(|_| End::Broken(false))?.map_err(unsaid)? {
            Frame::Welcome { life, heard } => {
                // What was said while nobody answered is not for whoever answers now.
                while let Ok(parcel) = self.letters.try_recv() {
                    self.keep(waiting, parcel);
                }
                self.lose(waiting);
                self.latest.fetch_max(life, Ordering::Relaxed);
                let dropped = waiting.meet(life, heard);
                self.counters.outlived(dropped);
            }
            Frame::Refused(why) => return Err(End::Refused(why)),
            _ => return Err(End::Broken(false)),
        }
        self.exchange(waiting, &mut frames, &mut writer).await.map_err(|_| End::Broken(true))
    }

    async fn exchange<R, W>(
        &mut self,
        waiting: &mut Waiting,
        frames: &mut Frames<R>,
        writer: &mut W,
    ) -> io::Result<()>
    where
        R: tokio::io::AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let mut bytes = Vec::new();
        // Everything not known to be heard goes again.
        let mut unsent = 0;
        loop {
            bytes.clear();
            while unsent < waiting.letters.len() && bytes.len() < BATCH {
                bytes.extend_from_slice(&waiting.letters[unsent].frame);
                unsent += 1;
            }
            if !bytes.is_empty() {
                writer.write_all(&bytes).await?;
                writer.flush().await?;
                if unsent < waiting.letters.len() {
                    continue;
                }
                if self.is_lossy {
                    waiting.letters.clear();
                    unsent = 0;
                }
            }
            tokio::select! {
                parcel = self.letters.recv() => {
                    let Some(parcel) = parcel else { return Ok(()) };
                    self.keep(waiting, parcel);
                    while unsent + 64 > waiting.letters.len()
                        && let Ok(parcel) = self.letters.try_recv()
                    {
                        self.keep(waiting, parcel);
                    }
                }
                frame = frames.next() => match frame? {
                    Frame::Heard(number) => {
                        let before = waiting.letters.len();
                        waiting.heard(number);
                        unsent = unsent.saturating_sub(before - waiting.letters.len());
                    }
                    Frame::Probe => {
                        bytes.clear();
                        encode(&Frame::Here, &mut bytes);
                        writer.write_all(&bytes).await?;
                        writer.flush().await?;
                    }
                    _ => return Err(io::ErrorKind::InvalidData.into()),
                },
            }
        }
    }
}

enum End {
    /// Whether anything was said on it.
    Broken(bool),
    Refused(String),
}

#[cfg(test)]
mod tests {
    use super::{Parcel, WAITING_MAX, Waiting};
    use crate::VectorClock;

    fn parcel(life: u64, id: u64) -> (u64, Parcel) {
        (life, Parcel { id, clock: VectorClock::default(), payload: vec![] })
    }

    fn numbers(waiting: &Waiting) -> Vec<u64> {
        waiting.letters.iter().map(|letter| letter.number).collect()
    }

    #[test]
    fn the_same_life_gets_again_what_it_has_not_heard() {
        let mut waiting = Waiting::default();
        (1..=4).for_each(|id| assert!(waiting.add(parcel(0, id))));
        assert_eq!(waiting.meet(7, 0), 0);
        waiting.heard(1);
        assert_eq!(waiting.meet(7, 2), 0);
        assert_eq!(numbers(&waiting), [3, 4]);
    }

    #[test]
    fn another_life_gets_nothing_that_was_meant_for_the_last() {
        let mut waiting = Waiting::default();
        (1..=3).for_each(|id| assert!(waiting.add(parcel(7, id))));
        // Its next life had called before this one was written.
        assert!(waiting.add(parcel(8, 4)));
        assert_eq!(waiting.meet(8, 0), 3);
        assert_eq!(numbers(&waiting), [4]);
    }

    #[test]
    fn what_was_for_anybody_is_for_the_first_who_answers() {
        let mut waiting = Waiting::default();
        assert!(waiting.add(parcel(0, 1)));
        assert_eq!(waiting.meet(7, 0), 0);
        assert_eq!(waiting.meet(8, 0), 1);
    }

    #[test]
    fn a_peer_that_never_listens_is_remembered_so_much_and_no_more() {
        let mut waiting = Waiting::default();
        let kept = (0..WAITING_MAX as u64 + 5).filter(|&id| waiting.add(parcel(0, id))).count();
        assert_eq!(kept, WAITING_MAX);
    }
}
