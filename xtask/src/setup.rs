//! What some tests need beyond Rust: installed where that is possible, said plainly where not.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::gate::{cargo_afresh, root};

struct Need {
    /// How to see that it is there, and how to ask these for their version.
    programs: &'static [&'static str],
    version: &'static str,
    /// What must be beside them.
    file: Option<&'static str>,
    /// Debian's packages that bring it.
    packages: &'static [&'static str],
    what_for: &'static str,
}

const NEEDS: &[Need] = &[
    Need {
        programs: &["chromium", "chromedriver"],
        version: "--version",
        file: None,
        packages: &["chromium", "chromium-driver"],
        what_for: "the tests of the lab's page in a real browser",
    },
    Need {
        programs: &["etcd"],
        version: "--version",
        file: None,
        packages: &["etcd-server", "etcd-client"],
        what_for: "the tests of locks and elections with etcd",
    },
    Need {
        programs: &["protoc"],
        version: "--version",
        file: Some("/usr/include/google/protobuf/descriptor.proto"),
        packages: &["protobuf-compiler", "libprotobuf-dev"],
        what_for: "the tests of the service with the etcd-client crate",
    },
    Need {
        programs: &["faketime"],
        version: "--version",
        file: None,
        packages: &["faketime"],
        what_for: "the test of leases while somebody sets the clock",
    },
    Need {
        programs: &["ip"],
        version: "-V",
        file: None,
        packages: &["iproute2"],
        what_for: "the tests of real processes on cables that are pulled",
    },
];

/// Installs what is missing. A test that still misses something says so and leaves itself out.
pub(crate) fn prepare() {
    let mut is_updated = false;
    for need in NEEDS {
        if need.is_there() {
            continue;
        }
        if !is_updated {
            apt(&["update", "-q"]);
            is_updated = true;
        }
        let install = ["install", "-q", "-y", "--no-install-recommends"];
        apt(&[&install[..], need.packages].concat());
        if !need.is_there() {
            eprintln!(
                "xtask: {} will be left out: they need {}, which could not be installed from here; \
                 on Debian: apt-get install {}",
                need.what_for,
                need.programs.join(" and "),
                need.packages.join(" ")
            );
        }
    }
    clients();
}

/// Other people's clients of the service, under `target/clients`.
fn clients() {
    let kept = root().join("target/clients");
    let python = kept.join("python");
    if !python.join("ready").exists() {
        let pip = python.join("bin/pip");
        let quiet = "--disable-pip-version-check";
        let made = runs(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&python))
            && runs(Command::new(pip).args(["install", "-q", quiet]).args(PYTHON_CLIENT));
        if made {
            // The mark of a whole installation; without it the next run begins anew.
            let _ = fs::write(python.join("ready"), "");
        } else {
            eprintln!(
                "xtask: the test of the service with python's etcd3 will be left out: it needs \
                 python3 with venv, and PyPI (on Debian: apt-get install python3-venv)"
            );
        }
    }
    let manifest = root().join("clients/etcd-crate/Cargo.toml");
    let mut build = cargo_afresh();
    build.args(["build", "--quiet", "--locked", "--manifest-path"]).arg(manifest);
    if !runs(build.arg("--target-dir").arg(&kept)) {
        eprintln!("xtask: the test of the service with the etcd-client crate will be left out");
    }
}

/// What etcd3's last release works with.
const PYTHON_CLIENT: &[&str] = &["etcd3==0.12.0", "tenacity==6.3.1", "protobuf<3.21"];

fn runs(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).status().is_ok_and(|status| status.success())
}

impl Need {
    fn is_there(&self) -> bool {
        self.file.is_none_or(|file| Path::new(file).exists()) && self.programs_are_there()
    }

    fn programs_are_there(&self) -> bool {
        self.programs.iter().all(|program| {
            let mut command = Command::new(program);
            let quiet = command.arg(self.version).stdout(Stdio::null()).stderr(Stdio::null());
            quiet.status().is_ok_and(|status| status.success())
        })
    }
}

/// What becomes of it shows in whether the program is there afterwards.
fn apt(args: &[&str]) {
    eprintln!("xtask: apt-get {}", args.join(" "));
    let mut command = Command::new("apt-get");
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
    let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
}
