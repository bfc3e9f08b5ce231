use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status};
use vez_api::etcdserverpb::kv_client::KvClient;
use vez_api::etcdserverpb::{RangeRequest, RangeResponse, TxnRequest, TxnResponse};
use vez_tls::ClientFiles as Tls;
use vez_tls::net::{FORGET, Net, System};

use crate::backoff::Backoff;
use crate::election::{Leader, Observer};
use crate::error::{Error, is_transient};
use crate::session::{Session, SessionOptions};
use crate::way::Way;
use crate::wire;

/// A way to the service: several endpoints, of which one is used until it fails.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    endpoints: Vec<(String, Channel)>,
    /// The index of the one in use.
    current: watch::Sender<usize>,
    options: Options,
}

impl fmt::Debug for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let endpoints = self.inner.endpoints.iter().map(|(text, _)| text);
        out.debug_list().entries(endpoints).finish()
    }
}

/// How patient a client is, and whom it trusts.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long one endpoint may take to be connected to.
    pub connect_timeout: Duration,
    /// How long one endpoint may take to answer, before the next is asked.
    pub request_timeout: Duration,
    /// Needed for endpoints at `https://`. The files are read anew when they change.
    pub tls: Option<Tls>,
    /// By which servers are reached.
    pub net: Arc<dyn Net>,
}

impl Default for Options {
    fn default() -> Self {
        let (connect_timeout, request_timeout) = (Duration::from_secs(2), Duration::from_secs(5));
        Self { connect_timeout, request_timeout, tls: None, net: Arc::new(System) }
    }
}

/// An answer, and how many were asked for it; after the first, an earlier one may have acted too.
pub(crate) struct Answer<T> {
    pub(crate) response: T,
    pub(crate) attempts: usize,
}

/// Connections that died without a word are found out. etcd takes offence at more than one ping
/// in five seconds.
const PING_EVERY: Duration = Duration::from_secs(10);
const PONG_WITHIN: Duration = Duration::from_secs(5);

const EXPECTED: &str = "expected http://HOST:PORT or https://HOST:PORT";

impl Client {
    /// Connects to the first endpoint that can be connected to; to the others when they are needed.
    ///
    /// An endpoint is `http://host:port`, `https://host:port`, or `host:port`, which is one of
    /// them as there are certificates in the options or not.
    pub async fn connect<E: Into<String>>(
        endpoints: impl IntoIterator<Item = E>,
        options: Options,
    ) -> Result<Self, Error> {
        let texts = endpoints.into_iter().map(Into::into);
        let made: Result<Vec<_>, Error> =
            texts.map(|text: String| Ok((parse(&text, &options)?, text))).collect();
        let made = made?;
        let way = Way::new(Arc::clone(&options.net), options.tls.clone())?;
        let mut connected = None;
        let mut why = "there is no endpoint".to_owned();
        for (index, (endpoint, _)) in made.iter().enumerate() {
            match timeout(options.connect_timeout, endpoint.connect_with_connector(way.clone()))
                .await
            {
                Ok(Ok(channel)) => {
                    connected = Some((index, channel));
                    break;
                }
                Ok(Err(error)) => why = innermost(&error),
                Err(_) => why = format!("no connection within {:?}", options.connect_timeout),
            }
        }
        let Some((current, channel)) = connected else {
            let endpoints: Vec<_> = made.into_iter().map(|(_, text)| text).collect();
            return Err(Error::Unreachable { endpoints: endpoints.join(", "), why });
        };
        let lazy = |endpoint: Endpoint| endpoint.connect_with_connector_lazy(way.clone());
        let mut endpoints: Vec<_> =
            made.into_iter().map(|(endpoint, text)| (text, lazy(endpoint))).collect();
        endpoints[current].1 = channel;
        let (current, _) = watch::channel(current);
        Ok(Self { inner: Arc::new(Inner { endpoints, current, options }) })
    }

    /// Takes a lease and keeps it alive.
    pub async fn session(&self, options: impl Into<SessionOptions>) -> Result<Session, Error> {
        Session::open(self.clone(), options.into()).await
    }

    /// Who leads now, if anybody.
    pub async fn leader(&self, name: &str) -> Result<Option<Leader>, Error> {
        let range = self.range(wire::first(&wire::prefix(name))).await?;
        Ok(wire::head(Some(range)).map(|kv| Leader::new(&kv)))
    }

    /// Who leads, as it changes.
    pub fn observe(&self, name: &str) -> Observer {
        Observer::new(self.clone(), wire::prefix(name))
    }

    pub(crate) fn options(&self) -> &Options {
        &self.inner.options
    }

    /// The endpoint in use.
    pub(crate) fn channel(&self) -> (usize, Channel) {
        let index = *self.inner.current.borrow();
        (index, self.inner.endpoints[index].1.clone())
    }

