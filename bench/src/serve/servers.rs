//! The servers that are compared, each started here with its data in a folder of its own on the
//! same disk, every acknowledged write durable.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::programs;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_mins(1);

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

    fn command(self, place: &Place) -> anyhow::Result<Command> {
        let data = place.folder.join("data");
        let url = format!("http://127.0.0.1:{}", place.port);
        let mut command = match self {
            Self::Vez => Command::new(programs::vez()?),
            Self::Etcd => Command::new("etcd"),
            Self::ZooKeeper => Command::new("java"),
            Self::Redis => Command::new("redis-server"),
        };
        match self {
            Self::Vez => {
                command
                    .args(["serve", "--listen-client-urls", &url])
                    .args(["--listen-metrics-urls", "http://127.0.0.1:0", "--log-level", "warn"])
                    .arg("--data-dir")
                    .arg(data);
                if place.is_among_others() {
                    command.args(["--name", &place.name(), "--initial-cluster", &place.members()]);
                }
            }
            Self::Etcd => {
                let peer = place.peer_url(place.number);
                command
                    .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
                    .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
                    .args(["--name", &place.name(), "--initial-cluster", &place.members()])
                    .args(["--log-level", "error", "--quota-backend-bytes", "8000000000"])
                    .arg("--data-dir")
                    .arg(data);
            }
            Self::ZooKeeper => {
                let main = if place.is_among_others() {
                    "org.apache.zookeeper.server.quorum.QuorumPeerMain"
                } else {
                    "org.apache.zookeeper.server.ZooKeeperServerMain"
                };
                command
                    .args(["-cp", "/etc/zookeeper/conf:/usr/share/java/zookeeper.jar", main])
                    .arg(place.write_zookeeper_settings(&data)?);
            }
            Self::Redis => {
                fs::create_dir_all(&data)?;
                command
                    .args(["--port", &place.port.to_string(), "--bind", "127.0.0.1", "--save", ""])
                    .args(["--appendonly", "yes", "--appendfsync", "always", "--dir"])
                    .arg(data);
            }
        }
        Ok(command)
    }
}

/// Where a server has its data and is found, and with whom.
struct Place {
    folder: PathBuf,
    port: u16,
    number: usize,
    /// Where members find each other, and where ZooKeeper's elect, in the order of their numbers.
    peers: Vec<[u16; 2]>,
}

impl Place {
    fn is_among_others(&self) -> bool {
        1 < self.peers.len()
    }

    fn name(&self) -> String {
        format!("member{}", self.number)
    }

    fn peer_url(&self, number: usize) -> String {
        format!("http://127.0.0.1:{}", self.peers[number][0])
    }

    fn members(&self) -> String {
        let numbers = 0..self.peers.len();
        let members = numbers.map(|number| format!("member{number}={}", self.peer_url(number)));
        members.collect::<Vec<_>>().join(",")
    }

    fn write_zookeeper_settings(&self, data: &Path) -> anyhow::Result<PathBuf> {
        let mut text = format!(
            "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir={}\nclientPort={}\n\
             maxClientCnxns=0\nadmin.enableServer=false\n",
            data.display(),
            self.port
        );
        if self.is_among_others() {
            for (number, [peer, election]) in self.peers.iter().enumerate() {
                writeln!(text, "server.{}=127.0.0.1:{peer}:{election}", number + 1)?;
            }
            fs::create_dir_all(data)?;
            fs::write(data.join("myid"), (self.number + 1).to_string())?;
        }
        let settings = self.folder.join("zoo.cfg");
        fs::write(&settings, text)?;
        Ok(settings)
    }
}

pub(crate) struct Server {
    pub(crate) kind: Kind,
    place: Place,
    child: Child,
}

impl Server {
    /// Nothing if it is not installed.
    pub(crate) fn start(kind: Kind) -> anyhow::Result<Option<Self>> {
        Ok(Self::start_together(kind, 1)?.and_then(|mut servers| servers.pop()))
    }

    /// So many of one cluster, of which all listen when this returns.
    pub(crate) fn start_together(kind: Kind, size: usize) -> anyhow::Result<Option<Vec<Self>>> {
        let peers = (0..size).map(|_| Ok([free_port()?, free_port()?]));
        let peers = peers.collect::<anyhow::Result<Vec<_>>>()?;
        let mut servers = Vec::new();
        for number in 0..size {
            let name = format!("{}-{}-{number}", kind.name(), std::process::id());
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/serve").join(name);
            fs::create_dir_all(&folder)?;
            let place = Place { folder, port: free_port()?, number, peers: peers.clone() };
            let Some(child) = spawn(kind, &place)? else { return Ok(None) };
            servers.push(Self { kind, place, child });
        }
        for server in &mut servers {
            server.wait_until_it_listens()?;
        }
        Ok(Some(servers))
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.place.port)
    }

    /// SIGKILL.
    pub(crate) fn crash(&mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Up again with the same data at the same address; returns when it listens.
    pub(crate) fn restart(&mut self) -> anyhow::Result<()> {
        self.child = spawn(self.kind, &self.place)?.context("it was there before")?;
        self.wait_until_it_listens()
    }

    pub(crate) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let id =
            Pid::from_raw(i32::try_from(self.child.id())?).context("a process has a number")?;
        Ok(kill_process(id, signal)?)
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
                bail!(
                    "{} ended at once: {status}; {}",
                    self.kind.name(),
                    self.place.folder.display()
                );
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
        self.kind != Kind::ZooKeeper
            || self.zookeeper_says().is_ok_and(|answer| answer.contains("Mode:"))
    }

    /// What a ZooKeeper says of itself.
    pub(crate) fn zookeeper_says(&self) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(self.address())?;
        // It may stand still.
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"srvr")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.place.folder);
    }
}

fn spawn(kind: Kind, place: &Place) -> anyhow::Result<Option<Child>> {
    let log = File::options().create(true).append(true).open(place.folder.join("log"))?;
    let mut command = kind.command(place)?;
    command.current_dir(&place.folder).stdin(Stdio::null());
    match command.stdout(log.try_clone()?).stderr(log).spawn() {
        Ok(child) => Ok(Some(child)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| kind.name()),
    }
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
