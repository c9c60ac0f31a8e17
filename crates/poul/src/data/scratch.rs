//! A file of numbers that has no name: it is written once, then only read, and vanishes with the process.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

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

    /// Ends the writing.
    pub(crate) fn finish(mut self) -> Result<Scratch> {
        self.file.flush().map_err(|error| self.failed(error))?;
        Ok(Scratch { folder: self.folder, file: self.file, n_bytes: self.n_bytes, map: OnceLock::new() })
    }

    fn failed(&self, error: std::io::Error) -> Error {
        let needed = self.expected_bytes.unwrap_or(self.n_bytes).max(self.n_bytes);
        let hint = format!(
            "the rows need {} of scratch space here: choose another folder by TMPDIR, or allow more memory: ‹memory›",
            Bytes(needed)
        );
        Error::output(&self.folder, error).hint(hint)
    }
}

/// A scratch file that is read.
pub(crate) struct Scratch {
    folder: PathBuf,
    file: File,
    n_bytes: u64,
    /// Made when all numbers are first asked for: pages that are read through it count as the process's memory.
    map: OnceLock<Option<Mmap>>,
}

impl Scratch {
    /// Reads the numbers from number `first` on.
    pub(crate) fn read(&self, first: u64, out: &mut [f32]) -> Result<()> {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(out);
        read_exact_at(&self.file, bytes, first * size_of::<f32>() as u64).map_err(|error| {
            Error::output(&self.folder, error).hint("the scratch file there cannot be read back")
        })
    }

    /// The numbers that were written, as if they were in memory; none where the system cannot map the file.
    pub(crate) fn values(&self) -> &[f32] {
        let mapped = || (self.n_bytes > 0).then(|| map(&self.file).ok()).flatten();
        self.map.get_or_init(mapped).as_ref().map_or(&[], |map| bytemuck::cast_slice(map))
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let n_read = std::os::windows::fs::FileExt::seek_read(file, bytes, at)?;
        if n_read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        bytes = &mut bytes[n_read..];
        at += n_read as u64;
    }
    Ok(())
}

#[allow(
    unsafe_code,
    reason = "mapping is sound only while nobody changes the file: it was unlinked when it was created, so no other \
              process can open it, and `Scratch`, which alone has its handle, only reads"
)]
fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: see the reason above; the file keeps its length, as nothing truncates it.
    unsafe { Mmap::map(file) }
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
        let mut some = [0.0; 3];
        scratch.read(9_998, &mut some).unwrap();
        assert_eq!(some, values[9_998..]);
        assert_eq!(scratch.read(9_999, &mut some).err().unwrap().kind(), crate::Kind::Output);
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
