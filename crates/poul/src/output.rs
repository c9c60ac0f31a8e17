//! Files that appear whole or not at all.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::{Error, Result};

/// A file written under a temporary name beside its target and renamed by [`commit`](Self::commit).
///
/// Dropped without a commit, it leaves nothing behind and an older file at the target stays as it was.
pub struct AtomicFile {
    path: PathBuf,
    file: BufWriter<NamedTempFile>,
}

impl AtomicFile {
    /// Starts a file that will appear at `path`.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_path_buf();
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        if path.is_dir() {
            let error = io::Error::new(io::ErrorKind::IsADirectory, "a folder has that name");
            return Err(Error::output(&path, error).hint("give a file name, not a folder"));
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(".poul-");
        #[cfg(unix)]
        builder.permissions(readable());
        let file = builder.tempfile_in(folder).map_err(|error| Error::output(&path, strip_path(error)))?;
        Ok(Self { path, file: BufWriter::with_capacity(1 << 20, file) })
    }

    /// Makes the file appear under its name.
    pub fn commit(self) -> Result<()> {
        let Self { path, file } = self;
        let file = file.into_inner().map_err(|error| Error::output(&path, error.into_error()))?;
        file.persist(&path).map_err(|error| Error::output(&path, error.error))?;
        Ok(())
    }

    /// Where the file will appear.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open file, for writers that need to own one.
    pub fn try_clone(&self) -> Result<File> {
        self.file.get_ref().as_file().try_clone().map_err(|error| Error::output(&self.path, error))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Temporary files are private by default; a result should be as readable as any other file.
#[cfg(unix)]
fn readable() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    std::fs::Permissions::from_mode(0o644)
}

/// `tempfile` names its own random path in the message, which says nothing to the user.
fn strip_path(error: io::Error) -> io::Error {
    match (error.raw_os_error(), error.kind()) {
        (Some(code), _) => io::Error::from_raw_os_error(code),
        (None, kind @ io::ErrorKind::NotFound) => io::Error::new(kind, "there is no such folder"),
        (None, kind) => kind.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_appears_without_a_commit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"whole").unwrap();
        assert!(!path.exists());
        file.commit().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = AtomicFile::create("no/such/folder/a.txt").err().unwrap();
        assert_eq!(error.kind(), crate::Kind::Output);
        assert!(error.to_string().starts_with("no/such/folder/a.txt: cannot write"), "{error}");
    }
}
