//! The commands, one file each.

mod algorithms;
mod cluster;
pub mod explain;
mod judge;
mod lab;
mod node;
mod output;
mod run;
mod summary;

use std::io::Write as _;

/// How a command that worked turned out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Kept,
    Broken,
}

#[derive(clap::Subcommand)]
pub enum Command {
    Run(Box<run::Run>),
    Algorithms(algorithms::Algorithms),
    Explain(explain::Explain),
    Lab(lab::Lab),
    Node(Box<node::Node>),
    Cluster(Box<cluster::Cluster>),
    Judge(judge::Judge),
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
            Self::Algorithms(command) => command.run(),
            Self::Explain(command) => command.run(),
            Self::Lab(command) => command.run(),
            Self::Node(command) => command.run(),
            Self::Cluster(command) => command.run(),
            Self::Judge(command) => command.run(),
            Self::Completions { shell } => {
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut Args::command(), "vez", &mut script);
                std::io::stdout().write_all(&script)?;
                Ok(Outcome::Kept)
            }
        }
    }
}
