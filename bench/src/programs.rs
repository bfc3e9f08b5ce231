//! Programs that a measurement starts.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// A program that does not outlive its measurement.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The tool itself, built as it is given to people.
pub(crate) fn vez() -> anyhow::Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--package", "vez"])
        .current_dir(&root)
        .status()?;
    anyhow::ensure!(built.success(), "vez cannot be built");
    Ok(root.join("target/release/vez"))
}
