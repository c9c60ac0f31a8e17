//! Whether a file is still the one that was opened: its size, when it was last written, and which file has the name.

use std::fs::{File, Metadata};
use std::path::Path;
use std::time::SystemTime;

use crate::{Error, Result};

/// What a system says of a file that somebody wrote to, cut or replaced.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FileState {
    n_bytes: u64,
    /// None where the system keeps no times. It is compared, and reaches no result.
    modified: Option<SystemTime>,
    /// The disk and the number of the file there; a file that takes another's name has another. None but on Unix.
    identity: Option<(u64, u64)>,
}

impl FileState {
    /// Of a file that is open.
    pub(crate) fn of(file: &File, path: &Path) -> Result<Self> {
        file.metadata().map(|found| Self::from(&found)).map_err(|error| Error::read(path, error))
    }

    pub(crate) fn n_bytes(&self) -> u64 {
        self.n_bytes
    }

    /// An error if the name now stands for another file, or for this one after somebody wrote to it.
    pub(crate) fn check(&self, path: &Path) -> Result<()> {
        let now = std::fs::metadata(path).map_err(|error| {
            Error::read(path, error).hint("it was there when the work began: put it back, and run again")
        })?;
        if Self::from(&now) == *self {
            return Ok(());
        }
        let error = Error::input("the data changed while they were read").file(path);
        Err(error.hint("run again once they are written"))
    }
}

impl From<&Metadata> for FileState {
    fn from(found: &Metadata) -> Self {
        #[cfg(unix)]
        let identity = {
            use std::os::unix::fs::MetadataExt;
            Some((found.dev(), found.ino()))
        };
        #[cfg(not(unix))]
        let identity = None;
        Self { n_bytes: found.len(), modified: found.modified().ok(), identity }
    }
}
