//! Writes that are passed on to the leader: in batches, over one stream to each member.
//!
//! Whatever is asked while a batch is on its way goes in the next, and a lone write goes at once.
//! Each has a number, by which it is known again: what became of a write that was taken, a member
//! sees when it applies it, also if whoever took it has gone. It is told only of what came to
//! nothing.
//!
//! **Invariant:** a write is called not taken only if it was never given to a stream, or if that
//! stream was refused as a whole. What became of any other is unknown until its answer has come.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use tokio::sync::{Notify, oneshot};
use tonic::{Code, ConnectError, Status, Streaming};
use vez_api::peer::proposed::Answer;
use vez_api::peer::{ProposeRequest, ProposeResponse, Proposed, Refusal};

use super::ask;
use super::gate::{Answers, Gate};
use super::handover::Stage;
use super::link::Link;
use crate::raft::{self, Haste, ProposeError};
use crate::store::{Mark, Proposal};

/// A batch is not made longer than this: whoever hears it must have room for it. A write that is
/// larger goes alone.
const BATCH_BYTES: usize = 1 << 20;
/// So many answers are said together at most.
const ANSWERS: usize = 4096;

/// What a member that was asked made of it.
#[derive(Debug, PartialEq)]
pub(super) enum Told<T> {
    Answer(T),
    /// It was not taken, and never will be.
    NotTaken,
    /// It may have been done, or may still be.
    Unknown,
}

/// Nobody was there to hear it, or whoever was did not want to.
pub(super) fn was_not_heard(status: &Status) -> bool {
    let mut error = std::error::Error::source(status);
    while let Some(source) = error {
        if source.is::<ConnectError>() {
            return true;
        }
        error = source.source();
    }
    status.code() == Code::FailedPrecondition
}

type Asker = oneshot::Sender<Told<raft::Proposed>>;

/// Those who want something written at one other member.
#[derive(Debug)]
pub(super) struct Line {
    /// In front of their numbers.
    asker: u64,
    content: Mutex<Content>,
}

#[derive(Debug, Default)]
struct Content {
    /// Rung when there is something for the stream that is open: each has its own, so that what is
    /// left of an old one takes nothing from its successor.
    came: Arc<Notify>,
    waiting: VecDeque<(Bytes, Haste, Asker)>,
    /// Given to the stream, by number.
    under_way: BTreeMap<u64, Asker>,
    next: u64,
    is_carried: bool,
    /// Nothing is passed on any more.
    is_closed: bool,
}

impl Line {
    /// `asker` must be nobody else's.
    pub(super) fn new(asker: u64) -> Self {
        Self { asker, content: Mutex::default() }
    }

