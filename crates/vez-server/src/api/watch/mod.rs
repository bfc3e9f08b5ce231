//! Watches: many on one stream, each hearing every change of its keys, once and in order.
//!
//! Watches of one stream that want to hear of the same keys listen together. What gathered while
//! the transport was busy is told in one answer.

mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};
use vez_api::etcdserverpb::{
    WatchCreateRequest, WatchRequest, WatchResponse, watch_create_request::FilterType,
    watch_request::RequestUnion,
};
use vez_api::mvccpb::{Event, event::EventType};

use self::wire::Answer;
use super::{Service, status};
use crate::hub::{Batch, Content, Mailbox, Notice, Registration, Span};
use crate::raft::ProposeError;
use crate::state::{Past, State};

pub(super) use self::wire::WatchDoor;

/// Notices that wait for a client to read; one that lets more gather reads the history instead.
const NOTICES: usize = 1024;
/// Answers that wait for the transport.
const ANSWERS: usize = 64;
/// Events of the history that are read at a time, so that the state is not held for long.
const PAGE: usize = 1000;
/// What gathered is told in answers of about so many bytes.
const ANSWER_BYTES: usize = 64 * 1024;
/// How often a quiet watch that asked for it hears that nothing was missed.
const PROGRESS: Duration = Duration::from_mins(10);
/// The id of an answer that is about no watch, or about all.
const NO_WATCH: i64 = -1;

impl Service {
    /// Whoever needs a leader does not want to hear from a member that is cut off from the others.
    fn watch(
        &self,
        requests: Streaming<WatchRequest>,
        needs_leader: bool,
    ) -> ReceiverStream<Result<Answer, Status>> {
        let (tell, heard) = mpsc::channel(ANSWERS);
        let watcher = Watcher {
            service: self.clone(),
            tell,
            mailbox: Mailbox::new(NOTICES),
            watches: BTreeMap::new(),
            next: 0,
            tags: BTreeMap::new(),
            groups: BTreeMap::new(),
            last_tag: 0,
        };
        tokio::spawn(watcher.serve(requests, needs_leader));
        ReceiverStream::new(heard)
    }
}

/// One client's stream with all its watches.
struct Watcher {
    service: Service,
    tell: mpsc::Sender<Result<Answer, Status>>,
    mailbox: Arc<Mailbox>,
    watches: BTreeMap<i64, Watched>,
    next: i64,
    tags: BTreeMap<Span, u64>,
    groups: BTreeMap<u64, Group>,
    last_tag: u64,
}

/// The watches of one span.
struct Group {
    span: Span,
    registration: Registration,
    watches: BTreeSet<i64>,
}

struct Watched {
    tag: u64,
    /// The first revision that it has not heard of.
    from: i64,
    is_deaf_to: Vec<EventType>,
    wants_before: bool,
    wants_fragments: bool,
    wants_progress: bool,
}

/// The client has gone.
struct Gone;

impl Watcher {
    async fn serve(mut self, mut requests: Streaming<WatchRequest>, needs_leader: bool) {
        let replica = self.service.replica.clone();
        let leaderless = replica.leaderless();
        tokio::pin!(leaderless);
        let mut progress = tokio::time::interval(PROGRESS);
        progress.tick().await;
        let mut is_open = true;
        loop {
            // Events before requests would keep a client from ever ending a busy watch.
            let done = tokio::select! {
                biased;
                () = self.tell.closed() => Err(Gone),
                () = &mut leaderless, if needs_leader => {
                    self.tell.send(Err(status(ProposeError::NoMajority))).await.ok();
                    Err(Gone)
                }
                request = requests.message(), if is_open => match request {
                    Ok(Some(request)) => self.hear(request).await,
                    // A client may close its half and go on listening.
                    Ok(None) => { is_open = false; Ok(()) }
                    Err(_) => Err(Gone),
                },
                () = self.mailbox.filled() => self.pass_on_all().await,
                _ = progress.tick() => self.reassure().await,
            };
            // Who will not ask for anything any more, and hears of nothing, waits for nothing.
            if done.is_err() || !is_open && self.watches.is_empty() {
                break;
            }
        }
        for group in self.groups.values() {
            self.service.hub.leave(&group.registration);
        }
    }

