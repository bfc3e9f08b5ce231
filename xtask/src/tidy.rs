//! The house rules, as tests. Each says why it is a rule.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::gate::root;

/// Every file git knows, or would know if it were added.
fn files() -> Vec<PathBuf> {
    let output = Command::new("git")
        .current_dir(root())
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .output()
        .expect("git is there");
    let list = String::from_utf8(output.stdout).expect("paths are UTF-8");
    list.lines().map(PathBuf::from).filter(|path| root().join(path).is_file()).collect()
}

/// What people wrote; what tools made of it has their style.
fn sources(extension: &str) -> Vec<(PathBuf, String)> {
    let by_hand = |path: &Path| path.iter().all(|part| part != "generated");
    let of_kind =
        |path: &PathBuf| by_hand(path) && path.extension().is_some_and(|found| found == extension);
    let text = |path: PathBuf| {
        let text = fs::read_to_string(root().join(&path)).unwrap();
        (path, text)
    };
    files().into_iter().filter(of_kind).map(text).collect()
}

fn algorithms() -> Vec<(PathBuf, String)> {
    let families =
        ["mutex", "election"].map(|family| format!("crates/vez-algorithms/src/{family}"));
    let of_family = |path: &Path| families.iter().any(|family| path.starts_with(family));
    let is_algorithm = |text: &str| text.contains("const META: Meta");
    sources("rs").into_iter().filter(|(path, text)| of_family(path) && is_algorithm(text)).collect()
}

#[track_caller]
fn assert_none(found: &[String], rule: &str) {
    assert!(found.is_empty(), "{rule}:\n  {}", found.join("\n  "));
}

#[test]
fn files_can_be_read_in_one_sitting() {
    let mut long = Vec::new();
    for extension in ["rs", "js", "css"] {
        for (path, text) in sources(extension) {
            let lines = text.lines().count();
            if lines > 600 {
                long.push(format!("{} has {lines} lines", path.display()));
            }
        }
    }
    assert_none(&long, "a file has at most 600 lines");
}

#[test]
fn an_algorithm_fits_on_four_pages() {
    assert!(!algorithms().is_empty());
    let long = algorithms().into_iter().filter(|(_, text)| text.lines().count() > 200);
    let long: Vec<_> = long.map(|(path, _)| path.display().to_string()).collect();
    assert_none(&long, "an algorithm has at most 200 lines");
}

#[test]
fn an_algorithm_is_called_like_its_file_and_has_its_rules_beside_it() {
    let mut wrong = Vec::new();
    for (path, text) in algorithms() {
        let stem = path.file_stem().unwrap().to_str().unwrap().replace('_', "-");
        if !text.contains(&format!("name: \"{stem}\"")) {
            wrong.push(format!("{} does not name itself {stem}", path.display()));
        }
        if !root().join(path.with_extension("toml")).is_file() {
            wrong.push(format!("{} has no rules", path.display()));
        }
    }
    assert_none(&wrong, "names agree up to the dash, and rules lie beside the code");
}