    pub(super) fn asker(&self) -> u64 {
        self.asker
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What became of a write, a [`Proposal`] as bytes, at the other end of the link.
    pub(super) async fn pass(
        self: &Arc<Self>,
        link: &Link,
        command: Bytes,
        haste: Haste,
    ) -> Told<raft::Proposed> {
        let (told, begins) = self.join(command, haste);
        if let Some(came) = begins {
            // Not in the caller's task: others are carried, too.
            tokio::spawn(carry(link.clone(), Arc::clone(self), came));
        }
        told.await.unwrap_or(Told::Unknown)
    }

    /// Waits for a stream to take it; one must be begun, if there is none.
    fn join(
        &self,
        command: Bytes,
        haste: Haste,
    ) -> (oneshot::Receiver<Told<raft::Proposed>>, Option<Arc<Notify>>) {
        let (asker, told) = oneshot::channel();
        let mut content = self.content();
        if content.is_closed {
            asker.send(Told::NotTaken).ok();
            return (told, None);
        }
        content.waiting.push_back((command, haste, asker));
        let is_carried = mem::replace(&mut content.is_carried, true);
        if is_carried {
            content.came.notify_one();
        }
        (told, (!is_carried).then(|| Arc::clone(&content.came)))
    }

    /// Nothing more is carried; the stream ends.
    pub(super) fn close(&self) {
        let mut content = self.content();
        content.is_closed = true;
        content.came.notify_one();
    }

    /// The next batch for the stream that is rung by `came`; none, if that has ended.
    async fn batch(&self, came: &Arc<Notify>) -> Option<ProposeRequest> {
        loop {
            {
                let mut content = self.content();
                if content.is_closed || !Arc::ptr_eq(&content.came, came) {
                    return None;
                }
                if let Some(batch) = content.batch(self.asker) {
                    return Some(batch);
                }
            }
            came.notified().await;
        }
    }

    /// What became of some, by number.
    pub(super) fn answer(&self, outcomes: impl IntoIterator<Item = (u64, raft::Proposed)>) {
        let mut content = self.content();
        for (number, outcome) in outcomes {
            if let Some(asker) = content.under_way.remove(&number) {
                // Whoever has gone meanwhile need not know.
                asker.send(Told::Answer(outcome)).ok();
            }
        }
    }

    /// Of those that are under way, it will not be seen what becomes of them.
    pub(super) fn lose_sight(&self) {
        self.give_up(u64::MAX);
    }

    /// The same of those before this number.
    fn give_up(&self, before: u64) {
        let mut content = self.content();
        let later = content.under_way.split_off(&before);
        let given_up = mem::replace(&mut content.under_way, later);
        drop(content);
        tell(given_up.into_values(), || Told::Unknown);
    }

    /// A stream has ended whose writes have numbers from `first` on, and it is known that none of
    /// them was heard, or not. Says up to where it may still be seen what becomes of them.
    fn end(&self, first: u64, was_heard: bool) -> u64 {
        let mut content = self.content();
        content.is_carried = false;
        mem::take(&mut content.came).notify_one();
        let waiting = mem::take(&mut content.waiting);
        let not_taken =
            if was_heard { BTreeMap::new() } else { content.under_way.split_off(&first) };
        let next = content.next;
        drop(content);
        let waiting = waiting.into_iter().map(|(_, _, asker)| asker);
        tell(not_taken.into_values().chain(waiting), || Told::NotTaken);
        next
    }
}

fn tell<T>(askers: impl IntoIterator<Item = oneshot::Sender<Told<T>>>, what: impl Fn() -> Told<T>) {
    for asker in askers {
        // Whoever has gone meanwhile need not know.
        asker.send(what()).ok();
    }
}

impl Content {
    /// Takes what waits, as far as it fits. Who has given up is left out: it was never asked.
    fn batch(&mut self, asker: u64) -> Option<ProposeRequest> {
        let (first, mut left) = (self.next, BATCH_BYTES);
        let (mut commands, mut in_company) = (Vec::new(), Vec::new());
        while let Some((command, haste, waits)) = self.waiting.pop_front() {
            if waits.is_closed() {
                continue;
            }
            if left < command.len() && !commands.is_empty() {
                self.waiting.push_front((command, haste, waits));
                break;
            }
            left = left.saturating_sub(command.len());
            commands.push(command);
            in_company.push(haste == Haste::InCompany);
            self.under_way.insert(self.next, waits);
            self.next += 1;
        }
        if !in_company.contains(&true) {
            in_company.clear();
        }
        (!commands.is_empty()).then_some(ProposeRequest { first, commands, in_company, asker })
    }
}

/// Carries all that is asked over one stream, until that ends.
async fn carry(to: Link, line: Arc<Line>, came: Arc<Notify>) {
    let first = line.content().next;
    let was_heard = match converse(&to, &line, came).await {
        Ok(()) => true,
        // What is said before the stream is open is said of all that was given to it.
        Err(status) => !was_not_heard(&status),
    };
    let next = line.end(first, was_heard);
    // Whoever took them and left in good order has seen to it that others have them.
    tokio::time::sleep(to.grace()).await;
    line.give_up(next);
}

/// Fails only if the stream was never open.
async fn converse(to: &Link, line: &Arc<Line>, came: Arc<Notify>) -> Result<(), Status> {
    let ends = (Arc::clone(line), came);
    let batches = futures_util::stream::unfold(ends, |(line, came)| async move {
        let batch = line.batch(&came).await?;
        Some((batch, (line, came)))
    });
    let mut answers = to.client()?.propose(to.address(batches)).await?.into_inner();
    while let Ok(Some(ProposeResponse { answers })) = answers.message().await {
        line.answer(answers.into_iter().map(|told| (told.number, ask::answered(told))));
    }
    Ok(())
}

/// What became of a batch, one after the other.
type Batch = Pin<Box<dyn Stream<Item = Proposed> + Send>>;

impl Gate {
    /// The other end: what is asked goes to the log as it comes, each batch together, and is
    /// answered in whatever order that has.
    pub(super) fn hear(&self, batches: Streaming<ProposeRequest>) -> Answers<ProposeResponse> {
        let stage = self.service.replica.stage().subscribe();
        let batches = futures_util::stream::unfold((batches, stage), |(mut batches, mut stage)| {
            async move {
                let batch = tokio::select! {
                    biased;
                    _ = stage.wait_for(|stage| *stage == Stage::Left) => return None,
                    // It ends with the connection; what went wrong, the other side sees by itself.
                    batch = batches.message() => batch.ok()??,
                };
                Some((batch, (batches, stage)))
            }
        });
        let gate = self.clone();
        let answers = batches.map(move |batch| gate.take(batch));
        let answers = answers.flatten_unordered(None).ready_chunks(ANSWERS);
        Box::pin(answers.map(|answers| Ok(ProposeResponse { answers })))
    }

