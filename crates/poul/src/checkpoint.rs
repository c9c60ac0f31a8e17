//! A folder beside a result in which long work leaves what it has done, so that it goes on after it was stopped.
//!
//! `work.json` says what the work is; every other file is an entry that the work named, with a checksum. Files appear
//! whole or not at all, so a kill at any moment leaves a folder that can be gone on from.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AtomicFile, Error, Progress, Result};

/// The version of the folder's format. Others are refused: a checkpoint lives as long as one fit.
const FORMAT: u32 = 2;
const WORK: &str = "work.json";
/// What becomes of a part that could not be written.
pub(crate) const NOT_KEPT: &str = "if it is stopped, this part is done again";
const MAGIC: &[u8; 8] = b"poulpart";
/// The entry that says that training diverged, and how.
const DIVERGED: &str = "diverged";
/// What may change when work goes on after training diverged.
const MAY_CHANGE: &str = "settings.training.learning_rate";
/// Steps between two writes. A write touches each weight once, a step hundreds of times: the cost stays well below 1 %.
const STEPS_BETWEEN: u64 = 500;

/// Where work leaves its state. Nothing is written before the first entry is.
#[derive(Debug)]
pub struct Checkpoint {
    folder: PathBuf,
    steps_between: u64,
    work: Work,
    /// Whether the folder holds this work's entries and no others.
    is_ours: Mutex<bool>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Work {
    format: u32,
    /// Everything that decides the result, by name.
    work: Value,
    /// What happened on the way that the user of the result should know.
    notes: Vec<String>,
    /// How much of the tables was in memory, known once they are read.
    held: Option<Held>,
}

/// Rows of each table that are in memory at a time, none where all are. Training shuffles within them, so they decide
/// the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Held {
    window_rows: Vec<Option<usize>>,
    memory_bytes: u64,
}

impl Checkpoint {
    /// The folder that belongs to a result: `model.poul.partial` for `model.poul`.
    pub fn beside(result: impl AsRef<Path>) -> PathBuf {
        let mut name = result.as_ref().as_os_str().to_owned();
        name.push(".partial");
        name.into()
    }

    /// Whether a folder holds a checkpoint.
    pub fn exists(folder: impl AsRef<Path>) -> bool {
        folder.as_ref().join(WORK).exists()
    }

    /// Starts afresh. `work` names everything that decides the result; what an older fit left is deleted with the
    /// first entry.
    pub fn create(folder: impl Into<PathBuf>, work: Value) -> Self {
        Self {
            folder: folder.into(),
            steps_between: STEPS_BETWEEN,
            work: Work { format: FORMAT, work, notes: Vec::new(), held: None },
            is_ours: Mutex::new(false),
        }
    }

