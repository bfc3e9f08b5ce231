//! `vez node`: one real process of an algorithm.

use std::path::PathBuf;

use anyhow::bail;
use vez_net::TlsFiles;

use super::Outcome;
use crate::process::{HookCommands, Process};
use crate::registry;

/// Run one process of an algorithm, on sockets.
///
/// Who takes part is in a file, the same for all:
///
/// ```toml
/// [[node]]
/// id = 1
/// address = "127.0.0.1:7001"
/// [[node]]
/// id = 2
/// address = "127.0.0.1:7002"
/// [config]                        # the algorithm's settings; vez explain lists them
/// quorum = 2
/// ```
///
/// The process takes a line at a time from standard input and from --control: acquire (and how
/// long to stay), release, withdraw, start, suspect UID, count, reload, quit, help. It tells what
/// happens as JSON, a line each. SIGHUP, or reload, reads the file again: with a larger epoch,
/// members may have been added at the end or marked `left = true`.
///
/// Examples:
///   vez node bully --id 3 --cluster cluster.toml --data data/3 --trace 3.jsonl
///   vez node coordinator --id 2 --cluster cluster.toml --on-enter './backup.sh'
///   echo acquire 5ms | nc -U node.sock
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Node {
    /// The name of an algorithm.
    algorithm: String,
    /// Which process of the group this is.
    #[arg(long, value_name = "UID")]
    id: u64,
    /// Who takes part.
    #[arg(long, value_name = "FILE")]
    cluster: PathBuf,
    /// Where to keep what must survive a crash; without it nothing does.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Write everything that happens to this file, for vez judge; goes on where it ends.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Take commands on this Unix socket, too, and tell there what happens.
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// Run this on entering, and leave when it ends (`VEZ_NODE`, `VEZ_FENCE`).
    #[arg(long, value_name = "CMD")]
    on_enter: Option<String>,
    /// Run this while leading; it gets SIGTERM when that is over (`VEZ_LEADER`, `VEZ_TERM`).
    #[arg(long, value_name = "CMD")]
    on_leader: Option<String>,
    /// Run this on coming to follow somebody (`VEZ_LEADER`, `VEZ_TERM`).
    #[arg(long, value_name = "CMD")]
    on_follower: Option<String>,
    /// Who vouches for the others: certificates, PEM.
    #[arg(long, value_name = "FILE", requires_all = ["tls_cert", "tls_key"])]
    tls_ca: Option<PathBuf>,
    /// This process's certificate, for its address and as a client; PEM.
    #[arg(long, value_name = "FILE", requires = "tls_ca")]
    tls_cert: Option<PathBuf>,
    #[arg(long, value_name = "FILE", requires = "tls_ca")]
    tls_key: Option<PathBuf>,
    /// Listen beyond this machine without certificates.
    #[arg(long)]
    insecure: bool,
    /// What chance depends on; the id if not said.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// End when standard input does.
    #[arg(long)]
    until_eof: bool,
}

impl Node {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let entry = registry::find(&self.algorithm).map_err(anyhow::Error::msg)?;
        let tls = match (self.tls_ca, self.tls_cert, self.tls_key) {
            (Some(authority), Some(certificate), Some(key)) => {
                Some(TlsFiles { authority, certificate, key })
            }
            (None, None, None) => None,
            _ => bail!("--tls-ca, --tls-cert and --tls-key come together"),
        };
        let process = Process {
            entry,
            id: self.id,
            cluster: self.cluster,
            data: self.data,
            trace: self.trace,
            control: self.control,
            hooks: HookCommands {
                enter: self.on_enter,
                leader: self.on_leader,
                follower: self.on_follower,
            },
            tls,
            insecure: self.insecure,
            seed: self.seed.unwrap_or(self.id),
            until_eof: self.until_eof,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(process.run())?;
        Ok(Outcome::Kept)
    }
}
