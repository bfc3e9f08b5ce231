//! Three servers of one cluster, or five, each killed, stopped and started again as a test likes.

use std::ffi::OsString;
use std::fs::{self, File};
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::Instant;
use tonic::transport::{Channel, Endpoint};
use vez_api::etcdserverpb::maintenance_client::MaintenanceClient;
use vez_api::etcdserverpb::{MoveLeaderRequest, StatusRequest, StatusResponse};

use crate::cold_disk::ColdDisk;
use crate::net::Net;
use crate::server::{Server, directory, serve_at};

/// Five, and one that may join.
const PLACES: usize = 6;
/// Those whom a cluster does not begin with begin as nobody, and may join.
pub(crate) const NAMES: [&str; PLACES] = ["anna", "bela", "carl", "dora", "emma", "fred"];
/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct Trio {
    /// So many begin.
    size: usize,
    /// An address of this machine that nobody else uses.
    pub(crate) host: String,
    /// Or one network for each.
    net: Option<Net>,
    peer_scheme: &'static str,
    flags: Vec<String>,
    /// What each finds in its environment.
    environments: [Vec<(String, OsString)>; PLACES],
    directories: [PathBuf; PLACES],
    /// Not where the data is: a disk that is broken on purpose should not take these along.
    logs: [PathBuf; PLACES],
    servers: [Option<Server>; PLACES],
}

impl Trio {
    /// All three run, and somebody leads.
    pub(crate) async fn start() -> Self {
        let mut trio = Self::new();
        trio.run_all();
        trio.leader().await;
        trio
    }

    /// Nobody runs yet.
    pub(crate) fn new() -> Self {
        Self::of(3)
    }

