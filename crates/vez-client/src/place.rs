//! A place in a queue: the recipe that all of etcd's clients follow.
//!
//! **Invariant:** whoever stops caring about a place, at whatever moment, leaves no key behind: it
//! is deleted in the background, or goes with the lease.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;
use vez_api::etcdserverpb::{RangeResponse, TxnRequest, TxnResponse};
use vez_api::mvccpb::KeyValue;

use crate::client::Answer;
use crate::error::{Error, Lost};
use crate::session::{Reservation, Session};
use crate::watch::{Deaf, Watch, is_deletion, until_deleted};
use crate::wire;

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

    /// Until nobody is ahead.
    async fn turn(&self, on_wait: Option<OnWait>) -> Result<(), Error> {
        if let Some(on_wait) = on_wait {
            self.follow(on_wait).await?;
        }
        loop {
            let ahead = wire::ahead(&self.prefix, self.fence);
            let (revision, range) = self.look(ahead).await?;
            let Some(ahead) = range.kvs.into_iter().next() else { return Ok(()) };
            let created = ahead.create_revision;
            until_deleted(self.session.client(), &ahead.key, created, revision).await?;
        }
    }

    /// Reads while the place is this one's: what is seen, and when it was so.
    async fn look(
        &self,
        what: vez_api::etcdserverpb::RangeRequest,
    ) -> Result<(i64, RangeResponse), Error> {
        let request = TxnRequest {
            compare: vec![wire::created_at(&self.key, self.fence)],
            success: vec![wire::op_range(what)],
            failure: Vec::new(),
        };
        let answer = self.session.client().persist_txn(request).await?.response;
        let revision = answer.header.map_or(0, |header| header.revision);
        if !answer.succeeded {
            return Err(Lost::Deleted.into());
        }
        let range = wire::ranges(answer).into_iter().next().unwrap_or_default();
        Ok((revision, range))
    }

    /// Tells who is ahead as it changes, until nobody seems to be. Hears of everybody who leaves,
    /// which is why those who need not tell wait for the one just ahead only.
    async fn follow(&self, mut on_wait: OnWait) -> Result<(), Error> {
        let client = self.session.client();
        loop {
            let (revision, range) = self.look(wire::before(&self.prefix, self.fence)).await?;
            let mut ahead: BTreeMap<i64, Entry> =
                range.kvs.iter().map(|kv| (kv.create_revision, Entry::new(kv))).collect();
            let end = vez_api::end_of_prefix(&self.prefix);
            let mut watch =
                Watch::new(client.clone(), self.prefix.clone(), end, revision + 1).only_deletions();
            loop {
                let Some(holder) = ahead.values().next() else { return Ok(()) };
                on_wait(&Waiting { ahead: ahead.len(), holder: holder.clone() });
                let before = ahead.len();
                while ahead.len() == before {
                    let events = match watch.next().await {
                        Ok(events) => events,
                        Err(Deaf::Failed(error)) => return Err(error),
                        Err(Deaf::Compacted) => break,
                    };
                    let gone = events.iter().filter(|event| is_deletion(event));
                    for key in gone.filter_map(|event| Some(&event.kv.as_ref()?.key)) {
                        if *key == self.key {
                            return Err(Lost::Deleted.into());
                        }
                        ahead.retain(|_, entry| entry.key != *key);
                    }
                }
                if ahead.len() == before {
                    break;
                }
            }
        }
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
