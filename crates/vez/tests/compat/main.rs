//! Clients that nobody here wrote, with each kind of server: their answers are on file, as etcd
//! gave them. `UPDATE=1` writes them anew, from the first kind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "../../../vez-client/tests/server/mod.rs"]
mod server;

use server::with_each;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compat")
}

/// A python that has the package, if any: `VEZ_TEST_PYTHON`, or the one in the path.
fn python(package: &str) -> Option<String> {
    let python = std::env::var("VEZ_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let found = Command::new(&python).args(["-c", &format!("import {package}")]).output();
    found.is_ok_and(|output| output.status.success()).then_some(python)
}

#[test]
fn python_etcd3_gets_the_answers_that_etcd_gives() {
    let Some(python) = python("etcd3") else {
        eprintln!(
            "LEFT OUT: python has no etcd3 here; in a virtual environment that VEZ_TEST_PYTHON \
             names: pip install etcd3==0.12.0 tenacity==6.3.1 'protobuf<3.21'"
        );
        return;
    };
    with_each("compat-python", |server| {
        let endpoint = server.endpoint();
        let port = endpoint.rsplit(':').next().unwrap();
        let script = folder().join("python_etcd3.py");
        let output = Command::new(&python).arg(script).arg(port).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        let file = folder().join("python_etcd3.jsonl");
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&file, &said).unwrap();
        }
        assert_eq!(said, fs::read_to_string(&file).unwrap());
    });
}
