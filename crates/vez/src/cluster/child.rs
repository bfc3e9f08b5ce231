//! The processes of a cluster: this same program, started as `vez node`.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// What a process tells, or what becomes of it. Each start has a number of its own.
pub(super) struct News {
    pub(super) id: u64,
    pub(super) run: u64,
    pub(super) what: Tidings,
}

pub(super) enum Tidings {
    Event(Value),
    /// What it says to people.
    Remark(String),
    /// It told all there was.
    Silent,
}

pub(super) struct Running {
    pub(super) run: u64,
    child: Child,
    stdin: ChildStdin,
    readers: Vec<JoinHandle<()>>,
}

/// How one process is started.
pub(super) struct Start<'a> {
    pub(super) algorithm: &'a str,
    pub(super) id: u64,
    pub(super) run: u64,
    pub(super) cluster: &'a Path,
    pub(super) data: &'a Path,
    pub(super) trace: &'a Path,
    pub(super) seed: u64,
}

impl Start<'_> {
    pub(super) fn go(&self, news: &mpsc::UnboundedSender<News>) -> io::Result<Running> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["node", self.algorithm, "--until-eof"])
            .args(["--id", &self.id.to_string(), "--seed", &self.seed.to_string()])
            .arg("--cluster")
            .arg(self.cluster)
            .arg("--data")
            .arg(self.data)
            .arg("--trace")
            .arg(self.trace)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // What is typed to end the cluster is not for them.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let taken = |what: &str| io::Error::other(format!("no {what}"));
        let stdin = child.stdin.take().ok_or_else(|| taken("standard input"))?;
        let stdout = child.stdout.take().ok_or_else(|| taken("standard output"))?;
        let stderr = child.stderr.take().ok_or_else(|| taken("standard error"))?;
        let (id, run) = (self.id, self.run);
        let event = |line: String| {
            let event = serde_json::from_str(&line).ok();
            event.map_or(Tidings::Remark(line), Tidings::Event)
        };
        let readers = vec![
            tokio::spawn(read(stdout, (id, run), event, true, news.clone())),
            tokio::spawn(read(stderr, (id, run), Tidings::Remark, false, news.clone())),
        ];
        Ok(Running { run, child, stdin, readers })
    }
}

impl Running {
    pub(super) async fn say(&mut self, line: &str) -> io::Result<()> {
        self.stdin.write_all(format!("{line}\n").as_bytes()).await
    }

    pub(super) fn signal(&self, signal: Signal) {
        if let Some(pid) = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
            // It may have ended by itself; that comes as news.
            let _ = kill_process(pid, signal);
        }
    }

    /// Waits for its end, and for all it said before.
    pub(super) async fn end(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        for reader in &mut self.readers {
            // A reader that broke has no more to say.
            let _ = reader.await;
        }
        Ok(status)
    }
}

async fn read(
    from: impl AsyncRead + Unpin,
    (id, run): (u64, u64),
    made: impl Fn(String) -> Tidings,
    is_last: bool,
    news: mpsc::UnboundedSender<News>,
) {
    let mut lines = BufReader::new(from).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if news.send(News { id, run, what: made(line) }).is_err() {
            return;
        }
    }
    if is_last {
        let _ = news.send(News { id, run, what: Tidings::Silent });
    }
}
