//! A place in a queue: the recipe that all of etcd's clients follow.
//!
//! **Invariant:** whoever stops caring about a place, at whatever moment, leaves no key behind: it
//! is deleted in the background, or goes with the lease.

use std::fmt;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{sleep, timeout};
use vez_api::etcdserverpb::{RangeRequest, TxnRequest, TxnResponse};
use vez_api::mvccpb::KeyValue;

use crate::client::Answer;
use crate::error::{Error, Lost};
use crate::session::{Reservation, Session};
use crate::watch::until_deleted;
use crate::wire;

/// Who wants to know how it looks while he waits is told of changes after this at the latest.
const LOOK: Duration = Duration::from_secs(2);

/// Somebody in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: Bytes,
    /// What its owner wrote about itself; etcd's own locks write nothing.
    pub value: Bytes,
    /// The revision at which it joined; when its turn comes, the fence.
    pub fence: i64,
    pub lease: i64,
}

impl Entry {
    pub(crate) fn new(kv: &KeyValue) -> Self {
        Self {
            key: kv.key.clone(),
            value: kv.value.clone(),
            fence: kv.create_revision,
            lease: kv.lease,
        }
    }
}

/// The value, or the lease if nothing was written.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.value.is_empty() {
            write!(f, "lease {:x}", self.lease)
        } else {
            write!(f, "{}", String::from_utf8_lossy(&self.value))
        }
    }
}

/// How it looks while one waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// How many are ahead, the holder included; at least one.
    pub ahead: usize,
    pub holder: Entry,
}

pub(crate) type OnWait = Box<dyn FnMut(&Waiting) + Send>;

/// A key in a queue; deleted in the background when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    /// Taken when the key is gone.
    reserved: Option<Reservation>,
    session: Session,
    prefix: Bytes,
    key: Bytes,
    fence: i64,
}

/// A place just taken.
struct Joined {
    place: Place,
    /// Nobody is ahead.
    is_first: bool,
}

/// The line as somebody in it sees it at one moment.
struct Seen {
    revision: i64,
    /// Just ahead.
    ahead: KeyValue,
    waiting: Option<Waiting>,
}

/// Takes a place and waits for its turn.
pub(crate) async fn wait_for(
    session: &Session,
    name: &str,
    value: Bytes,
    within: Option<Duration>,
    on_wait: Option<OnWait>,
) -> Result<Place, Error> {
    let waiting = async {
        let joined = join(session, name, value, false).await?;
        let Joined { place, is_first } = joined.ok_or(Lost::Deleted)?;
        if !is_first {
            session.unless_lost(place.turn(on_wait)).await?;
        }
        session.check()?;
        Ok(place)
    };
    match within {
        None => waiting.await,
        Some(within) => {
            timeout(within, waiting).await.unwrap_or_else(|_| Err(Error::TooLong(within)))
        }
    }
}

/// Takes a place if there is nobody; does not stand in the queue otherwise, not even for a moment.
pub(crate) async fn try_for(session: &Session, name: &str, value: Bytes) -> Result<Place, Error> {
    loop {
        if let Some(Joined { place, is_first: true }) =
            join(session, name, value.clone(), true).await?
        {
            session.check()?;
            return Ok(place);
        }
        // Who it was may have left meanwhile.
        let first = wire::first(&wire::prefix(name));
        let range = session.unless_lost(session.client().persist_range(first)).await?;
        if let Some(kv) = wire::head(Some(range)) {
            return Err(Error::Held(Entry::new(&kv)));
        }
    }
}

/// In a task of its own: whether the key was made is known in the end, even if nobody waits for the
/// answer any more; the place is dropped then, and with it the key.
async fn join(
    session: &Session,
    name: &str,
    value: Bytes,
    only_first: bool,
) -> Result<Option<Joined>, Error> {
    session.check()?;
    let reserved = session.unless_lost(session.reserve(name)).await?;
    let joining = tokio::spawn(async move {
        let session = reserved.session.clone();
        let prefix = wire::prefix(&reserved.name);
        let key = wire::key(&reserved.name, session.lease());
        let compare = if only_first { wire::nobody(&prefix) } else { wire::created_at(&key, 0) };
        let read = [wire::one(&key), wire::first(&prefix)].map(wire::op_range);
        let mut write = vec![wire::op_put(&key, &value, session.lease())];
        write.extend(read.clone());
        let request = TxnRequest { compare: vec![compare], success: write, failure: read.to_vec() };
        let answer = session.unless_lost(session.client().persist_txn(request)).await?;
        let mut ranges = wire::ranges(answer.response).into_iter();
        let (own, first) = (wire::head(ranges.next()), wire::head(ranges.next()));
        Ok(own.map(|own| {
            let fence = own.create_revision;
            let is_first = first.is_some_and(|first| first.create_revision == fence);
            let place = Place { reserved: Some(reserved), session, prefix, key, fence };
            Joined { place, is_first }
        }))
    });
    match joining.await {
        Ok(joined) => joined,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime is being shut down.
        Err(_) => Err(Lost::Closed.into()),
    }
}

