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
use vez_api::log::{self, Leave, Left, Take, Taken, command::Command};
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
    /// What was there before this call belongs to another call, which may still rely on it.
    is_mine: bool,
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
        let request = taking(&key, value, lease, self.replica.has_peers());
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
            let is_mine = found.is_none();
            let place = Place {
                service,
                prefix,
                key,
                since,
                lease,
                is_mine,
                is_kept: AtomicBool::new(false),
            };
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
    /// Takes a place away, if it still is the one with this fence.
    pub(crate) async fn release(&self, key: &Bytes, fence: i64) -> Result<Left, Status> {
        self.propose(Command::Leave(leaving(key, fence))).await
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
                Ok((ahead, own)) => tokio::select! {
                    biased;
                    Ok(()) = own => return Err(expired()),
                    _ = ahead => {}
                    // Whoever asked finds the place again, at a member that has a leader.
                    () = self.service.replica.leaderless() => {
                        self.is_kept.store(true, Ordering::Relaxed);
                        return Err(status(ProposeError::NoMajority));
                    }
                },
            }
        }
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
        if *self.is_kept.get_mut() || !self.is_mine || is_stopping {
            return;
        }
        let service = self.service.clone();
        let request = giving_up(&self.key, self.since, service.replica.has_peers());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let command = log::Command { command: Some(Command::Leave(request)) };
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

/// Makes the key, or finds what is there. Among several members a call at another one may have made
/// it and be about to give it up: so that it is relied upon again is written down.
fn taking(key: &Bytes, value: Bytes, lease: i64, among_several: bool) -> Take {
    Take { key: key.clone(), value, lease, again: among_several }
}

/// Leaves, unless somebody relies on the place again.
fn giving_up(key: &Bytes, since: i64, among_several: bool) -> Leave {
    Leave { if_untouched: among_several, ..leaving(key, since) }
}

/// Deletes a key if it is still the one that was made then: a late release never releases a newer
/// grant.
fn leaving(key: &Bytes, since: i64) -> Leave {
    Leave { key: key.clone(), since, if_untouched: false }
}

fn expired() -> Status {
    Status::failed_precondition("mutex: session is expired")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::State;

    /// What becomes of a place that was taken, asked for again or not, and then given up.
    fn given_up(again: bool) -> Option<KeyValue> {
        let mut state = State::default();
        let mut apply = |command| {
            let applied = state.apply(&log::Command { command: Some(command) });
            applied.response.expect("it is in order");
        };
        let (lease, key) = (7, Bytes::from_static(b"lock/7"));
        apply(Command::LeaseGrant(LeaseGrantRequest { ttl: 60, id: lease }));
        apply(Command::Take(taking(&key, "mine".into(), lease, true)));
        if again {
            apply(Command::Take(taking(&key, "other".into(), lease, true)));
        }
        apply(Command::Leave(giving_up(&key, 2, true)));
        state.get(&key).cloned()
    }

    #[test]
    fn a_place_is_given_up_unless_it_was_asked_for_again() {
        assert_eq!(given_up(false), None);
        let kept = given_up(true).expect("it is relied upon");
        assert_eq!((&kept.value[..], kept.lease, kept.create_revision), (&b"mine"[..], 7, 2));
    }
}
