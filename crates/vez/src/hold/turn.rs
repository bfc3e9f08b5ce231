//! From being granted a turn to having given it back.

use std::ffi::OsString;
use std::io;
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use vez_client::{Error, Leadership, LockGuard, Lost, Session};

use super::child::{Change, Child};
use super::{NOT_FOUND, NOT_RUN, Signals, Teller};

/// What was granted.
pub(crate) enum Guard {
    Lock(LockGuard),
    Leadership(Leadership),
}

impl Guard {
    pub(crate) fn fence(&self) -> i64 {
        match self {
            Self::Lock(guard) => guard.fence(),
            Self::Leadership(guard) => guard.fence(),
        }
    }

    fn session(&self) -> &Session {
        match self {
            Self::Lock(guard) => guard.session(),
            Self::Leadership(guard) => guard.session(),
        }
    }

    async fn lost(&self) -> Lost {
        match self {
            Self::Lock(guard) => guard.lost().await,
            Self::Leadership(guard) => guard.lost().await,
        }
    }

    async fn give_back(self) -> Result<(), Error> {
        match self {
            Self::Lock(guard) => guard.release().await,
            Self::Leadership(guard) => guard.resign().await,
        }
    }
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The command's own, or a signal's, exit code.
    Over(u8),
    Lost,
}

/// What to do with a turn.
pub(crate) struct Turn {
    pub(crate) teller: Teller,
    /// Nothing: hold it until asked to end.
    pub(crate) command: Vec<OsString>,
    /// What the command's environment says of the turn.
    pub(crate) facts: Vec<(&'static str, String)>,
    /// How long a command has that was asked to end.
    pub(crate) grace: Duration,
}

/// The server has this long to hear that a turn is given back; then its lease will tell.
const PARTING: Duration = Duration::from_secs(5);

impl Turn {
    pub(crate) async fn take(&self, guard: Guard, signals: &mut Signals) -> anyhow::Result<End> {
        let fence = guard.fence();
        self.teller.acquired(fence, guard.session().lease());
        let end = if self.command.is_empty() {
            tokio::select! {
                lost = guard.lost() => { self.teller.lost(lost); End::Lost }
                signal = signals.end() => End::Over(died_of(signal)),
            }
        } else {
            self.run(&guard, signals).await?
        };
        if end == End::Lost {
            return Ok(end);
        }
        match timeout(PARTING, guard.give_back()).await {
            Ok(Ok(())) => self.teller.released(fence),
            // It was over in time; others had it only when it was over, or the fence tells.
            Ok(Err(error)) => self.teller.note(&format!("not given back: {error}")),
            Err(_) => self.teller.note("nobody heard that it was given back; its lease will end"),
        }
        Ok(end)
    }

    async fn run(&self, guard: &Guard, signals: &mut Signals) -> anyhow::Result<End> {
        let session = guard.session();
        let mut facts = self.facts.clone();
        facts.push(("VEZ_FENCE", guard.fence().to_string()));
        facts.push(("VEZ_LEASE", format!("{:x}", session.lease())));
        let mut child = match Child::start(&self.command, &facts) {
            Ok(child) => child,
            Err(error) => {
                let program = self.command[0].to_string_lossy();
                self.teller.note(&format!("cannot run {program}: {error}"));
                let missing = error.kind() == io::ErrorKind::NotFound;
                return Ok(End::Over(if missing { NOT_FOUND } else { NOT_RUN }));
            }
        };
        let lost = guard.lost();
        tokio::pin!(lost);
        loop {
            tokio::select! {
                biased;
                lost = &mut lost => {
                    self.teller.lost(lost);
                    self.end(&child, signals).await?;
                    return Ok(End::Lost);
                }
                signal = signals.next() => match signal {
                    Signal::CHILD => match child.change()? {
                        Some(Change::Ended(code)) => return Ok(End::Over(code)),
                        Some(Change::Stopped) => {
                            child.stop_along();
                            // Somebody else may have it by now.
                            if session.is_alive() {
                                child.signal(Signal::CONT);
                            }
                        }
                        None => (),
                    },
                    signal => child.signal(signal),
                },
            }
        }
    }

    /// Asks the command to end, and all that it started; makes it, if it does not.
    async fn end(&self, child: &Child, signals: &mut Signals) -> anyhow::Result<()> {
        child.signal(Signal::TERM);
        child.signal(Signal::CONT);
        let patience = sleep_until(Instant::now() + self.grace);
        tokio::pin!(patience);
        let (mut is_over, mut is_killed) = (false, false);
        while !is_over || (!is_killed && child.is_left()) {
            tokio::select! {
                () = &mut patience, if !is_killed => {
                    child.signal(Signal::KILL);
                    is_killed = true;
                }
                signal = signals.next(), if !is_over => {
                    let change = if signal == Signal::CHILD { child.change()? } else { None };
                    is_over = matches!(change, Some(Change::Ended(_)));
                }
                // Of what the command started nobody tells this process that it has ended.
                () = sleep(Duration::from_millis(20)), if is_over && !is_killed => (),
            }
        }
        Ok(())
    }
}

/// A shell's code for having died of a signal.
fn died_of(signal: Signal) -> u8 {
    u8::try_from(128 + signal.as_raw()).unwrap_or(u8::MAX)
}

/// What comes of waiting, unless a signal asks to end it before: then its exit code.
pub(crate) async fn interrupted<T>(
    signals: &mut Signals,
    waiting: impl Future<Output = T>,
) -> Result<T, u8> {
    tokio::select! {
        done = waiting => Ok(done),
        signal = signals.end() => Err(died_of(signal)),
    }
}

/// Does something with a session in a task of its own, and ends the session however that went: by
/// a panic, too.
pub(crate) async fn until_ended<T: Send + 'static>(
    session: Session,
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    let done = tokio::spawn(work).await;
    // What is bound to the lease is gone then; if nobody hears it, when the lease ends.
    let parting = if session.is_alive() { PARTING } else { PARTING / 10 };
    let _ = timeout(parting, session.close()).await;
    match done {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
