//! The types of CSV columns, found in one pass over the whole file.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use arrow_schema::DataType;
use csv::ByteRecord;

use super::{boolean, is_null, not_utf8, reader};
use crate::data::state::FileState;
use crate::{Error, Result};

/// What one pass over a file finds.
pub(super) struct Inferred {
    pub(super) columns: Vec<(String, CellTypes)>,
    pub(super) n_rows: u64,
    pub(super) state: FileState,
    pub(super) gzip: bool,
}

/// The types of cell seen in a column, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CellTypes(u8);

impl CellTypes {
    const BOOLEAN: Self = Self(1);
    const INTEGER: Self = Self(2);
    const FLOAT: Self = Self(4);
    const TEXT: Self = Self(8);
    /// Whole numbers beyond 64 bits: identifiers, which a float would blur.
    const LONG: Self = Self(16);

    pub(super) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The narrowest type that holds all the cells.
    pub(super) fn data_type(self) -> DataType {
        let numeric = Self::INTEGER.with(Self::FLOAT).with(Self::LONG);
        if self == Self::default() {
            DataType::Null
        } else if self.has(Self::TEXT) || (self.has(Self::BOOLEAN) && self.has(numeric)) {
            DataType::Utf8
        } else if self.has(Self::BOOLEAN) {
            DataType::Boolean
        } else if self.has(Self::FLOAT) {
            DataType::Float64
        } else if self.has(Self::LONG) {
            DataType::Utf8
        } else {
            DataType::Int64
        }
    }

    fn of(cell: &[u8]) -> Self {
        if is_null(cell) {
            return Self::default();
        }
        let cell = cell.trim_ascii();
        let digits = cell.strip_prefix(b"-").or_else(|| cell.strip_prefix(b"+")).unwrap_or(cell);
        if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) {
            let short =
                digits.len() <= 18 || std::str::from_utf8(cell).is_ok_and(|text| text.parse::<i64>().is_ok());
            return if short { Self::INTEGER } else { Self::LONG };
        }
        match digits.first() {
            Some(b'0'..=b'9' | b'.' | b'i' | b'I')
                if std::str::from_utf8(cell).is_ok_and(|text| text.parse::<f64>().is_ok()) =>
            {
                return Self::FLOAT;
            }
            Some(b't' | b'T' | b'f' | b'F') if boolean(cell).is_some() => return Self::BOOLEAN,
            _ => {}
        }
        Self::TEXT
    }
}

/// Reads `path` once: names, types, number of rows. Finds ragged rows and text that is not UTF-8.
pub(super) fn infer(path: &Path) -> Result<Inferred> {
    let mut magic = [0; 2];
    let mut file = File::open(path).map_err(|error| Error::read(path, error))?;
    let state = FileState::of(&file, path)?;
    let gzip = file.read_exact(&mut magic).is_ok() && magic == [0x1f, 0x8b];
    if !gzip && path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz")) {
        let error = Error::input("is not compressed with gzip, although its name says so").file(path);
        return Err(error.hint("drop the `.gz` from its name, or compress it"));
    }
    let mut reader = reader(path, gzip)?;
    let names = names(path, reader.header(path)?)?;
    let mut types = vec![CellTypes::default(); names.len()];
    let mut record = ByteRecord::new();
    let mut n_rows = 0;
    while reader.read(&mut record, path)? {
        n_rows += 1;
        // One check for all cells; a character split over two cells is found when the cells are read.
        if std::str::from_utf8(record.as_slice()).is_err() {
            let idx = record.iter().position(|cell| std::str::from_utf8(cell).is_err()).unwrap_or(0);
            let line = record.position().map_or(0, csv::Position::line);
            return Err(not_utf8(path, line, &names[idx]));
        }
        for (types, cell) in types.iter_mut().zip(&record) {
            if !types.has(CellTypes::TEXT) {
                *types = types.with(CellTypes::of(cell));
            }
        }
    }
    Ok(Inferred { columns: names.into_iter().zip(types).collect(), n_rows, state, gzip })
}

fn names(path: &Path, header: &ByteRecord) -> Result<Vec<String>> {
    if header.is_empty() || (header.len() == 1 && header[0].trim_ascii().is_empty()) {
        return Err(Error::input("the file has no header")
            .file(path)
            .hint("the first line names the columns"));
    }
    let mut names: Vec<String> = Vec::with_capacity(header.len());
    let mut seen = BTreeSet::new();
    for (idx, name) in header.iter().enumerate() {
        let Ok(name) = std::str::from_utf8(name) else {
            let error = Error::input(format!("the name of column {} is not UTF-8", idx + 1));
            return Err(error.file(path).at("line 1").hint("save the file as UTF-8"));
        };
        if name.trim().is_empty() {
            let error = Error::input(format!("column {} has no name", idx + 1)).file(path).at("line 1");
            return Err(error.hint("name it, or drop it; pandas leaves its index out with `index=False`"));
        }
        if !seen.insert(name) {
            let error = Error::input(format!("two columns are called `{name}`")).file(path).at("line 1");
            let no_header = CellTypes::of(name.as_bytes()) != CellTypes::TEXT;
            return Err(error.hint(match no_header {
                true => "the first line is read as column names, but looks like data: add a line of names above it",
                false => "give each column its own name",
            }));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_the_narrowest_type_that_holds_it() {
        let of = |cells: &[&str]| {
            cells
                .iter()
                .fold(CellTypes::default(), |types, cell| types.with(CellTypes::of(cell.as_bytes())))
                .data_type()
        };
        assert_eq!(of(&["", "NA", "null"]), DataType::Null);
        assert_eq!(of(&["true", "False", ""]), DataType::Boolean);
        assert_eq!(of(&["1", "-2", "NA", " 3"]), DataType::Int64);
        assert_eq!(of(&["1", "2.5", "-1e-3", ".5", "inf", "-inf"]), DataType::Float64);
        assert_eq!(of(&["1", "x"]), DataType::Utf8);
        assert_eq!(of(&["1", "true"]), DataType::Utf8);
        assert_eq!(of(&["None"]), DataType::Utf8);
        assert_eq!(of(&["-", "+", "."]), DataType::Utf8);
        assert_eq!(of(&["9223372036854775807"]), DataType::Int64);
        assert_eq!(of(&["1", "12345678901234567890"]), DataType::Utf8);
        assert_eq!(of(&["0.5", "12345678901234567890"]), DataType::Float64);
    }
}
