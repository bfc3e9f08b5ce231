use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Response, Status};
use vez_api::etcdserverpb::lease_client::LeaseClient;
use vez_api::etcdserverpb::{LeaseGrantRequest, LeaseKeepAliveRequest, LeaseRevokeRequest};

use crate::backoff::Backoff;
use crate::client::Client;
use crate::error::{Error, Lost};

/// A lease, kept alive until the last clone is dropped; then it is revoked in the background, and
/// with it goes every key that was bound to it.
///
/// It is alive while keep-alives are answered. What counts is when the last one that was answered
/// was *sent*, on this process's own monotonic clock: the server cannot have begun to count
/// earlier, so this side knows first that time is up. A broken connection alone loses nothing.
/// (The clock stands still while the whole machine sleeps; then only the fence helps.)
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    lease: i64,
    ttl: Duration,
    state: Arc<watch::Sender<State>>,
    /// The queues that this session stands in, and whether it is about to leave them.
    names: Mutex<BTreeMap<String, bool>>,
    /// Wakes whoever waits to stand in one again.
    left: Notify,
    keeper: AbortHandle,
    runtime: Handle,
}

#[derive(Clone, Copy, Debug)]
enum State {
    AliveUntil(Instant),
    Lost(Lost),
}

/// What lease to ask for.
#[derive(Clone, Copy, Debug)]
pub struct SessionOptions {
    /// How long the lease outlives the last keep-alive; whole seconds, rounded up. The server may
    /// grant more.
    pub ttl: Duration,
    /// How long before the lease can end the session counts as lost, so that there is time to stop
    /// what it protects; at most half of what was granted. By default a twentieth of the TTL, which
    /// is more than clocks can differ in that time.
    pub early: Duration,
}

impl From<Duration> for SessionOptions {
    fn from(ttl: Duration) -> Self {
        Self { ttl, early: ttl / 20 }
    }
}

impl Session {
    pub(crate) async fn open(client: Client, options: SessionOptions) -> Result<Self, Error> {
        let seconds = options.ttl.as_secs() + u64::from(options.ttl.subsec_nanos() > 0);
        let request = LeaseGrantRequest { ttl: seconds.max(1).cast_signed(), id: 0 };
        // One that an earlier attempt was granted ends by itself; nothing hangs on it.
        let ask = |channel| async move {
            let sent = Instant::now();
            let granted = LeaseClient::new(channel).lease_grant(request).await?;
            Ok(Response::new((sent, granted.into_inner())))
        };
        let (sent, granted) = client.call(ask).await?.response;
        let ttl = seconds_of(granted.ttl);
        let early = options.early.min(ttl / 2);
        let state = Arc::new(watch::Sender::new(State::AliveUntil(sent + ttl - early)));
        let keeper = Keeper {
            client: client.clone(),
            lease: granted.id,
            ttl,
            early,
            state: Arc::clone(&state),
        };
        let inner = Inner {
            client,
            lease: granted.id,
            ttl,
            state,
            names: Mutex::default(),
            left: Notify::new(),
            keeper: tokio::spawn(keeper.keep()).abort_handle(),
            runtime: Handle::current(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    pub fn client(&self) -> &Client {
        &self.inner.client
    }

    pub fn lease(&self) -> i64 {
        self.inner.lease
    }

    /// As granted.
    pub fn ttl(&self) -> Duration {
        self.inner.ttl
    }

    /// Whether the lease cannot have ended yet.
    pub fn is_alive(&self) -> bool {
        match *self.inner.state.borrow() {
            State::AliveUntil(until) => Instant::now() < until,
            State::Lost(_) => false,
        }
    }

    /// Resolves when the lease has ended, or is about to.
    pub async fn lost(&self) -> Lost {
        let mut state = self.inner.state.subscribe();
        let over = state.wait_for(|state| matches!(state, State::Lost(_))).await;
        match over.as_deref() {
            Ok(State::Lost(lost)) => *lost,
            _ => Lost::Closed,
        }
    }

    /// Revokes the lease now: all that is bound to it is over at once, whoever else has a clone.
    pub async fn close(self) -> Result<(), Error> {
        self.inner.keeper.abort();
        self.inner.state.send_replace(State::Lost(Lost::Closed));
        revoke(&self.inner.client, self.inner.lease).await
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let state = *self.inner.state.borrow();
        match state {
            State::Lost(lost) => Err(lost.into()),
            State::AliveUntil(_) if self.is_alive() => Ok(()),
            State::AliveUntil(_) => Err(Lost::Silent.into()),
        }
    }

    /// What comes of it, unless the session ends before.
    pub(crate) async fn unless_lost<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        tokio::select! {
            biased;
            lost = self.lost() => Err(lost.into()),
            done = work => match done {
                Err(Error::Refused(status)) if is_lease_gone(&status) => Err(Lost::Expired.into()),
                done => done,
            },
        }
    }

    /// Waits for what is being left; refuses what is held or waited for.
    pub(crate) async fn reserve(&self, name: &str) -> Result<Reservation, Error> {
        loop {
            let left = self.inner.left.notified();
            tokio::pin!(left);
            // From here on nobody leaves unheard.
            left.as_mut().enable();
            let leaving = {
                let mut names = self.names();
                let known = names.get(name).copied();
                names.entry(name.to_owned()).or_insert(false);
                known
            };
            match leaving {
                None => return Ok(Reservation { session: self.clone(), name: name.to_owned() }),
                Some(false) => return Err(Error::Busy(name.to_owned())),
                Some(true) => left.await,
            }
        }
    }

    fn names(&self) -> MutexGuard<'_, BTreeMap<String, bool>> {
        self.inner.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Work that goes on when nobody waits for it.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.inner.runtime.spawn(work);
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({:x})", self.inner.lease)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.keeper.abort();
        if matches!(*self.state.borrow(), State::Lost(Lost::Closed | Lost::Expired)) {
            return;
        }
        let (client, lease) = (self.client.clone(), self.lease);
        let within = self.ttl;
        // If it cannot be reached in that time, there is nothing left to revoke.
        self.runtime.spawn(async move {
            let _ = timeout(within, revoke(&client, lease)).await;
        });
    }
}

/// A name that a session stands in the queue of; free again when dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    pub(crate) session: Session,
    pub(crate) name: String,
}

