//! A group of processes, their standard input and output in our hands.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use anyhow::{Context as _, bail};

use super::PATIENCE;

pub(super) struct Children {
    children: Vec<Running>,
    file: PathBuf,
}

struct Running {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
}

impl Drop for Children {
    fn drop(&mut self) {
        for running in &mut self.children {
            // It may be dead already.
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
        let _ = std::fs::remove_file(&self.file);
    }
}

impl Children {
    pub(super) fn start(kind: &str, n: u64, settings: &str) -> anyhow::Result<Self> {
        let held: Result<Vec<_>, _> = (0..n).map(|_| TcpListener::bind("127.0.0.1:0")).collect();
        let mut text = String::new();
        for (index, held) in held?.iter().enumerate() {
            let (id, address) = (index + 1, held.local_addr()?);
            write!(text, "[[node]]\nid = {id}\naddress = \"{address}\"\n")?;
        }
        write!(text, "[config]\n{settings}")?;
        let file = std::env::temp_dir().join(format!("vez-bench-{}.toml", std::process::id()));
        std::fs::write(&file, text)?;
        let mut group = Self { children: Vec::new(), file };
        for id in 1..=n {
            let running = group.run(kind, id)?;
            group.children.push(running);
        }
        for id in 1..=n {
            group.wait_for(id, "ready")?;
        }
        Ok(group)
    }

    fn run(&self, kind: &str, id: u64) -> anyhow::Result<Running> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["process", kind, &id.to_string()])
            .arg(&self.file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdin = child.stdin.take().context("its input")?;
        let stdout = BufReader::new(child.stdout.take().context("its output")?);
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Running { child, stdin, lines })
    }

    fn running(&mut self, id: u64) -> &mut Running {
        &mut self.children[id as usize - 1]
    }

    pub(super) fn say(&mut self, id: u64, line: &str) -> anyhow::Result<()> {
        Ok(writeln!(self.running(id).stdin, "{line}")?)
    }

    /// The next line of a process that begins so.
    pub(super) fn wait_for(&mut self, id: u64, start: &str) -> anyhow::Result<String> {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.running(id).lines.recv_timeout(left) {
                Ok(line) if line.starts_with(start) => return Ok(line),
                Ok(_) => (),
                Err(_) => bail!("{id} does not say `{start}`"),
            }
        }
    }

    /// How many messages a process has heard.
    pub(super) fn count(&mut self, id: u64) -> anyhow::Result<u64> {
        self.say(id, "count")?;
        let line = self.wait_for(id, "heard ")?;
        Ok(line["heard ".len()..].parse()?)
    }

    pub(super) fn kill(&mut self, id: u64) -> anyhow::Result<()> {
        Ok(self.running(id).child.kill()?)
    }
}
