//! Commands that run while a process is inside, leads, or follows.

use std::os::fd::AsFd as _;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tokio::process::{Child, Command};

/// What to run, if anything.
#[derive(Clone, Debug, Default)]
pub(crate) struct HookCommands {
    pub(crate) enter: Option<String>,
    pub(crate) leader: Option<String>,
    pub(crate) follower: Option<String>,
}

pub(crate) struct Hooks {
    commands: HookCommands,
    id: u64,
    inside: Option<Child>,
    leading: Option<Child>,
    /// And whom it follows.
    following: Option<(u64, Child)>,
}

/// Who has been asked to end has this long.
const PATIENCE: Duration = Duration::from_secs(10);

impl Hooks {
    pub(crate) fn new(commands: HookCommands, id: u64) -> Self {
        Self { commands, id, inside: None, leading: None, following: None }
    }

    /// Whether somebody else decides when to leave.
    pub(crate) fn hold(&self) -> bool {
        self.commands.enter.is_some()
    }

    /// Does what a notice calls for. Fails if a command cannot be started.
    pub(crate) fn hear(&mut self, kind: &str, notice: &Value) -> std::io::Result<()> {
        let inner = &notice[kind];
        let (leader, term) = (inner["id"].as_u64(), inner["term"].as_u64().unwrap_or(0));
        match (kind, leader) {
            ("Entered", _) => {
                let fence = match &inner["fence"] {
                    Value::Null => String::new(),
                    Value::String(fence) => fence.clone(),
                    fence => fence.to_string(),
                };
                if let Some(command) = &self.commands.enter {
                    self.inside = Some(self.start(command, &[("VEZ_FENCE", fence)])?);
                }
            }
            ("Expelled", _) => end(self.inside.take()),
            ("Leader", Some(leader)) if leader == self.id => {
                end(self.following.take().map(|(_, child)| child));
                if let (Some(command), None) = (&self.commands.leader, &self.leading) {
                    self.leading = Some(self.start(command, &reign(leader, term))?);
                }
            }
            ("Leader", Some(leader)) => {
                end(self.leading.take());
                let known = self.following.as_ref().map(|(known, _)| *known);
                if let (Some(command), true) = (&self.commands.follower, known != Some(leader)) {
                    let child = self.start(command, &reign(leader, term))?;
                    end(self.following.replace((leader, child)).map(|(_, child)| child));
                }
            }
            ("NoLeader", _) => {
                end(self.leading.take());
                end(self.following.take().map(|(_, child)| child));
            }
            _ => (),
        }
        Ok(())
    }

    fn start(&self, command: &str, facts: &[(&str, String)]) -> std::io::Result<Child> {
        // Standard output is for events.
        let aside = std::io::stderr().as_fd().try_clone_to_owned()?;
        Command::new("sh")
            .args(["-c", command])
            .env("VEZ_NODE", self.id.to_string())
            .envs(facts.iter().map(|(name, value)| (*name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::from(aside))
            .process_group(0)
            .spawn()
    }

    /// Until the command that runs inside is over.
    pub(crate) async fn left(&mut self) {
        match &mut self.inside {
            Some(child) => {
                // However it ended, it is over.
                let _ = child.wait().await;
                self.inside = None;
            }
            None => std::future::pending().await,
        }
    }

    pub(crate) fn end_all(&mut self) {
        end(self.inside.take());
        end(self.leading.take());
        end(self.following.take().map(|(_, child)| child));
    }
}

fn reign(leader: u64, term: u64) -> [(&'static str, String); 2] {
    [("VEZ_LEADER", leader.to_string()), ("VEZ_TERM", term.to_string())]
}

/// Asks it to end, all that it started included; makes it, if it does not.
fn end(child: Option<Child>) {
    let Some(mut child) = child else { return };
    let Some(group) = child.id().and_then(|id| Pid::from_raw(id.cast_signed())) else { return };
    // It may have ended by itself meanwhile.
    let _ = kill_process_group(group, Signal::TERM);
    tokio::spawn(async move {
        if tokio::time::timeout(PATIENCE, child.wait()).await.is_err() {
            let _ = kill_process_group(group, Signal::KILL);
            let _ = child.wait().await;
        }
    });
}
