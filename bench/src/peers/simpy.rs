//! `SimPy`: discrete-event simulation in Python, run by its own interpreter, which times itself.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::measure::Sample;

const MODEL: &str = include_str!("ring.py");

pub(super) fn run(uids: &[u64]) -> anyhow::Result<Sample> {
    let mut python = Command::new("python3")
        .args(["-c", MODEL])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("python3 cannot be started")?;
    let mut list = String::new();
    uids.iter().try_for_each(|uid| writeln!(list, "{uid}"))?;
    let mut input = python.stdin.take().context("python3 has no input")?;
    input.write_all(list.as_bytes())?;
    drop(input);
    let output = python.wait_with_output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}", errors.lines().last().unwrap_or("python3 failed"));
    let text = String::from_utf8(output.stdout)?;
    let (messages, seconds) = text.trim().split_once(' ').context("the model said nothing")?;
    let took = Duration::from_secs_f64(seconds.parse()?);
    Ok(Sample { messages: messages.parse()?, took })
}
