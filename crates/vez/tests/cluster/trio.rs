//! Three servers of one cluster, each killed, stopped and started again as a test likes.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tonic::transport::{Channel, Endpoint};
use vez_api::etcdserverpb::StatusRequest;
use vez_api::etcdserverpb::maintenance_client::MaintenanceClient;

use crate::server::{Server, directory, serve_at};

pub(crate) const NAMES: [&str; 3] = ["anna", "bela", "carl"];

pub(crate) struct Trio {
    /// An address of this machine that nobody else uses.
    host: String,
    flags: Vec<String>,
    directories: [PathBuf; 3],
    servers: [Option<Server>; 3],
}

impl Trio {
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// All three run, and somebody leads.
    pub(crate) async fn start_with(flags: &[&str]) -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let [.., high, low] = std::process::id().to_be_bytes();
        let number = 1 + LAST.fetch_add(1, Ordering::Relaxed) % 250;
        let host = format!("127.{number}.{high}.{low}");
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let directories = [directory(), directory(), directory()];
        let mut trio = Self { host, flags, directories, servers: [None, None, None] };
        for member in 0..3 {
            trio.run(member);
        }
        trio.leader().await;
        trio
    }

    pub(crate) fn client_url(&self, member: usize) -> String {
        format!("http://{}:{}", self.host, 23_790 + member)
    }

    pub(crate) fn peer_url(&self, member: usize) -> String {
        format!("http://{}:{}", self.host, 23_800 + member)
    }

    /// All of them, beginning with this one.
    pub(crate) fn endpoints_from(&self, member: usize) -> Vec<String> {
        (0..3).map(|turn| self.client_url((member + turn) % 3)).collect()
    }

    pub(crate) fn initial_cluster(&self) -> String {
        let members = (0..3).map(|member| format!("{}={}", NAMES[member], self.peer_url(member)));
        members.collect::<Vec<_>>().join(",")
    }

    /// Starts a member, with the data that it left.
    pub(crate) fn run(&mut self, member: usize) {
        let directory = self.directories[member].clone();
        let mut command = serve_at(&directory, &self.client_url(member));
        command
            .args(["--name", NAMES[member], "--initial-cluster", &self.initial_cluster()])
            .args(&self.flags)
            .stderr(Stdio::null());
        self.servers[member] = Some(Server::start(command, &directory));
    }

    pub(crate) fn server(&self, member: usize) -> &Server {
        self.servers[member].as_ref().expect("it runs")
    }

    pub(crate) fn kill(&mut self, member: usize) {
        self.servers[member].take().expect("it runs").kill();
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
        self.leader_but(3).await
    }

    /// Who leads, if it is not this one.
    pub(crate) async fn leader_but(&self, not: usize) -> usize {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(60) {
            for member in (0..3).filter(|member| *member != not) {
                if self.servers[member].is_some() && self.leads(member).await {
                    return member;
                }
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("nobody leads");
    }

    async fn leads(&self, member: usize) -> bool {
        let mut maintenance = MaintenanceClient::new(self.channel(member));
        let asked = maintenance.status(StatusRequest {});
        match tokio::time::timeout(Duration::from_secs(1), asked).await {
            Ok(Ok(status)) => {
                let status = status.into_inner();
                status.header.is_some_and(|header| header.member_id == status.leader)
            }
            _ => false,
        }
    }
}