    /// Goes on from what is there; starts afresh where there is nothing.
    ///
    /// The work must be the same, and what differs is named. After training diverged the learning rate may be another.
    pub fn resume(folder: impl Into<PathBuf>, work: Value) -> Result<Self> {
        let mut fresh = Self::create(folder, work);
        if !Self::exists(&fresh.folder) {
            return Ok(fresh);
        }
        let path = fresh.folder.join(WORK);
        let text = std::fs::read_to_string(&path).map_err(|error| Error::read(&path, error))?;
        let stored: Work = serde_json::from_str(&text).map_err(|error| fresh.damaged(&path).source(error))?;
        let mut differences = Vec::new();
        if stored.format != FORMAT {
            differences.push(format!("format ({} there, {FORMAT} here)", stored.format));
        }
        compare("", &stored.work, &fresh.work.work, &mut differences);
        *fresh.is_ours.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner) = true;
        let diverged = fresh.get(DIVERGED)?;
        if diverged.is_some() {
            differences.retain(|difference| !difference.starts_with(MAY_CHANGE));
        }
        if !differences.is_empty() {
            let more = differences.len().saturating_sub(5);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let shown = differences.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
            let error = Error::usage(format!("the checkpoint is of another fit: {shown}{more}"));
            return Err(error
                .file(&fresh.folder)
                .hint("repeat what made it, or start again without ‹resume›, which deletes the checkpoint"));
        }
        (fresh.work.notes, fresh.work.held) = (stored.notes, stored.held);
        if let Some(message) = diverged {
            let message = String::from_utf8_lossy(&message);
            fresh.work.notes.push(format!("{message}; it went on from its last good state"));
            fresh.write_work()?;
            fresh.delete(DIVERGED)?;
        }
        Ok(fresh)
    }

    /// Says how many rows of each table are in memory at a time, none where all are, under a budget of so many bytes.
    /// Work that goes on must hold as many: others are shuffled in another order.
    pub(crate) fn hold(&mut self, window_rows: Vec<Option<usize>>, memory_bytes: u64) -> Result<()> {
        match &self.work.held {
            Some(held) if held.window_rows != window_rows => {
                let error = Error::usage("the checkpoint is of a fit that held other rows in memory");
                let bytes = held.memory_bytes;
                Err(error.file(&self.folder).hint(format!(
                    "give it as much memory as before, with ‹memory={bytes}›, or start again without ‹resume›, \
                     which deletes the checkpoint"
                )))
            }
            Some(_) => Ok(()),
            None => {
                self.work.held = Some(Held { window_rows, memory_bytes });
                Ok(())
            }
        }
    }

    /// Sets how many steps lie between two writes. Default 500; 0 counts as 1.
    #[must_use]
    pub fn steps_between(mut self, n_steps: u64) -> Self {
        self.steps_between = n_steps.max(1);
        self
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What happened on the way that the user of the result should know.
    pub fn notes(&self) -> &[String] {
        &self.work.notes
    }

    /// Deletes the checkpoint in `folder`, if there is one, and nothing else that may be there.
    pub fn remove(folder: impl AsRef<Path>) -> Result<()> {
        let folder = folder.as_ref();
        let failed = |error| Error::output(folder, error);
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            if is_ours(&path) {
                std::fs::remove_file(&path).map_err(failed)?;
            }
        }
        // Someone else's file keeps the folder; that is not ours to mind.
        let _ = std::fs::remove_dir(folder);
        Ok(())
    }

    pub(crate) fn n_steps_between(&self) -> u64 {
        self.steps_between
    }

    /// An entry, if it was put before.
    pub(crate) fn get(&self, name: &str) -> Result<Option<Vec<u8>>> {
        if !*self.is_ours.lock().unwrap_or_else(std::sync::PoisonError::into_inner) {
            return Ok(None);
        }
        let path = self.folder.join(file_name(name));
        let mut bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::read(&path, error)),
        };
        let Some(length) = bytes.len().checked_sub(16) else { return Err(self.damaged(&path)) };
        let (body, checksum) = bytes.split_at(8 + length);
        if !body.starts_with(MAGIC) || checksum != hash(body).to_le_bytes() {
            return Err(self.damaged(&path));
        }
        bytes.truncate(8 + length);
        bytes.drain(..8);
        Ok(Some(bytes))
    }

    /// Writes an entry, which replaces one of the same name.
    pub(crate) fn put(&self, name: &str, content: &[u8]) -> Result<()> {
        let mut is_ours = self.is_ours.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !*is_ours {
            Self::remove(&self.folder)?;
            std::fs::create_dir_all(&self.folder).map_err(|error| Error::output(&self.folder, error))?;
            self.write_work()?;
            *is_ours = true;
        }
        let mut bytes = Vec::with_capacity(content.len() + 16);
        bytes.extend(MAGIC);
        bytes.extend(content);
        bytes.extend(hash(&bytes).to_le_bytes());
        self.write(&file_name(name), &bytes)
    }

    /// Writes an entry of work that is finished; a disk that is full costs that entry, not the work.
    pub(crate) fn keep(&self, name: &str, content: &[u8], progress: &dyn Progress) {
        if let Err(error) = self.put(name, content) {
            progress.warn(&format!("{error}; the work goes on, and {NOT_KEPT}"));
        }
    }

    /// Deletes an entry, if it is there.
    pub(crate) fn delete(&self, name: &str) -> Result<()> {
        let path = self.folder.join(file_name(name));
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::output(&path, error)),
            _ => Ok(()),
        }
    }

    /// Records that training diverged: the work may then go on with a lower learning rate.
    pub(crate) fn set_diverged(&self, message: &str) -> Result<()> {
        self.put(DIVERGED, message.as_bytes())
    }

    /// The entry was read but makes no sense.
    pub(crate) fn damaged_entry(&self, name: &str) -> Error {
        self.damaged(&self.folder.join(file_name(name)))
    }

    fn damaged(&self, path: &Path) -> Error {
        let folder = self.folder.display();
        let error = Error::input("the checkpoint is damaged").file(path);
        error.hint(format!("delete the folder {folder}, or start again without ‹resume›"))
    }

    fn write_work(&self) -> Result<()> {
        let text = serde_json::to_vec_pretty(&self.work);
        let text = text.map_err(|error| Error::other(format!("cannot store the checkpoint: {error}")))?;
        self.write(WORK, &text)
    }

    fn write(&self, file_name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.folder.join(file_name);
        let mut file = AtomicFile::create(&path)?;
        file.write_all(bytes).map_err(|error| Error::output(&path, error))?;
        file.commit()
    }
}

