//! How fast everything is, and against what: ratios measured in one run, side by side.

mod bare;
mod calm;
mod check;
mod cluster;
mod counting;
mod lab;
mod log;
mod measure;
mod net;
mod ours;
mod peers;
mod programs;
mod serve;
mod sim;
mod sizes;
mod table;
mod textbook;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str =
    "usage: vez-bench sim|check|cluster|lab|log|net|serve [--quick] [--format table|json]
       vez-bench serve --only own|line|watch|held [--quick] [--format table|json]
       vez-bench cluster --only load|gone [--quick] [--format table|json]
       vez-bench cluster --soak MINUTES";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Succeeds if every target is met.
fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let mut words = arguments.iter().map(String::as_str);
    let (mut quick, mut json) = (false, false);
    let measure: fn(sim::Scale) -> table::Table = match words.next() {
        Some("sim") => sim::measure,
        Some("check") => check::measure,
        Some("cluster") if words.clone().next() == Some("--soak") => {
            let minutes: Option<u64> = words.nth(1).and_then(|word| word.parse().ok());
            let (Some(minutes), None) = (minutes, words.next()) else { anyhow::bail!(USAGE) };
            cluster::soak(Duration::from_secs(60 * minutes))?;
            return Ok(ExitCode::SUCCESS);
        }
        Some("cluster") if words.clone().next() == Some("--only") => match words.nth(1) {
            Some("load") => |scale| cluster::measure(&[cluster::Part::Load], scale),
            Some("gone") => |scale| cluster::measure(&[cluster::Part::Gone], scale),
            _ => anyhow::bail!(USAGE),
        },
        Some("cluster") => |scale| cluster::measure(&cluster::Part::ALL, scale),
        Some("lab") => lab::measure,
        Some("log") => log::measure,
        Some("net") => net::measure,
        Some("serve") if words.clone().next() == Some("--only") => match words.nth(1) {
            Some("own") => |scale| serve::measure(&[serve::Part::Own], scale),
            Some("line") => |scale| serve::measure(&[serve::Part::Line], scale),
            Some("watch") => |scale| serve::measure(&[serve::Part::Watch], scale),
            Some("held") => |scale| serve::measure(&[serve::Part::Held], scale),
            _ => anyhow::bail!(USAGE),
        },
        Some("serve") => |scale| serve::measure(&serve::Part::ALL, scale),
        // One of the processes that are measured: this program, started again.
        Some("process") => return net::run(&arguments[1..]).map(|()| ExitCode::SUCCESS),
        // By itself, so that nothing else is in memory.
        Some("resident") => {
            check::print_resident(words.next().unwrap_or_default())?;
            return Ok(ExitCode::SUCCESS);
        }
        _ => anyhow::bail!(USAGE),
    };
    while let Some(word) = words.next() {
        match (word, if word == "--format" { words.next() } else { None }) {
            ("--quick", None) => quick = true,
            ("--format", Some("json")) => json = true,
            ("--format", Some("table")) => json = false,
            _ => anyhow::bail!(USAGE),
        }
    }
    let table = measure(sim::Scale { quick });
    let mut out = io::stdout().lock();
    if json {
        table.print_json(&mut out)?;
    } else {
        table.print(&mut out)?;
    }
    out.flush()?;
    Ok(ExitCode::from(u8::from(!table.all_met())))
}
