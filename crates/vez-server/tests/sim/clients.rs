//! Clients at work: writers count up, each in its own key; readers look at what they wrote; others
//! take turns in rooms, in all the ways in which the service lets them.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper_util::rt::TokioIo;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::Service;
use tonic::codegen::http::Uri;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use vez_api::etcdserverpb::lease_client::LeaseClient;
use vez_api::etcdserverpb::{
    Compare, LeaseGrantRequest, LeaseKeepAliveRequest, PutRequest, RangeRequest, RequestOp,
    TxnRequest, compare, kv_client::KvClient, request_op,
};
use vez_api::v3lockpb::{LockRequest, UnlockRequest, lock_client::LockClient};
use vez_client::{Client, Options};
use vez_tls::net::{FORGET, Net, Socket};

use crate::judge::{Judge, WRITERS};

/// Who is impatient does not wait longer.
const SOON: Duration = Duration::from_millis(100);
/// How long a turn is waited for.
const PATIENCE: Duration = Duration::from_mins(1);
/// Who knows nothing better leaves a room so long before its lease may end.
const EARLY: Duration = Duration::from_millis(100);

/// What all clients know.
#[derive(Clone)]
pub(crate) struct Town {
    /// Of all members; each client begins with another.
    pub(crate) endpoints: Vec<String>,
    pub(crate) net: Arc<dyn Net>,
    pub(crate) judge: Arc<Judge>,
    pub(crate) ttl: Duration,
    /// How long one member may take: one that stands still says nothing for ever.
    pub(crate) deadline: Duration,
    /// How long somebody does nothing between two acts, and in a room.
    pub(crate) idle: Pastime,
    pub(crate) stay: Pastime,
}

pub(crate) type Pastime = Arc<dyn Fn() -> Duration + Send + Sync>;

impl Town {
    fn endpoints_from(&self, first: usize) -> Vec<String> {
        let mut endpoints = self.endpoints.clone();
        endpoints.rotate_left(first % self.endpoints.len());
        endpoints
    }

    pub(crate) fn channel(&self, url: &str) -> Channel {
        let endpoint = Endpoint::from_shared(url.to_owned()).expect("an address");
        endpoint
            .connect_timeout(Duration::from_secs(1))
            .http2_keep_alive_interval(Duration::from_secs(1))
            .keep_alive_timeout(Duration::from_secs(1))
            .http2_reset_stream_duration(FORGET)
            .connect_with_connector_lazy(Dial(Arc::clone(&self.net)))
    }

    /// Not in the end, when all that is left is to finish.
    pub(crate) async fn idle(&self) {
        if !self.judge.is_over() {
            sleep((self.idle)()).await;
        }
    }

    async fn stay(&self) {
        if !self.judge.is_over() {
            sleep((self.stay)()).await;
        }
    }

    /// An answer, if there is one in time.
    pub(crate) async fn soon<T>(
        &self,
        asked: impl Future<Output = Result<tonic::Response<T>, Status>>,
    ) -> Option<T> {
        Some(timeout(self.deadline, asked).await.ok()?.ok()?.into_inner())
    }
}

/// Connects by the network that the clients are at.
#[derive(Clone)]
struct Dial(Arc<dyn Net>);

impl Service<Uri> for Dial {
    type Response = TokioIo<Socket>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<Socket>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let net = Arc::clone(&self.0);
        Box::pin(async move {
            let (host, port) = (uri.host().unwrap_or_default(), uri.port_u16().unwrap_or_default());
            net.connect(host.trim_matches(['[', ']']), port).await.map(TokioIo::new)
        })
    }
}

/// Ways to all members, of which the next is taken when one fails.
pub(crate) struct Ways {
    channels: Vec<Channel>,
    turn: usize,
}

impl Ways {
    pub(crate) fn new(town: &Town, first: usize) -> Self {
        let channels = town.endpoints_from(first).iter().map(|url| town.channel(url)).collect();
        Self { channels, turn: 0 }
    }

    pub(crate) fn now(&self) -> Channel {
        self.channels[self.turn % self.channels.len()].clone()
    }

    pub(crate) async fn move_on(&mut self) {
        self.turn += 1;
        sleep(Duration::from_millis(2)).await;
    }
}

/// Writes a number, if what is there is smaller: what nobody answered in time may still be on its
/// way, and must not undo what was written after it.
fn counting_up(writer: usize, number: u64) -> TxnRequest {
    let key = Bytes::from(format!("writer/{writer}"));
    let compare = match number {
        0 => Compare {
            target: compare::CompareTarget::Create.into(),
            target_union: Some(compare::TargetUnion::CreateRevision(0)),
            key: key.clone(),
            ..Compare::default()
        },
        _ => Compare {
            result: compare::CompareResult::Less.into(),
            target: compare::CompareTarget::Value.into(),
            target_union: Some(compare::TargetUnion::Value(digits(number))),
            key: key.clone(),
            ..Compare::default()
        },
    };
    let put = PutRequest { key, value: digits(number), ..PutRequest::default() };
    let put = RequestOp { request: Some(request_op::Request::RequestPut(put)) };
    TxnRequest { compare: vec![compare], success: vec![put], ..TxnRequest::default() }
}

