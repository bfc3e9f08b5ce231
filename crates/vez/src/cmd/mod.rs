//! The commands, one file each.

mod algorithms;
pub(crate) mod bar;
mod check;
mod cluster;
mod elect;
pub mod explain;
mod figures;
pub mod interrupt;
mod judge;
mod lab;
mod lock;
mod member;
mod node;
mod output;
mod progress;
mod quorum;
mod run;
mod serve;
mod snapshot;
mod status;
mod summary;
mod sweep;
mod system;
mod timeout;
mod verdict;
mod worst;

use std::io::Write as _;

/// How a command that worked turned out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Kept,
    Broken,
    /// With a code of its own, as its help says.
    Exit(u8),
}

#[derive(clap::Subcommand)]
pub enum Command {
    Run(Box<run::Run>),
    Serve(Box<serve::Serve>),
    Check(Box<check::Check>),
    Algorithms(algorithms::Algorithms),
    Explain(explain::Explain),
    Sweep(Box<sweep::Sweep>),
    Worst(worst::Worst),
    Lab(lab::Lab),
    Quorum(quorum::Quorum),
    Timeout(timeout::Timeout),
    Node(Box<node::Node>),
    Cluster(Box<cluster::Cluster>),
    Judge(judge::Judge),
    Lock(Box<lock::Lock>),
    Elect(Box<elect::Elect>),
    Status(status::Status),
    Snapshot(snapshot::Snapshot),
    Member(member::Member),
    /// Print a completion script for a shell.
    ///
    /// Example: vez completions bash > ~/.local/share/bash-completion/completions/vez
    Completions {
        shell: clap_complete::Shell,
    },
}

impl Command {
    pub fn run<Args: clap::CommandFactory>(self) -> anyhow::Result<Outcome> {
        match self {
            Self::Run(command) => command.run(),
            Self::Serve(command) => command.run::<Args>(),
            Self::Check(command) => command.run(),
            Self::Algorithms(command) => command.run(),
            Self::Explain(command) => command.run(),
            Self::Sweep(command) => command.run(),
            Self::Worst(command) => command.run(),
            Self::Lab(command) => command.run(),
            Self::Quorum(command) => command.run(),
            Self::Timeout(command) => command.run(),
            Self::Node(command) => command.run(),
            Self::Cluster(command) => command.run(),
            Self::Judge(command) => command.run(),
            Self::Lock(command) => command.run(),
            Self::Elect(command) => command.run(),
            Self::Status(command) => command.run(),
            Self::Snapshot(command) => command.run(),
            Self::Member(command) => command.run(),
            Self::Completions { shell } => {
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut Args::command(), "vez", &mut script);
                std::io::stdout().write_all(&script)?;
                Ok(Outcome::Kept)
            }
        }
    }
}
