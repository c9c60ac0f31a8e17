//! Files that appear whole or not at all.
//!
//! What is written lies under a temporary name beside its target until it is complete and on the disk, then takes the target's name.
//! A link is followed, so that the file it points to is replaced and the link stays. `-` and `/dev/stdout` are standard output, which gets
//! everything at once at the end. Anything else that is no file (a device, a pipe) is refused: a rename would put a file in its place.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::NamedTempFile;

use crate::{Error, Result};

/// What temporary names begin with.
pub(crate) const TEMPORARY: &str = ".poul-";
/// As many links in a row as Linux follows.
const MOST_LINKS: usize = 40;
const STANDARD_OUTPUT: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// A file written under a temporary name beside its target and renamed by [`commit`](Self::commit).
///
/// Dropped without a commit, it leaves nothing behind and an older file at the target stays as it was.
pub struct AtomicFile {
    /// As the user wrote it.
    path: PathBuf,
    file: BufWriter<Pending>,
}

enum Pending {
    /// Will take this name.
    Named(NamedTempFile, PathBuf),
    /// Will be copied to standard output; has no name.
    Streamed(File),
}

impl AtomicFile {
    /// Starts a file that will appear at `path`.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if !is_standard_output(path) {
            return Self::named(path, "give the name of a file, or `-` for standard output");
        }
        let pending = tempfile::tempfile().map(Pending::Streamed).map_err(|error| Error::output(path, error));
        Ok(Self::of(path, pending?))
    }

    /// As [`create`](Self::create), for what must be a file, such as a model: standard output is refused.
    pub fn create_named(path: impl AsRef<Path>, what: &str) -> Result<Self> {
        let path = path.as_ref();
        if is_standard_output(path) {
            let error = Error::usage(format!("{what} is a file: it cannot be written to standard output"));
            return Err(error.hint("give it a name"));
        }
        Self::named(path, "give the name of a file")
    }

    /// `hint`: what to name instead of a device.
    fn named(path: &Path, hint: &str) -> Result<Self> {
        let target = target_of(path, hint)?;
        let file = temporary_beside(&target).map_err(|error| Error::output(path, strip_path(error)))?;
        Ok(Self::of(path, Pending::Named(file, target)))
    }

    fn of(path: &Path, pending: Pending) -> Self {
        Self { path: path.to_path_buf(), file: BufWriter::with_capacity(1 << 20, pending) }
    }

    /// Makes the file appear under its name, once its content is on the disk.
    pub fn commit(self) -> Result<()> {
        let Self { path, file } = self;
        let failed = |error| Error::output(&path, error);
        match file.into_inner().map_err(|error| failed(error.into_error()))? {
            Pending::Named(file, target) => {
                file.as_file().sync_all().map_err(failed)?;
                file.persist(&target).map_err(|error| failed(error.error))?;
                sync_folder(folder_of(&target));
                Ok(())
            }
            Pending::Streamed(mut file) => {
                file.seek(SeekFrom::Start(0)).map_err(failed)?;
                let mut out = io::stdout().lock();
                match io::copy(&mut file, &mut out).and_then(|_| out.flush()) {
                    // Whoever reads may stop reading, as `head` does.
                    Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(failed(error)),
                    _ => Ok(()),
                }
            }
        }
    }

    /// Where the file will appear.
    pub fn path(&self) -> &Path {
        &self.path
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

impl Write for Pending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Named(file, _) => file.write(bytes),
            Self::Streamed(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Named(file, _) => file.flush(),
            Self::Streamed(file) => file.flush(),
        }
    }
}

/// Whether a path means standard output: `-`, or what the system calls it.
pub fn is_standard_output(path: impl AsRef<Path>) -> bool {
    let path = path.as_ref();
    STANDARD_OUTPUT.iter().any(|name| path == Path::new(name))
}

/// The folder that a file is in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The name that the file will take: where links lead, a file or nothing yet. `no_device` is the hint where it is neither.
pub(crate) fn target_of(path: &Path, no_device: &str) -> Result<PathBuf> {
    let refused = |kind: io::ErrorKind, what: &str, hint: &str| {
        Err(Error::output(path, io::Error::new(kind, what.to_owned())).hint(hint))
    };
    let mut target = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        // Links of the system lead to what is open, not to names: replacing those would cut others off.
        let is_of_system = is_of_system(&target);
        match std::fs::symlink_metadata(&target) {
            Ok(found) if found.is_symlink() && !is_of_system => {
                let leads_to = std::fs::read_link(&target).map_err(|error| Error::output(path, error))?;
                target = folder_of(&target).join(leads_to);
            }
            Ok(found) if found.is_dir() => {
                let what = "a folder has that name";
                return refused(io::ErrorKind::IsADirectory, what, "give a file name, not a folder");
            }
            Ok(found) if !found.is_file() || is_of_system => {
                let what = "it is a device or a pipe, not a file";
                return refused(io::ErrorKind::InvalidInput, what, no_device);
            }
            _ => return Ok(target),
        }
    }
    refused(io::ErrorKind::InvalidInput, "its links go round in circles", "give the name of a file")
}

