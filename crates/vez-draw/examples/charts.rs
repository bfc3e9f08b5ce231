//! Writes every chart of the tests into a directory, to be looked at:
//! `cargo run -p vez-draw --example charts -- DIRECTORY`.

#[path = "../tests/charts/gallery.rs"]
mod gallery;

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = PathBuf::from(env::args_os().nth(1).ok_or("expected a directory")?);
    fs::create_dir_all(&directory)?;
    for (name, chart) in gallery::gallery() {
        fs::write(directory.join(format!("{name}.svg")), chart.svg())?;
    }
    Ok(())
}
