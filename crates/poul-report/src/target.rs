//! Where `--report` writes.

use std::io::Write;
use std::path::Path;

use poul::{AtomicFile, Error, Result};

/// The file of `--report`, opened before the work, so that a folder that is not there is told at once.
pub struct ReportTarget(Option<AtomicFile>);

impl ReportTarget {
    /// Opens the file, where one is named.
    pub fn open(flag: Option<&Path>) -> Result<Self> {
        flag.map(AtomicFile::create).transpose().map(Self)
    }

    /// Writes the page, where one was asked for.
    pub fn write(self, page: impl FnOnce() -> Result<String>) -> Result<()> {
        let Some(mut file) = self.0 else { return Ok(()) };
        let page = page()?;
        file.write_all(page.as_bytes()).map_err(|error| Error::output(file.path(), error))?;
        file.commit()
    }
}
