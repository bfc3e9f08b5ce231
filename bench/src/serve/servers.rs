//! The servers that are compared, each started here with its data in a folder of its own on the
//! same disk, every acknowledged write durable.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use crate::programs;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Vez,
    Etcd,
    ZooKeeper,
    Redis,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Vez => "vez",
            Self::Etcd => "etcd",
            Self::ZooKeeper => "ZooKeeper",
            Self::Redis => "Redis",
        }
    }

    fn command(self, folder: &Path, port: u16) -> anyhow::Result<Command> {
        let data = folder.join("data");
        let url = format!("http://127.0.0.1:{port}");
        let mut command = match self {
            Self::Vez => Command::new(programs::vez()?),
            Self::Etcd => Command::new("etcd"),
            Self::ZooKeeper => Command::new("java"),
            Self::Redis => Command::new("redis-server"),
        };
        match self {
            Self::Vez => command
                .args(["serve", "--listen-client-urls", &url])
                .args(["--listen-metrics-urls", "http://127.0.0.1:0", "--log-level", "warn"])
                .arg("--data-dir")
                .arg(data),
            Self::Etcd => {
                let peer = format!("http://127.0.0.1:{}", free_port()?);
                command
                    .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
                    .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
                    .args(["--initial-cluster", &format!("default={peer}")])
                    .args(["--log-level", "error", "--quota-backend-bytes", "8000000000"])
                    .arg("--data-dir")
                    .arg(data)
            }
            Self::ZooKeeper => {
                let settings = folder.join("zoo.cfg");
                let text = format!(
                    "tickTime=2000\ndataDir={}\nclientPort={port}\nmaxClientCnxns=0\n\
                     admin.enableServer=false\n",
                    data.display()
                );
                fs::write(&settings, text)?;
                command
                    .args(["-cp", "/etc/zookeeper/conf:/usr/share/java/zookeeper.jar"])
                    .arg("org.apache.zookeeper.server.ZooKeeperServerMain")
                    .arg(settings)
            }
            Self::Redis => {
                fs::create_dir_all(&data)?;
                command
                    .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
                    .args(["--appendonly", "yes", "--appendfsync", "always", "--dir"])
                    .arg(data)
            }
        };
        Ok(command)
    }
}

pub(crate) struct Server {
    pub(crate) kind: Kind,
    folder: PathBuf,
    port: u16,
    child: Child,
}

impl Server {
    /// Nothing if it is not installed.
    pub(crate) fn start(kind: Kind) -> anyhow::Result<Option<Self>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/serve").join(format!(
            "{}-{}",
            kind.name(),
            std::process::id()
        ));
        fs::create_dir_all(&folder)?;
        let port = free_port()?;
        let Some(child) = spawn(kind, &folder, port)? else { return Ok(None) };
        let mut server = Self { kind, folder, port, child };
        server.wait_until_it_listens()?;
        Ok(Some(server))
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// SIGKILL, and up again with the same data at the same address; returns when it listens.
    pub(crate) fn crash_and_restart(&mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        self.child = spawn(self.kind, &self.folder, self.port)?.context("it was there before")?;
        self.wait_until_it_listens()
    }

    /// How much memory it has in use.
    pub(crate) fn resident_megabytes(&self) -> anyhow::Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next());
        Ok(kilobytes.context("the system does not say")?.parse::<f64>()? / 1024.0)
    }

    /// How long it has been on a processor, in seconds.
    pub(crate) fn worked(&self) -> anyhow::Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // After the program's name, which is in parentheses: user and system time in ticks.
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let ticks: Vec<f64> =
            fields.skip(11).take(2).filter_map(|word| word.parse().ok()).collect();
        ensure!(ticks.len() == 2, "the system does not say");
        Ok((ticks[0] + ticks[1]) / 100.0)
    }

    fn wait_until_it_listens(&mut self) -> anyhow::Result<()> {
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended at once: {status}; {}", self.kind.name(), self.folder.display());
            }
            if TcpStream::connect(self.address()).is_ok() && self.is_ready() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        bail!("{} does not listen", self.kind.name())
    }

    /// ZooKeeper listens before it serves.
    fn is_ready(&self) -> bool {
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(self.address())?;
            stream.write_all(b"srvr")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        self.kind != Kind::ZooKeeper || ask().is_ok_and(|answer| answer.contains("Mode:"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn spawn(kind: Kind, folder: &Path, port: u16) -> anyhow::Result<Option<Child>> {
    let log = File::options().create(true).append(true).open(folder.join("log"))?;
    let mut command = kind.command(folder, port)?;
    command.current_dir(folder).stdin(Stdio::null());
    match command.stdout(log.try_clone()?).stderr(log).spawn() {
        Ok(child) => Ok(Some(child)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| kind.name()),
    }
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