    async fn hear(&mut self, request: WatchRequest) -> Result<(), Gone> {
        match request.request_union {
            Some(RequestUnion::CreateRequest(request)) => self.create(request).await,
            Some(RequestUnion::CancelRequest(request)) => {
                let watch_id = request.watch_id;
                if !self.forget(watch_id) {
                    return Ok(());
                }
                self.say(WatchResponse { watch_id, canceled: true, ..self.now() }).await
            }
            Some(RequestUnion::ProgressRequest(_)) => {
                self.pass_on_all().await?;
                self.say(WatchResponse { watch_id: NO_WATCH, ..self.now() }).await
            }
            None => Ok(()),
        }
    }

    async fn create(&mut self, request: WatchCreateRequest) -> Result<(), Gone> {
        let key = if request.key.is_empty() { "\0".into() } else { request.key.clone() };
        let span = Span { key, end: request.range_end.clone() };
        let limit = self.service.limits.watches_per_stream;
        let refusal = if request.start_revision < 0 {
            "etcdserver: mvcc: required revision has been compacted".to_owned()
        } else if span.is_empty() {
            "mvcc: watcher range is empty".to_owned()
        } else if self.watches.contains_key(&request.watch_id) && request.watch_id != 0 {
            "mvcc: duplicate watch ID provided on the WatchStream".to_owned()
        } else if limit <= self.watches.len() {
            format!("vez: a stream has at most {limit} watches")
        } else {
            String::new()
        };
        if !refusal.is_empty() {
            let (created, canceled, watch_id) = (true, true, NO_WATCH);
            let cancel_reason = refusal;
            let answer = WatchResponse { watch_id, created, canceled, cancel_reason, ..self.now() };
            return self.say(answer).await;
        }
        let watch_id = if request.watch_id == 0 { self.free_id() } else { request.watch_id };
        // Read after it listens: what is between is in both, and heard once.
        let tag = self.listen(span, watch_id);
        let revision = self.service.replica.read(State::revision);
        let from = match request.start_revision {
            0 => revision + 1,
            start => start,
        };
        let is_deaf_to = request.filters().map(|filter| match filter {
            FilterType::Noput => EventType::Put,
            FilterType::Nodelete => EventType::Delete,
        });
        let watched = Watched {
            tag,
            from,
            is_deaf_to: is_deaf_to.collect(),
            wants_before: request.prev_kv,
            wants_fragments: request.fragment,
            wants_progress: request.progress_notify,
        };
        self.watches.insert(watch_id, watched);
        let header = self.service.header(revision);
        self.say(WatchResponse { header, watch_id, created: true, ..WatchResponse::default() })
            .await?;
        if from <= revision { self.catch_up(watch_id).await } else { Ok(()) }
    }

    fn free_id(&mut self) -> i64 {
        while self.watches.contains_key(&self.next) {
            self.next += 1;
        }
        self.next += 1;
        self.next - 1
    }

    /// Has a span heard of for a watch; says under which tag.
    fn listen(&mut self, span: Span, watch_id: i64) -> u64 {
        let tag = self.tags.get(&span).copied().unwrap_or_else(|| {
            self.last_tag += 1;
            let (tag, hub) = (self.last_tag, &self.service.hub);
            let join = |_: &State| hub.join(span.clone(), tag, &self.mailbox);
            let registration = self.service.replica.read(join);
            let watches = BTreeSet::new();
            self.tags.insert(span.clone(), tag);
            self.groups.insert(tag, Group { span, registration, watches });
            tag
        });
        if let Some(group) = self.groups.get_mut(&tag) {
            group.watches.insert(watch_id);
            group.registration.set_watches(group.watches.len());
        }
        tag
    }

