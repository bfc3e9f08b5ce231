//! What must hold before anything lands.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::setup;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tests {
    Run,
    LeaveOut,
}

pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lies in the workspace").to_owned()
}

/// Every test there is; first what some of them need beyond Rust.
pub(crate) fn test() -> anyhow::Result<()> {
    setup::prepare();
    cargo(&["test", "--workspace", "--all-targets"])?;
    // `--all-targets` leaves the examples in the documentation out.
    cargo(&["test", "--workspace", "--doc"])
}

pub(crate) fn verify(tests: Tests) -> anyhow::Result<()> {
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    run(cargo_command(&["doc", "--workspace", "--no-deps", "--document-private-items"])
        .env("RUSTDOCFLAGS", "-D warnings"))?;
    page()?;
    match tests {
        Tests::Run => test()?,
        // The house rules are tests too, but they are the gate's own.
        Tests::LeaveOut => cargo(&["test", "--package", "xtask"])?,
    }
    deny()
}

/// The lab's page has types, in comments; who has Node has a compiler that reads them.
fn page() -> anyhow::Result<()> {
    let mut version = Command::new("npx");
    version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    if !version.status().is_ok_and(|status| status.success()) {
        eprintln!("xtask: Node is not installed: the types of the lab's page were not checked");
        return Ok(());
    }
    let mut command = Command::new("npx");
    command.current_dir(root().join("crates/vez/lab"));
    command.args(["--yes", "--package", TYPESCRIPT, "tsc", "--project", "tsconfig.json"]);
    run(&mut command)
}

const TYPESCRIPT: &str = "typescript@5.9.3";

/// Licences, bans and sources always; advisories where their database can be reached.
fn deny() -> anyhow::Result<()> {
    if !is_installed("deny") {
        eprintln!("xtask: cargo-deny is not installed: licences and advisories were not checked");
        return Ok(());
    }
    cargo(&["deny", "--workspace", "check", "licenses", "bans", "sources"])?;
    if cargo(&["deny", "--workspace", "check", "advisories"]).is_err() {
        bail!("advisories were found, or their database cannot be reached (see above)");
    }
    Ok(())
}

fn is_installed(subcommand: &str) -> bool {
    let mut command = cargo_command(&[subcommand, "--version"]);
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn cargo(args: &[&str]) -> anyhow::Result<()> {
    run(&mut cargo_command(args))
}

fn cargo_command(args: &[&str]) -> Command {
    let mut command = cargo_afresh();
    command.current_dir(root()).args(args);
    command
}

/// Cargo as it is called by hand. What it tells us of the package that we are would be passed on,
/// and crates whose build scripts look at such would be built again, and all that need them.
pub(crate) fn cargo_afresh() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs a command with its output shown, and says which one failed.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let words: Vec<String> =
        command.get_args().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let program = Path::new(command.get_program()).file_stem().unwrap_or_default();
    let words = format!("{} {}", program.to_string_lossy(), words.join(" "));
    eprintln!("xtask: {words}");
    let status = command.status().with_context(|| format!("cannot run {words}"))?;
    if !status.success() {
        bail!("`{words}` failed");
    }
    Ok(())
}
