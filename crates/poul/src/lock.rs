//! One writer for each result: a lock beside it, held while work goes on.
//!
//! The lock is the system's own on the file `RESULT.lock`, so it ends with the process that holds it, however that ends; what the
//! file says is for people.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// Holds a result for this process until it is dropped.
#[derive(Debug)]
pub struct OutputLock {
    path: PathBuf,
    /// Locked as long as it is open. None where the file system knows no locks.
    file: Option<File>,
}

impl OutputLock {
    /// Holds the result at `path` and what belongs to it. Someone else's living work is an error that names it.
    pub fn hold(result: impl AsRef<Path>) -> Result<Self> {
        let result = result.as_ref();
        let mut name = result.as_os_str().to_owned();
        name.push(".lock");
        let path = PathBuf::from(name);
        let failed = |error| Error::output(&path, error);
        loop {
            let options = File::options().read(true).write(true).create(true).truncate(false).open(&path);
            let mut file = options.map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(std::fs::TryLockError::WouldBlock) => return Err(held(result, &mut file)),
                Err(std::fs::TryLockError::Error(_)) => return Ok(Self { path, file: None }),
            }
            // Whoever held it before deletes the file when it ends; a lock on a deleted file keeps nobody out.
            if is_at(&file, &path) {
                file.set_len(0).map_err(failed)?;
                writeln!(file, "process {}", std::process::id()).map_err(failed)?;
                return Ok(Self { path, file: Some(file) });
            }
        }
    }
}

impl Drop for OutputLock {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn held(result: &Path, file: &mut File) -> Error {
    let mut holder = String::new();
    let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.take(100).read_to_string(&mut holder));
    let holder = match (read, holder.trim()) {
        (Ok(_), said) if !said.is_empty() => format!(" ({said})"),
        _ => String::new(),
    };
    Error::usage(format!("another command is working on it{holder}"))
        .file(result)
        .hint("wait until it ends, or write to another file")
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |found: std::fs::Metadata| (found.dev(), found.ino());
    let (Ok(open), Ok(named)) = (file.metadata(), std::fs::metadata(path)) else { return false };
    identity(open) == identity(named)
}

#[cfg(not(unix))]
fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_has_one_writer_and_the_dead_hold_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let result = folder.path().join("m.poul");
        let first = OutputLock::hold(&result).unwrap();
        let error = OutputLock::hold(&result).unwrap_err();
        let said = format!("another command is working on it (process {})", std::process::id());
        assert!(error.to_string().ends_with(&said), "{error}");
        assert!(OutputLock::hold(folder.path().join("other.poul")).is_ok());
        drop(first);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        // What a killed process leaves is a file that nobody has locked.
        std::fs::write(folder.path().join("m.poul.lock"), "process 1 of long ago, and more than that\n")
            .unwrap();
        let taken = OutputLock::hold(&result).unwrap();
        let text = std::fs::read_to_string(folder.path().join("m.poul.lock")).unwrap();
        assert_eq!(text, format!("process {}\n", std::process::id()));
        drop(taken);
    }

    #[test]
    fn many_at_once_take_turns() {
        let folder = tempfile::tempdir().unwrap();
        let result = folder.path().join("m.poul");
        let inside = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let Ok(_lock) = OutputLock::hold(&result) else { continue };
                        let before = inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        assert_eq!(before, 0);
                        inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                    }
                });
            }
        });
    }
}