    /// A cluster of so many, of whom nobody runs yet.
    pub(crate) fn of(size: usize) -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let [.., high, low] = std::process::id().to_be_bytes();
        let number = 1 + LAST.fetch_add(1, Ordering::Relaxed) % 250;
        let host = format!("127.{number}.{high}.{low}");
        let directories = [(); PLACES].map(|()| directory());
        Self {
            size,
            host,
            net: None,
            peer_scheme: "http",
            flags: Vec::new(),
            environments: Default::default(),
            logs: directories.each_ref().map(|directory| directory.with_extension("log")),
            directories,
            servers: Default::default(),
        }
    }

    /// Each on a machine of its own, as far as the network goes.
    pub(crate) async fn start_on(net: Net) -> Self {
        let mut trio = Self::new();
        trio.net = Some(net);
        trio.flags.push("--insecure".to_owned());
        trio.run_all();
        trio.leader().await;
        trio
    }

    pub(crate) fn net(&self) -> &Net {
        self.net.as_ref().expect("it has one")
    }

    pub(crate) fn has_net(&self) -> bool {
        self.net.is_some()
    }

    fn host(&self, member: usize) -> String {
        self.net.as_ref().map_or_else(|| self.host.clone(), |net| net.host(member))
    }

    /// Members talk over connections that are made with these flags.
    pub(crate) fn encrypted(mut self, flags: Vec<String>) -> Self {
        self.peer_scheme = "https";
        self.set_flags(flags);
        self
    }

    /// From now on with these flags; says which it were.
    pub(crate) fn set_flags(&mut self, flags: Vec<String>) -> Vec<String> {
        std::mem::replace(&mut self.flags, flags)
    }

    /// The first member has its data on this disk, and all have this leader.
    pub(crate) async fn start_with(disk: &ColdDisk, leader: usize) -> Self {
        let mut trio = Self::new();
        trio.directories[0] = disk.place.join("data");
        trio.run_all();
        trio.have_lead(leader).await;
        trio
    }

    /// What a member that was never started will find in its environment.
    pub(crate) fn set_environment(&mut self, member: usize, variables: Vec<(String, OsString)>) {
        self.environments[member] = variables;
    }

    pub(crate) fn run_all(&mut self) {
        for member in self.all() {
            self.run(member);
        }
    }

    /// Those with whom it began.
    pub(crate) fn all(&self) -> Range<usize> {
        0..self.size
    }

    pub(crate) fn client_url(&self, member: usize) -> String {
        format!("http://{}:{}", self.host(member), 23_790 + member)
    }

    pub(crate) fn peer_url(&self, member: usize) -> String {
        format!("{}://{}:{}", self.peer_scheme, self.host(member), 23_800 + member)
    }

    /// Of all with whom it began, this one first.
    pub(crate) fn endpoints_from(&self, member: usize) -> Vec<String> {
        self.all().map(|turn| self.client_url((member + turn) % self.size)).collect()
    }

    pub(crate) fn initial_cluster(&self) -> String {
        let member = |member| format!("{}={}", NAMES[member], self.peer_url(member));
        self.all().map(member).collect::<Vec<_>>().join(",")
    }

    /// Starts one of those with whom it began, with the data that it left.
    pub(crate) fn run(&mut self, member: usize) {
        let cluster = self.initial_cluster();
        self.run_with(member, &["--initial-cluster", &cluster]);
    }

    pub(crate) fn run_with(&mut self, member: usize, flags: &[&str]) {
        let directory = self.directories[member].clone();
        let mut command = serve_at(&directory, &self.client_url(member));
        if let Some(net) = &self.net {
            command = net.inside(member, &command);
        }
        let log = File::options().create(true).append(true).open(&self.logs[member]);
        command
            .envs(self.environments[member].iter().cloned())
            .args(["--name", NAMES[member]])
            .args(&self.flags)
            .args(flags)
            .stderr(Stdio::from(log.expect("there is room")));
        self.servers[member] = Some(Server::start(command, &directory));
    }

    /// What a member has said on standard error.
    pub(crate) fn said(&self, member: usize) -> String {
        fs::read_to_string(&self.logs[member]).unwrap_or_default()
    }

    /// Waits until a member has said this on standard error.
    pub(crate) async fn says(&self, member: usize, what: &str) {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if self.said(member).contains(what) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{} never says: {what}", NAMES[member]);
    }

    /// What `vez` says to all that run.
    pub(crate) fn vez(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vez"));
        command.args(args).args(["--endpoints", &self.running_urls()]);
        command.output().expect("it runs")
    }

    /// What `etcdctl` says to all that run.
    pub(crate) fn etcdctl(&self, args: &[&str]) -> Output {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").args(["--endpoints", &self.running_urls()]).args(args);
        command.output().expect("it runs")
    }

    fn running(&self) -> impl Iterator<Item = usize> {
        (0..PLACES).filter(|member| self.runs(*member))
    }

    fn running_urls(&self) -> String {
        let urls = self.running().map(|member| self.client_url(member));
        urls.collect::<Vec<_>>().join(",")
    }

    /// Waits until a member has ended by itself, and says how.
    pub(crate) async fn ended(&mut self, member: usize) -> ExitStatus {
        let stat = format!("/proc/{}/stat", self.server(member).id());
        let begun = Instant::now();
        // Until it is waited for, a process that has ended is called so.
        while !fs::read_to_string(&stat).expect("it was not waited for").contains(") Z ") {
            assert!(begun.elapsed() < PATIENCE, "{} does not end", NAMES[member]);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let mut server = self.servers[member].take().expect("it ran");
        let status = server.wait();
        server.keep();
        status
    }

    pub(crate) fn directory(&self, member: usize) -> PathBuf {
        self.directories[member].clone()
    }

    /// All that it had is gone, like a machine.
    pub(crate) fn lose(&mut self, member: usize) {
        fs::remove_dir_all(&self.directories[member]).expect("it was there");
    }

    pub(crate) fn server(&self, member: usize) -> &Server {
        self.servers[member].as_ref().expect("it runs")
    }

    pub(crate) fn runs(&self, member: usize) -> bool {
        self.servers[member].is_some()
    }

    pub(crate) fn kill(&mut self, member: usize) {
        self.servers[member].take().expect("it runs").kill();
    }

    /// All that run, in the same moment: what was not on a disk then is nowhere.
    pub(crate) fn kill_all(&mut self) {
        let running: Vec<_> = self.running().collect();
        for member in &running {
            self.signal(*member, Signal::KILL);
        }
        for member in running {
            self.kill(member);
        }
    }

    /// SIGTERM; it has ended when this returns.
    pub(crate) fn end(&mut self, member: usize) {
        let mut server = self.servers[member].take().expect("it runs");
        server.signal(Signal::TERM);
        assert!(server.wait().success(), "it ends in order");
        server.keep();
    }

    pub(crate) fn signal(&self, member: usize, signal: Signal) {
        self.server(member).signal(signal);
    }

    pub(crate) fn channel(&self, member: usize) -> Channel {
        let endpoint = Endpoint::from_shared(self.client_url(member)).expect("an address");
        endpoint.connect_timeout(Duration::from_secs(2)).connect_lazy()
    }

    /// Who leads, according to somebody who runs: only the leader itself is believed.
    pub(crate) async fn leader(&self) -> usize {
        self.leader_but(usize::MAX).await
    }

    /// Who leads, if it is not this one.
    pub(crate) async fn leader_but(&self, not: usize) -> usize {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(leader) = self.leader_now(not).await {
                return leader;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("nobody leads");
    }

    /// Has this member lead.
    pub(crate) async fn have_lead(&self, member: usize) {
        let begun = Instant::now();
        let (target_id, _) = self.status(member).await.expect("it runs");
        loop {
            let leader = self.leader().await;
            if leader == member {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{} is not given the lead", NAMES[member]);
            // Refused while it has not been heard, or is too slow to take it.
            let mut maintenance = MaintenanceClient::new(self.channel(leader));
            maintenance.move_leader(MoveLeaderRequest { target_id }).await.ok();
        }
    }

    /// Who leads at the moment, if anybody does that is not this one.
    pub(crate) async fn leader_now(&self, not: usize) -> Option<usize> {
        for member in self.running().filter(|member| *member != not) {
            if self.leads(member).await {
                return Some(member);
            }
        }
        None
    }

    async fn leads(&self, member: usize) -> bool {
        self.status(member).await.is_some_and(|(id, leader)| id == leader)
    }

    /// Its number, and that of whom it takes for the leader.
    pub(crate) async fn status(&self, member: usize) -> Option<(u64, u64)> {
        let status = self.full_status(member).await?;
        Some((status.header?.member_id, status.leader))
    }

    /// The term that it is in, and the number of its log's last entry.
    pub(crate) async fn term_and_index(&self, member: usize) -> (u64, u64) {
        let status = self.full_status(member).await.expect("it answers");
        (status.raft_term, status.raft_index)
    }

    async fn full_status(&self, member: usize) -> Option<StatusResponse> {
        let mut maintenance = MaintenanceClient::new(self.channel(member));
        let asked = maintenance.status(StatusRequest {});
        let answer = tokio::time::timeout(Duration::from_secs(1), asked).await.ok()?.ok()?;
        Some(answer.into_inner())
    }
}

impl Drop for Trio {
    fn drop(&mut self) {
        for member in 0..PLACES {
            self.servers[member] = None;
            fs::remove_dir_all(&self.directories[member]).ok();
            if !std::thread::panicking() {
                fs::remove_file(&self.logs[member]).ok();
            }
        }
    }
}
