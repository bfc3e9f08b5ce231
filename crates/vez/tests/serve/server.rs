//! Our server, running while a test does; killed and started again as it likes.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) struct Server {
    process: Child,
    pub(crate) directory: PathBuf,
    url: String,
    /// `127.0.0.1:PORT`.
    pub(crate) address: String,
    /// Where its pages are.
    pub(crate) pages: String,
    removes: bool,
}

impl Server {
    /// `vez serve` with a directory of its own.
    pub(crate) fn vez() -> Self {
        Self::vez_in(&directory(), &[])
    }

    pub(crate) fn vez_in(directory: &Path, flags: &[&str]) -> Self {
        Self::vez_at(directory, "127.0.0.1:0", flags)
    }

    pub(crate) fn vez_at(directory: &Path, address: &str, flags: &[&str]) -> Self {
        Self::vez_at_url(directory, &format!("http://{address}"), flags)
    }

    pub(crate) fn vez_at_url(directory: &Path, url: &str, flags: &[&str]) -> Self {
        let mut command = serve_at(directory, url);
        command.args(flags).stderr(Stdio::null());
        Self::start(command, directory)
    }

    /// Whatever `serve` made and somebody added to.
    pub(crate) fn start(mut command: Command, directory: &Path) -> Self {
        let process = command.stdout(Stdio::piped()).spawn().expect("vez can be started");
        Self::started(process, directory)
    }

    /// Waits until it is ready; its standard output must be piped.
    pub(crate) fn started(mut process: Child, directory: &Path) -> Self {
        let stdout = process.stdout.take().expect("it is piped");
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("it prints where it is");
        let url = line.strip_prefix("clients at ").and_then(|rest| rest.split(',').next());
        let url = url.expect("it says where clients are heard").to_owned();
        let address = url.split("://").nth(1).expect("it is a URL").to_owned();
        let pages = line.rsplit("://").next().unwrap_or_default();
        let pages = pages.trim().trim_end_matches('/').to_owned();
        Self { process, directory: directory.to_owned(), url, address, pages, removes: true }
    }

    /// What its pages answer: status line, head and body.
    pub(crate) fn page(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.pages).expect("it listens");
        let request = format!("GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.pages);
        stream.write_all(request.as_bytes()).expect("it is heard");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    pub(crate) fn endpoint(&self) -> String {
        self.url.clone()
    }

    /// SIGKILL, and the directory as it was at that moment.
    pub(crate) fn kill(mut self) -> PathBuf {
        self.removes = false;
        self.process.kill().expect("it can be killed");
        self.process.wait().expect("it ended");
        self.directory.clone()
    }

    /// Its directory, when it has ended by itself.
    pub(crate) fn keep(mut self) -> PathBuf {
        self.removes = false;
        self.directory.clone()
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// What it has in memory, how much of that is its program, and the most that it ever had since
    /// that was forgotten; in bytes.
    pub(crate) fn memory(&self) -> [u64; 3] {
        self.status(["VmRSS:", "RssFile:", "VmHWM:"]).map(|kib| 1024 * kib)
    }

    /// Numbers that the system knows of it.
    pub(crate) fn status<const N: usize>(&self, names: [&str; N]) -> [u64; N] {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()));
        let status = status.expect("it runs");
        names.map(|name| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
            number.expect("a number")
        })
    }

    /// From now on only what comes is remembered; says what it has.
    pub(crate) fn forget_memory(&self) -> u64 {
        std::fs::write(format!("/proc/{}/clear_refs", self.id()), "5").expect("it is ours");
        self.memory()[0]
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.id()).ok().and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(id.expect("it has one"), signal).expect("it runs");
    }

    pub(crate) fn wait(&mut self) -> std::process::ExitStatus {
        self.process.wait().expect("it ends")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
        if self.removes {
            fs::remove_dir_all(&self.directory).ok();
        }
    }
}

/// The command that starts a server, for those who expect it to refuse.
pub(crate) fn serve(directory: &Path, address: &str) -> Command {
    serve_at(directory, &format!("http://{address}"))
}

pub(crate) fn serve_at(directory: &Path, url: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vez"));
    command
        .args(["serve", "--listen-client-urls", url, "--data-dir"])
        .arg(directory)
        // Flags count more, so that a test may say something else.
        .env("ETCD_LISTEN_METRICS_URLS", "http://127.0.0.1:0");
    command
}

/// A directory that is not there yet, and nobody else's.
pub(crate) fn directory() -> PathBuf {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    let name = format!("serve-{}-{number}", std::process::id());
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::remove_dir_all(&directory).ok();
    directory
}

/// Whether a program is installed; says so when it is not.
pub(crate) fn is_there(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !found {
        eprintln!("left out: no {program} here; `cargo xtask test` says how to get it");
    }
    found
}
