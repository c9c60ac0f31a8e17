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
}
