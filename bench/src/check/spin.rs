//! The same two systems in Promela, explored by the verifier that SPIN makes of them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context;

use crate::measure::Sample;

/// A verifier, compiled and ready to run.
#[derive(Debug)]
pub(crate) struct Verifier {
    folder: PathBuf,
}

impl Verifier {
    /// Translates and compiles a model of `bench/models`, without reductions.
    pub(crate) fn new(model: &str) -> anyhow::Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = root.join("target/spin").join(model);
        std::fs::create_dir_all(&folder)?;
        let source = root.join("models").join(model).with_extension("pml");
        run(Command::new("spin").arg("-a").arg(source).current_dir(&folder))
            .context("SPIN is not installed (Debian: apt-get install spin)")?;
        let flags = ["-O3", "-DNOREDUCE", "-DSAFETY", "-w", "-o", "pan", "pan.c"];
        run(Command::new("cc").args(flags).current_dir(&folder))?;
        Ok(Self { folder })
    }

    /// How many states it finds, how long that keeps a processor busy, and that it finds nothing
    /// wrong.
    pub(crate) fn run(&self) -> anyhow::Result<Sample> {
        let script = "./pan -m100000 -w24 && times";
        let report = run(Command::new("sh").args(["-c", script]).current_dir(&self.folder))?;
        anyhow::ensure!(report.contains("errors: 0"), "SPIN finds an error: {report}");
        let stored = report.lines().find_map(|line| line.trim().strip_suffix(" states, stored"));
        let messages = stored.context("SPIN does not say how many states there are")?.parse()?;
        // The last line is of the shell's children: in the program, and for it in the system.
        let spent = report.lines().last().and_then(|line| line.split_whitespace().map(time).sum());
        Ok(Sample { messages, took: spent.context("the shell does not say how long it took")? })
    }
}

/// As the shell writes it: `0m6.10s`.
fn time(text: &str) -> Option<Duration> {
    let (minutes, seconds) = text.strip_suffix('s')?.split_once('m')?;
    let seconds = 60.0 * minutes.parse::<f64>().ok()? + seconds.parse::<f64>().ok()?;
    Some(Duration::from_secs_f64(seconds))
}

fn run(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output()?;
    anyhow::ensure!(output.status.success(), "{command:?} failed");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
