//! Writes every picture of every test run into a directory, to be looked at:
//! `cargo run -p vez-draw --example gallery -- DIRECTORY`.

#[path = "../tests/common/mod.rs"]
mod common;

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = PathBuf::from(env::args_os().nth(1).ok_or("expected a directory")?);
    fs::create_dir_all(&directory)?;
    for made in common::gallery() {
        let run = made.run();
        let files = [
            ("svg", vez_draw::svg(&run)),
            ("html", vez_draw::html(&run)),
            ("mmd", vez_draw::mermaid(&run)),
            ("jsonl", vez_draw::jsonl(&run)),
            ("shiviz.txt", vez_draw::shiviz(&run)),
            ("story.txt", vez_draw::story(&run).join("\n") + "\n"),
        ];
        for (extension, text) in files {
            fs::write(directory.join(format!("{}.{extension}", made.name)), text)?;
        }
    }
    Ok(())
}
