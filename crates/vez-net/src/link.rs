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
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, WriteHalf};
use tokio::sync::{Notify, mpsc};
use tokio::time::{sleep, timeout};

use crate::counters::Counters;
use crate::node::Event;
use crate::tls::{self, Stream, Tls};
use crate::wire::{Frame, Frames, Greeting, Letter, Parcel, encode};

/// A peer that is down or slow is remembered this much; beyond it, the newest is dropped.
pub(crate) const WAITING_MAX: usize = 1 << 16;
/// Where messages may be lost, no more than this waits for a connection that is slow.
const LOSSY_MAX: usize = 1 << 10;
const RETRY_FIRST: Duration = Duration::from_millis(10);
const RETRY_MAX: Duration = Duration::from_millis(250);
const ANSWER_WITHIN: Duration = Duration::from_secs(3);
/// Most frames have room in so much.
const FRAME_USUAL: usize = 96;
/// As much as is written at once.
const BATCH: usize = 1 << 16;

/// What is said to one peer, and the connection while there is one.
pub(crate) struct Line {
    peer: u64,
    /// Whether messages may be lost: then none is kept.
    is_lossy: bool,
    said: Mutex<Said<WriteHalf<Stream>>>,
    /// Something has not gone at once: whoever keeps the connection goes on with it.
    more: Notify,
    /// The peer's latest life that anybody here has heard of.
    latest: Arc<AtomicU64>,
    counters: Arc<Counters>,
}

impl Line {
    pub(crate) fn new(
        peer: u64,
        is_lossy: bool,
        latest: Arc<AtomicU64>,
        counters: Arc<Counters>,
    ) -> Self {
        Self { peer, is_lossy, said: Mutex::default(), more: Notify::new(), latest, counters }
    }

    /// Says it at once if nothing stands in the way: a task between the step and the socket would
    /// cost every message as much as the step.
    pub(crate) fn say(&self, parcel: Parcel) {
        let life = self.latest.load(Ordering::Relaxed);
        let mut said = self.said();
        match self.is_lossy {
            true if said.writer.is_none() || LOSSY_MAX <= said.waiting.letters.len() => {
                self.counters.unsent();
            }
            _ if !said.waiting.add(life, parcel) => self.counters.overflowed(self.peer),
            _ => self.push(&mut said),
        }
    }

    fn push(&self, said: &mut Said<WriteHalf<Stream>>) {
        // Somebody is on it already, who is to be woken when there is room.
        if said.is_stuck || said.writer.is_none() {
            return;
        }
        let pushed = said.push(&mut Context::from_waker(Waker::noop()), self.is_lossy);
        if !matches!(pushed, Poll::Ready(Ok(()))) {
            said.is_stuck = true;
            self.more.notify_one();
        }
    }

    /// Writes what did not go at once, until the connection breaks.
    async fn go_on(&self) -> io::Result<Infallible> {
        loop {
            poll_fn(|context| {
                let mut said = self.said();
                let pushed = said.push(context, self.is_lossy);
                said.is_stuck = pushed.is_pending();
                pushed
            })
            .await?;
            self.more.notified().await;
        }
    }

    fn said(&self) -> MutexGuard<'_, Said<WriteHalf<Stream>>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A life of the peer has answered: what is for it goes there from now on.
    fn meet(&self, life: u64, heard: u64, writer: WriteHalf<Stream>) {
        self.latest.fetch_max(life, Ordering::Relaxed);
        let mut said = self.said();
        let dropped = said.waiting.meet(life, heard);
        self.counters.outlived(dropped);
        // All that waits is for `go_on` to begin with.
        said.is_stuck = true;
        said.writer = Some(writer);
    }

    fn heard(&self, number: u64) {
        let mut said = self.said();
        let gone = said.waiting.heard(number);
        said.written = said.written.saturating_sub(gone);
    }

    /// It wants to know whether this process is there.
    fn answer(&self) {
        let mut said = self.said();
        encode(&Frame::Here, &mut said.bytes);
        self.push(&mut said);
    }

    /// The connection is no more: everything not known to be heard goes again on the next, and
    /// nobody is there to hear what may be lost.
    fn part(&self) {
        let mut said = self.said();
        if self.is_lossy {
            said.waiting.letters.drain(..).for_each(|_| self.counters.unsent());
        }
        *said = Said { waiting: std::mem::take(&mut said.waiting), ..Said::default() };
    }
}

/// What has been said, and how far it has been written on the connection there is.
struct Said<W> {
    waiting: Waiting,
    /// So many of those that wait are in `bytes` or gone.
    written: usize,
    /// Whole frames, and what of them has gone.
    bytes: Vec<u8>,
    gone: usize,
    writer: Option<W>,
    is_stuck: bool,
}

