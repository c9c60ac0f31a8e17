//! A file of numbers that has no name: it is written once, then read as memory, and vanishes with the process.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use arrow_buffer::ToByteSlice;
use memmap2::Mmap;

use super::budget::Bytes;
use crate::{Error, Result};

/// A scratch file being written.
pub(crate) struct ScratchWriter {
    folder: PathBuf,
    file: File,
    n_bytes: u64,
    expected_bytes: Option<u64>,
}

impl ScratchWriter {
    /// Starts a file in `folder`. It is unlinked at once: even a crash leaves nothing.
    pub(crate) fn create(folder: &Path, expected_bytes: Option<u64>) -> Result<Self> {
        let file = tempfile::tempfile_in(folder).map_err(|error| Error::output(folder, error))?;
        Ok(Self { folder: folder.to_path_buf(), file, n_bytes: 0, expected_bytes })
    }

    /// Appends numbers. They go through the file, not the map, so that a full disk is an error and not a signal.
    pub(crate) fn write(&mut self, values: &[f32]) -> Result<()> {
        let bytes = values.to_byte_slice();
        self.file.write_all(bytes).map_err(|error| self.failed(error))?;
        self.n_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Ends the writing and maps the file.
    pub(crate) fn finish(self) -> Result<Scratch> {
        if self.n_bytes == 0 {
            return Ok(Scratch { map: None });
        }
        match map(&self.file) {
            Ok(map) => Ok(Scratch { map: Some(map) }),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn failed(&self, error: std::io::Error) -> Error {
        let needed = self.expected_bytes.unwrap_or(self.n_bytes).max(self.n_bytes);
        let hint = format!(
            "the rows need {} of scratch space here: choose another folder by TMPDIR, or more memory with `--memory`",
            Bytes(needed)
        );
        Error::output(&self.folder, error).hint(hint)
    }
}

/// A scratch file mapped into memory.
pub(crate) struct Scratch {
    map: Option<Mmap>,
}

impl Scratch {
    /// The numbers that were written.
    pub(crate) fn values(&self) -> &[f32] {
        self.map.as_ref().map_or(&[], |map| as_numbers(map))
    }
}

#[allow(
    unsafe_code,
    reason = "mapping is sound only while nobody changes the file: it was unlinked when it was created, so no other \
              process can open it, and `ScratchWriter::finish` consumes the one handle that could write to it"
)]
fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: see the reason above; the file keeps its length, as nothing truncates it.
    unsafe { Mmap::map(file) }
}

#[allow(
    unsafe_code,
    reason = "bytes are read as the numbers they were written from: every bit pattern is an f32, `align_to` never \
              gives a misaligned or partial one, and a map begins at a page, so that nothing is cut off its front"
)]
fn as_numbers(bytes: &[u8]) -> &[f32] {
    // SAFETY: see the reason above.
    let (_, values, _) = unsafe { bytes.align_to::<f32>() };
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_no_file_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = ScratchWriter::create(folder.path(), None).unwrap();
        let values: Vec<f32> = (0..10_001).map(|i| i as f32 * 0.5).collect();
        values.chunks(777).for_each(|chunk| writer.write(chunk).unwrap());
        let scratch = writer.finish().unwrap();
        assert_eq!(scratch.values(), values);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_missing_folder_and_a_full_disk_are_told() {
        let error = ScratchWriter::create(Path::new("no/such/folder"), None).err().unwrap();
        assert_eq!(error.kind(), crate::Kind::Output);
        let mut writer = ScratchWriter::create(&std::env::temp_dir(), Some(5 << 30)).unwrap();
        match File::options().write(true).open("/dev/full") {
            Ok(full) => writer.file = full,
            Err(_) => return,
        }
        let error = writer.write(&[1.0; 100_000]).err().unwrap();
        assert_eq!(error.kind(), crate::Kind::Output);
        assert!(error.hint_text().unwrap().contains("5.0 GiB"), "{error}");
    }
}
