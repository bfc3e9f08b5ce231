//! The binary, run as a person would from the project's folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn vez(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vez"));
    command.current_dir(root()).args(args).env("LC_ALL", "C").output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What it prints; it exits with 0 and complains of nothing.
#[track_caller]
pub(crate) fn succeeds(args: &[&str]) -> String {
    let output = vez(args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
    assert!(output.stderr.is_empty(), "{args:?} says {}", text(&output.stderr));
    text(&output.stdout)
}

/// A folder of a test's own.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}
