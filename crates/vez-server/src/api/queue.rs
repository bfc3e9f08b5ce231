//! Standing in line: the key with the smallest create revision under a prefix has its turn.
//!
//! This is how etcd's own clients queue, so that they and the server's locks and elections stand
//! in one line.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tonic::Status;
use vez_api::etcdserverpb::{LeaseGrantRequest, ResponseHeader};
use vez_api::log::{self, Leave, Left, Reason, Take, Taken, command::Command};
use vez_api::mvccpb::KeyValue;

use super::{Service, status};
use crate::cluster::handover::Stage;
use crate::raft::{Haste, ProposeError};

/// How long a lease lasts that the server grants for a client that brought none.
const OWN_LEASE_SECONDS: i64 = 60;

/// Who leaves while the disk hangs tries again after this.
const RETRY: Duration = Duration::from_secs(1);

/// A place in a line; given up when dropped, unless it is kept.
pub(super) struct Place {
    service: Service,
    pub(super) prefix: Bytes,
    pub(super) key: Bytes,
    /// Its fence: the revision at which it was taken.
    pub(super) since: i64,
    pub(super) lease: i64,
    /// Its key's version once this call relied on it: at another, a later call does.
    version: i64,
    /// Other calls may wait with it, too.
    is_shared: AtomicBool,
    is_kept: AtomicBool,
}

impl Service {
    /// Takes a place at the end of the line, or finds the one that this lease has already. Says
    /// also what the place's value was, if it was taken before.
    pub(super) async fn stand_in_line(
        &self,
        name: &[u8],
        lease: i64,
        value: Bytes,
    ) -> Result<(Place, Option<KeyValue>), Status> {
        let lease = match lease {
            0 => self.grant(LeaseGrantRequest { ttl: OWN_LEASE_SECONDS, id: 0 }).await?.id,
            lease => lease,
        };
        let prefix = Bytes::from([name, b"/"].concat());
        let key = Bytes::from([&prefix[..], format!("{lease:x}").as_bytes()].concat());
        let request = taking(&key, value, lease);
        self.fits(&request)?;
        // Who has to wait for another anyway can wait for whoever else has something to write.
        let is_held = self.replica.read(|state| state.line(&prefix).next().is_some());
        let haste = if is_held { Haste::InCompany } else { Haste::Now };
        let service = self.clone();
        // A client that goes away while the log is written must not leave a place behind that
        // nobody gives up.
        let taken = ToItsEnd::new(async move {
            let Taken { header, found } = service.write(Command::Take(request), haste).await?;
            let revision = header.map_or(0, |header| header.revision);
            let since = found.as_ref().map_or(revision, |found| found.create_revision);
            let version = 1 + found.as_ref().map_or(0, |found| found.version);
            // Who has nobody ahead may have been granted the place by an earlier call, and hold it.
            // Who has somebody ahead has not, and gives it up in place of the earlier call, too.
            let may_be_held = found.is_some()
                && service.replica.read(|state| state.ahead(&prefix, since).is_none());
            let [is_shared, is_kept] = [false, may_be_held].map(AtomicBool::new);
            let place = Place { service, prefix, key, since, lease, version, is_shared, is_kept };
            Ok::<_, Status>((place, found))
        });
        taken.await
    }
}

/// Something that is done to its end, also if nobody waits for it any more: then in a task of its
/// own.
struct ToItsEnd<F: Future<Output: Send> + Send + 'static>(Option<Pin<Box<F>>>);

impl<F: Future<Output: Send> + Send + 'static> ToItsEnd<F> {
    fn new(work: F) -> Self {
        Self(Some(Box::pin(work)))
    }
}

impl<F: Future<Output: Send> + Send + 'static> Future for ToItsEnd<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let work = self.0.as_mut().expect("it ends once");
        let output = ready!(work.as_mut().poll(cx));
        self.0 = None;
        Poll::Ready(output)
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for ToItsEnd<F> {
    fn drop(&mut self) {
        if let Some(work) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(work);
        }
    }
}

impl Service {
    /// Takes a place away, if it still is the one with this fence: a late release never releases a
    /// newer grant.
    pub(crate) async fn release(
        &self,
        key: &Bytes,
        fence: i64,
        reason: Reason,
    ) -> Result<Left, Status> {
        let leave = Leave { key: key.clone(), since: fence, if_version: 0 };
        let command = log::Command::from(Command::Leave(leave));
        self.propose(log::Command { reason: reason.into(), ..command }).await
    }
}

