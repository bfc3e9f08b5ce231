//! `cargo xtask bench sim|check|cluster|lab|log|net|serve`: how fast things are, and against what.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

/// Builds the bench and runs it with these arguments; fails if a target is missed. It is a
/// workspace of its own, with settings of its own that count only where it is run: what it
/// compares us with must not burden a normal build.
pub(crate) fn bench(args: &[String]) -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the root")?;
    let status = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--release", "--manifest-path", "Cargo.toml", "--"])
        .args(args)
        .current_dir(root.join("bench"))
        .status()
        .context("cannot start cargo")?;
    ensure!(status.success(), "the bench failed, or missed a target");
    Ok(())
}
