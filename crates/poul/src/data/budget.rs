//! How much memory a table may take, and where it goes beyond that.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::{Error, Result};

/// The memory that encoded rows may take; beyond it they go to a scratch file that vanishes by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of memory. Default: half of the machine's memory, 4 GiB where that is not known.
    pub bytes: u64,
    /// The folder of scratch files. Default: the system's folder for temporary files (`TMPDIR`).
    pub scratch_folder: PathBuf,
}

/// Bytes of a row besides its features: outcomes, policy, predictions, orders of training.
const COLUMN_BYTES: u64 = 100;
/// A window, the next one, and as much again for the work on them.
const SHARES: u64 = 4;
/// Fewer rows at a time would hardly be a shuffle.
const LEAST_WINDOW_ROWS: u64 = 1 << 14;

/// A table that is not worth refusing for want of memory.
const SMALL_TABLE: u64 = 64 << 20;

impl Default for Budget {
    fn default() -> Self {
        Self::of(physical_memory().map_or(4 << 30, |bytes| bytes / 2))
    }
}

impl Budget {
    /// A budget of so many bytes.
    pub fn of(bytes: u64) -> Self {
        Self { bytes, scratch_folder: std::env::temp_dir() }
    }

    /// Rows of a table on disk that may be in memory at a time: one window is used while the next is read, and as much
    /// again is left for the work on them. What else is known of every row stays in memory.
    pub(super) fn window_rows(&self, n_rows: usize, width: usize) -> usize {
        let left = self.bytes.saturating_sub(n_rows as u64 * COLUMN_BYTES);
        let rows = left / SHARES / row_bytes(width);
        rows.clamp(LEAST_WINDOW_ROWS, u64::from(u32::MAX)) as usize
    }

    /// Whether a table of so many rows can be trained on; an error says how much memory would do.
    pub(super) fn require(&self, n_rows: u64, width: usize) -> Result<()> {
        let table = n_rows.saturating_mul(row_bytes(width));
        let least = n_rows.saturating_mul(COLUMN_BYTES) + SHARES * LEAST_WINDOW_ROWS * row_bytes(width);
        if self.bytes >= least.min(table) || table <= SMALL_TABLE {
            return Ok(());
        }
        let what =
            format!("{} of memory are too little for {n_rows} rows of {width} numbers", Bytes(self.bytes));
        Err(Error::usage(what).hint(format!("{} would do: ‹memory›", Bytes(least.min(table) + (64 << 20)))))
    }
}

impl FromStr for Budget {
    type Err = Error;

    /// A number and a unit: `4GiB`, `512MB`, `1.5 GB`, `800000000`.
    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            let error = Error::usage(format!("`{text}` is not an amount of memory"));
            error.hint("write a number and a unit, such as `4GiB` or `512MB`")
        };
        let trimmed = text.trim();
        let unit_at = trimmed.find(|char: char| char.is_ascii_alphabetic()).unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(unit_at);
        let number: f64 = number.trim().parse().map_err(|_| wrong())?;
        let unit: f64 = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 1.0,
            "kb" => 1e3,
            "mb" => 1e6,
            "gb" => 1e9,
            "tb" => 1e12,
            "k" | "kib" => 1024.0,
            "m" | "mib" => 1024_f64.powi(2),
            "g" | "gib" => 1024_f64.powi(3),
            "t" | "tib" => 1024_f64.powi(4),
            _ => return Err(wrong()),
        };
        let bytes = number * unit;
        if !(bytes >= 1.0 && bytes < u64::MAX as f64) {
            return Err(wrong());
        }
        Ok(Self::of(bytes as u64))
    }
}

fn row_bytes(width: usize) -> u64 {
    (width.max(1) * size_of::<f32>()) as u64
}

/// A number of bytes as people write it: `1.5 GiB`.
pub(crate) struct Bytes(pub(crate) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["TiB", "GiB", "MiB", "KiB"];
        for (idx, unit) in units.into_iter().enumerate() {
            let size = 1_u64 << (10 * (4 - idx));
            if self.0 >= size {
                return write!(f, "{:.1} {unit}", self.0 as f64 / size as f64);
            }
        }
        write!(f, "{} bytes", self.0)
    }
}

fn physical_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read() {
        let bytes = |text: &str| text.parse::<Budget>().map(|budget| budget.bytes).ok();
        assert_eq!(bytes("4GiB"), Some(4 << 30));
        assert_eq!(bytes("512MB"), Some(512_000_000));
        assert_eq!(bytes(" 1.5 g "), Some(3 << 29));
        assert_eq!(bytes("1000"), Some(1000));
        for wrong in ["", "GiB", "-1GB", "0", "4 GX", "nan", "1e30GB"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
        assert_eq!(Bytes(3 << 29).to_string(), "1.5 GiB");
        assert_eq!(Bytes(12).to_string(), "12 bytes");
    }

    #[test]
    fn what_is_too_little_says_what_would_do() {
        let gib = Budget::of(1 << 30);
        let rows = gib.window_rows(1_000_000, 100);
        assert!((600_000..620_000).contains(&rows), "{rows}");
        assert!(gib.require(1_000_000, 100).is_ok() && Budget::of(1).require(1000, 100).is_ok());
        let error = Budget::of(1 << 20).require(1_000_000, 100).err().unwrap();
        let enough: Budget = error.hint_text().unwrap().split(" would").next().unwrap().parse().unwrap();
        assert!(enough.bytes < 300 << 20 && enough.require(1_000_000, 100).is_ok(), "{error}");
    }
}
