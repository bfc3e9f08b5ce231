//! What somebody must know to take a lock away.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::standing::hex;

const FILE: &str = "dashboard-token";

/// 32 bytes of chance, in hex; a new one each time the server is started.
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Token(..)")
    }
}

impl Token {
    /// Leaves it in a directory, for its owner only.
    pub fn make(directory: &Path) -> io::Result<Self> {
        let bytes: [u8; 32] = rand::random();
        let token = Self(hex(&bytes));
        let (draft, file) = (directory.join(format!("{FILE}.new")), directory.join(FILE));
        // Anew, so that nobody else can have it open already.
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        let mut written = options.write(true).create_new(true).mode(0o600).open(&draft)?;
        writeln!(written, "{}", token.0)?;
        fs::rename(draft, file)?;
        Ok(token)
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    /// Takes as long for a good guess as for a bad one.
    pub(super) fn is(&self, given: &[u8]) -> bool {
        let differences = self.0.bytes().zip(given.iter().copied().chain(std::iter::repeat(0)));
        let difference = differences.fold(0, |all, (one, other)| all | (one ^ other));
        std::hint::black_box(difference) == 0 && given.len() == self.0.len()
    }
}
