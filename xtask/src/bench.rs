//! `cargo xtask bench sim|check|cluster|lab|log|net|serve`: how fast things are, and against what.

use anyhow::{Context, ensure};

use crate::gate::{cargo_afresh, root};

/// Builds the bench and runs it with these arguments; fails if a target is missed. It is a
/// workspace of its own, with settings of its own that count only where it is run: what it
/// compares us with must not burden a normal build.
pub(crate) fn bench(args: &[String]) -> anyhow::Result<()> {
    let status = cargo_afresh()
        .args(["run", "--quiet", "--release", "--manifest-path", "Cargo.toml", "--"])
        .args(args)
        .current_dir(root().join("bench"))
        .status()
        .context("cannot start cargo")?;
    ensure!(status.success(), "the bench failed, or missed a target");
    Ok(())
}
