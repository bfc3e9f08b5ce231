//! A lab that runs while a test does, and the plainest of clients.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Command, Stdio};

use serde_json::Value;

pub(crate) struct Lab {
    process: Child,
    /// Open as long as it runs: what it is told ends when this does.
    stdin: Option<ChildStdin>,
    pub(crate) address: String,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Lab {
    pub(crate) fn start() -> Self {
        Self::of(&["lab"])
    }

    /// A cluster that runs, and its page.
    pub(crate) fn cluster(args: &[&str]) -> Self {
        Self::of(&[&["cluster", "--lab"], args].concat())
    }

    fn of(args: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_vez"))
            .args(args)
            .args(["--listen", "127.0.0.1:0"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("vez can be started");
        let stdout = process.stdout.take().expect("it is piped");
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        stdout.read_line(&mut line).expect("it prints its address");
        // What else it says is read, so that it can say it.
        std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
        let address = line.trim().trim_start_matches("http://").trim_end_matches('/').to_owned();
        assert!(!address.is_empty(), "the lab did not start");
        let stdin = process.stdin.take();
        Self { process, stdin, address }
    }

    /// Tells a cluster something, and that there is no more to come.
    pub(crate) fn tell(&mut self, lines: &str) {
        let mut stdin = self.stdin.take().expect("nothing was told yet");
        stdin.write_all(lines.as_bytes()).expect("it listens");
    }

    /// Its exit code, once it has ended by itself.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        self.process.wait().expect("it can be waited for").code()
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, &[("Content-Type", "application/json")], &body.to_string())
    }

    /// One request, one connection.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut stream = TcpStream::connect(&self.address).expect("the lab listens");
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            head += &format!("Host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("Content-Length: {}\r\n\r\n", body.len());
        // What is refused early may not be read to its end: then the answer is there all the same.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8(bytes).expect("answers are text");
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text:?}"));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub(crate) fn error(&self) -> String {
        self.json()["error"].as_str().expect("a refusal has a line").to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().map_or("", |(_, value)| value)
    }
}
