//! What is made of files, and made anew when they change.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::pem::Error;

pub(crate) struct Renewed<T> {
    paths: Vec<PathBuf>,
    load: Box<dyn Fn() -> Result<T, Error> + Send + Sync>,
    seen: Mutex<Seen<T>>,
}

struct Seen<T> {
    /// As the files were before they were last read: a change in between is seen the next time.
    marks: Vec<Option<Mark>>,
    made: Arc<T>,
}

/// Differs when a file has been written or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    inode: u64,
    length: u64,
    modified: (i64, i64),
}

impl<T> Renewed<T> {
    pub(crate) fn load(
        paths: Vec<PathBuf>,
        load: impl Fn() -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let marks = marks(&paths);
        let made = Arc::new(load()?);
        Ok(Self { paths, load: Box::new(load), seen: Mutex::new(Seen { marks, made }) })
    }

    pub(crate) fn now(&self) -> Arc<T> {
        let marks = marks(&self.paths);
        // Both fields are set by assignments that cannot panic.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.marks != marks {
            seen.marks = marks;
            match (self.load)() {
                Ok(made) => {
                    tracing::info!("certificates read anew: {}", self.paths[0].display());
                    seen.made = Arc::new(made);
                }
                Err(error) => tracing::warn!("certificates changed, but not used yet: {error}"),
            }
        }
        Arc::clone(&seen.made)
    }
}

fn marks(paths: &[PathBuf]) -> Vec<Option<Mark>> {
    let mark = |path: &PathBuf| {
        let found = fs::metadata(Path::new(path)).ok()?;
        let modified = (found.mtime(), found.mtime_nsec());
        Some(Mark { inode: found.ino(), length: found.len(), modified })
    };
    paths.iter().map(mark).collect()
}

impl<T> fmt::Debug for Renewed<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Renewed").field("paths", &self.paths).finish_non_exhaustive()
    }
}