impl Place {
    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    pub(crate) fn key(&self) -> &Bytes {
        &self.key
    }

    pub(crate) fn fence(&self) -> i64 {
        self.fence
    }

    pub(crate) async fn lost(&self) -> Lost {
        let deleted = async {
            let client = self.session.client();
            if until_deleted(client, &self.key, self.fence, self.fence).await.is_err() {
                // Not to be allowed to watch does not mean that it is gone.
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            lost = self.session.lost() => lost,
            () = deleted => Lost::Deleted,
        }
    }

    /// Writes another value, if the place is still this one's.
    pub(crate) async fn write(&self, value: Bytes) -> Result<(), Error> {
        let put = wire::op_put(&self.key, &value, self.session.lease());
        let answer = self.session.unless_lost(self.bound(put)).await?;
        if answer.response.succeeded { Ok(()) } else { Err(Lost::Deleted.into()) }
    }

    pub(crate) async fn leave(mut self) -> Result<(), Error> {
        let answer = self.session.unless_lost(self.bound(wire::op_delete(&self.key))).await?;
        self.reserved = None;
        // An earlier attempt may have deleted it without being heard.
        if answer.response.succeeded || answer.attempts > 1 {
            Ok(())
        } else {
            Err(Lost::Deleted.into())
        }
    }

    /// Does something to the key if it is the one that was made for this place.
    async fn bound(
        &self,
        operation: vez_api::etcdserverpb::RequestOp,
    ) -> Result<Answer<TxnResponse>, Error> {
        let request = TxnRequest {
            compare: vec![wire::created_at(&self.key, self.fence)],
            success: vec![operation],
            failure: Vec::new(),
        };
        self.session.client().persist_txn(request).await
    }

    /// Until nobody is ahead. Only the going of the one just ahead is heard of; how it looks
    /// meanwhile is looked up now and then, if somebody wants to know.
    async fn turn(&self, mut on_wait: Option<OnWait>) -> Result<(), Error> {
        let is_told = on_wait.is_some();
        let mut told = None;
        let mut tell = |waiting: Option<Waiting>| {
            if let (Some(on_wait), Some(now)) = (&mut on_wait, waiting)
                && told.as_ref() != Some(&now)
            {
                on_wait(&now);
                told = Some(now);
            }
        };
        while let Some(Seen { revision, ahead, waiting }) = self.look(is_told).await? {
            tell(waiting);
            let client = self.session.client();
            let gone = until_deleted(client, &ahead.key, ahead.create_revision, revision);
            let mut gone = pin!(gone);
            loop {
                tokio::select! {
                    biased;
                    gone = &mut gone => break gone?,
                    () = sleep(LOOK), if is_told => {
                        tell(self.look(is_told).await?.and_then(|seen| seen.waiting));
                    }
                }
            }
        }
        Ok(())
    }

    /// Looks at the line while the place is this one's. Nothing, if nobody is ahead.
    async fn look(&self, is_told: bool) -> Result<Option<Seen>, Error> {
        let before = wire::before(&self.prefix, self.fence);
        let mut what = vec![wire::ahead(&self.prefix, self.fence)];
        if is_told {
            what.push(wire::first(&self.prefix));
            // etcd does not count what is asked for by revision.
            what.push(RangeRequest { keys_only: true, ..before });
        }
        let request = TxnRequest {
            compare: vec![wire::created_at(&self.key, self.fence)],
            success: what.into_iter().map(wire::op_range).collect(),
            failure: Vec::new(),
        };
        let answer = self.session.client().persist_txn(request).await?.response;
        let revision = answer.header.map_or(0, |header| header.revision);
        if !answer.succeeded {
            return Err(Lost::Deleted.into());
        }
        let mut ranges = wire::ranges(answer).into_iter();
        let Some(ahead) = wire::head(ranges.next()) else { return Ok(None) };
        let holder = wire::head(ranges.next()).map(|kv| Entry::new(&kv));
        let number = ranges.next().map(|range| range.kvs.len());
        let waiting = holder.zip(number).map(|(holder, ahead)| Waiting { ahead, holder });
        Ok(Some(Seen { revision, ahead, waiting }))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(reserved) = self.reserved.take() else { return };
        reserved.leaving();
        let session = self.session.clone();
        let (prefix, key, fence) = (self.prefix.clone(), self.key.clone(), self.fence);
        // The name stays reserved until the key is gone.
        let leaving = Place { reserved: None, session, prefix, key, fence };
        self.session.spawn(async move {
            let delete = wire::op_delete(&leaving.key);
            // When the session ends, the key does.
            let _ = leaving.session.unless_lost(leaving.bound(delete)).await;
            drop(reserved);
        });
    }
}
