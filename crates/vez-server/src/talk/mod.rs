//! A caller's connection: what is asked is begun, and what comes of it is told, all in one task.
//!
//! Calls with one request and one answer, which are nearly all, go straight to their methods; the
//! others go through tonic.
//!
//! **Invariant:** whoever gives a call up, or hangs up, ends it here too. Nothing more is read, and
//! nothing more answered, while the caller does not read what it was told.

mod incoming;
mod words;

use std::collections::BTreeMap;
use std::io;
use std::mem::{self, MaybeUninit};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::FuturesUnordered;
use http_body::{Body as _, Frame};
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep};
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::codegen::Service as _;
use tonic::codegen::http::Response;
use tonic::service::Routes;
use tonic::{Code, Status};
use vez_http2::{Connection, Event, Fields, Limits, reason};

use self::incoming::{Incoming, Taken, Tell};
use self::words::{CONTENT_TYPE, Head, WELL};
use crate::api::{Service, unary};
use crate::door::Caller;
use crate::seen::calls::{Call as Counted, Calls};
use crate::watched;

/// So much is read at a time.
const ROOM: usize = 16 * 1024;
/// When so much waits for a caller to read it, nothing more is done for it.
const OUT_MAX: usize = 64 * 1024;
/// The same of what waits because the caller does not let it be sent. More, because of many calls
/// one may wait for long without harm to the others.
const WAITS_MAX: usize = 16 * 1024 * 1024;
/// The most that a call may begin with.
const FIELDS_MAX: usize = 16 * 1024;
/// So many times the largest request may come in pieces at a time on one connection.
const PIECES_MAX: usize = 8;
/// How often it is asked whether a silent caller still lives.
const LOOK: Duration = Duration::from_secs(10);
/// What somebody is told who speaks HTTP/1, as browsers do.
const NOT_HERE: &[u8] = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\
    content-type: text/plain\r\n\r\nHere vez speaks gRPC with etcd's clients; its pages are at \
    --listen-metrics-urls.\n";

/// What all connections share.
#[derive(Clone)]
pub(crate) struct Host {
    service: Service,
    routes: Routes,
    calls: Arc<Calls>,
    limits: Limits,
    request_max: usize,
}

impl Host {
    pub(crate) fn new(service: Service, calls: Arc<Calls>) -> Self {
        let limits = Limits { streams: service.limits.streams_per_connection, fields: FIELDS_MAX };
        let (routes, request_max) = (service.routes(), service.request_max());
        Self { service, routes, calls, limits, request_max }
    }
}

/// Talks with all who come in, until nobody more does and all have ended.
pub(crate) async fn serve(
    host: Host,
    mut callers: ReceiverStream<io::Result<Caller>>,
    stopped: watched::Receiver<bool>,
) {
    let mut talks = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = talks.join_next() => {}
            caller = callers.next() => match caller {
                Some(Ok(caller)) => {
                    talks.spawn(Talk::new(caller, host.clone(), stopped.clone()));
                }
                Some(Err(_)) => {}
                None => break,
            },
        }
    }
    while talks.join_next().await.is_some() {}
}

/// A call, from its first word to its last.
struct Call {
    counted: Counted,
    hearing: Hearing,
    /// Ends whatever is done for it.
    doing: Option<AbortHandle>,
    /// An answer that is gone on with when the caller has read what it has.
    rest: Option<Body>,
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(doing) = &self.doing {
            doing.abort();
        }
    }
}

/// What becomes of what a caller says.
enum Hearing {
    /// It is put together first.
    Whole {
        method: unary::Method,
        head: Box<Head>,
        first: Bytes,
        all: Vec<u8>,
    },
    Stream(Tell),
    /// All has been said.
    Nothing,
}

/// What is done for a call.
enum Doing {
    Answers(unary::Answering),
    Begins(Pin<Box<dyn Future<Output = Response<Body>> + Send>>),
    GoesOn(Option<Body>),
}

/// What came of it.
enum Step {
    Answered(Result<unary::Answer, Status>),
    Begun(Response<Body>),
    WentOn(Option<Result<Frame<Bytes>, Status>>, Body),
}

struct Task {
    id: u32,
    doing: Doing,
}

