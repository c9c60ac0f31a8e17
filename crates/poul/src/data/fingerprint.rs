//! A stable digest of data: FNV-1a over 128 bits. It tells mistakes, not forgeries.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use arrow_array::{Array, RecordBatch};

use super::values::{Texts, numbers};
use crate::{Error, Result};

/// Bytes taken at each end of a file.
const END: u64 = 64 << 10;
/// Bytes taken at each of the places between.
const SAMPLE: u64 = 4 << 10;
const N_SAMPLES: u64 = 32;

/// A digest under way.
pub(crate) struct Digest(u128);

impl Digest {
    pub(crate) fn new() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    /// Text with its length, so that neighbours cannot run together.
    pub(crate) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    /// Numbers with how many they are.
    pub(crate) fn values<T: bytemuck::NoUninit>(&mut self, values: &[T]) {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        self.number(bytes.len() as u64);
        self.bytes(bytes);
    }

    /// Numbers where there are any; no numbers are told apart from none given.
    pub(crate) fn optional_values<T: bytemuck::NoUninit>(&mut self, values: Option<&[T]>) {
        self.number(u64::from(values.is_some()));
        self.values(values.unwrap_or_default());
    }

    /// The length of a file, its ends and samples between them; all of it where it is short.
    pub(crate) fn file(&mut self, path: &Path, n_bytes: u64) -> Result<()> {
        let failed = |error| Error::read(path, error);
        let mut file = File::open(path).map_err(failed)?;
        self.number(n_bytes);
        let mut pieces = vec![(0, END.min(n_bytes))];
        if n_bytes > END {
            let middle = n_bytes.saturating_sub(2 * END);
            if middle > N_SAMPLES * SAMPLE {
                let gap = middle / N_SAMPLES;
                pieces.extend((0..N_SAMPLES).map(|piece| (END + piece * gap, SAMPLE)));
            } else {
                pieces.push((END, middle));
            }
            let tail = END.min(n_bytes - END);
            pieces.push((n_bytes - tail, tail));
        }
        let mut buffer = Vec::new();
        for (start, length) in pieces {
            buffer.clear();
            file.seek(SeekFrom::Start(start)).map_err(failed)?;
            (&file).take(length).read_to_end(&mut buffer).map_err(failed)?;
            self.bytes(&buffer);
        }
        Ok(())
    }

    /// The first values of each column of the first and last batches.
    pub(crate) fn batches(&mut self, batches: &[RecordBatch]) {
        const N_CELLS: usize = 1000;
        for batch in batches.first().into_iter().chain(batches.last()) {
            for column in batch.columns() {
                let column = column.slice(0, column.len().min(N_CELLS));
                if let Some(numbers) = numbers(&column) {
                    numbers.iter().for_each(|number| self.number(number.to_bits()));
                } else if let Some(texts) = Texts::of(&column) {
                    (0..texts.len()).for_each(|row| self.text(texts.get(row).unwrap_or_default()));
                } else {
                    self.number(column.logical_null_count() as u64);
                }
            }
        }
    }

    pub(crate) fn value(&self) -> u128 {
        self.0
    }

    pub(crate) fn hex(&self) -> String {
        format!("{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_the_published_one() {
        // FNV-1a 128 of "a", from the reference list of Fowler, Noll and Vo.
        let mut digest = Digest::new();
        digest.bytes(b"a");
        assert_eq!(digest.hex(), "d228cb696f1a8caf78912b704e4a8964");
    }

    #[test]
    fn neighbouring_numbers_do_not_run_together() {
        let of = |parts: &[Option<&[f32]>]| {
            let mut digest = Digest::new();
            parts.iter().for_each(|part| digest.optional_values(*part));
            digest.value()
        };
        let all = std::collections::BTreeSet::from([
            of(&[Some(&[1.0, 2.0, 3.0]), None]),
            of(&[None, Some(&[1.0, 2.0, 3.0])]),
            of(&[Some(&[1.0, 2.0]), Some(&[3.0])]),
            of(&[Some(&[1.0, 3.0, 2.0]), None]),
            of(&[Some(&[1.0, 2.0, 3.0]), Some(&[])]),
            of(&[Some(&[1.0, 2.0, -3.0]), None]),
        ]);
        assert_eq!(all.len(), 6);
    }

    #[test]
    fn the_whole_of_a_short_file_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let of = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let mut digest = Digest::new();
            digest.file(&path, bytes.len() as u64).unwrap();
            digest.hex()
        };
        for n_bytes in [1, 70_000, 130_000, 200_000] {
            let mut bytes = vec![7; n_bytes];
            let before = of(&bytes);
            assert_eq!(before, of(&bytes));
            for changed in [0, n_bytes / 2, n_bytes - 1] {
                bytes[changed] ^= 1;
                assert_ne!(before, of(&bytes), "{n_bytes} {changed}");
                bytes[changed] ^= 1;
            }
        }
    }
}
