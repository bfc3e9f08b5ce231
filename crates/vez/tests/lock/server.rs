//! A real server for a test, on loopback, with its data in a folder of its own.

#![allow(dead_code, reason = "not every test needs all of it")]

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

/// What speaks the API.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    command: fn(&Site) -> Command,
}

/// Every test runs with each of these that is installed.
const KINDS: [Kind; 2] = [Kind { name: "etcd", command: etcd }, Kind { name: "vez", command: vez }];

/// Where a server lives.
struct Site {
    folder: PathBuf,
    client_port: u16,
    peer_port: u16,
}

fn etcd(site: &Site) -> Command {
    let [client, peer] =
        [site.client_port, site.peer_port].map(|port| format!("http://127.0.0.1:{port}"));
    let mut command = Command::new("etcd");
    command.arg("--data-dir").arg(site.folder.join("data"));
    command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
    command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
    command.args(["--initial-cluster", &format!("default={peer}")]);
    command
}

fn vez(site: &Site) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vez"));
    command.args(["serve", "--listen-metrics-urls", "http://127.0.0.1:0", "--data-dir"]);
    command.arg(site.folder.join("data"));
    command.args(["--listen-client-urls", &format!("http://127.0.0.1:{}", site.client_port)]);
    command
}

pub(crate) struct Server {
    kind: Kind,
    site: Site,
    child: Child,
}

/// Runs a story with each kind of server; says so plainly where one is not installed.
pub(crate) fn with_each(name: &str, story: impl Fn(&mut Server)) {
    for kind in KINDS {
        match Server::start(kind, name) {
            Some(mut server) => story(&mut server),
            None => eprintln!("LEFT OUT: {name}: {} or etcdctl is not installed here", kind.name),
        }
    }
}

impl Server {
    /// A real etcd, to compare with; says so where there is none.
    pub(crate) fn etcd(name: &str) -> Option<Self> {
        let started = Self::start(KINDS[0], name);
        if started.is_none() {
            eprintln!("LEFT OUT: {name}: etcd or etcdctl is not installed here");
        }
        started
    }

    /// Nothing if it is not installed, or etcd's own client is not, with which it is tested.
    fn start(kind: Kind, name: &str) -> Option<Self> {
        Command::new("etcdctl").stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", kind.name));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        loop {
            let folder = folder.clone();
            let site = Site { folder, client_port: free_port(), peer_port: free_port() };
            let child = spawn(kind, &site)?;
            let mut server = Self { kind, site, child };
            // Somebody else may have been quicker to take a port.
            if server.comes_up() {
                return Some(server);
            }
        }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.site.client_port)
    }

    /// Debian's client, which runs the recipe by itself.
    pub(crate) fn etcdctl(&self, args: &[&str]) -> Command {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").args(["--endpoints", &self.endpoint()]).args(args);
        command
    }

    /// What it prints; it must succeed.
    #[track_caller]
    pub(crate) fn etcdctl_output(&self, args: &[&str]) -> String {
        let output = self.etcdctl(args).output().expect("etcdctl comes with etcd");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// All keys that there are.
    pub(crate) fn keys(&self) -> Vec<String> {
        let keys = self.etcdctl_output(&["get", "", "--prefix", "--keys-only"]);
        keys.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// It is there, but does nothing.
    pub(crate) fn freeze(&self) {
        kill("-STOP", self.child.id());
    }

    pub(crate) fn thaw(&self) {
        kill("-CONT", self.child.id());
    }

    /// Kills it without warning and starts it again, with the same data at the same address.
    pub(crate) fn crash_and_restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = spawn(self.kind, &self.site).expect("it was there before");
        assert!(self.comes_up());
    }

    /// Whether it listens in the end; not if it ended instead.
    fn comes_up(&mut self) -> bool {
        for _ in 0..1000 {
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            // Who listens may still end, because its other port was taken: it must answer.
            let listens = TcpStream::connect(("127.0.0.1", self.site.client_port)).is_ok();
            if listens && self.etcdctl(&["get", "up"]).output().unwrap().status.success() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let log = fs::read_to_string(self.site.folder.join("log")).unwrap_or_default();
        panic!("{} did not come up:\n{log}", self.kind.name);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // etcd sets 64 MB aside for each of two files of its log.
        let _ = fs::remove_dir_all(self.site.folder.join("data"));
    }
}

fn spawn(kind: Kind, site: &Site) -> Option<Child> {
    let log = File::options().create(true).append(true).open(site.folder.join("log")).unwrap();
    let mut command = (kind.command)(site);
    let output = log.try_clone().unwrap();
    match command.stdin(Stdio::null()).stdout(output).stderr(log).spawn() {
        Ok(child) => Some(child),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("{}: {error}", kind.name),
    }
}

/// A port that was free a moment ago, and not one that outgoing connections are given.
fn free_port() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    loop {
        let own = (std::process::id() % 500) as u16 * 20 + TAKEN.fetch_add(1, Ordering::Relaxed);
        let port = 20_000 + own % 10_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

pub(crate) fn kill(signal: &str, pid: u32) {
    let status = Command::new("kill").args([signal, &pid.to_string()]).status().unwrap();
    assert!(status.success());
}