/// FNV-1a over eight bytes at a time: catches a damaged file, not a forged one.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    let words =
        bytes.chunks(8).map(|chunk| chunk.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)));
    words.fold(0xcbf2_9ce4_8422_2325 ^ bytes.len() as u64, step)
}

fn file_name(entry: &str) -> String {
    format!("{entry}.part")
}

/// Ours are the work, the entries, and what a kill left of one that was being written.
fn is_ours(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name == WORK || name.ends_with(".part") || name.starts_with(crate::output::TEMPORARY)
}

/// Adds the paths at which two documents differ, with both values where they are short.
fn compare(path: &str, stored: &Value, ours: &Value, differences: &mut Vec<String>) {
    if stored == ours {
        return;
    }
    if let (Value::Object(stored), Value::Object(ours)) = (stored, ours) {
        let mut keys: Vec<&String> = stored.keys().chain(ours.keys()).collect();
        keys.sort();
        keys.dedup();
        for key in keys {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let of = |entries: &serde_json::Map<String, Value>| entries.get(key).cloned();
            compare(&path, &of(stored).unwrap_or_default(), &of(ours).unwrap_or_default(), differences);
        }
        return;
    }
    let (stored, ours) = (stored.to_string(), ours.to_string());
    differences.push(match stored.len().max(ours.len()) <= 40 {
        true => format!("{path} ({stored} there, {ours} here)"),
        false => path.to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn work(rate: f64, seed: u64) -> Value {
        json!({ "seed": seed, "settings": { "training": { "learning_rate": rate, "epochs": 3 } } })
    }

    #[test]
    fn entries_survive_and_other_work_is_refused_by_name() {
        let root = tempfile::tempdir().unwrap();
        let folder = Checkpoint::beside(root.path().join("m.poul"));
        let first = Checkpoint::create(&folder, work(0.5, 1));
        assert!(first.get("a").unwrap().is_none() && !folder.exists());
        first.put("a", b"one").unwrap();
        let again = Checkpoint::resume(&folder, work(0.5, 1)).unwrap();
        assert_eq!(again.get("a").unwrap().unwrap(), b"one");
        let error = Checkpoint::resume(&folder, work(0.1, 2)).err().unwrap().to_string();
        assert!(error.contains("seed (1 there, 2 here)"), "{error}");
        assert!(error.contains("settings.training.learning_rate (0.5 there, 0.1 here)"), "{error}");
        // Work that starts afresh sees nothing of the old, and clears it only once it has something to keep.
        let fresh = Checkpoint::create(&folder, work(0.1, 2));
        assert!(fresh.get("a").unwrap().is_none() && folder.join("a.part").exists());
        fresh.put("b", b"two").unwrap();
        assert!(!folder.join("a.part").exists());
        Checkpoint::remove(&folder).unwrap();
        assert!(!folder.exists());
        Checkpoint::remove(&folder).unwrap();
    }

    #[test]
    fn damage_is_told_and_foreign_files_stay() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("m.partial");
        let checkpoint = Checkpoint::create(&folder, work(0.5, 1));
        checkpoint.put("a", &[7; 100]).unwrap();
        let path = folder.join("a.part");
        let whole = std::fs::read(&path).unwrap();
        for n_bytes in [0, 7, 20, whole.len() - 1] {
            std::fs::write(&path, &whole[..n_bytes]).unwrap();
            let error = checkpoint.get("a").unwrap_err();
            assert!(error.to_string().ends_with("the checkpoint is damaged"), "{error}");
            assert!(error.hint_text().unwrap().contains("without `resume`"));
        }
        std::fs::write(folder.join(WORK), "{").unwrap();
        assert!(Checkpoint::resume(&folder, work(0.5, 1)).is_err());
        std::fs::write(folder.join("mine.txt"), "mine").unwrap();
        Checkpoint::remove(&folder).unwrap();
        let left: Vec<_> = std::fs::read_dir(&folder).unwrap().flatten().map(|e| e.file_name()).collect();
        assert_eq!(left, ["mine.txt"]);
    }

    #[test]
    fn after_divergence_the_learning_rate_may_change_and_that_is_noted() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("m.partial");
        Checkpoint::create(&folder, work(0.5, 1)).set_diverged("training diverged").unwrap();
        assert!(Checkpoint::resume(&folder, work(0.1, 2)).is_err());
        let resumed = Checkpoint::resume(&folder, work(0.1, 1)).unwrap();
        assert_eq!(resumed.notes(), ["training diverged; it went on from its last good state"]);
        // From now on this is the work: the old rate is another.
        assert!(Checkpoint::resume(&folder, work(0.5, 1)).is_err());
        assert_eq!(Checkpoint::resume(&folder, work(0.1, 1)).unwrap().notes(), resumed.notes());
    }
}