    /// Says whether there was such a watch.
    fn forget(&mut self, watch_id: i64) -> bool {
        let Some(watched) = self.watches.remove(&watch_id) else { return false };
        if let Some(group) = self.groups.get_mut(&watched.tag) {
            group.watches.remove(&watch_id);
            group.registration.set_watches(group.watches.len());
            if group.watches.is_empty() {
                self.service.hub.leave(&group.registration);
                self.tags.remove(&group.span);
                self.groups.remove(&watched.tag);
            }
        }
        true
    }

    /// Tells everything there is to tell.
    async fn pass_on_all(&mut self) -> Result<(), Gone> {
        let Content { notices, was_full } = self.mailbox.take();
        let mut by_tag: BTreeMap<u64, Vec<Arc<Batch>>> = BTreeMap::new();
        for Notice { tag, batch } in notices {
            by_tag.entry(tag).or_default().push(batch);
        }
        for (tag, batches) in by_tag {
            for part in portions(&batches) {
                self.pass_on(tag, part).await?;
            }
        }
        if was_full {
            self.catch_up_all().await?;
        }
        Ok(())
    }

    /// Tells the watches of one span what happened, in one answer each.
    async fn pass_on(&mut self, tag: u64, batches: &[Arc<Batch>]) -> Result<(), Gone> {
        let (Some(first), Some(last)) = (batches.first(), batches.last()) else { return Ok(()) };
        let (first, revision) = (first.revision, last.revision);
        let header = self.service.header(revision);
        let Some(group) = self.groups.get(&tag) else { return Ok(()) };
        let mut encoded = None;
        for watch_id in group.watches.iter().copied() {
            let Some(watched) = self.watches.get_mut(&watch_id) else { continue };
            if revision < watched.from {
                continue;
            }
            if watched.is_plain() && watched.from <= first {
                watched.from = revision + 1;
                let events = encoded.get_or_insert_with(|| encode(batches)).clone();
                let answer = Answer::Events { header, watch_id, events };
                self.tell.send(Ok(answer)).await.map_err(|_| Gone)?;
            } else {
                let events = batches.iter().flat_map(|batch| &batch.events);
                let answer = watched.answer(watch_id, events);
                watched.from = revision + 1;
                send_events(&self.service, &self.tell, answer, revision).await?;
            }
        }
        Ok(())
    }

    /// Reads from the history what a watch has not heard.
    async fn catch_up(&mut self, watch_id: i64) -> Result<(), Gone> {
        loop {
            let Some(watched) = self.watches.get_mut(&watch_id) else { return Ok(()) };
            let Some(group) = self.groups.get(&watched.tag) else { return Ok(()) };
            let read = self.service.replica.read(|state| {
                let Span { key, end } = &group.span;
                let page = state.events_since_at_most(watched.from, key, end, PAGE);
                (state.revision(), page, state.compacted())
            });
            let (revision, page, compact_revision) = read;
            let Ok(Past { events, next_revision }) = page else {
                self.forget(watch_id);
                let answer =
                    WatchResponse { watch_id, canceled: true, compact_revision, ..self.now() };
                return self.say(answer).await;
            };
            let answer = watched.answer(watch_id, &events);
            watched.from = next_revision;
            send_events(&self.service, &self.tell, answer, revision).await?;
            if revision < next_revision {
                return Ok(());
            }
        }
    }

    /// Whoever was let go listens again, and then reads what was missed.
    async fn catch_up_all(&mut self) -> Result<(), Gone> {
        let mut behind = Vec::new();
        for (tag, group) in &mut self.groups {
            if group.registration.is_late() {
                let (hub, span) = (&self.service.hub, &group.span);
                let join = |_: &State| hub.join(span.clone(), *tag, &self.mailbox);
                group.registration = self.service.replica.read(join);
                group.registration.set_watches(group.watches.len());
                behind.extend(group.watches.iter().copied());
            }
        }
        for watch_id in behind {
            self.catch_up(watch_id).await?;
        }
        Ok(())
    }