impl Future for Task {
    type Output = (u32, Step);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<(u32, Step)> {
        let step = match &mut self.doing {
            Doing::Answers(answering) => Step::Answered(ready!(answering.as_mut().poll(cx))),
            Doing::Begins(beginning) => Step::Begun(ready!(beginning.as_mut().poll(cx))),
            Doing::GoesOn(slot) => {
                let body = slot.as_mut().expect("a step is made once");
                let frame = ready!(Pin::new(body).poll_frame(cx));
                Step::WentOn(frame, slot.take().expect("it was there just now"))
            }
        };
        Poll::Ready((self.id, step))
    }
}

/// When a caller was heard last.
#[derive(Clone, Copy)]
enum Sign {
    /// Since it was looked.
    Heard,
    Silent,
    /// It was asked whether it lives, and has not answered.
    Asked,
}

struct Talk {
    caller: Caller,
    host: Host,
    connection: Connection,
    calls: BTreeMap<u32, Box<Call>>,
    under_way: FuturesUnordered<Abortable<Task>>,
    /// Whose answers wait for the caller to read.
    stalled: Vec<u32>,
    /// What was taken of requests that go on. Few callers have such.
    taken: Option<(UnboundedSender<Taken>, UnboundedReceiver<Taken>)>,
    /// How much of requests has come in pieces.
    pieces: usize,
    events: Vec<Event>,
    /// Nothing, when it has come.
    stop: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    look: Pin<Box<Sleep>>,
    sign: Sign,
    /// What is in the connection's `out` is still said, and nothing else.
    is_over: bool,
}

impl Talk {
    fn new(caller: Caller, host: Host, mut stopped: watched::Receiver<bool>) -> Self {
        let stop = async move {
            stopped.wait_for(|stopped| *stopped).await.ok();
        };
        Self {
            caller,
            connection: Connection::new(host.limits),
            host,
            calls: BTreeMap::new(),
            under_way: FuturesUnordered::new(),
            stalled: Vec::new(),
            taken: None,
            pieces: 0,
            events: Vec::new(),
            stop: Some(Box::pin(stop)),
            look: Box::pin(sleep(LOOK)),
            sign: Sign::Heard,
            is_over: false,
        }
    }

    /// Who does not answer when asked has gone without a word.
    fn look_after(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.stop.as_mut().is_some_and(|stop| stop.as_mut().poll(cx).is_ready()) {
            self.stop = None;
            self.connection.close();
        }
        while self.look.as_mut().poll(cx).is_ready() {
            self.look.as_mut().reset(Instant::now() + LOOK);
            self.sign = match self.sign {
                Sign::Heard => Sign::Silent,
                Sign::Silent => {
                    self.connection.ping();
                    Sign::Asked
                }
                Sign::Asked => return Err(io::ErrorKind::TimedOut.into()),
            };
        }
        Ok(())
    }

