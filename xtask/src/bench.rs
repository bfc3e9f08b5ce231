//! `cargo xtask bench sim`: how fast the simulator is, against bare loops and other simulators.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Context;

/// Builds the bench and runs it with these arguments. It is a workspace of its own, with settings
/// of its own that count only where it is run: what it compares us with must not burden ours.
pub(crate) fn bench(args: &[String]) -> anyhow::Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the root")?;
    let status = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--release", "--manifest-path", "Cargo.toml", "--"])
        .args(args)
        .current_dir(root.join("bench"))
        .status()
        .context("cannot start cargo")?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2);
    Ok(ExitCode::from(code))
}
