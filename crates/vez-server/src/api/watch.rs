//! Watches: many on one stream, each hearing every change of its keys, once and in order.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;

use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::{Stream, wrappers::ReceiverStream};
use tonic::{Request, Response, Status, Streaming};
use vez_api::etcdserverpb::{
    WatchCreateRequest, WatchRequest, WatchResponse, watch_create_request::FilterType,
    watch_request::RequestUnion, watch_server::Watch,
};
use vez_api::mvccpb::{Event, event::EventType};

use super::Service;
use crate::hub::{Notice, Registration, Span};
use crate::state::Past;

/// Notices that wait for a client to read; one that lets more gather reads the history instead.
const NOTICES: usize = 1024;
/// Answers that wait for the transport.
const ANSWERS: usize = 16;
/// Events of the history that are read at a time, so that the state is not held for long.
const PAGE: usize = 1000;
/// How often a quiet watch that asked for it hears that nothing was missed.
const PROGRESS: Duration = Duration::from_mins(10);
/// The id of an answer that is about no watch, or about all.
const NO_WATCH: i64 = -1;

type Answer = Result<WatchResponse, Status>;

#[tonic::async_trait]
impl Watch for Service {
    type WatchStream = Pin<Box<dyn Stream<Item = Answer> + Send>>;

    async fn watch(
        &self,
        request: Request<Streaming<WatchRequest>>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let (tell, heard) = mpsc::channel(ANSWERS);
        let (ear, notices) = mpsc::channel(NOTICES);
        let watcher = Watcher {
            service: self.clone(),
            tell,
            ear,
            notices,
            watches: BTreeMap::new(),
            next: 0,
            was_full: false,
        };
        tokio::spawn(watcher.serve(request.into_inner()));
        Ok(Response::new(Box::pin(ReceiverStream::new(heard))))
    }
}

/// One client's stream with all its watches.
struct Watcher {
    service: Service,
    tell: mpsc::Sender<Answer>,
    ear: mpsc::Sender<Notice>,
    notices: mpsc::Receiver<Notice>,
    watches: BTreeMap<i64, Watched>,
    next: i64,
    was_full: bool,
}

struct Watched {
    span: Span,
    registration: Registration,
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
    async fn serve(mut self, mut requests: Streaming<WatchRequest>) {
        let mut progress = tokio::time::interval(PROGRESS);
        progress.tick().await;
        let mut is_open = true;
        loop {
            let done = tokio::select! {
                request = requests.message(), if is_open => match request {
                    Ok(Some(request)) => self.hear(request).await,
                    // A client may close its half and go on listening.
                    Ok(None) => { is_open = false; Ok(()) }
                    Err(_) => Err(Gone),
                },
                Some(notice) = self.notices.recv() => self.pass_on_all(notice).await,
                _ = progress.tick() => self.reassure().await,
                () = self.tell.closed() => Err(Gone),
            };
            if done.is_err() {
                break;
            }
        }
        for watched in self.watches.values() {
            self.service.hub.leave(&watched.registration);
        }
    }