/// As long for every number, so that the order of texts is that of numbers.
fn digits(number: u64) -> Bytes {
    format!("{number:020}").into()
}

pub(crate) async fn write(town: Town, writer: usize) {
    let who = format!("writer {writer}");
    town.judge.joins(&who);
    let mut ways = Ways::new(&town, writer);
    // Whoever made it: it is there then.
    while town.soon(KvClient::new(ways.now()).txn(counting_up(writer, 0))).await.is_none() {
        if town.judge.is_over() {
            return;
        }
        ways.move_on().await;
    }
    while !town.judge.is_over() {
        town.idle().await;
        let number = town.judge.writes(writer);
        match town.soon(KvClient::new(ways.now()).txn(counting_up(writer, number))).await {
            Some(answer) => {
                assert!(answer.succeeded, "writer {writer} alone writes there, not {number} yet");
                let revision = answer.header.expect("a header").revision;
                town.judge.acknowledged(writer, number, revision);
                town.judge.gets_on(&who);
            }
            None => ways.move_on().await,
        }
    }
}

/// What a writer has written, and at which revision.
async fn get(town: &Town, channel: Channel, writer: usize) -> Option<(u64, i64)> {
    let key = format!("writer/{writer}").into();
    let asked = RangeRequest { key, ..RangeRequest::default() };
    let answer = town.soon(KvClient::new(channel).range(asked)).await?;
    let found = answer.kvs.into_iter().next();
    Some(found.map_or((0, 0), |found| {
        let number = std::str::from_utf8(&found.value).expect("a text").parse();
        (number.expect("a number"), found.mod_revision)
    }))
}

pub(crate) async fn read(town: Town, reader: usize) {
    let who = format!("reader {reader}");
    town.judge.joins(&who);
    let mut ways = Ways::new(&town, reader);
    let mut turn = reader;
    while !town.judge.is_over() {
        town.idle().await;
        turn += 1;
        let asked = town.judge.reads(turn % WRITERS);
        match get(&town, ways.now(), turn % WRITERS).await {
            Some((number, revision)) => {
                town.judge.has_read(asked, number, revision);
                town.judge.gets_on(&who);
            }
            None => ways.move_on().await,
        }
    }
}

/// Looks at what is left, at one member, until it answers.
pub(crate) async fn look(town: &Town, url: &str) {
    let channel = town.channel(url);
    for writer in 0..WRITERS {
        let (begun, asked) = (Instant::now(), town.judge.reads(writer));
        let (number, revision) = loop {
            if let Some(found) = get(town, channel.clone(), writer).await {
                break found;
            }
            assert!(begun.elapsed() < PATIENCE, "{url} does not answer");
            sleep(Duration::from_millis(10)).await;
        };
        town.judge.has_read(asked, number, revision);
    }
}

async fn connect(town: &Town, first: usize) -> Option<Client> {
    let options = Options {
        connect_timeout: Duration::from_secs(1),
        request_timeout: 2 * town.deadline,
        net: Arc::clone(&town.net),
        ..Options::default()
    };
    Client::connect(town.endpoints_from(first), options).await.ok()
}

/// Takes turns with others; a session that is lost is replaced.
pub(crate) async fn lock(town: Town, number: usize) {
    let who = format!("locker {number}");
    town.judge.joins(&who);
    while !town.judge.is_over() {
        town.idle().await;
        let Some(client) = connect(&town, number).await else { continue };
        let Ok(session) = client.session(town.ttl).await else { continue };
        while !town.judge.is_over() && session.is_alive() {
            let Ok(guard) = session.lock("room").within(PATIENCE).await else { break };
            town.judge.enters("room", &who, guard.fence());
            tokio::select! {
                biased;
                _ = guard.lost() => {}
                () = town.stay() => {}
            }
            town.judge.leaves("room", &who);
            if guard.release().await.is_err() {
                break;
            }
            town.idle().await;
        }
    }
}

/// The same with an election.
pub(crate) async fn campaign(town: Town, number: usize) {
    let who = format!("candidate {number}");
    town.judge.joins(&who);
    while !town.judge.is_over() {
        town.idle().await;
        let Some(client) = connect(&town, number).await else { continue };
        let Ok(session) = client.session(town.ttl).await else { continue };
        while !town.judge.is_over() && session.is_alive() {
            let Ok(lead) = session.campaign("throne", who.clone()).within(PATIENCE).await else {
                break;
            };
            town.judge.enters("throne", &who, lead.fence());
            tokio::select! {
                biased;
                _ = lead.lost() => {}
                () = town.stay() => {}
            }
            town.judge.leaves("throne", &who);
            if lead.resign().await.is_err() {
                break;
            }
        }
    }
}