    /// Hears what came, if anything did; says whether the caller is still there.
    fn read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut room = [MaybeUninit::uninit(); ROOM];
        let mut room = ReadBuf::uninit(&mut room);
        ready!(Pin::new(&mut self.caller).poll_read(cx, &mut room))?;
        let bytes = room.filled();
        if bytes.is_empty() {
            return Poll::Ready(Ok(false));
        }
        self.sign = Sign::Heard;
        let mut events = mem::take(&mut self.events);
        let heard = self.connection.receive(bytes, &mut events);
        for event in events.drain(..) {
            self.hear(event);
        }
        self.events = events;
        if let Err(broken) = heard {
            tracing::debug!("{} is sent away: {}", self.caller.peer(), broken.why);
            if self.connection.is_silent() {
                NOT_HERE.clone_into(self.connection.out());
            }
            self.calls.clear();
            self.is_over = true;
        }
        Poll::Ready(Ok(true))
    }

    /// Returns when all is said that there is to say at the moment.
    fn write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let out = self.connection.out();
        let mut sent = 0;
        let outcome = loop {
            if sent == out.len() {
                break Poll::Ready(Ok(()));
            }
            match Pin::new(&mut self.caller).poll_write(cx, &out[sent..]) {
                Poll::Ready(Ok(0)) => break Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(more)) => sent += more,
                Poll::Ready(Err(error)) => break Poll::Ready(Err(error)),
                Poll::Pending => break Poll::Pending,
            }
        };
        if sent < out.len() {
            out.drain(..sent);
            return outcome;
        }
        out.clear();
        // What one long answer needed is not kept for ever.
        out.shrink_to(OUT_MAX);
        // Encrypted, it may have been put aside only.
        ready!(Pin::new(&mut self.caller).poll_flush(cx))?;
        outcome
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::Begins { id, fields, is_all } => self.begin(id, fields, is_all),
            Event::Says { id, bytes, weighs, is_all } => self.go_on(id, bytes, weighs, is_all),
            Event::Cancels { id } => self.forget(id),
        }
    }

    fn begin(&mut self, id: u32, fields: Fields, is_all: bool) {
        let head = match Head::read(fields) {
            Ok(head) => head,
            Err(status) => return self.connection.begin(id, status, [], true),
        };
        let counted = self.host.calls.begin(&head.path);
        let (hearing, doing) = match unary::method(&head.path) {
            Some(method) => {
                let (head, first, all) = (Box::new(head), Bytes::new(), Vec::new());
                (Hearing::Whole { method, head, first, all }, None)
            }
            None => {
                let (tell, doing) = self.begin_stream(id, &head);
                (Hearing::Stream(tell), Some(doing))
            }
        };
        self.calls.insert(id, Box::new(Call { counted, hearing, doing: None, rest: None }));
        if let Some(doing) = doing {
            self.undertake(id, doing);
        }
        if is_all {
            self.said_all(id);
        }
    }

    /// Begins a call whose request, or answer, goes on.
    fn begin_stream(&mut self, id: u32, head: &Head) -> (Tell, Doing) {
        let (report, _) = self.taken.get_or_insert_with(mpsc::unbounded_channel);
        let (tell, incoming) = Incoming::new(id, report.clone());
        let request = head.request(Body::new(incoming));
        let mut routes = self.host.routes.clone();
        let answer = async move {
            let Ok(answer) = routes.call(request).await;
            answer
        };
        (tell, Doing::Begins(Box::pin(answer)))
    }

    fn go_on(&mut self, id: u32, bytes: Bytes, weighs: u32, is_all: bool) {
        let Some(call) = self.calls.get_mut(&id) else {
            return self.connection.taken(id, weighs);
        };
        match &mut call.hearing {
            Hearing::Whole { first, all, .. } => {
                self.connection.taken(id, weighs);
                if first.is_empty() {
                    *first = bytes;
                } else {
                    self.pieces += bytes.len();
                    all.extend_from_slice(&bytes);
                }
                let length = first.len() + all.len();
                let most = self.host.request_max;
                if most < length || PIECES_MAX * most < self.pieces {
                    let why = format!("vez: a request has at most {most} bytes");
                    return self.answer(id, Err(Status::resource_exhausted(why)));
                }
            }
            // Whoever does not want to hear it has taken it.
            Hearing::Stream(tell) => {
                if tell.send((bytes, weighs)).is_err() {
                    self.connection.taken(id, weighs);
                }
            }
            Hearing::Nothing => self.connection.taken(id, weighs),
        }
        if is_all {
            self.said_all(id);
        }
    }

    fn said_all(&mut self, id: u32) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let hearing = mem::replace(&mut call.hearing, Hearing::Nothing);
        let Hearing::Whole { method, head, first, all } = hearing else { return };
        self.pieces -= all.len();
        let request = if all.is_empty() { first } else { [&first[..], &all].concat().into() };
        let answering = method(self.host.service.clone(), head.metadata(), request);
        let answering = match head.timeout {
            None => answering,
            Some(timeout) => Box::pin(async move {
                let late = |_| Err(Status::deadline_exceeded("vez: the caller's time is over"));
                tokio::time::timeout(timeout, answering).await.unwrap_or_else(late)
            }),
        };
        self.undertake(id, Doing::Answers(answering));
    }

    fn undertake(&mut self, id: u32, doing: Doing) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let (handle, registration) = AbortHandle::new_pair();
        call.doing = Some(handle);
        self.under_way.push(Abortable::new(Task { id, doing }, registration));
    }

    fn forget(&mut self, id: u32) {
        if let Some(call) = self.calls.remove(&id)
            && let Hearing::Whole { all, .. } = &call.hearing
        {
            self.pieces -= all.len();
        }
    }

    fn step(&mut self, id: u32, step: Step) {
        if let Some(call) = self.calls.get_mut(&id) {
            // Whatever was done has been done: nothing is left to be ended, or woken for that.
            call.doing = None;
        }
        match step {
            Step::Answered(answer) => self.answer(id, answer),
            Step::Begun(response) => {
                let (parts, body) = response.into_parts();
                let is_all = body.is_end_stream();
                let status = parts.status.as_u16();
                self.connection.begin(id, status, words::fields(&parts.headers), is_all);
                let Some(call) = self.calls.get_mut(&id) else { return };
                call.counted.hear(&parts.headers);
                if is_all {
                    self.forget(id);
                } else {
                    self.undertake(id, Doing::GoesOn(Some(body)));
                }
            }
            Step::WentOn(frame, body) => self.tell(id, frame, body),
        }
    }

    fn answer(&mut self, id: u32, answer: Result<unary::Answer, Status>) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        match answer {
            Ok(unary::Answer { metadata, message }) => {
                call.counted.end(Code::Ok, message.len());
                let headers = metadata.into_headers();
                let fields = std::iter::once(CONTENT_TYPE).chain(words::fields(&headers));
                self.connection.begin(id, 200, fields, false);
                self.connection.say(id, message);
                self.connection.finish(id, [WELL]);
            }
            Err(status) => {
                call.counted.end(status.code(), 0);
                let headers = words::headers_of(&status);
                let fields = std::iter::once(CONTENT_TYPE).chain(words::fields(&headers));
                self.connection.begin(id, 200, fields, true);
            }
        }
        self.forget(id);
    }

    /// More of an answer that goes on, or its end.
    fn tell(&mut self, id: u32, frame: Option<Result<Frame<Bytes>, Status>>, body: Body) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let frame = match frame {
            Some(Ok(frame)) => frame,
            Some(Err(status)) => Frame::trailers(words::headers_of(&status)),
            None => {
                self.connection.reset(id, reason::INTERNAL_ERROR);
                return self.forget(id);
            }
        };
        match frame.into_data() {
            Ok(bytes) => {
                call.counted.sends(bytes.len());
                self.connection.say(id, bytes);
                call.rest = Some(body);
                self.stalled.push(id);
            }
            Err(frame) => {
                let trailers = frame.into_trailers().unwrap_or_default();
                call.counted.hear(&trailers);
                self.connection.finish(id, words::fields(&trailers));
                self.forget(id);
            }
        }
    }

    /// Goes on with answers whose callers have read what they have; says whether there were such.
    fn go_on_with_stalled(&mut self) -> bool {
        if self.stalled.is_empty() || OUT_MAX <= self.connection.out().len() {
            return false;
        }
        let mut stalled = mem::take(&mut self.stalled);
        let before = self.under_way.len();
        stalled.retain(|&id| {
            if !self.connection.is_clear(id) {
                return true;
            }
            if let Some(body) = self.calls.get_mut(&id).and_then(|call| call.rest.take()) {
                self.undertake(id, Doing::GoesOn(Some(body)));
            }
            false
        });
        self.stalled = stalled;
        before < self.under_way.len()
    }

    fn hear_taken(&mut self, cx: &mut Context<'_>) {
        let Some((_, taken)) = &mut self.taken else { return };
        while let Poll::Ready(Some(Taken { id, weighs })) = taken.poll_recv(cx) {
            self.connection.taken(id, weighs);
        }
    }

    /// The caller has so much to read that nothing more is answered for now.
    fn is_full(&mut self) -> bool {
        OUT_MAX <= self.connection.out().len() || WAITS_MAX <= self.connection.waits()
    }

    fn proceed(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.look_after(cx)?;
        loop {
            while !self.is_full()
                && let Poll::Ready(Some(done)) = self.under_way.poll_next_unpin(cx)
            {
                if let Ok((id, step)) = done {
                    self.step(id, step);
                }
            }
            let was_full = self.is_full();
            self.hear_taken(cx);
            let written = self.write(cx)?;
            self.is_over |= self.stop.is_none() && self.calls.is_empty();
            if self.is_over {
                ready!(written);
                return Pin::new(&mut self.caller).poll_shutdown(cx);
            }
            if self.go_on_with_stalled() || was_full && !self.is_full() {
                continue;
            }
            if OUT_MAX <= self.connection.out().len() {
                return Poll::Pending;
            }
            if !ready!(self.read(cx))? {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl Future for Talk {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let over = ready!(self.proceed(cx));
        if let Err(error) = over {
            tracing::debug!("{} hung up: {error}", self.caller.peer());
        }
        Poll::Ready(())
    }
}