/// Whether a name belongs to what the system shows as files. Shared memory holds files like any disk.
fn is_of_system(path: &Path) -> bool {
    ["/dev", "/proc", "/sys"].iter().any(|folder| path.starts_with(folder)) && !path.starts_with("/dev/shm")
}

/// A new file with a temporary name, locked while its writer lives: whoever finds it unlocked may delete it.
fn temporary_beside(target: &Path) -> io::Result<NamedTempFile> {
    let folder = folder_of(target);
    clean_once(folder);
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY);
    #[cfg(unix)]
    builder.permissions(readable());
    loop {
        let file = builder.tempfile_in(folder)?;
        // A file system without locks keeps what a kill leaves.
        let _ = file.as_file().try_lock();
        // Between its creation and its lock someone who cleans may have taken it for a dead one.
        if file.path().exists() {
            return Ok(file);
        }
    }
}

/// Deletes what killed processes left in a folder, once in the life of this one.
fn clean_once(folder: &Path) {
    static CLEANED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let Ok(whole) = folder.canonicalize() else { return };
    if CLEANED.lock().unwrap_or_else(PoisonError::into_inner).insert(whole) {
        clean(folder);
    }
}

/// Deletes temporary files whose writers are dead. That is tidiness: what cannot be deleted stays.
fn clean(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let is_temporary = entry.file_name().to_string_lossy().starts_with(TEMPORARY);
        if !is_temporary || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        if let Ok(file) = File::options().write(true).open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Makes a rename last through a loss of power, where the system can.
fn sync_folder(folder: &Path) {
    #[cfg(unix)]
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
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

    fn write(path: &Path, text: &str) {
        let mut file = AtomicFile::create(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.commit().unwrap();
    }

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

    #[cfg(unix)]
    #[test]
    fn links_stay_and_what_they_lead_to_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let [real, link, chain, dangling, circle] =
            ["real/a.txt", "link", "chain", "dangling", "circle"].map(|name| folder.path().join(name));
        std::fs::create_dir(folder.path().join("real")).unwrap();
        std::fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink("real/a.txt", &link).unwrap();
        std::os::unix::fs::symlink(&link, &chain).unwrap();
        std::os::unix::fs::symlink("real/new.txt", &dangling).unwrap();
        std::os::unix::fs::symlink("circle", &circle).unwrap();
        write(&chain, "new");
        assert_eq!(std::fs::read_to_string(&real).unwrap(), "new");
        assert!(link.is_symlink() && chain.is_symlink());
        write(&dangling, "there");
        assert_eq!(std::fs::read_to_string(folder.path().join("real/new.txt")).unwrap(), "there");
        let error = AtomicFile::create(&circle).err().unwrap().to_string();
        assert!(error.contains("circles"), "{error}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn files_in_shared_memory_are_files() {
        let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return };
        let path = folder.path().join("a.txt");
        for text in ["one", "two"] {
            write(&path, text);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[cfg(unix)]
    #[test]
    fn devices_and_pipes_are_refused() {
        use std::os::unix::fs::FileTypeExt;
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/null", &link).unwrap();
        for path in [Path::new("/dev/null"), Path::new("/dev/stderr"), &socket, &link] {
            let error = AtomicFile::create(path).err().unwrap();
            assert!(error.to_string().contains("not a file"), "{error}");
            assert!(error.hint_text().unwrap().contains("standard output"));
            let error = AtomicFile::create_named(path, "a model").err().unwrap();
            assert_eq!(error.hint_text(), Some("give the name of a file"));
        }
        assert!(std::fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        assert!(link.is_symlink());
    }

    #[test]
    fn what_must_be_a_file_is_not_streamed() {
        for path in STANDARD_OUTPUT {
            let error = AtomicFile::create_named(path, "a model").err().unwrap();
            assert!(error.to_string().starts_with("a model is a file"), "{error}");
        }
    }

    #[test]
    fn what_the_dead_left_is_deleted_and_what_the_living_write_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let dead = folder.path().join(".poul-dead");
        std::fs::write(&dead, "half").unwrap();
        let mut living = temporary_beside(&folder.path().join("a")).unwrap();
        assert!(!dead.exists());
        std::fs::write(folder.path().join(".poultry"), "mine").unwrap();
        clean(folder.path());
        assert!(living.path().exists() && folder.path().join(".poultry").exists());
        living.write_all(b"whole").unwrap();
        living.persist(folder.path().join("a")).unwrap();
        assert_eq!(std::fs::read(folder.path().join("a")).unwrap(), b"whole");
    }
}
