//! The way to the other members: one connection each, for all that is said.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use openraft::base::{BoxFuture, BoxStream};
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::impls::BasicNode;
use openraft::network::{RPCOption, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, StreamAppendResult,
    TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};
use openraft::type_config::alias::SnapshotOf;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use vez_api::peer::peer_client::PeerClient;
use vez_api::peer::{AppendRequest, SnapshotPart, TransferRequest, snapshot_part};
use vez_tls::net::FORGET;

use super::Timing;
use super::card::Card;
use super::passing::{Line, Told};
use super::way::Way;
use super::words;
use crate::chance;
use crate::raft::{Haste, Proposed};
use crate::state::{Error, Response};
use crate::store::directory::Identity;
use crate::store::disk::Disk;
use crate::store::record::{self, Damage};
use crate::store::snapshot::Kept;
use crate::store::{Mark, Types, Vote};

/// Which cluster a word is for, who says it, and to whom: in front of everything.
/// The number is that of the words: a member that does not know all that may be in the log must not
/// be sent any of it, and refuses to listen to who names the cluster otherwise.
pub(super) const CLUSTER: &str = "vez-cluster-3";
pub(super) const FROM: &str = "vez-from";
pub(super) const TO: &str = "vez-to";

/// What may be under way to a member before it has read it.
pub(super) const WINDOW: u32 = 8 << 20;
/// The largest word: entries of a mebibyte, or one that is larger by itself.
pub(super) const WORD_BYTES: usize = 64 << 20;
/// A snapshot is sent in parts of this size, and no more than so many of them a second, so that
/// what the members must hear in time is not held up by it.
const PART_BYTES: usize = 256 << 10;
const PART_EVERY: Duration = Duration::from_millis(2);

/// All ways out; clones are the same.
#[derive(Clone)]
pub(crate) struct Links(Arc<Inner>);

struct Inner {
    own: Identity,
    timing: Timing,
    way: Way,
    /// Where snapshots are read that are sent.
    disk: Disk,
    known: Mutex<BTreeMap<u64, Known>>,
}

/// A member that somebody wanted to reach.
struct Known {
    /// Where it is, to be seen when that changes.
    address: String,
    /// Nothing, if nobody knows the way.
    channel: Option<Channel>,
    head: Head,
    line: Arc<Line>,
}

/// What is in front of everything that a member is told.
type Head = Arc<[MetadataValue<Ascii>; 3]>;

/// The way to one member, wherever it is at the moment; all use the same connection.
#[derive(Clone)]
pub(crate) struct Link {
    member: u64,
    links: Links,
    head: Head,
    line: Arc<Line>,
}

impl fmt::Debug for Links {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Links").field("own", &self.0.own).finish_non_exhaustive()
    }
}

impl Links {
    pub(crate) fn new(own: Identity, timing: Timing, way: Way, disk: Disk) -> Self {
        Self(Arc::new(Inner { own, timing, way, disk, known: Mutex::default() }))
    }

    /// The way to a member, if anybody has said where it is.
    pub(crate) fn way_to(&self, member: u64) -> Option<Link> {
        let known = self.known();
        let Known { head, line, .. } = known.get(&member)?;
        let (head, line) = (Arc::clone(head), Arc::clone(line));
        Some(Link { member, links: self.clone(), head, line })
    }

    /// The way to a member at this address.
    pub(crate) fn to(&self, member: u64, address: &str) -> Link {
        self.learn(member, address);
        self.way_to(member).expect("it is known now")
    }

    /// A member is there from now on, also for those who have a way to it already.
    pub(super) fn learn(&self, member: u64, address: &str) {
        let mut known = self.known();
        let before = known.get_mut(&member);
        if before.as_ref().is_some_and(|before| before.address == address) {
            return;
        }
        let (channel, to) = (self.connect(address), address.to_owned());
        if let Some(before) = before {
            (before.channel, before.address) = (channel, to);
            return;
        }
        let Identity { cluster, member: own } = self.0.own;
        let head = [cluster, own, member]
            .map(|id| MetadataValue::try_from(format!("{id:x}")).expect("a number can be written"));
        let (head, line) = (Arc::new(head), Arc::new(Line::new(chance::id())));
        known.insert(member, Known { address: to, channel, head, line });
    }