#[test]
fn nothing_is_left_half_done() {
    // Written in two parts, so that this file does not find itself.
    let banned = [
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("#[", "ignore"),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
    ];
    let mut found = Vec::new();
    for (path, text) in sources("rs") {
        for (number, line) in text.lines().enumerate() {
            if banned.iter().any(|word| line.contains(word)) {
                found.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    assert_none(&found, "no stubs, ignored tests or notes to self");
}

#[test]
fn lines_fit_beside_each_other() {
    let mut long = Vec::new();
    for (path, text) in sources("rs") {
        for (number, line) in text.lines().enumerate() {
            // A text in quotes that must not be broken is its own excuse.
            if line.chars().count() > 100 && !line.contains('"') {
                long.push(format!("{}:{}", path.display(), number + 1));
            }
        }
    }
    assert_none(&long, "a line has at most 100 columns");
}

#[test]
fn every_crate_opens_with_its_invariant() {
    let mut silent = Vec::new();
    for (path, text) in sources("rs") {
        let is_lib = path.ends_with("src/lib.rs") && path.starts_with("crates");
        let head: String = text.lines().take_while(|line| line.starts_with("//!")).collect();
        if is_lib && !head.contains("**Invariant:**") {
            silent.push(path.display().to_string());
        }
    }
    assert_none(&silent, "a crate says what it never does");
}

#[test]
fn every_file_says_what_it_is_for_or_is_named_by_its_only_type() {
    let mut silent = Vec::new();
    for (path, text) in sources("rs") {
        let is_algorithm = path.starts_with("crates/vez-algorithms/src");
        if is_algorithm && !text.starts_with("//!") {
            silent.push(path.display().to_string());
        }
    }
    assert_none(&silent, "an algorithm's file opens with its source and idea");
}

/// Direction of dependency is architecture: what a crate may use is written down here.
const ALLOWED: &[(&str, &[&str])] = &[
    ("vez-core", &["serde"]),
    ("vez-algorithms", &["serde", "vez-core"]),
    ("vez-sim", &["libm", "serde", "serde_json", "vez-core"]),
    ("vez-check", &["serde", "thiserror", "vez-core"]),
    ("vez-draw", &["plotters", "plotters-backend", "serde", "serde_json", "vez-core", "vez-sim"]),
    (
        "vez-net",
        &[
            "postcard",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
            "toml",
            "vez-core",
            "vez-sim",
            "vez-tls",
        ],
    ),
    ("vez-tls", &["rustls", "thiserror", "tokio", "tokio-rustls", "tokio-util", "tracing"]),
    ("vez-http2", &["bytes"]),
    ("vez-journal", &["crc32fast", "rustix", "thiserror"]),
    ("vez-api", &["bytes", "prost", "tonic", "tonic-prost"]),
    (
        "vez-server",
        &[
            "bytes",
            "crc32fast",
            "futures-util",
            "http-body",
            "hyper-util",
            "openraft",
            "prost",
            "rand",
            "ring",
            "thiserror",
            "tokio",
            "tokio-stream",
            "tonic",
            "tracing",
            "vez-api",
            "vez-http2",
            "vez-journal",
            "vez-tls",
        ],
    ),
    (
        "vez-client",
        &[
            "bytes",
            "hyper-util",
            "thiserror",
            "tokio",
            "tokio-stream",
            "tonic",
            "vez-api",
            "vez-tls",
        ],
    ),
    ("vez-numbers", &["libm", "num-bigint", "num-integer", "serde", "vez-core"]),
];

#[test]
fn crates_depend_only_downwards() {
    for (name, allowed) in ALLOWED {
        let text = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = toml::from_str(&text).unwrap();
        let dependencies = manifest["dependencies"].as_table().unwrap();
        let extra: Vec<_> =
            dependencies.keys().filter(|key| !allowed.contains(&key.as_str())).cloned().collect();
        assert_none(&extra, &format!("{name} may depend on {allowed:?} only"));
    }
}

#[test]
fn every_crate_takes_the_workspace_lints() {
    let mut free = Vec::new();
    for (path, text) in sources("toml") {
        let is_member = path.ends_with("Cargo.toml")
            && (path.starts_with("crates") || path.starts_with("xtask"));
        if is_member && !text.contains("[lints]\nworkspace = true") {
            free.push(path.display().to_string());
        }
    }
    assert_none(&free, "lints are the workspace's");
}

#[test]
fn no_path_of_anybodys_machine_is_in_the_tree() {
    let marks = [
        concat!("/ho", "me/"),
        concat!("/wo", "rk/"),
        concat!("/tm", "p/"),
        concat!("../sha", "red"),
    ];
    let mut found = Vec::new();
    for path in files() {
        let Ok(text) = fs::read_to_string(root().join(&path)) else { continue };
        for (number, line) in text.lines().enumerate() {
            if marks.iter().any(|mark| line.contains(mark)) {
                found.push(format!("{}:{}", path.display(), number + 1));
            }
        }
    }
    assert_none(&found, "the project stands on its own");
}
