//! What the service remembers: keys with their revisions, leases, and the queues they make.
//!
//! Commands come out of the replicated log one after another; each changes the state and says what
//! to answer and what watchers hear. Semantics are etcd's, down to the texts of its errors.
//!
//! **Invariant:** the same commands make the same state on every replica. A command either is
//! refused and changes nothing, or is done in full under one new revision; if it changes no key it
//! takes none.

mod chain;
mod error;
mod keyspace;
mod lease;
mod place;
mod queue;
mod range;
mod snapshot;
mod span;
mod txn;
pub mod validate;
mod write;

use bytes::Bytes;
use vez_api::etcdserverpb::{
    CompactionRequest, CompactionResponse, DeleteRangeRequest, DeleteRangeResponse,
    LeaseGrantRequest, LeaseGrantResponse, LeaseRevokeRequest, LeaseRevokeResponse, PutRequest,
    PutResponse, ResponseHeader, TxnRequest, TxnResponse,
};
use vez_api::log::{self, Left, Taken};
use vez_api::mvccpb::{Event, KeyValue};

pub use self::error::Error;
pub use self::lease::{Lease, TTL_SECONDS_MAX, TTL_SECONDS_MIN};
pub use self::snapshot::{DecodeError, Frozen, ReadError};
pub use self::span::Span;

use self::keyspace::Keyspace;
use self::lease::Leases;
use self::write::Write;

#[derive(Clone, Debug)]
pub struct State {
    revision: i64,
    compacted: i64,
    keys: Keyspace,
    leases: Leases,
}

/// What became of a command.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    pub response: Result<Response, Error>,
    /// What watchers hear, in order; with what was there before.
    pub events: Vec<Event>,
}

/// Headers have the revision only: who answers, and in which term, the state does not know.
#[derive(Clone, Debug, PartialEq)]
pub enum Response {
    Put(PutResponse),
    DeleteRange(DeleteRangeResponse),
    Txn(TxnResponse),
    Compact(CompactionResponse),
    LeaseGrant(LeaseGrantResponse),
    LeaseRevoke(LeaseRevokeResponse),
    Take(Taken),
    Leave(Left),
}

/// Changes of whole revisions, as many as were asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Past {
    pub events: Vec<Event>,
    /// Where to go on; one more than the store's revision if there is nothing left to tell.
    pub next_revision: i64,
}

impl Default for State {
    /// An empty store, at etcd's first revisions.
    fn default() -> Self {
        Self { revision: 1, compacted: -1, keys: Keyspace::default(), leases: Leases::default() }
    }
}

impl State {
    pub fn apply(&mut self, command: &log::Command) -> Applied {
        use log::command::Command;
        if let Err(error) = validate::command(command) {
            return Applied { response: Err(error), events: Vec::new() };
        }
        let mut write = Write::new(self);
        let response = match &command.command {
            Some(Command::Put(request)) => put(&mut write, request),
            Some(Command::DeleteRange(request)) => Ok(delete_range(&mut write, request)),
            Some(Command::Txn(request)) => txn::txn(&mut write, request).map(Response::Txn),
            Some(Command::Compact(request)) => compact(write.state, request),
            Some(Command::LeaseGrant(request)) => grant(write.state, request),
            Some(Command::LeaseRevoke(request)) => revoke(&mut write, *request),
            Some(Command::Take(request)) => place::take(&mut write, request).map(Response::Take),
            Some(Command::Leave(request)) => Ok(Response::Leave(place::leave(&mut write, request))),
            None => Err(Error::UnknownCommand),
        };
        Applied { response, events: write.finish() }
    }

    /// A transaction that only reads, without the log.
    ///
    /// # Panics
    ///
    /// If the transaction could write; see [`validate::is_read_only`].
    pub fn read_txn(&self, request: &TxnRequest) -> Result<TxnResponse, Error> {
        assert!(validate::is_read_only(request), "only what reads may pass the log by");
        validate::txn(request)?;
        txn::read(self, request)
    }

    /// That of the last change.
    pub fn revision(&self) -> i64 {
        self.revision
    }

    /// Leaves revisions out, as if so many writes had been, and forgotten: what is granted from now
    /// on has a greater fence than anything that was granted with those revisions elsewhere.
    ///
    /// # Panics
    ///
    /// If there are not so many revisions left.
    pub fn skip_revisions(&mut self, count: u32) {
        if count == 0 {
            return;
        }
        self.revision = self.revision.checked_add(count.into()).expect("revisions last for ever");
        self.compacted = self.revision;
        self.keys.compact(self.revision);
    }

    /// The earliest revision that may be read; -1 if nothing was ever compacted, as in etcd.
    pub fn compacted(&self) -> i64 {
        self.compacted
    }

