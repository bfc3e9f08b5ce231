//! `vez lock`: a command that runs when it is its turn.

use std::ffi::OsString;
use std::time::Duration;

use vez_client::{Error, LockGuard, Session};
use vez_core::Time;

use super::Outcome;
use crate::hold::{
    self, End, Endpoints, Format, Guard, Holder, Lasting, Signals, Teller, Turn, What,
};

/// Run a command while holding a lock: one at a time, of all machines that ask for the same name.
///
/// Waits its turn, runs the command, and releases the lock when it ends. Works with vez and with
/// etcd, and takes turns with `etcdctl lock`. While it waits, a line on standard error says how
/// many are ahead and who holds the lock.
///
/// The command gets `VEZ_LOCK` (the name), `VEZ_FENCE` (a number that grows with every grant, to be
/// shown to what the lock protects) and `VEZ_LEASE`. SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1 and
/// SIGUSR2 are passed on to it and to what it started. If the lock is lost it gets SIGTERM, and
/// SIGKILL after --grace; if the server merely fell silent, that is over before the lock can pass
/// on. Without a command the lock is held until Ctrl-C, and the fence printed.
///
/// With --format json a line for every event: waiting, acquired, lost, released, refused. On
/// standard output, or on standard error if there is a command, to which the other belongs.
///
/// Exit codes:
///   the command's own, or 128 + N if it died of signal N, or if signal N ended the waiting
///   2    usage, or the service cannot be reached
///   75   not granted: held by another (--try), or not in time (--wait); see --conflict-exit-code
///   76   lost while it was held; the command was stopped
///   126  the command cannot be run; 127 it is not found
///
/// Examples:
///   vez lock backup -- ./backup.sh
///   vez lock deploy --wait 30s --ttl 15s -- ./deploy.sh
///   vez lock cron/nightly --try -- nightly-job || test $? -eq 75
///   vez lock maintenance
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Lock {
    name: String,
    /// Wait no longer than this.
    #[arg(long, value_name = "TIME", conflicts_with = "now")]
    wait: Option<Time>,
    /// Do not wait at all.
    #[arg(long = "try")]
    now: bool,
    /// The exit code if it was not granted.
    #[arg(long, short = 'E', value_name = "CODE", default_value_t = hold::NOT_GRANTED)]
    conflict_exit_code: u8,
    #[command(flatten)]
    lasting: Lasting,
    #[command(flatten)]
    endpoints: Endpoints,
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// What to run.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Lock {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(self.hold()).map(Outcome::Exit)
    }

    async fn hold(self) -> anyhow::Result<u8> {
        let (options, grace) = self.lasting.resolve()?;
        let mut signals = Signals::open()?;
        let client = self.endpoints.connect().await?;
        let session = client.session(options).await?;
        let teller = Teller::new(What::Lock, &self.name, self.format, !self.command.is_empty());
        let turn = Turn {
            teller: teller.clone(),
            command: self.command,
            facts: vec![("VEZ_LOCK", self.name.clone())],
            grace,
        };
        let asking = Asking {
            name: self.name,
            wait: self.wait.map(hold::duration),
            now: self.now,
            teller: teller.clone(),
        };
        let asked = session.clone();
        let not_granted = self.conflict_exit_code;
        let work = async move {
            let granted = match hold::interrupted(&mut signals, asking.ask(&asked)).await {
                Ok(granted) => granted,
                Err(code) => {
                    asking.teller.close_line();
                    return Ok(code);
                }
            };
            let guard = match granted {
                Ok(guard) => guard,
                Err(Error::Held(holder)) => {
                    teller.refused("held", Some(&holder));
                    return Ok(not_granted);
                }
                Err(error @ Error::TooLong(_)) => {
                    teller.refused(&error.to_string(), None);
                    return Ok(not_granted);
                }
                Err(Error::Lost(lost)) => {
                    teller.close_line();
                    teller.lost(lost);
                    return Ok(hold::LOST);
                }
                Err(error) => return Err(error.into()),
            };
            Ok(match turn.take(Guard::Lock(guard), &mut signals).await? {
                End::Over(code) => code,
                End::Lost => hold::LOST,
            })
        };
        hold::until_ended(session, work).await
    }
}

/// For what, and how long.
struct Asking {
    name: String,
    wait: Option<Duration>,
    now: bool,
    teller: Teller,
}

impl Asking {
    async fn ask(&self, session: &Session) -> Result<LockGuard, Error> {
        let value = Holder::now().value();
        if self.now {
            return session.try_lock(&self.name).value(value).await;
        }
        let teller = self.teller.clone();
        let waited = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let waits = std::sync::Arc::clone(&waited);
        let mut request = session.lock(&self.name).value(value).on_wait(move |waiting| {
            waits.store(true, std::sync::atomic::Ordering::Relaxed);
            teller.waiting(waiting);
        });
        if let Some(wait) = self.wait {
            request = request.within(wait);
        }
        let guard = request.await?;
        if waited.load(std::sync::atomic::Ordering::Relaxed) {
            // It holds since now, and has waited since then.
            guard.describe(Holder::now().value()).await?;
        }
        Ok(guard)
    }
}
