//! `vez elect`: a command that runs only while it leads.

use std::ffi::OsString;
use std::time::Duration;

use vez_client::{Client, Error, Session, SessionOptions};

use super::Outcome;
use crate::hold::{
    self, End, Endpoints, Format, Guard, Lasting, Signals, Teller, Turn, What, who_am_i,
};

/// Run a command only while leading: on one of all machines that stand for the same name.
///
/// Stands for election, runs the command when elected, and resigns when it ends. Works with vez
/// and with etcd, and stands beside `etcdctl elect`. If leadership is lost the command gets
/// SIGTERM, and SIGKILL after --grace (if the server merely fell silent, before anybody else can
/// lead), and stands anew, with --once not. Without a command it leads until Ctrl-C.
///
/// The command gets `VEZ_ELECTION` (the name), `VEZ_VALUE`, `VEZ_FENCE` (it grows with every
/// leader) and `VEZ_LEASE`. Signals are passed on as by vez lock.
///
/// With --observe it does not stand, but prints leaders as they change, fence and value; "-
/// nobody" when there is none. With --format json a line for every event: waiting, elected, lost,
/// resigned; leader and no-leader with --observe. On standard output, or on standard error if
/// there is a command, to which the other belongs.
///
/// Exit codes:
///   the command's own, or 128 + N if it died of signal N, or if signal N ended the waiting
///   2    usage, or the service cannot be reached
///   76   leadership was lost, with --once; the command was stopped
///   126  the command cannot be run; 127 it is not found
///
/// Examples:
///   vez elect scheduler -- ./scheduler
///   vez elect primary --value "$(hostname):5432" --ttl 5s -- ./promote-and-serve
///   vez elect primary --observe --format json
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Elect {
    name: String,
    /// What observers are told of the leader; HOST:PID if not said.
    #[arg(long, value_name = "TEXT", conflicts_with = "observe")]
    value: Option<String>,
    /// Print who leads, as it changes.
    #[arg(long, conflicts_with_all = ["once", "ttl", "grace", "command"])]
    observe: bool,
    /// Do not stand again when leadership is lost.
    #[arg(long)]
    once: bool,
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

impl Elect {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let code = if self.observe {
            runtime.block_on(self.watch())?
        } else {
            runtime.block_on(self.stand())?
        };
        Ok(Outcome::Exit(code))
    }

    async fn watch(self) -> anyhow::Result<u8> {
        let mut signals = Signals::open()?;
        let client = self.endpoints.connect().await?;
        let teller = Teller::new(What::Election, &self.name, self.format, false);
        let mut observer = client.observe(&self.name);
        loop {
            match hold::interrupted(&mut signals, observer.next()).await {
                Ok(leader) => teller.leader(leader?.as_ref()),
                Err(code) => return Ok(code),
            }
        }
    }

    async fn stand(self) -> anyhow::Result<u8> {
        let (options, grace) = self.lasting.resolve()?;
        let signals = Signals::open()?;
        let client = self.endpoints.connect().await?;
        let mut session = client.session(options).await?;
        let value = self.value.unwrap_or_else(who_am_i);
        let facts = vec![("VEZ_ELECTION", self.name.clone()), ("VEZ_VALUE", value.clone())];
        let teller = Teller::new(What::Election, &self.name, self.format, !self.command.is_empty());
        let turn = Turn { teller, command: self.command, facts, grace };
        let mut candidate = Candidate { name: self.name, value, turn, signals };
        loop {
            let standing = session.clone();
            let (back, stood) = hold::until_ended(session, async move {
                let stood = candidate.stand(standing).await;
                (candidate, stood)
            })
            .await;
            candidate = back;
            match stood? {
                End::Over(code) => return Ok(code),
                End::Lost if self.once => return Ok(hold::LOST),
                End::Lost => (),
            }
            session = match candidate.return_to(&client, options).await? {
                Ok(session) => session,
                Err(code) => return Ok(code),
            };
        }
    }
}

struct Candidate {
    name: String,
    value: String,
    turn: Turn,
    signals: Signals,
}

/// How long to wait before asking again for a lease where nobody answers.
const PAUSE: Duration = Duration::from_secs(1);

impl Candidate {
    async fn stand(&mut self, session: Session) -> anyhow::Result<End> {
        let teller = self.turn.teller.clone();
        let campaign = session
            .campaign(&self.name, self.value.clone())
            .on_wait(move |waiting| teller.waiting(waiting));
        let elected = hold::interrupted(&mut self.signals, campaign.into_future()).await;
        self.turn.teller.close_line();
        match elected {
            Ok(Ok(leadership)) => {
                self.turn.take(Guard::Leadership(leadership), &mut self.signals).await
            }
            Ok(Err(Error::Lost(lost))) => {
                self.turn.teller.lost(lost);
                Ok(End::Lost)
            }
            Ok(Err(error)) => Err(error.into()),
            Err(code) => Ok(End::Over(code)),
        }
    }

    /// A new session, however long it takes; or the code of the signal that ended it.
    async fn return_to(
        &mut self,
        client: &Client,
        options: SessionOptions,
    ) -> anyhow::Result<Result<Session, u8>> {
        let returning = async {
            loop {
                match client.session(options).await {
                    Err(Error::Unreachable { .. }) => tokio::time::sleep(PAUSE).await,
                    session => return session,
                }
            }
        };
        match hold::interrupted(&mut self.signals, returning).await {
            Ok(session) => Ok(Ok(session?)),
            Err(code) => Ok(Err(code)),
        }
    }
}
