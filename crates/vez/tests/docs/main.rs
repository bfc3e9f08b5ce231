//! The docs: pages, tables and pictures that the tool makes of itself, and commands in them that
//! are run. `UPDATE=1 cargo test -p vez --test docs` rewrites what is made; read the diff before
//! you commit it.

mod checks;
mod pages;
mod readme;

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
