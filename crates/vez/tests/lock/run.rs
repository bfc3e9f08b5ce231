//! The binary at work.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::server::{Server, kill};

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn vez(server: &Server, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vez"));
    command.env("VEZ_ENDPOINTS", server.endpoint()).args(args);
    command
}

/// A command under way, with what it says.
pub(crate) struct Run {
    child: Child,
    stdout: mpsc::Receiver<String>,
    stderr: mpsc::Receiver<String>,
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    pub(crate) fn start(mut command: Command) -> Self {
        let quiet = command.stdin(Stdio::null());
        let mut child = quiet.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = lines(child.stdout.take().unwrap());
        let stderr = lines(child.stderr.take().unwrap());
        Self { child, stdout, stderr }
    }

    pub(crate) fn vez(server: &Server, args: &[&str]) -> Self {
        Self::start(vez(server, args))
    }

    pub(crate) fn signal(&self, signal: &str) {
        kill(signal, self.child.id());
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line of standard output.
    #[track_caller]
    pub(crate) fn line(&mut self) -> String {
        self.stdout.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            panic!("no line; instead: {:?}", self.stderr.try_iter().collect::<Vec<_>>())
        })
    }

    /// The next line of standard error.
    #[track_caller]
    pub(crate) fn note(&mut self) -> String {
        self.stderr.recv_timeout(PATIENCE).expect("a line on standard error")
    }

    /// The next event, told on standard error.
    #[track_caller]
    pub(crate) fn event(&mut self) -> Value {
        serde_json::from_str(&self.note()).unwrap()
    }

    /// How it ends, and what it said since it was last heard.
    pub(crate) fn end(mut self) -> Ended {
        let code = self.child.wait().unwrap().code();
        let all = |lines: &mpsc::Receiver<String>| {
            lines.iter().map(|line| line + "\n").collect::<String>()
        };
        Ended { code, stdout: all(&self.stdout), stderr: all(&self.stderr) }
    }
}

fn lines(stream: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let _ = send.send(line);
        }
    });
    receive
}

/// Until there are so many keys.
#[track_caller]
pub(crate) fn until_keys(server: &Server, count: usize) {
    for _ in 0..300 {
        if server.keys().len() == count {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("expected {count} keys, found {:?}", server.keys());
}