impl Place {
    /// Waits until nobody is ahead. Only the next in line is woken.
    pub(super) async fn turn(&self) -> Result<Option<ResponseHeader>, Status> {
        let hub = &self.service.hub;
        loop {
            // Seen at one moment: whether it is still in line, who is ahead, and whose going to
            // wait for.
            let ahead = self.service.replica.read(|state| {
                let is_there =
                    state.get(&self.key).is_some_and(|kv| kv.create_revision == self.since);
                let ahead = state.ahead(&self.prefix, self.since);
                let ahead =
                    ahead.map(|ahead| (hub.when_gone(&ahead.key), hub.when_gone(&self.key)));
                is_there.then(|| ahead.ok_or_else(|| state.revision()))
            });
            match ahead.ok_or_else(expired)? {
                // Over by the clock, and only not ended yet: it would be taken away at once.
                Err(_) if self.service.lessor.is_over(self.lease) => return Err(expired()),
                Err(revision) => {
                    return Ok(self.service.header(revision));
                }
                // Whoever is not told any more looks again.
                Ok((ahead, own)) => {
                    if !self.is_shared.swap(true, Ordering::Relaxed) {
                        self.service.sharing.join(self.name(), self.version);
                    }
                    tokio::select! {
                        biased;
                        Ok(()) = own => return Err(expired()),
                        _ = ahead => {}
                        // Whoever asked finds the place again, at a member that has a leader.
                        () = self.service.replica.leaderless() => {
                            self.is_kept.store(true, Ordering::Relaxed);
                            return Err(status(ProposeError::NoMajority));
                        }
                    }
                }
            }
        }
    }

    fn name(&self) -> (Bytes, i64) {
        (self.key.clone(), self.since)
    }

    /// This call has written to its key.
    pub(super) fn was_written(&mut self) {
        self.version += 1;
    }

    /// Whoever asked has it now, and gives it up himself.
    pub(super) fn keep(self) {
        self.is_kept.store(true, Ordering::Relaxed);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Who is sent away because this member stops asks again where it is served.
        let is_stopping = *self.service.replica.stage().borrow() == Stage::Left;
        let had_joined = *self.is_shared.get_mut();
        let how = [had_joined, *self.is_kept.get_mut() || is_stopping];
        if how == [false, true] {
            return;
        }
        let left = self.service.sharing.leave(self.name(), self.version, how);
        let Some(version) = left else { return };
        let service = self.service.clone();
        let request = giving_up(&self.key, self.since, version);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let command = log::Command::from(Command::Leave(request));
                // Nobody is left to be told; if this fails, the lease takes the place with it. Done
                // twice it harms nobody: it is bound to this place.
                while let Err(
                    ProposeError::Hangs(_)
                    | ProposeError::NoMajority
                    | ProposeError::Unknown
                    | ProposeError::Late,
                ) = service.replica.propose_anywhere(command.clone(), Haste::Now).await
                {
                    tokio::time::sleep(RETRY).await;
                }
            });
        }
    }
}

/// Makes the key, or finds what is there. An earlier call may have made it and be about to give it
/// up, here or at another member: so that it is relied upon again is written down.
fn taking(key: &Bytes, value: Bytes, lease: i64) -> Take {
    Take { key: key.clone(), value, lease, again: true }
}

/// Leaves, unless a later call relies on the place.
fn giving_up(key: &Bytes, since: i64, version: i64) -> Leave {
    Leave { key: key.clone(), since, if_version: version }
}

fn expired() -> Status {
    Status::failed_precondition("mutex: session is expired")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::State;

    /// What becomes of a place that was taken, asked for again or not, when the first call or the
    /// later one gives it up.
    fn given_up(again: bool, version: i64) -> Option<KeyValue> {
        let mut state = State::default();
        let mut apply = |command: Command| {
            let applied = state.apply(&command.into());
            applied.response.expect("it is in order");
        };
        let (lease, key) = (7, Bytes::from_static(b"lock/7"));
        apply(Command::LeaseGrant(LeaseGrantRequest { ttl: 60, id: lease }));
        apply(Command::Take(taking(&key, "mine".into(), lease)));
        if again {
            apply(Command::Take(taking(&key, "other".into(), lease)));
        }
        apply(Command::Leave(giving_up(&key, 2, version)));
        state.get(&key).cloned()
    }

    #[test]
    fn a_place_is_given_up_by_the_last_who_asked_for_it() {
        assert_eq!(given_up(false, 1), None);
        let kept = given_up(true, 1).expect("it is relied upon");
        assert_eq!((&kept.value[..], kept.lease, kept.create_revision), (&b"mine"[..], 7, 2));
        assert_eq!(given_up(true, 2), None);
    }
}