impl Reservation {
    pub(crate) fn leaving(&self) {
        self.session.names().insert(self.name.clone(), true);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.session.names().remove(&self.name);
        self.session.inner.left.notify_waiters();
    }
}

async fn revoke(client: &Client, lease: i64) -> Result<(), Error> {
    let ask = |channel| async move {
        LeaseClient::new(channel).lease_revoke(LeaseRevokeRequest { id: lease }).await
    };
    match client.call(ask).await {
        Err(Error::Refused(status)) if is_lease_gone(&status) => Ok(()),
        answer => answer.map(|_| ()),
    }
}

fn is_lease_gone(status: &Status) -> bool {
    status.code() == Code::NotFound && status.message().contains("lease not found")
}

fn seconds_of(ttl: i64) -> Duration {
    Duration::from_secs(ttl.max(0).cast_unsigned())
}

/// Who keeps a lease alive.
struct Keeper {
    client: Client,
    lease: i64,
    ttl: Duration,
    early: Duration,
    state: Arc<watch::Sender<State>>,
}

/// How a stream of keep-alives ended.
enum End {
    Gone,
    Broken,
}

impl Keeper {
    async fn keep(self) {
        let lost = tokio::select! {
            biased;
            () = self.run_out() => Lost::Silent,
            () = self.renew() => Lost::Expired,
        };
        self.state.send_replace(State::Lost(lost));
    }

    /// Ends when time is up.
    async fn run_out(&self) {
        let mut state = self.state.subscribe();
        loop {
            let State::AliveUntil(until) = *state.borrow_and_update() else { return };
            // What was heard in time counts, however late this side looks.
            tokio::select! {
                biased;
                _ = state.changed() => (),
                () = sleep_until(until) => return,
            }
        }
    }

    /// Ends when the server says that there is no such lease.
    async fn renew(&self) {
        let mut backoff = Backoff::new();
        // It was granted just now.
        sleep_until(Instant::now() + self.ttl / 3).await;
        loop {
            let (index, channel) = self.client.channel();
            match self.converse(channel, &mut backoff).await {
                End::Gone => return,
                End::Broken => {
                    self.client.move_on(index);
                    backoff.pause().await;
                }
            }
        }
    }

    /// Asks again and again on one stream; listens meanwhile, for the server may say by itself
    /// that it is over.
    async fn converse(&self, channel: Channel, backoff: &mut Backoff) -> End {
        let request = LeaseKeepAliveRequest { id: self.lease };
        let patience = self.client.options().request_timeout.min(self.ttl / 3);
        let (send, receive) = mpsc::channel(1);
        let mut asked = Instant::now();
        if send.try_send(request).is_err() {
            return End::Broken;
        }
        let mut client = LeaseClient::new(channel);
        let opening = client.lease_keep_alive(ReceiverStream::new(receive));
        let Ok(Ok(answers)) = timeout(patience, opening).await else { return End::Broken };
        let mut answers = answers.into_inner();
        loop {
            let answer = match timeout_at(asked + patience, answers.message()).await {
                Ok(Ok(Some(answer))) => answer,
                Ok(Err(status)) if is_lease_gone(&status) => return End::Gone,
                _ => return End::Broken,
            };
            if answer.ttl <= 0 {
                return End::Gone;
            }
            let until = asked + seconds_of(answer.ttl).saturating_sub(self.early);
            self.state.send_replace(State::AliveUntil(until));
            backoff.reset();
            let next = asked + self.ttl / 3;
            while let Ok(unasked) = timeout_at(next, answers.message()).await {
                match unasked {
                    Ok(Some(answer)) if answer.ttl <= 0 => return End::Gone,
                    Ok(Some(_)) => (),
                    _ => return End::Broken,
                }
            }
            asked = Instant::now();
            if send.send(request).await.is_err() {
                return End::Broken;
            }
        }
    }
}
