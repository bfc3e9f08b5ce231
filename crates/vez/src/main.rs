//! `vez`: every algorithm from one command line.

use std::process::ExitCode;

use clap::Parser as _;
use vez::cmd::{Command, Outcome};

/// The service frees in one thread what it made in another, all the time, which the system's own
/// does under a lock.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Who may enter now, who leads now: mutual exclusion and leader election.
#[derive(clap::Parser)]
#[command(version, about, max_term_width = 100, propagate_version = true)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

/// 0: all promises kept. 1: a promise was broken. 2: usage or environment. `lock` and `elect` have
/// their own, and pass on their command's.
fn main() -> ExitCode {
    let args = Args::parse();
    match args.command.run::<Args>() {
        Ok(Outcome::Kept) => ExitCode::SUCCESS,
        Ok(Outcome::Broken) => ExitCode::from(1),
        Ok(Outcome::Exit(code)) => ExitCode::from(code),
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("vez: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whoever read our output has read enough.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}