impl<W> Default for Said<W> {
    fn default() -> Self {
        Self {
            waiting: Waiting::default(),
            written: 0,
            bytes: Vec::new(),
            gone: 0,
            writer: None,
            is_stuck: false,
        }
    }
}

impl<W: AsyncWrite + Unpin> Said<W> {
    /// Writes until nothing is left or the connection takes no more for now.
    fn push(&mut self, context: &mut Context<'_>, is_lossy: bool) -> Poll<io::Result<()>> {
        let Some(writer) = &mut self.writer else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        let mut writer = Pin::new(writer);
        loop {
            if self.gone == self.bytes.len() {
                self.bytes.clear();
                self.gone = 0;
                while self.bytes.len() < BATCH
                    && let Some(letter) = self.waiting.letters.get(self.written)
                {
                    self.bytes.extend_from_slice(&letter.frame);
                    self.written += 1;
                }
                if is_lossy {
                    self.waiting.letters.drain(..self.written);
                    self.written = 0;
                }
                if self.bytes.is_empty() {
                    return writer.as_mut().poll_flush(context);
                }
            }
            match ready!(writer.as_mut().poll_write(context, &self.bytes[self.gone..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                gone => self.gone += gone,
            }
        }
    }
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
    /// The life it is meant for; 0 for whichever answers first.
    life: u64,
    number: u64,
    frame: Vec<u8>,
}

impl Waiting {
    fn add(&mut self, life: u64, parcel: Parcel) -> bool {
        if WAITING_MAX <= self.letters.len() {
            return false;
        }
        self.last += 1;
        let (number, mut frame) = (self.last, Vec::with_capacity(FRAME_USUAL));
        encode(&Frame::Letter(Letter { number, parcel }), &mut frame);
        self.letters.push_back(Written { life, number, frame });
        true
    }

    /// How many need not be kept any longer.
    fn heard(&mut self, number: u64) -> usize {
        let before = self.letters.len();
        while self.letters.front().is_some_and(|letter| letter.number <= number) {
            self.letters.pop_front();
        }
        before - self.letters.len()
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

/// Who keeps the connection to one peer.
pub(crate) struct Link {
    pub(crate) address: String,
    pub(crate) greeting: Greeting,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) line: Arc<Line>,
    pub(crate) events: mpsc::Sender<Event>,
}

impl Link {
    /// Connects, and connects again, until the process ends.
    pub(crate) async fn run(self) {
        let mut pause = RETRY_FIRST;
        loop {
            let end = self.talk().await;
            self.line.part();
            match end {
                End::Refused(why) => {
                    let refused = Event::Refused { peer: self.line.peer, why };
                    if self.events.send(refused).await.is_err() {
                        return;
                    }
                }
                End::Broken => pause = RETRY_FIRST,
                End::Unanswered => (),
            }
            sleep(pause).await;
            pause = (pause * 2).min(RETRY_MAX);
        }
    }

    /// One connection, until it breaks.
    async fn talk(&self) -> End {
        match timeout(ANSWER_WITHIN, self.greet()).await {
            Err(_) | Ok(Err(_)) => End::Unanswered,
            Ok(Ok(Err(why))) => End::Refused(why),
            Ok(Ok(Ok(frames))) => {
                // Whatever broke it, it is tried again.
                let _ = self.exchange(frames).await;
                End::Broken
            }
        }
    }

    /// Connects and says who calls; why not, if it is refused.
    async fn greet(&self) -> io::Result<Result<Frames<impl AsyncRead + Unpin + use<>>, String>> {
        let stream = tls::connect(&self.address, self.tls.as_deref()).await?;
        let (reader, mut writer) = tokio::io::split(stream);
        let mut frames = Frames::new(reader);
        let mut bytes = Vec::new();
        encode(&Frame::Hello(self.greeting), &mut bytes);
        writer.write_all(&bytes).await?;
        writer.flush().await?;
        match frames.next().await? {
            Frame::Welcome { life, heard } => self.line.meet(life, heard, writer),
            Frame::Refused(why) => return Ok(Err(why)),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
        Ok(Ok(frames))
    }

    async fn exchange(&self, mut frames: Frames<impl AsyncRead + Unpin>) -> io::Result<Infallible> {
        let writing = self.line.go_on();
        tokio::pin!(writing);
        loop {
            tokio::select! {
                ended = &mut writing => return ended,
                frame = frames.next() => match frame? {
                    Frame::Heard(number) => self.line.heard(number),
                    Frame::Probe => self.line.answer(),
                    _ => return Err(io::ErrorKind::InvalidData.into()),
                },
            }
        }
    }
}

enum End {
    Unanswered,
    Refused(String),
    Broken,
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use tokio::io::AsyncRead;
    use tokio::net::TcpListener;

    use super::{Line, Parcel, Said, WAITING_MAX, Waiting};
    use crate::VectorClock;
    use crate::tls;
    use crate::wire::{Frame, Frames, Letter};

    fn parcel(id: u64) -> Parcel {
        Parcel { id, clock: VectorClock::default(), payload: vec![] }
    }

    fn numbers(waiting: &Waiting) -> Vec<u64> {
        waiting.letters.iter().map(|letter| letter.number).collect()
    }

    #[test]
    fn the_same_life_gets_again_what_it_has_not_heard() {
        let mut waiting = Waiting::default();
        (1..=4).for_each(|id| assert!(waiting.add(0, parcel(id))));
        assert_eq!(waiting.meet(7, 0), 0);
        waiting.heard(1);
        assert_eq!(waiting.meet(7, 2), 0);
        assert_eq!(numbers(&waiting), [3, 4]);
    }

    #[test]
    fn another_life_gets_nothing_that_was_meant_for_the_last() {
        let mut waiting = Waiting::default();
        (1..=3).for_each(|id| assert!(waiting.add(7, parcel(id))));
        // Its next life had called before this one was written.
        assert!(waiting.add(8, parcel(4)));
        assert_eq!(waiting.meet(8, 0), 3);
        assert_eq!(numbers(&waiting), [4]);
    }

    #[test]
    fn what_was_for_anybody_is_for_the_first_who_answers() {
        let mut waiting = Waiting::default();
        assert!(waiting.add(0, parcel(1)));
        assert_eq!(waiting.meet(7, 0), 0);
        assert_eq!(waiting.meet(8, 0), 1);
    }

    #[test]
    fn a_peer_that_never_listens_is_remembered_so_much_and_no_more() {
        let mut waiting = Waiting::default();
        let kept = (0..WAITING_MAX as u64 + 5).filter(|&id| waiting.add(0, parcel(id))).count();
        assert_eq!(kept, WAITING_MAX);
    }

    /// The numbers of so many letters that come.
    async fn come(reader: impl AsyncRead + Unpin, count: u64) -> Vec<u64> {
        let (mut frames, mut numbers) = (Frames::new(reader), Vec::new());
        for _ in 0..count {
            match frames.next().await.unwrap() {
                Frame::Letter(Letter { number, .. }) => numbers.push(number),
                other => panic!("{other:?} is no letter"),
            }
        }
        numbers
    }

    #[tokio::test]
    async fn a_frame_that_went_in_part_goes_on_where_it_stopped() {
        for (is_lossy, kept) in [(false, 9), (true, 0)] {
            let (writer, reader) = tokio::io::duplex(7);
            let mut said = Said { writer: Some(writer), ..Said::default() };
            (1..=9).for_each(|id| assert!(said.waiting.add(7, parcel(id))));
            let pushed = poll_fn(|context| said.push(context, is_lossy));
            let (pushed, numbers) = tokio::join!(pushed, come(reader, 9));
            pushed.unwrap();
            assert_eq!(numbers, (1..=9).collect::<Vec<u64>>());
            assert_eq!(said.waiting.letters.len(), kept);
        }
    }

    #[tokio::test]
    async fn what_a_slow_peer_does_not_take_at_once_comes_in_order_and_whole() {
        const COUNT: u64 = 20_000;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let stream = tls::connect(&address, None).await.unwrap();
        let (_, writer) = tokio::io::split(stream);
        let (peer, _) = listener.accept().await.unwrap();
        let line = Line::new(2, false, Arc::default(), Arc::default());
        line.meet(7, 0, writer);
        assert_eq!(line.latest.load(Ordering::Relaxed), 7);
        // More than sockets hold: it stops in the middle of a letter.
        let say_all = async {
            tokio::task::yield_now().await;
            for id in 1..=COUNT {
                line.say(Parcel { payload: vec![1; 1000], ..parcel(id) });
            }
            assert!(line.said().is_stuck);
            come(peer, COUNT).await
        };
        let numbers = tokio::select! {
            ended = line.go_on() => panic!("{ended:?}"),
            numbers = say_all => numbers,
        };
        assert_eq!(numbers, (1..=COUNT).collect::<Vec<u64>>());
        line.heard(COUNT);
        assert!(line.said().waiting.letters.is_empty());
        assert_eq!(line.said().written, 0);
    }
}