    async fn hear(&mut self, request: WatchRequest) -> Result<(), Gone> {
        match request.request_union {
            Some(RequestUnion::CreateRequest(request)) => self.create(request).await,
            Some(RequestUnion::CancelRequest(request)) => {
                let watch_id = request.watch_id;
                let Some(watched) = self.watches.remove(&watch_id) else { return Ok(()) };
                self.service.hub.leave(&watched.registration);
                self.say(WatchResponse { watch_id, canceled: true, ..self.now() }).await
            }
            Some(RequestUnion::ProgressRequest(_)) => {
                self.catch_up_all().await?;
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
        let (revision, registration) = self.service.replica.read(|state| {
            let registration = self.service.hub.join(span.clone(), watch_id, &self.ear);
            (state.revision(), registration)
        });
        let from = match request.start_revision {
            0 => revision + 1,
            start => start,
        };
        let is_deaf_to = request.filters().map(|filter| match filter {
            FilterType::Noput => EventType::Put,
            FilterType::Nodelete => EventType::Delete,
        });
        let watched = Watched {
            span,
            registration,
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

    async fn pass_on_all(&mut self, notice: Notice) -> Result<(), Gone> {
        // Whoever could not be told was let go while the channel was full.
        self.was_full |= NOTICES <= self.notices.len() + 1;
        self.pass_on(notice).await?;
        if self.was_full && self.notices.is_empty() {
            self.was_full = false;
            self.catch_up_all().await?;
        }
        Ok(())
    }

    async fn pass_on(&mut self, notice: Notice) -> Result<(), Gone> {
        let Some(watched) = self.watches.get_mut(&notice.watch) else { return Ok(()) };
        if watched.from <= notice.revision {
            let answer = watched.answer(notice.watch, &notice.events);
            watched.from = notice.revision + 1;
            self.send_events(answer, notice.revision).await?;
        }
        Ok(())
    }

    /// Reads from the history what a watch has not heard, and has it listen again.
    async fn catch_up(&mut self, watch_id: i64) -> Result<(), Gone> {
        loop {
            let Some(watched) = self.watches.get_mut(&watch_id) else { return Ok(()) };
            let (hub, ear) = (&self.service.hub, &self.ear);
            let read = self.service.replica.read(|state| {
                let Span { key, end } = &watched.span;
                let revision = state.revision();
                let page = state.events_since_at_most(watched.from, key, end, PAGE);
                let is_last = page.as_ref().is_ok_and(|page| revision < page.next_revision);
                if is_last && watched.registration.is_late() {
                    let span = watched.span.clone();
                    watched.registration = hub.join(span, watch_id, ear);
                }
                (revision, page.map(|page| (page, is_last)), state.compacted())
            });
            let (revision, page, compact_revision) = read;
            let Ok((Past { events, next_revision }, is_last)) = page else {
                self.service.hub.leave(&watched.registration);
                self.watches.remove(&watch_id);
                let answer =
                    WatchResponse { watch_id, canceled: true, compact_revision, ..self.now() };
                return self.say(answer).await;
            };
            let answer = watched.answer(watch_id, &events);
            watched.from = next_revision;
            self.send_events(answer, revision).await?;
            if is_last {
                return Ok(());
            }
        }
    }

    async fn catch_up_all(&mut self) -> Result<(), Gone> {
        while let Ok(notice) = self.notices.try_recv() {
            self.pass_on(notice).await?;
        }
        let late = self.watches.iter().filter(|(_, watched)| watched.registration.is_late());
        for watch_id in late.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.catch_up(watch_id).await?;
        }
        Ok(())
    }

    async fn reassure(&mut self) -> Result<(), Gone> {
        self.catch_up_all().await?;
        let quiet = self.watches.iter().filter(|(_, watched)| watched.wants_progress);
        for watch_id in quiet.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.say(WatchResponse { watch_id, ..self.now() }).await?;
        }
        Ok(())
    }

    async fn send_events(&self, answer: WatchResponse, revision: i64) -> Result<(), Gone> {
        if answer.events.is_empty() {
            return Ok(());
        }
        let answer = WatchResponse { header: self.service.header(revision), ..answer };
        let limit = self.service.limits.request_bytes;
        if !answer.fragment || answer.encoded_len() <= limit {
            return self.say(WatchResponse { fragment: false, ..answer }).await;
        }
        let mut parts = split(&answer.events, limit).into_iter().peekable();
        while let Some(events) = parts.next() {
            let fragment = parts.peek().is_some();
            self.say(WatchResponse { events, fragment, ..answer.clone() }).await?;
        }
        Ok(())
    }

    fn now(&self) -> WatchResponse {
        WatchResponse { header: self.service.header_now(), ..WatchResponse::default() }
    }

    async fn say(&self, answer: WatchResponse) -> Result<(), Gone> {
        self.tell.send(Ok(answer)).await.map_err(|_| Gone)
    }
}

impl Watched {
    /// What this watch hears of some events; the header comes later.
    fn answer(&self, watch_id: i64, events: &[Event]) -> WatchResponse {
        let wanted = events.iter().filter(|event| {
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
