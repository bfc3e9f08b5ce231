//! Clients in other people's hands: python's etcd3 and the etcd-client crate say the same lines of
//! vez as of etcd. `cargo xtask test` gets them ready.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::peer;
use crate::server::Server;

/// Runs a script against both servers.
fn compare(name: &str, script: impl Fn(&str) -> Command) {
    let Some(etcd) = peer::Server::etcd(name) else { return };
    let vez = Server::vez();
    let said = |endpoint: String| {
        let output = script(&endpoint).output().expect("it runs");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{name}: {error}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let (expected, found) = (said(etcd.endpoint()), said(vez.endpoint()));
    assert_eq!(found, expected, "{name}");
    assert!(10 < found.lines().count(), "{name} said next to nothing: {found}");
}

fn ready(path: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join(path);
    if path.exists() {
        return Some(path);
    }
    eprintln!("left out: no {}; `cargo xtask test` makes it", path.display());
    None
}

#[test]
fn pythons_etcd3_says_the_same() {
    let Some(mark) = ready("target/clients/python/ready") else { return };
    let python = mark.with_file_name("bin/python");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/etcd3_script.py");
    compare("etcd3", |endpoint| {
        let port = endpoint.rsplit(':').next().unwrap_or_default();
        let mut command = Command::new(&python);
        command.arg(&script).arg(port);
        command
    });
}

#[test]
fn the_etcd_client_crate_says_the_same() {
    let Some(program) = ready("target/clients/debug/etcd-crate") else { return };
    compare("etcd-client", |endpoint| {
        let mut command = Command::new(&program);
        command.arg(endpoint);
        command
    });
}
