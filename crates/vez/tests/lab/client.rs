//! A lab that runs while a test does, and the plainest of clients.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

pub(crate) struct Lab {
    process: Child,
    /// Open as long as it runs: what it is told ends when this does.
    stdin: Option<ChildStdin>,
    pub(crate) address: String,
    /// Where clients of the service are heard, if it serves.
    pub(crate) clients: String,
    /// Of the service; removed in the end.
    pub(crate) directory: Option<PathBuf>,
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
        Self { process, stdin, address, clients: String::new(), directory: None }
    }

    /// `vez serve` with its pages, and a directory of its own.
    pub(crate) fn service(flags: &[&str]) -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let name = format!("pages-{}-{number}", std::process::id());
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::remove_dir_all(&directory).ok();
        Self::service_in(directory, flags)
    }

    pub(crate) fn service_in(directory: PathBuf, flags: &[&str]) -> Self {
        fs::create_dir_all(&directory).expect("a directory");
        let log = fs::File::create(directory.join("stderr")).expect("a file");
        let mut process = Command::new(env!("CARGO_BIN_EXE_vez"))
            .args(["serve", "--listen-client-urls", "http://127.0.0.1:0"])
            .args(["--listen-metrics-urls", "http://127.0.0.1:0", "--data-dir"])
            .arg(directory.join("data"))
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("vez can be started");
        let mut line = String::new();
        let stdout = process.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).expect("it prints where it is");
        let mut found = line.split("http://").skip(1);
        let mut next = || found.next().expect("it says where it is").to_owned();
        let clients = next().split(',').next().expect("an address").to_owned();
        let address = next().trim().trim_end_matches('/').to_owned();
        Self { process, stdin: None, address, clients, directory: Some(directory) }
    }

    /// What the service keeps for those who may act on its page.
    pub(crate) fn token(&self) -> String {
        let file = self.directory.as_ref().expect("it serves").join("data/dashboard-token");
        fs::read_to_string(file).expect("there is one").trim().to_owned()
    }

    pub(crate) fn log(&self) -> String {
        let file = self.directory.as_ref().expect("it serves").join("stderr");
        fs::read_to_string(file).expect("there is one")
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
        if let Some(directory) = &self.directory {
            let _ = fs::remove_dir_all(directory);
        }
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