    /// This one failed; the next one's turn, unless somebody has noticed before.
    pub(crate) fn move_on(&self, failed: usize) {
        let count = self.inner.endpoints.len();
        self.inner.current.send_if_modified(|current| {
            let moves = *current == failed && count > 1;
            if moves {
                *current = (failed + 1) % count;
            }
            moves
        });
    }

    /// Until another endpoint is in use than this one.
    pub(crate) async fn moved(&self, from: usize) {
        let mut current = self.inner.current.subscribe();
        // The sender lives as long as this client.
        let _ = current.wait_for(|index| *index != from).await;
    }

    /// Asks every endpoint once, beginning with the one in use, until one answers.
    pub(crate) async fn call<T, Asked>(
        &self,
        ask: impl Fn(Channel) -> Asked,
    ) -> Result<Answer<T>, Error>
    where
        Asked: Future<Output = Result<Response<T>, Status>>,
    {
        let patience = self.options().request_timeout;
        let mut why = String::new();
        for attempts in 1..=self.inner.endpoints.len() {
            let (index, channel) = self.channel();
            match timeout(patience, ask(channel)).await {
                Ok(Ok(response)) => {
                    return Ok(Answer { response: response.into_inner(), attempts });
                }
                Ok(Err(status)) if !is_transient(&status) => return Err(Error::Refused(status)),
                Ok(Err(status)) => why = reason(&status),
                Err(_) => why = format!("no answer within {patience:?}"),
            }
            self.move_on(index);
        }
        Err(self.unreachable(why))
    }

    pub(crate) fn unreachable(&self, why: String) -> Error {
        let endpoints: Vec<_> =
            self.inner.endpoints.iter().map(|(text, _)| text.as_str()).collect();
        Error::Unreachable { endpoints: endpoints.join(", "), why }
    }

    /// Asks until somebody answers, for ever if need be: for what may be asked twice.
    pub(crate) async fn persist<T, Asked>(
        &self,
        ask: impl Fn(Channel) -> Asked,
    ) -> Result<Answer<T>, Error>
    where
        Asked: Future<Output = Result<Response<T>, Status>>,
    {
        let mut backoff = Backoff::new();
        let mut before = 0;
        loop {
            match self.call(&ask).await {
                Err(Error::Unreachable { .. }) => {
                    before += self.inner.endpoints.len();
                    backoff.pause().await;
                }
                Err(error) => return Err(error),
                Ok(answer) => {
                    return Ok(Answer { attempts: before + answer.attempts, ..answer });
                }
            }
        }
    }

    pub(crate) async fn range(&self, request: RangeRequest) -> Result<RangeResponse, Error> {
        let ask = |channel| {
            let request = request.clone();
            async move { KvClient::new(channel).range(request).await }
        };
        Ok(self.call(ask).await?.response)
    }

    pub(crate) async fn persist_range(
        &self,
        request: RangeRequest,
    ) -> Result<RangeResponse, Error> {
        let ask = |channel| {
            let request = request.clone();
            async move { KvClient::new(channel).range(request).await }
        };
        Ok(self.persist(ask).await?.response)
    }

    pub(crate) async fn txn(&self, request: TxnRequest) -> Result<TxnResponse, Error> {
        let ask = |channel| {
            let request = request.clone();
            async move { KvClient::new(channel).txn(request).await }
        };
        Ok(self.call(ask).await?.response)
    }

    pub(crate) async fn persist_txn(
        &self,
        request: TxnRequest,
    ) -> Result<Answer<TxnResponse>, Error> {
        let ask = |channel| {
            let request = request.clone();
            async move { KvClient::new(channel).txn(request).await }
        };
        self.persist(ask).await
    }
}

fn parse(text: &str, options: &Options) -> Result<Endpoint, Error> {
    let wrong = |why: &str| Error::Endpoint { endpoint: text.to_owned(), why: why.to_owned() };
    let has_tls = options.tls.is_some();
    let address = match text.split_once("://") {
        None if has_tls => format!("https://{text}"),
        None => format!("http://{text}"),
        Some(("http", _)) if has_tls => {
            return Err(wrong("not encrypted, although certificates are given: expected https://"));
        }
        Some(("https", _)) if !has_tls => {
            return Err(wrong("expected a certificate of who vouches for the server"));
        }
        Some(("http" | "https", _)) => text.to_owned(),
        Some(_) => return Err(wrong(EXPECTED)),
    };
    let endpoint = Endpoint::from_shared(address).map_err(|_| wrong(EXPECTED))?;
    if endpoint.uri().port().is_none() {
        return Err(wrong(EXPECTED));
    }
    Ok(endpoint
        .connect_timeout(options.connect_timeout)
        .http2_keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PONG_WITHIN)
        .http2_reset_stream_duration(FORGET)
        .keep_alive_while_idle(true))
}

fn reason(status: &Status) -> String {
    match std::error::Error::source(status) {
        Some(source) => innermost(source),
        None => status.message().to_owned(),
    }
}

/// What went wrong at the bottom; what is above only says that something did.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