/// Stands in lines that the server keeps for it, again and again with one lease: in the same as
/// [`lock`], or where it meets only its like. Sometimes it goes away without a word, as late as it
/// may; and where it is not answered soon, it asks elsewhere, whatever may still come of what it
/// asked before.
pub(crate) async fn lock_by_server(town: Town, number: usize) {
    let who = format!("caller {number}");
    town.judge.joins(&who);
    let mut ways = Ways::new(&town, number);
    let (mut turns, mut leases) = (0, 0);
    while !town.judge.is_over() {
        town.idle().await;
        leases += 1;
        let room = if leases % 3 == 0 { "room" } else { "hall" };
        let Some(mut lease) = Lease::grant(&town, &ways).await else {
            ways.move_on().await;
            continue;
        };
        let mut given_back = 0;
        while !town.judge.is_over() {
            let asked = timeout(2 * town.deadline, ask_for_turn(ways.now(), room, lease.id));
            let Some(granted) = lease.kept_alive_during(ways.now(), asked).await else { break };
            let Ok(Some((key, fence))) = granted else {
                ways.move_on().await;
                continue;
            };
            // What was given back is not taken again, even if nobody has heard of that yet.
            let is_new = given_back < fence;
            if is_new && lease.ends <= Instant::now() {
                break;
            }
            if is_new {
                turns += 1;
                town.judge.enters(room, &who, fence);
                if turns % 4 == 0 && !town.judge.is_over() {
                    sleep_until(lease.ends).await;
                    town.judge.leaves(room, &who);
                    break;
                }
                let is_kept = lease.kept_alive_during(ways.now(), town.stay()).await.is_some();
                town.judge.leaves(room, &who);
                if !is_kept {
                    break;
                }
                given_back = fence;
            }
            // It goes on, and may come very late.
            let given = tokio::spawn(give_back(ways.now(), key, fence));
            if timeout(SOON, given).await.is_err() {
                ways.move_on().await;
            }
        }
    }
}

async fn ask_for_turn(channel: Channel, room: &'static str, lease: i64) -> Option<(Bytes, i64)> {
    let asked = LockRequest { name: room.into(), lease };
    let granted = LockClient::new(channel).lock(asked).await.ok()?;
    let fence = granted.metadata().get("vez-fence")?.to_str().ok()?.parse().ok()?;
    Some((granted.into_inner().key, fence))
}

async fn give_back(channel: Channel, key: Bytes, fence: i64) {
    let mut request = Request::new(UnlockRequest { key });
    request.metadata_mut().insert("vez-fence", fence.into());
    LockClient::new(channel).unlock(request).await.ok();
}

/// A lease, and until when it surely lasts.
struct Lease {
    id: i64,
    ttl: Duration,
    ends: Instant,
}

impl Lease {
    async fn grant(town: &Town, ways: &Ways) -> Option<Self> {
        let (sent, ttl) = (Instant::now(), town.ttl);
        let request = LeaseGrantRequest { ttl: ttl.as_secs().cast_signed(), id: 0 };
        let granted = town.soon(LeaseClient::new(ways.now()).lease_grant(request)).await?;
        Some(Self { id: granted.id, ttl, ends: sent + ttl - EARLY })
    }

    /// What comes of it, unless the lease may end before.
    async fn kept_alive_during<T>(
        &mut self,
        channel: Channel,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::pin!(work);
        let (ask, requests) = mpsc::channel(1);
        let mut client = LeaseClient::new(channel);
        let opening = client.lease_keep_alive(ReceiverStream::new(requests));
        let mut sent = Instant::now();
        ask.send(LeaseKeepAliveRequest { id: self.id }).await.ok()?;
        tokio::pin!(opening);
        let mut answers = tokio::select! {
            biased;
            done = &mut work => return Some(done),
            answers = &mut opening => answers.ok()?.into_inner(),
            () = sleep_until(self.ends) => return None,
        };
        let mut next = None;
        loop {
            let ask_again = async {
                match next {
                    Some(next) => sleep_until(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                done = &mut work => return Some(done),
                () = sleep_until(self.ends) => return None,
                answer = answers.message() => {
                    let seconds = answer.ok()??.ttl.max(0).cast_unsigned();
                    if seconds == 0 {
                        return None;
                    }
                    self.ends = self.ends.max(sent + Duration::from_secs(seconds) - EARLY);
                    next = Some(sent + self.ttl / 4);
                }
                () = ask_again => {
                    (next, sent) = (None, Instant::now());
                    ask.send(LeaseKeepAliveRequest { id: self.id }).await.ok()?;
                }
            }
        }
    }
}
