//! Random faults for as long as one likes: the test that does it for minutes, told to go on.

use std::path::Path;
use std::time::Duration;

use anyhow::ensure;

use crate::programs::cargo;

/// Its seed, and how to have it again, is what it prints first.
pub(crate) fn soak(time: Duration) -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let status = cargo()
        .args(["test", "--quiet", "--workspace", "--test", "cluster", "at_random"])
        .args(["--", "--nocapture"])
        .env("VEZ_FAULT_SECONDS", time.as_secs().to_string())
        .current_dir(root)
        .status()?;
    ensure!(status.success(), "something was wrong; see above");
    Ok(())
}
