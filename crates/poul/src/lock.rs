//! One writer for each result: a lock beside it, held while work goes on.
//!
//! The lock is the system's own on the file `RESULT.lock`, or `.lock` in a folder of results, so it ends with the process that holds it,
//! however that ends; what the file says is for people.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::output::target_of;
use crate::{Error, Result};

/// What every lock says first.
const PROCESS: &str = "process ";

/// Holds a result for this process until it is dropped.
#[derive(Debug)]
pub struct OutputLock {
    path: PathBuf,
    /// Locked as long as it is open. None where the file system knows no locks.
    file: Option<File>,
    /// Folders that were made for it, the outermost first: they go again if nothing was put there.
    made: Vec<PathBuf>,
}

impl OutputLock {
    /// Holds the result at `path` and what belongs to it. Someone else's living work is an error that names it.
    ///
    /// Links are followed: whoever writes by another name is kept out too.
    pub fn hold(result: impl AsRef<Path>) -> Result<Self> {
        let result = result.as_ref();
        // What will be refused as a result gets no lock; a folder beside a result, such as a checkpoint, does.
        let target = match result.is_dir() {
            true => result.to_path_buf(),
            false => target_of(result, "give the name of a file")?,
        };
        let mut name = target.into_os_string();
        name.push(".lock");
        Self::lock(result, name.into())
    }

    /// Holds all results in a folder, which is made if it is not there.
    pub fn hold_folder(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let is_missing = |above: &&Path| !above.as_os_str().is_empty() && !above.exists();
        let mut made: Vec<PathBuf> =
            folder.ancestors().take_while(is_missing).map(Path::to_path_buf).collect();
        made.reverse();
        std::fs::create_dir_all(folder).map_err(|error| Error::output(folder, error))?;
        let mut held = Self::lock(folder, folder.join(".lock")).inspect_err(|_| remove_empty(&made))?;
        held.made = made;
        Ok(held)
    }

    fn lock(result: &Path, path: PathBuf) -> Result<Self> {
        // As files themselves say it.
        let failed = |error: io::Error| match error.kind() {
            kind @ io::ErrorKind::NotFound => {
                Error::output(result, io::Error::new(kind, "there is no such folder"))
            }
            kind => Error::output(result, kind.into()),
        };
        loop {
            let options = File::options().read(true).write(true).create(true).truncate(false).open(&path);
            let mut file = options.map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(std::fs::TryLockError::WouldBlock) => return Err(held(result, &mut file)),
                Err(std::fs::TryLockError::Error(_)) => {
                    let _ = std::fs::remove_file(&path);
                    return Ok(Self { path, file: None, made: Vec::new() });
                }
            }
            // Whoever held it before deletes the file when it ends; a lock on a deleted file keeps nobody out.
            if is_at(&file, &path) {
                let found = said(&mut file);
                if !(found.is_empty() || found.starts_with(PROCESS)) {
                    let error = Error::usage("a file of that name is in the way, and it is not one of ours")
                        .file(&path);
                    return Err(error.hint("move it, or write to another file"));
                }
                file.set_len(0).map_err(failed)?;
                file.seek(SeekFrom::Start(0)).map_err(failed)?;
                writeln!(file, "{}", this_process()).map_err(failed)?;
                return Ok(Self { path, file: Some(file), made: Vec::new() });
            }
        }
    }
}

impl Drop for OutputLock {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _ = std::fs::remove_file(&self.path);
        }
        remove_empty(&self.made);
    }
}

fn remove_empty(made: &[PathBuf]) {
    made.iter().rev().for_each(|folder| drop(std::fs::remove_dir(folder)));
}

fn this_process() -> String {
    format!("{PROCESS}{}", std::process::id())
}

/// What a lock says of its holder.
fn said(file: &mut File) -> String {
    let mut holder = Vec::new();
    let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.take(100).read_to_end(&mut holder));
    match read {
        Ok(_) => String::from_utf8_lossy(&holder).trim().to_owned(),
        Err(_) => String::new(),
    }
}

fn held(result: &Path, file: &mut File) -> Error {
    let what = match said(file) {
        own if own == this_process() => {
            let error = Error::usage("this command is writing there already").file(result);
            return error.hint("give every result a name of its own");
        }
        holder if holder.is_empty() => "another command is working on it".to_owned(),
        holder => format!("another command is working on it ({holder})"),
    };
    Error::usage(what).file(result).hint("wait until it ends, or write to another file")
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
        assert!(error.to_string().ends_with("this command is writing there already"), "{error}");
        std::fs::write(folder.path().join("m.poul.lock"), "process 1\n").unwrap();
        let error = OutputLock::hold(&result).unwrap_err();
        assert!(error.to_string().ends_with("another command is working on it (process 1)"), "{error}");
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
    fn a_file_that_is_no_lock_of_ours_stays() {
        let folder = tempfile::tempdir().unwrap();
        let foreign = folder.path().join("Cargo.lock");
        for content in [&b"version = 4\n"[..], b"\xff\xfe"] {
            std::fs::write(&foreign, content).unwrap();
            let error = OutputLock::hold(folder.path().join("Cargo")).unwrap_err();
            assert!(error.to_string().contains("Cargo.lock: a file of that name is in the way"), "{error}");
            assert_eq!(std::fs::read(&foreign).unwrap(), content);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_and_what_it_leads_to_are_one_result() {
        let folder = tempfile::tempdir().unwrap();
        let [real, link] = ["m.poul", "newest"].map(|name| folder.path().join(name));
        std::os::unix::fs::symlink("m.poul", &link).unwrap();
        let held = OutputLock::hold(&link).unwrap();
        assert!(OutputLock::hold(&real).is_err());
        drop(held);
        assert!(OutputLock::hold(&real).is_ok());
        // What is no file gets no lock beside it.
        assert!(OutputLock::hold("/dev/null").is_err() && !Path::new("/dev/null.lock").exists());
    }

    #[test]
    fn folders_are_held_from_before_they_are_there_and_stay_if_something_is_in_them() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b");
        let first = OutputLock::hold_folder(&folder).unwrap();
        assert!(OutputLock::hold_folder(&folder).is_err());
        drop(first);
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
        let second = OutputLock::hold_folder(&folder).unwrap();
        std::fs::write(folder.join("result"), "whole").unwrap();
        drop(second);
        let left: Vec<_> = std::fs::read_dir(&folder).unwrap().flatten().map(|e| e.file_name()).collect();
        assert_eq!(left, ["result"]);
        // A folder that was there stays, empty or not.
        drop(OutputLock::hold_folder(root.path()).unwrap());
        assert!(root.path().exists());
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
