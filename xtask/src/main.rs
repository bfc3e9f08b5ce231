//! `cargo xtask`: the project's chores.

mod bench;
mod gate;
mod mutants;
mod setup;
#[cfg(test)]
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test              run every test
  verify            the whole read-only gate: format, lints, docs, house rules, tests, licences
                    (--without-tests leaves the tests out)
  bench sim         how fast the simulator is, as ratios (--quick for a first look)
  bench check       how fast the checker is, against stateright and SPIN (--quick)
  bench cluster     three members of the service against three of etcd and of ZooKeeper, and how
                    long a leader that goes is missed (--quick, --only load|gone); or --soak
                    MINUTES: random faults
  bench lab         how smooth the lab's page is, in a real browser (--quick)
  bench log         how fast the durable log's engine is, against others (--quick)
  bench net         how fast real processes are, against bare sockets, and a soak (--quick)
  bench serve       how fast the service is, against etcd, ZooKeeper and Redis (--quick)
  mutants           make the classic mistakes on purpose and see that the tests notice
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["test"] => gate::test(),
        ["verify"] => gate::verify(gate::Tests::Run),
        ["verify", "--without-tests"] => gate::verify(gate::Tests::LeaveOut),
        ["bench", ..] => bench::bench(&args[1..]),
        ["mutants"] => mutants::mutants(),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
