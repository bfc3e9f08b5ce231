//! Where results go.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use anyhow::Context as _;

/// Writes a result whole: to a file by way of a temporary one, so that none is ever half-written,
/// or to standard output.
pub(crate) fn write(target: Option<&Path>, text: &str) -> anyhow::Result<()> {
    let Some(path) = target else {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            stdout.write_all(b"\n")?;
        }
        return Ok(stdout.flush()?);
    };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = fs::write(&part, text).and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        // Nothing more can be done about a part that cannot be removed.
        let _ = fs::remove_file(&part);
    }
    written.with_context(|| format!("cannot write {}", path.display()))
}