    async fn reassure(&mut self) -> Result<(), Gone> {
        self.pass_on_all().await?;
        let quiet = self.watches.iter().filter(|(_, watched)| watched.wants_progress);
        for watch_id in quiet.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.say(WatchResponse { watch_id, ..self.now() }).await?;
        }
        Ok(())
    }

    fn now(&self) -> WatchResponse {
        WatchResponse { header: self.service.header_now(), ..WatchResponse::default() }
    }

    async fn say(&self, answer: WatchResponse) -> Result<(), Gone> {
        say(&self.tell, answer).await
    }
}

async fn say(
    tell: &mpsc::Sender<Result<Answer, Status>>,
    answer: WatchResponse,
) -> Result<(), Gone> {
    tell.send(Ok(Answer::Plain(answer))).await.map_err(|_| Gone)
}

async fn send_events(
    service: &Service,
    tell: &mpsc::Sender<Result<Answer, Status>>,
    answer: WatchResponse,
    revision: i64,
) -> Result<(), Gone> {
    if answer.events.is_empty() {
        return Ok(());
    }
    let answer = WatchResponse { header: service.header(revision), ..answer };
    let limit = service.limits.request_bytes;
    if !answer.fragment || answer.encoded_len() <= limit {
        return say(tell, WatchResponse { fragment: false, ..answer }).await;
    }
    let mut parts = split(&answer.events, limit).into_iter().peekable();
    while let Some(events) = parts.next() {
        let fragment = parts.peek().is_some();
        say(tell, WatchResponse { events, fragment, ..answer.clone() }).await?;
    }
    Ok(())
}

/// Whole revisions, as many as go into one answer.
fn portions(batches: &[Arc<Batch>]) -> impl Iterator<Item = &[Arc<Batch>]> {
    let mut size = 0;
    batches.chunk_by(move |batch, next| {
        size += batch.encoded().len();
        let goes_on = size + next.encoded().len() <= ANSWER_BYTES;
        if !goes_on {
            size = 0;
        }
        goes_on
    })
}

fn encode(batches: &[Arc<Batch>]) -> Bytes {
    if let [batch] = batches {
        return batch.encoded().clone();
    }
    let mut all = BytesMut::new();
    for batch in batches {
        all.extend_from_slice(batch.encoded());
    }
    all.freeze()
}

impl Watched {
    /// It hears what everybody hears.
    fn is_plain(&self) -> bool {
        self.is_deaf_to.is_empty() && !self.wants_before && !self.wants_fragments
    }

    /// What this watch hears of some events; the header comes later.
    fn answer<'a>(
        &self,
        watch_id: i64,
        events: impl IntoIterator<Item = &'a Event>,
    ) -> WatchResponse {
        let wanted = events.into_iter().filter(|event| {
            !self.is_deaf_to.contains(&event.r#type()) && self.from <= revision_of(event)
        });
        let events = wanted.map(|event| match self.wants_before {
            true => event.clone(),
            false => Event { prev_kv: None, ..event.clone() },
        });
        let (events, fragment) = (events.collect(), self.wants_fragments);
        WatchResponse { watch_id, events, fragment, ..WatchResponse::default() }
    }
}

fn split(events: &[Event], limit: usize) -> Vec<Vec<Event>> {
    let mut parts: Vec<Vec<Event>> = Vec::new();
    let mut size = usize::MAX;
    for event in events {
        let more = event.encoded_len();
        size = size.saturating_add(more);
        if limit < size {
            parts.push(Vec::new());
            size = more;
        }
        if let Some(part) = parts.last_mut() {
            part.push(event.clone());
        }
    }
    parts
}

fn revision_of(event: &Event) -> i64 {
    event.kv.as_ref().map_or(0, |kv| kv.mod_revision)
}