    fn take(&self, request: ProposeRequest) -> Batch {
        let ProposeRequest { first, commands, in_company, asker } = request;
        let many = commands.len() as u64;
        let decode = |(command, number)| Proposal::decode(command, Mark::new(asker, number));
        let proposals: Result<Vec<_>, _> = commands.into_iter().zip(first..).map(decode).collect();
        match proposals {
            Ok(proposals) => {
                let hastes = in_company.into_iter().map(|is_so| match is_so {
                    true => Haste::InCompany,
                    false => Haste::Now,
                });
                let hastes = hastes.chain(std::iter::repeat(Haste::Now));
                let outcomes = self.service.replica.propose_all(proposals.into_iter().zip(hastes));
                let outcomes = outcomes.zip(futures_util::stream::iter(first..));
                Box::pin(outcomes.filter_map(move |(outcome, number)| {
                    let is_seen = asker != 0 && was_applied(&outcome);
                    std::future::ready((!is_seen).then(|| ask::proposed(number, outcome)))
                }))
            }
            Err(error) => {
                let text = format!("vez: this member does not know such a command: {error}");
                let code = Code::Unimplemented.into();
                let refusal = Refusal { is_not_leader: false, code, text };
                let refused = move |number| {
                    let answer = Some(Answer::Refusal(refusal.clone()));
                    Proposed { number, index: 0, answer }
                };
                Box::pin(futures_util::stream::iter(first..first + many).map(refused))
            }
        }
    }
}

fn was_applied(outcome: &raft::Proposed) -> bool {
    matches!(outcome, Ok(_) | Err(ProposeError::State(_)))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use vez_api::etcdserverpb::PutResponse;

    use super::*;
    use crate::state::Response;

    fn batch(line: &Line, came: &Arc<Notify>) -> Option<ProposeRequest> {
        line.batch(came).now_or_never().flatten()
    }

    fn answer(number: u64) -> Told<raft::Proposed> {
        Told::Answer(outcomes([number]).map(|(_, outcome)| outcome).next().unwrap())
    }

    fn outcomes(
        numbers: impl IntoIterator<Item = u64>,
    ) -> impl Iterator<Item = (u64, raft::Proposed)> {
        let response = Response::Put(PutResponse::default());
        numbers.into_iter().map(move |number| (number, Ok((response.clone(), 1_000 + number))))
    }

    #[test]
    fn what_is_asked_at_once_goes_together_and_each_hears_of_its_own() {
        let line = Line::new(7);
        let (mut told, begins): (Vec<_>, Vec<_>) =
            (0..100_u8).map(|number| line.join(vec![number].into(), Haste::Now)).unzip();
        let begins: Vec<_> = begins.into_iter().flatten().collect();
        let [came] = &begins[..] else { panic!("one stream is begun") };
        let ProposeRequest { first, commands, .. } = batch(&line, came).unwrap();
        assert_eq!(first, 0);
        assert!(commands.iter().map(|command| u64::from(command[0])).eq(0..100));
        assert_eq!(batch(&line, came), None, "nothing more was asked");
        let (next, begins) = line.join("next".into(), Haste::Now);
        assert!(begins.is_none());
        assert_eq!(batch(&line, came).unwrap().first, 100);
        told.push(next);
        line.answer(outcomes((50..=100).rev()));
        line.answer(outcomes((0..50).chain([7, 999])));
        for (number, mut told) in (0..).zip(told) {
            assert_eq!(told.try_recv().unwrap(), answer(number));
        }
    }

    #[test]
    fn of_a_broken_stream_only_what_it_never_had_is_known_not_to_be_taken() {
        let line = Line::new(7);
        let (mut answered, came) = line.join("answered".into(), Haste::Now);
        let came = came.unwrap();
        let [mut seen, mut lost] = ["seen", "lost"].map(|it| line.join(it.into(), Haste::Now).0);
        assert_eq!(batch(&line, &came).unwrap().commands.len(), 3);
        let (mut waiting, _) = line.join("waiting".into(), Haste::Now);
        line.answer(outcomes([0]));
        let next = line.end(0, true);
        assert_eq!(answered.try_recv().unwrap(), answer(0));
        assert_eq!(waiting.try_recv().unwrap(), Told::NotTaken);
        // Nobody was there any more: said of this stream, and not of the one before.
        let (mut refused, came) = line.join("refused".into(), Haste::Now);
        let ProposeRequest { first, .. } = batch(&line, &came.unwrap()).unwrap();
        line.end(first, false);
        assert_eq!(refused.try_recv().unwrap(), Told::NotTaken);
        line.answer(outcomes([1]));
        assert_eq!(seen.try_recv().unwrap(), answer(1), "it was applied after all");
        assert!(lost.try_recv().is_err(), "it may still be");
        line.give_up(next);
        assert_eq!(lost.try_recv().unwrap(), Told::Unknown);
    }

    #[test]
    fn who_cannot_see_what_became_of_a_write_says_so() {
        let line = Line::new(7);
        let (mut sent, came) = line.join("sent".into(), Haste::Now);
        let came = came.unwrap();
        assert_eq!(batch(&line, &came).unwrap().asker, 7);
        let (mut waiting, _) = line.join("waiting".into(), Haste::Now);
        line.lose_sight();
        assert_eq!(sent.try_recv().unwrap(), Told::Unknown);
        assert_eq!(batch(&line, &came).unwrap().first, 1, "the others go on");
        line.answer(outcomes([0, 1]));
        assert_eq!(waiting.try_recv().unwrap(), answer(1));
    }

    #[test]
    fn what_is_left_of_an_old_stream_takes_nothing_from_the_next() {
        let line = Line::new(7);
        let (_before, old) = line.join("before".into(), Haste::Now);
        let old = old.unwrap();
        let mut end = Box::pin(line.batch(&old));
        assert!((&mut end).now_or_never().flatten().is_some());
        let mut end = Box::pin(line.batch(&old));
        assert!((&mut end).now_or_never().is_none(), "it waits for more");
        line.end(0, true);
        let (mut told, new) = line.join("after".into(), Haste::Now);
        assert_eq!(end.now_or_never(), Some(None));
        assert_eq!(batch(&line, &old), None);
        assert_eq!(batch(&line, &new.unwrap()).unwrap().first, 1);
        line.answer(outcomes([0]));
        assert!(told.try_recv().is_err(), "an answer to another");
        line.answer(outcomes([1]));
        assert_eq!(told.try_recv().unwrap(), answer(1));
    }

    #[test]
    fn who_gives_up_before_it_is_carried_is_never_asked_for() {
        let line = Line::new(7);
        let (gone, came) = line.join("gone".into(), Haste::Now);
        let came = came.unwrap();
        drop(gone);
        assert_eq!(batch(&line, &came), None);
        let (_told, _) = line.join("stays".into(), Haste::Now);
        assert_eq!(batch(&line, &came).unwrap().commands, ["stays"]);
        line.close();
        assert_eq!(line.join("late".into(), Haste::Now).0.try_recv().unwrap(), Told::NotTaken);
        assert_eq!(line.batch(&came).now_or_never(), Some(None), "it is over");
    }

    #[test]
    fn who_can_wait_for_company_is_known_as_such() {
        let line = Line::new(7);
        let (_told, came) = line.join("now".into(), Haste::Now);
        let came = came.unwrap();
        assert!(batch(&line, &came).unwrap().in_company.is_empty(), "as before there were such");
        let hastes = [Haste::Now, Haste::InCompany, Haste::Now];
        let _told = hastes.map(|haste| line.join("write".into(), haste));
        assert_eq!(batch(&line, &came).unwrap().in_company, [false, true, false]);
    }

    #[test]
    fn a_batch_is_short_unless_one_write_is_long_by_itself() {
        let line = Line::new(7);
        let size = |bytes: usize| Bytes::from(vec![0; bytes]);
        let sizes = [BATCH_BYTES / 2, BATCH_BYTES / 2, 1, 2 * BATCH_BYTES, 3];
        let (_told, begins): (Vec<_>, Vec<_>) =
            sizes.into_iter().map(|bytes| line.join(size(bytes), Haste::Now)).unzip();
        let came = begins.into_iter().flatten().next().unwrap();
        let batches = std::iter::from_fn(|| batch(&line, &came));
        assert!(batches.map(|batch| batch.commands.len()).eq([2, 1, 1, 1]));
    }
}
