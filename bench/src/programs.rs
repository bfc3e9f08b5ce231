//! Programs that a measurement starts.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::OnceLock;

/// A program that does not outlive its measurement.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Cargo as it is called by hand: what it tells this program of its package would have some of the
/// tool's crates built again.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env!("CARGO"));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// The tool itself, built as it is given to people.
pub(crate) fn vez() -> anyhow::Result<PathBuf> {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    if let Some(built) = BUILT.get() {
        return Ok(built.clone());
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let built = cargo()
        .args(["build", "--quiet", "--release", "--package", "vez"])
        .current_dir(&root)
        .status()?;
    anyhow::ensure!(built.success(), "vez cannot be built");
    // A copy, so that whoever builds again meanwhile does not change what is measured.
    let (fresh, own) = (root.join("target/release/vez"), root.join("target/measured/vez"));
    let beside = own.with_extension(std::process::id().to_string());
    std::fs::create_dir_all(root.join("target/measured"))?;
    std::fs::copy(fresh, &beside)?;
    std::fs::rename(beside, &own)?;
    Ok(BUILT.get_or_init(|| own).clone())
}
