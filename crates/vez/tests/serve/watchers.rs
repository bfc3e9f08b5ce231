//! Many watches on one stream, of the same keys and of others, read late: each hears its own.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Channel;
use vez_api::etcdserverpb::{
    DeleteRangeRequest, WatchCancelRequest, WatchCreateRequest, WatchRequest, WatchResponse,
    kv_client::KvClient, watch_client::WatchClient, watch_create_request::FilterType,
    watch_request::RequestUnion,
};
use vez_api::mvccpb::{Event, event::EventType};

use crate::promises::{connect, put};
use crate::server::Server;

/// More than a stream may let gather.
const WRITES: i64 = 4000;
const WRITERS: i64 = 40;

struct Stream {
    ask: mpsc::Sender<WatchRequest>,
    answers: Streaming<WatchResponse>,
}

impl Stream {
    async fn open(channel: Channel, first: WatchCreateRequest) -> Self {
        let (ask, asked) = mpsc::channel(64);
        let request_union = Some(RequestUnion::CreateRequest(first));
        ask.send(WatchRequest { request_union }).await.expect("there is room");
        let stream = WatchClient::new(channel).watch(ReceiverStream::new(asked)).await;
        let mut stream = Self { ask, answers: stream.expect("a stream").into_inner() };
        assert!(stream.hear().await.created);
        stream
    }

    async fn ask(&self, request: RequestUnion) {
        let request_union = Some(request);
        self.ask.send(WatchRequest { request_union }).await.expect("there is room");
    }

    async fn hear(&mut self) -> WatchResponse {
        let answer = tokio::time::timeout(Duration::from_secs(30), self.answers.message()).await;
        answer.expect("an answer").expect("it goes on").expect("it goes on")
    }
}

fn watch(watch_id: i64, key: &str, end: &str) -> WatchCreateRequest {
    let (key, range_end) = (key.to_owned().into(), end.to_owned().into());
    WatchCreateRequest { watch_id, key, range_end, ..WatchCreateRequest::default() }
}

fn revision(event: &Event) -> i64 {
    event.kv.as_ref().expect("a key").mod_revision
}

fn key(event: &Event) -> &[u8] {
    &event.kv.as_ref().expect("a key").key
}

/// Puts, and now and then a deletion, of `w/0` to `w/4` and of `x`.
async fn write(channel: Channel, writer: i64) {
    let mut keys = KvClient::new(channel);
    for number in 0..WRITES / WRITERS {
        let key = if number % 9 == 8 { "x".to_owned() } else { format!("w/{}", writer % 5) };
        if number % 7 == 6 {
            let request = DeleteRangeRequest { key: key.into(), ..DeleteRangeRequest::default() };
            keys.delete_range(request).await.expect("it is deleted");
        } else {
            keys.put(put(&key, &"x".repeat(100))).await.expect("it is put");
        }
    }
}

/// Everything that was ever said of a span, without what was there before.
async fn history(server: &Server, key: &str, end: &str, last: i64) -> Vec<Event> {
    let request = WatchCreateRequest { start_revision: 2, ..watch(1, key, end) };
    let mut stream = Stream::open(connect(server).await, request).await;
    let mut all = Vec::new();
    while all.last().is_none_or(|event| revision(event) < last) {
        all.extend(stream.hear().await.events);
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_of_one_stream_each_hear_all_of_theirs_and_nothing_else() {
    let server = Server::vez();
    let channel = connect(&server).await;
    KvClient::new(channel.clone()).put(put("w/0", "first")).await.expect("a put");
    let mut stream = Stream::open(connect(&server).await, watch(1, "w/", "w0")).await;
    let noput = i32::from(FilterType::Noput);
    for request in [
        WatchCreateRequest { prev_kv: true, ..watch(2, "w/", "w0") },
        WatchCreateRequest { filters: vec![noput], ..watch(3, "w/", "w0") },
        WatchCreateRequest { start_revision: 2, ..watch(4, "w/", "w0") },
        watch(5, "w/1", "w/3"),
        watch(6, "x", ""),
        watch(7, "w/", "w0"),
        watch(8, "w/", "w0"),
    ] {
        stream.ask(RequestUnion::CreateRequest(request)).await;
    }
    stream.ask(RequestUnion::CancelRequest(WatchCancelRequest { watch_id: 8 })).await;
    while !stream.hear().await.canceled {}
    let writers = (0..WRITERS).map(|writer| tokio::spawn(write(channel.clone(), writer)));
    for writer in writers.collect::<Vec<_>>() {
        writer.await.expect("it ends");
    }
    // The last words, of each span.
    let mut keys = KvClient::new(channel.clone());
    let mut last = 0;
    for key in ["x", "w/1", "w/0"] {
        keys.put(put(key, "last")).await.expect("a put");
        let request = DeleteRangeRequest { key: key.into(), ..DeleteRangeRequest::default() };
        let answer = keys.delete_range(request).await.expect("it is deleted").into_inner();
        last = answer.header.expect("a header").revision;
    }
    let all = history(&server, "w/", "y", last).await;
    let in_w = |event: &&Event| key(event).starts_with(b"w/");
    let of = |wanted: &dyn Fn(&&Event) -> bool| -> Vec<Event> {
        all.iter().filter(|event| wanted(event)).cloned().collect()
    };
    let later = of(&|event| in_w(event) && 2 < revision(event));
    let expected = BTreeMap::from([
        (1, later.clone()),
        (2, later.clone()),
        (3, of(&|event| in_w(event) && event.r#type() == EventType::Delete)),
        (4, of(&|event| in_w(event))),
        (5, of(&|event| (&b"w/1"[..]..b"w/3").contains(&key(event)))),
        (6, of(&|event| key(event) == b"x")),
        (7, later),
    ]);
    // The first was told before anything was written.
    let mut heard: BTreeMap<i64, Vec<Event>> = BTreeMap::from([(4, vec![all[0].clone()])]);
    let mut answers = 0_usize;
    while expected.iter().any(|(id, all)| heard.get(id).map_or(0, Vec::len) < all.len()) {
        let answer = stream.hear().await;
        let newest = answer.header.expect("a header").revision;
        assert!(answer.events.iter().all(|event| revision(event) <= newest));
        answers += 1;
        heard.entry(answer.watch_id).or_default().extend(answer.events);
    }
    for event in heard.get_mut(&2).expect("it heard") {
        let was_there = event.prev_kv.take().is_some();
        let kv = event.kv.as_ref().expect("a key");
        assert_eq!(was_there, kv.version != 1, "{kv:?}");
    }
    assert_eq!(heard, expected);
    assert!(answers < heard.values().map(Vec::len).sum(), "what gathers is told together");
}
