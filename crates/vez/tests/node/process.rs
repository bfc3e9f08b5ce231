//! A process under test: what it says, and what is said to it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("node-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

pub(crate) fn members(ports: &[u16]) -> String {
    let member = |(index, port): (usize, &u16)| {
        format!("[[node]]\nid = {}\naddress = \"127.0.0.1:{port}\"\n", index + 1)
    };
    ports.iter().enumerate().map(member).collect()
}

pub(crate) fn write_group(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("cluster.toml");
    fs::write(&path, text).unwrap();
    path
}

pub(crate) struct Node {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    events: mpsc::Receiver<Value>,
    pub(crate) seen: Vec<Value>,
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Node {
    pub(crate) fn start(algorithm: &str, id: u64, cluster: &Path, more: &[&str]) -> Self {
        let command = Command::new(env!("CARGO_BIN_EXE_vez"));
        Self::spawn(command, algorithm, id, cluster, more)
    }

    pub(crate) fn spawn(
        mut command: Command,
        algorithm: &str,
        id: u64,
        cluster: &Path,
        more: &[&str],
    ) -> Self {
        let mut child = command
            .args(["node", algorithm, "--id", &id.to_string(), "--until-eof", "--cluster"])
            .arg(cluster)
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (send, events) = mpsc::channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _ = send.send(serde_json::from_str(&line).unwrap());
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, events, seen: Vec::new() }
    }

    pub(crate) fn up(algorithm: &str, id: u64, cluster: &Path, more: &[&str]) -> Self {
        let mut node = Self::start(algorithm, id, cluster, more);
        node.next("ready");
        node
    }

    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The next event of this name.
    #[track_caller]
    pub(crate) fn next(&mut self, name: &str) -> Value {
        loop {
            match self.events.recv_timeout(PATIENCE) {
                Ok(event) => {
                    self.seen.push(event.clone());
                    if event["event"] == name {
                        return event;
                    }
                }
                Err(_) => {
                    let _ = self.child.kill();
                    let mut told = String::new();
                    let stderr = self.child.stderr.take();
                    stderr.map(|mut stderr| stderr.read_to_string(&mut told));
                    panic!("no {name}; {:?}\n{told}", self.seen);
                }
            }
        }
    }

    /// Everything new, after waiting this long for it.
    pub(crate) fn news(&mut self, patience: Duration) -> Vec<Value> {
        let first = self.events.recv_timeout(patience).ok();
        let news: Vec<Value> = first.into_iter().chain(self.events.try_iter()).collect();
        self.seen.extend_from_slice(&news);
        news
    }

    pub(crate) fn counts(&mut self) -> Value {
        self.say("count");
        self.next("counted")["counts"].clone()
    }

    /// Its exit code, and what it said to people.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        self.stdin = None;
        let status = self.child.wait().unwrap();
        let mut told = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        (status.code(), told)
    }
}
