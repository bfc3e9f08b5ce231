//! A disk that hangs when it is told to.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::server::directory;

/// A file system that can be frozen: whoever writes to it then hangs.
pub(crate) struct ColdDisk {
    image: PathBuf,
    pub(crate) place: PathBuf,
}

impl ColdDisk {
    pub(crate) fn mount() -> Option<Self> {
        let place = directory();
        fs::create_dir_all(&place).expect("a directory");
        let disk = Self { image: place.with_extension("image"), place };
        let file = fs::File::create(&disk.image).expect("a file");
        file.set_len(64 << 20).expect("it may be large");
        let made = run("mkfs.ext4", &["-q"], &disk.image)
            && Command::new("mount")
                .args(["-o", "loop"])
                .args([&disk.image, &disk.place])
                .status()
                .is_ok_and(|status| status.success());
        if made && disk.freeze() && disk.thaw() {
            return Some(disk);
        }
        eprintln!("left out: a file system cannot be frozen here");
        None
    }

    pub(crate) fn freeze(&self) -> bool {
        run("fsfreeze", &["--freeze"], &self.place)
    }

    pub(crate) fn thaw(&self) -> bool {
        run("fsfreeze", &["--unfreeze"], &self.place)
    }
}

impl Drop for ColdDisk {
    fn drop(&mut self) {
        Command::new("fsfreeze").arg("--unfreeze").arg(&self.place).output().ok();
        Command::new("umount").arg("-l").arg(&self.place).output().ok();
        fs::remove_file(&self.image).ok();
        fs::remove_dir(&self.place).ok();
    }
}

fn run(program: &str, args: &[&str], last: &Path) -> bool {
    let status = Command::new(program).args(args).arg(last).status();
    status.is_ok_and(|status| status.success())
}

/// Thaws before the server goes, which could not end otherwise.
pub(crate) struct Thaw<'a>(pub(crate) &'a ColdDisk);

impl Drop for Thaw<'_> {
    fn drop(&mut self) {
        self.0.thaw();
    }
}