    /// These were applied here; whoever had them written by another hears what came of them.
    pub(crate) fn answer(&self, applied: Vec<(Mark, Result<Response, Error>, u64)>) {
        if applied.is_empty() {
            return;
        }
        let lines: Vec<_> = self.known().values().map(|known| Arc::clone(&known.line)).collect();
        for (mark, answer, index) in applied {
            if let Some(line) = lines.iter().find(|line| line.asker() == mark.asker) {
                let outcome = answer.map(|response| (response, index)).map_err(Into::into);
                line.answer([(mark.number, outcome)]);
            }
        }
    }

    /// Much was applied here at once, and nobody knows any more what came of each.
    pub(crate) fn lose_sight(&self) {
        self.known().values().for_each(|known| known.line.lose_sight());
    }

    /// Nothing is passed on any more.
    pub(crate) fn close(&self) {
        self.known().values().for_each(|known| known.line.close());
    }

    /// Nothing, if nobody knows where that is.
    fn connect(&self, address: &str) -> Option<Channel> {
        let Inner { timing, way, .. } = &*self.0;
        let urls = Card::parse(address).peer_urls;
        let endpoint = Endpoint::from_shared(urls.first()?.clone()).ok()?;
        let channel = endpoint
            .connect_timeout(timing.election)
            .http2_keep_alive_interval(timing.election / 2)
            .keep_alive_timeout(timing.election)
            .keep_alive_while_idle(true)
            .http2_reset_stream_duration(FORGET)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(2 * WINDOW)
            .connect_with_connector_lazy(way.among(urls));
        Some(channel)
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<u64, Known>> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link {
    pub(super) fn client(&self) -> Result<PeerClient<Channel>, Status> {
        let channel = self.links.known().get(&self.member).and_then(|known| known.channel.clone());
        let channel = channel.ok_or_else(|| {
            Status::unavailable(format!("nobody knows where member {:x} is", self.member))
        })?;
        let client = PeerClient::new(channel);
        Ok(client.max_decoding_message_size(WORD_BYTES).max_encoding_message_size(WORD_BYTES))
    }

    /// Addressed.
    pub(super) fn address<T>(&self, word: T) -> Request<T> {
        let mut request = Request::new(word);
        for (name, value) in [CLUSTER, FROM, TO].into_iter().zip(&*self.head) {
            request.metadata_mut().insert(name, value.clone());
        }
        request
    }

    /// For so long it may be seen what became of something after a member that took it has gone.
    pub(super) fn grace(&self) -> Duration {
        self.links.0.timing.election / 4
    }

    /// Has the member write something: what became of it.
    pub(super) async fn pass(&self, command: Bytes, haste: Haste) -> Told<Proposed> {
        self.line.pass(self, command, haste).await
    }

    fn failed(&self, status: &Status) -> RPCError<Types> {
        let text = format!("member {:x}: {}", self.member, why(status));
        match status.code() {
            Code::FailedPrecondition => {
                tracing::warn!("{text}");
                RPCError::Unreachable(Unreachable::from_string(text))
            }
            Code::Unavailable => RPCError::Unreachable(Unreachable::from_string(text)),
            _ => RPCError::Network(NetworkError::from_string(text)),
        }
    }

    async fn ask(
        &self,
        request: VoteRequest<Types>,
        is_question: bool,
        option: RPCOption,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        let mut asked = self.address(words::vote(&request, is_question));
        asked.set_timeout(option.hard_ttl());
        let mut client = self.client().map_err(|status| self.failed(&status))?;
        let answer = client.vote(asked).await.map_err(|status| self.failed(&status))?;
        words::to_voted(answer.into_inner()).map_err(|damage| senseless(&damage))
    }
}

/// The first may be a question. What has no entries after it says only what is committed, of which
/// an answer would be no news, and would cost as much as one to entries does.
fn words_of(
    first: Option<AppendEntriesRequest<Types>>,
    others: impl Stream<Item = AppendEntriesRequest<Types>>,
) -> impl Stream<Item = AppendRequest> {
    let first = first.map(|request| words::append(&request, false));
    let others = others.map(|request| words::append(&request, request.entries.is_empty()));
    futures_util::stream::iter(first).chain(others)
}

/// A snapshot, read while it is sent. What cannot be read ends it, and the member sees that.
fn parts_of(whole: Kept, disk: Disk) -> impl Stream<Item = SnapshotPart> {
    futures_util::stream::unfold((whole, disk, 0), |(whole, disk, from)| async move {
        if whole.length() <= from {
            return None;
        }
        tokio::time::sleep(PART_EVERY).await;
        let read = whole.clone();
        let data = disk.work(move || read.part(from, PART_BYTES)).await.inspect_err(|error| {
            tracing::error!("a snapshot cannot be read: {error}");
        });
        let data = data.ok()?;
        let next = from + data.len() as u64;
        Some((SnapshotPart { head: None, data }, (whole, disk, next)))
    })
}

/// What is at the bottom of it; tonic says only that something is.
pub(super) fn why(status: &Status) -> String {
    let mut why = status.message().to_owned();
    let mut error = std::error::Error::source(status);
    while let Some(source) = error {
        why = source.to_string();
        error = source.source();
    }
    why
}

fn senseless(damage: &Damage) -> RPCError<Types> {
    RPCError::Network(NetworkError::new(damage))
}

impl RaftNetworkFactory<Types> for Links {
    type Network = Link;

    async fn new_client(&mut self, member: u64, node: &BasicNode) -> Link {
        self.to(member, &node.addr)
    }
}

impl RaftNetworkV2<Types> for Link {
    type SnapshotData = Kept;

    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<Types>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<Types>, RPCError<Types>> {
        let one = futures_util::stream::iter([request]);
        let mut answers = RaftNetworkV2::stream_append(self, one, option).await?;
        match answers.next().await {
            Some(answer) => Ok(answer?.into()),
            None => Err(RPCError::Network(NetworkError::from_string("it did not answer"))),
        }
    }

    /// What is to be said is sent as it comes; answers come in the same order. Whether the
    /// connection is still alive is for its pings to find out.
    ///
    /// The first word is waited for before anybody is called: the pause that openraft makes after a
    /// failure is in front of it. A member that is not there at all would be called without one.
    fn stream_append<'s, S>(
        &'s mut self,
        input: S,
        _option: RPCOption,
    ) -> BoxFuture<
        's,
        Result<BoxStream<'s, Result<StreamAppendResult<Types>, RPCError<Types>>>, RPCError<Types>>,
    >
    where
        S: Stream<Item = AppendEntriesRequest<Types>> + Send + Unpin + 'static,
    {
        let link = &*self;
        Box::pin(async move {
            let mut client = link.client().map_err(|status| link.failed(&status))?;
            let mut input = input.fuse();
            let first = input.next().await;
            let words = words_of(first, input);
            let answers = client.append(link.address(words)).await;
            let answers = answers.map_err(|status| link.failed(&status))?.into_inner();
            let answers = answers.map(|answer| match answer {
                Ok(answer) => words::to_appended(answer).map_err(|damage| senseless(&damage)),
                Err(status) => Err(link.failed(&status)),
            });
            Ok(Box::pin(answers) as BoxStream<'s, _>)
        })
    }

    async fn vote(
        &mut self,
        request: VoteRequest<Types>,
        option: RPCOption,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        self.ask(request, false, option).await
    }

    async fn pre_vote(
        &mut self,
        request: VoteRequest<Types>,
        option: RPCOption,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        self.ask(request, true, option).await
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: SnapshotOf<Types, Kept>,
        cancel: impl Future<Output = ReplicationClosed> + Send + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        let (whole, disk) = (snapshot.snapshot, self.links.0.disk.clone());
        let length = whole.length();
        tracing::debug!("{length} bytes of a snapshot go to member {:x}", self.member);
        let head = snapshot_part::Head {
            ballot: Some(words::ballot(&vote)),
            meta: record::encode_meta(&snapshot.meta).into(),
            length,
        };
        let head = SnapshotPart { head: Some(head), data: Bytes::new() };
        let parts = parts_of(whole, disk);
        let words = futures_util::stream::once(async move { head }).chain(parts);
        let failed = |status: Status| match self.failed(&status) {
            RPCError::Unreachable(error) => StreamingError::Unreachable(error),
            error => StreamingError::Network(NetworkError::new(&error)),
        };
        let mut client = self.client().map_err(failed)?;
        let answer = tokio::select! {
            biased;
            answer = client.install_snapshot(self.address(words)) => answer.map_err(failed)?,
            closed = cancel => return Err(StreamingError::Closed(closed)),
        };
        let vote = words::to_vote(answer.into_inner().ballot);
        vote.map(SnapshotResponse::new)
            .map_err(|damage| StreamingError::Network(NetworkError::new(&damage)))
    }

    async fn transfer_leader(
        &mut self,
        request: TransferLeaderRequest<Types>,
        _option: RPCOption,
    ) -> Result<TransferLeaderResponse<Types>, RPCError<Types>> {
        let word = TransferRequest {
            from: Some(words::ballot(request.from_leader())),
            to: *request.to_node_id(),
            last: request.last_log_id().copied().map(words::log_id),
        };
        let mut client = self.client().map_err(|status| self.failed(&status))?;
        let answer = client.transfer_leader(self.address(word)).await;
        let answer = answer.map_err(|status| self.failed(&status))?.into_inner();
        if answer.refusal.is_empty() {
            return Ok(Ok(()));
        }
        Err(RPCError::Network(NetworkError::from_string(answer.refusal)))
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::SocketAddr;
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures_util::FutureExt as _;
    use openraft::EntryPayload;
    use vez_tls::net::{Listener, Net, Socket, Soon};

    use super::*;
    use crate::store::{Entry, LogId};

    /// Nobody is there, and that is known at once.
    #[derive(Debug, Default)]
    struct Desert(AtomicU32);

    impl Net for Desert {
        fn connect<'a>(&'a self, _: &'a str, _: u16) -> Soon<'a, Socket> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Box::pin(async { Err(io::ErrorKind::ConnectionRefused.into()) })
        }

        fn listen(&self, _: SocketAddr) -> Soon<'_, Box<dyn Listener>> {
            Box::pin(async { Err(io::ErrorKind::Unsupported.into()) })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_member_is_called_when_there_is_something_to_say_and_not_before() {
        let desert = Arc::new(Desert::default());
        let way = Way::new(Arc::clone(&desert) as Arc<dyn Net>, None);
        let own = Identity { cluster: 1, member: 1 };
        let card = Card { peer_urls: vec!["http://nobody:1".to_owned()], ..Card::default() };
        let links = Links::new(own, Timing::default(), way, Disk::Real);
        let mut link = links.to(2, &card.to_string());
        let option = RPCOption::new(Duration::from_secs(1));
        let mute = futures_util::stream::pending();
        let called = RaftNetworkV2::stream_append(&mut link, mute, option.clone());
        assert!(tokio::time::timeout(Duration::from_secs(9), called).await.is_err());
        assert_eq!(desert.0.load(Ordering::Relaxed), 0, "openraft's pause is in front of a word");
        let vote = Vote::new_committed(1, 1);
        let word = AppendEntriesRequest {
            vote,
            prev_log_id: None,
            entries: Vec::new(),
            leader_commit: None,
        };
        let words = futures_util::stream::iter([word]);
        let called =
            RaftNetworkV2::stream_append(&mut link, words, option).map(|done| done.is_err());
        assert!(called.await);
        assert_eq!(desert.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn only_what_says_nothing_but_what_is_committed_goes_unanswered() {
        let word = |entries: u64| AppendEntriesRequest {
            vote: Vote::new_committed(1, 1),
            prev_log_id: None,
            entries: (0..entries)
                .map(|index| Entry {
                    log_id: LogId::new_term_index(1, index),
                    payload: EntryPayload::Blank,
                })
                .collect(),
            leader_commit: None,
        };
        let others = futures_util::stream::iter([2, 0, 1, 0, 0].map(word));
        let words = words_of(Some(word(0)), others).map(|word| word.is_notice);
        let notices: Vec<_> = words.collect().now_or_never().unwrap();
        assert_eq!(notices, [false, false, true, false, true, true], "the first may be a question");
    }
}