    pub fn get(&self, key: &[u8]) -> Option<&KeyValue> {
        self.keys.get(key).map(AsRef::as_ref)
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many changes are kept for watchers; compaction is what bounds them.
    pub fn history_len(&self) -> usize {
        self.keys.history_len()
    }

    /// All changes from a revision on, for watchers that start in the past.
    pub fn events_since(
        &self,
        start_revision: i64,
        key: &[u8],
        range_end: &[u8],
    ) -> Result<Vec<Event>, Error> {
        self.events_since_at_most(start_revision, key, range_end, usize::MAX)
            .map(|past| past.events)
    }

    /// Like [`Self::events_since`], but stops after the revision that brings the events to
    /// `events_max` or above.
    pub fn events_since_at_most(
        &self,
        start_revision: i64,
        key: &[u8],
        range_end: &[u8],
        events_max: usize,
    ) -> Result<Past, Error> {
        if start_revision < self.compacted {
            return Err(Error::Compacted);
        }
        let span = Span::new(key, range_end);
        let mut events: Vec<Event> = Vec::new();
        let mut last_revision = start_revision;
        for version in self.keys.since(start_revision) {
            if events.len() >= events_max && version.mod_revision > last_revision {
                return Ok(Past { events, next_revision: version.mod_revision });
            }
            last_revision = version.mod_revision;
            if span.contains(&version.key) {
                events.push(self.keys.event(version));
            }
        }
        Ok(Past { events, next_revision: start_revision.max(self.revision + 1) })
    }

    pub fn lease(&self, id: i64) -> Option<&Lease> {
        self.leases.get(id)
    }

    /// In the order of their ids.
    pub fn leases(&self) -> impl ExactSizeIterator<Item = &Lease> {
        self.leases.iter()
    }

    /// Who is just before this one in the queue under a prefix, as etcd's recipe sees it: the
    /// greatest create revision that is smaller; none means that it is this one's turn.
    pub fn ahead(&self, prefix: &[u8], create_revision: i64) -> Option<&KeyValue> {
        self.keys.ahead(prefix, create_revision).map(AsRef::as_ref)
    }

    /// Who holds the lock, or leads: the smallest create revision under a prefix.
    pub fn first(&self, prefix: &[u8]) -> Option<&KeyValue> {
        self.keys.first(prefix).map(AsRef::as_ref)
    }

    /// Who stands first among the keys in a key's own directory (all up to its last slash).
    pub fn first_beside(&self, key: &Bytes) -> Option<&KeyValue> {
        self.keys.first_beside(key).map(AsRef::as_ref)
    }

    /// The next directory that has keys of its own; the first, if none is given.
    pub fn directory_after(&self, directory: Option<&Bytes>) -> Option<Bytes> {
        self.keys.directory_after(directory)
    }

    /// The keys in a directory, those below it left out, in the order in which they were made.
    pub fn line(&self, directory: &Bytes) -> impl Iterator<Item = &KeyValue> {
        self.keys.line(directory).map(AsRef::as_ref)
    }
}

#[expect(clippy::unnecessary_wraps, reason = "headers are optional fields of all answers")]
fn header(revision: i64) -> Option<ResponseHeader> {
    Some(ResponseHeader { revision, ..ResponseHeader::default() })
}

fn put(write: &mut Write<'_>, request: &PutRequest) -> Result<Response, Error> {
    if request.lease != 0 && write.state.lease(request.lease).is_none() {
        return Err(Error::LeaseNotFound);
    }
    if (request.ignore_value || request.ignore_lease) && write.state.get(&request.key).is_none() {
        return Err(Error::KeyNotFound);
    }
    Ok(Response::Put(write.put(request)))
}

fn delete_range(write: &mut Write<'_>, request: &DeleteRangeRequest) -> Response {
    Response::DeleteRange(write.delete_range(request))
}

fn compact(state: &mut State, request: &CompactionRequest) -> Result<Response, Error> {
    if request.revision <= state.compacted {
        return Err(Error::Compacted);
    }
    if request.revision > state.revision {
        return Err(Error::FutureRevision);
    }
    state.compacted = request.revision;
    state.keys.compact(request.revision);
    Ok(Response::Compact(CompactionResponse { header: header(state.revision) }))
}

fn grant(state: &mut State, request: &LeaseGrantRequest) -> Result<Response, Error> {
    let ttl = state.leases.grant(request.id, request.ttl)?;
    let header = header(state.revision);
    let error = String::new();
    Ok(Response::LeaseGrant(LeaseGrantResponse { header, id: request.id, ttl, error }))
}

fn revoke(write: &mut Write<'_>, request: LeaseRevokeRequest) -> Result<Response, Error> {
    let lease = write.state.leases.revoke(request.id)?;
    for key in lease.keys() {
        write.delete(key);
    }
    Ok(Response::LeaseRevoke(LeaseRevokeResponse { header: header(write.current()) }))
}
