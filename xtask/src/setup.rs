//! What some tests need beyond Rust: installed where that is possible, said plainly where not.

use std::process::{Command, Stdio};

struct Need {
    /// How to see that it is there, and how to ask these for their version.
    programs: &'static [&'static str],
    version: &'static str,
    /// Debian's packages that bring it.
    packages: &'static [&'static str],
    what_for: &'static str,
}

const NEEDS: &[Need] = &[
    Need {
        programs: &["chromium", "chromedriver"],
        version: "--version",
        packages: &["chromium", "chromium-driver"],
        what_for: "the tests of the lab's page in a real browser",
    },
    Need {
        programs: &["ip"],
        version: "-V",
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
}

impl Need {
    fn is_there(&self) -> bool {
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
