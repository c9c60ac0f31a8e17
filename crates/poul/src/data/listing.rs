//! Which files a location means, and of which format they are.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// The formats a table may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Format {
    Parquet,
    Csv,
    Ipc,
}

impl Format {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Parquet => "Parquet",
            Self::Csv => "CSV",
            Self::Ipc => "Arrow IPC",
        }
    }
}

/// The files of a location: one format, sorted by name.
pub(crate) struct Listing {
    pub(crate) format: Format,
    pub(crate) paths: Vec<PathBuf>,
}

const EXTENSIONS: &str = ".parquet, .csv, .csv.gz, .arrow, .feather or .ipc";
const GZIP: &[u8] = &[0x1f, 0x8b];

/// Finds the files that `location` means.
pub(crate) fn find(location: impl AsRef<Path>) -> Result<Listing> {
    let location = location.as_ref();
    let path = location;
    // A name that is not UTF-8 is a name as it is: patterns are text.
    let pattern = location.to_str().unwrap_or_default();
    let mut paths = Vec::new();
    if path.is_dir() {
        walk(path, &mut paths)?;
        if paths.is_empty() {
            let error = Error::input("the folder has no data files").file(path);
            return Err(error.hint(format!("data files end in {EXTENSIONS}")));
        }
    } else if !path.exists() && pattern.contains(['*', '?', '[']) {
        expand(pattern, &mut paths)?;
    } else {
        paths.push(path.to_path_buf());
    }
    paths.sort();
    paths.dedup();
    let mut formats = Vec::with_capacity(paths.len());
    for path in &paths {
        formats.push(format_of(path)?);
    }
    let format = formats[0];
    if let Some(other) = formats.iter().position(|other| *other != format) {
        let what = format!(
            "is {}, but `{}` is {}: a table has one format",
            formats[other].words(),
            paths[0].display(),
            format.words()
        );
        return Err(Error::input(what)
            .file(&paths[other])
            .hint("name one format by a glob, such as `data/*.parquet`"));
    }
    Ok(Listing { format, paths })
}

/// Data files below `folder`; names that begin with `.` or `_` are other programs' notes.
fn walk(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(folder).map_err(|error| Error::read(folder, error))?;
    for entry in entries {
        let path = entry.map_err(|error| Error::read(folder, error))?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.starts_with(['.', '_']) {
            continue;
        }
        if path.is_dir() {
            walk(&path, paths)?;
        } else if format_by_name(&path).is_some() {
            paths.push(path);
        }
    }
    Ok(())
}

fn expand(pattern: &str, paths: &mut Vec<PathBuf>) -> Result<()> {
    // As in a shell and in a folder: hidden files are other programs' notes.
    let options = glob::MatchOptions { require_literal_leading_dot: true, ..glob::MatchOptions::new() };
    let entries = glob::glob_with(pattern, options)
        .map_err(|error| Error::usage(format!("`{pattern}` is not a valid glob: {}", error.msg)))?;
    let mut n_matched = 0;
    for entry in entries {
        let path = entry.map_err(|error| {
            let path = error.path().to_path_buf();
            Error::read(path, error.into())
        })?;
        n_matched += 1;
        if path.is_dir() { walk(&path, paths)? } else { paths.push(path) }
    }
    match (n_matched, paths.is_empty()) {
        (0, _) => Err(Error::input(format!("no file matches `{pattern}`")).hint(nearby(pattern))),
        (_, true) => {
            let what = format!("`{pattern}` matches only folders without data files");
            Err(Error::input(what).hint(format!("data files end in {EXTENSIONS}")))
        }
        _ => Ok(()),
    }
}

/// What is there, in the deepest folder of the glob that exists.
fn nearby(pattern: &str) -> String {
    const SHOWN: usize = 8;
    let fixed: PathBuf = Path::new(pattern)
        .components()
        .take_while(|part| !part.as_os_str().to_string_lossy().contains(['*', '?', '[']))
        .collect();
    let folder = if fixed.as_os_str().is_empty() { Path::new(".") } else { &fixed };
    let Ok(entries) = std::fs::read_dir(folder) else {
        return format!("there is no folder `{}`", folder.display());
    };
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let more = names.len().saturating_sub(SHOWN);
    names.truncate(SHOWN);
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match (names.is_empty(), more) {
        (true, _) => format!("the folder `{}` is empty", folder.display()),
        (_, 0) => format!("the folder `{}` holds {}", folder.display(), names.join(", ")),
        _ => format!("the folder `{}` holds {} and {more} more", folder.display(), names.join(", ")),
    }
}

fn format_by_name(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let ends = |suffixes: &[&str]| suffixes.iter().any(|suffix| name.ends_with(suffix));
    if ends(&[".parquet", ".pq"]) {
        Some(Format::Parquet)
    } else if ends(&[".csv", ".csv.gz"]) {
        Some(Format::Csv)
    } else if ends(&[".arrow", ".feather", ".ipc"]) {
        Some(Format::Ipc)
    } else {
        None
    }
}

/// The format by extension, checked against the first bytes; by the first bytes alone without an extension.
fn format_of(path: &Path) -> Result<Format> {
    let mut magic = [0; 8];
    let read = File::open(path).and_then(|mut file| {
        let mut n_read = 0;
        while n_read < magic.len() {
            match file.read(&mut magic[n_read..])? {
                0 => break,
                n => n_read += n,
            }
        }
        Ok(n_read)
    });
    let n_read = read.map_err(|error| Error::read(path, error))?;
    if n_read == 0 {
        return Err(Error::input("the file is empty").file(path).hint("was it written to the end?"));
    }
    let magic = &magic[..n_read];
    let by_name = format_by_name(path);
    let by_content = format_by_magic(magic);
    match (by_name, by_content) {
        (Some(named), Some(found)) if named != found => {
            let what = format!("is {}, although its name says {}", found.words(), named.words());
            Err(Error::input(what).file(path).hint("give it the extension of its format"))
        }
        (Some(Format::Parquet), None) => Err(not_the_format(path, Format::Parquet, magic)),
        (Some(Format::Ipc), None) => Err(not_the_format(path, Format::Ipc, magic)),
        (Some(Format::Csv), None) if other_kind(magic).is_some() && !magic.starts_with(GZIP) => {
            Err(not_the_format(path, Format::Csv, magic))
        }
        (Some(format), _) | (None, Some(format)) => Ok(format),
        (None, None) => {
            let error = Error::input("cannot tell the format of this file").file(path);
            Err(error.hint(format!("data files end in {EXTENSIONS}")))
        }
    }
}

fn format_by_magic(magic: &[u8]) -> Option<Format> {
    if magic.starts_with(b"PAR1") {
        Some(Format::Parquet)
    } else if magic.starts_with(b"ARROW1") || magic.starts_with(&[0xff; 4]) {
        Some(Format::Ipc)
    } else {
        None
    }
}

fn other_kind(magic: &[u8]) -> Option<&'static str> {
    if magic.starts_with(b"PK\x03\x04") {
        Some("a zip archive or an Excel workbook")
    } else if magic.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        Some("compressed with zstd")
    } else if magic.starts_with(&[0xff, 0xfe]) || magic.starts_with(&[0xfe, 0xff]) {
        Some("UTF-16 text")
    } else if magic.starts_with(b"{") {
        Some("JSON")
    } else if magic.starts_with(GZIP) {
        Some("compressed with gzip")
    } else {
        None
    }
    .filter(|_| magic.len() >= 4)
}

fn not_the_format(path: &Path, format: Format, magic: &[u8]) -> Error {
    let error = Error::input(format!("is not {}, although its name says so", format.words())).file(path);
    match other_kind(magic) {
        Some(kind) => error.hint(format!("it looks like {kind}")),
        None => error.hint("was it written to the end? what wrote it?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        folder
    }

    fn error(location: &Path) -> Error {
        find(location.to_str().unwrap()).err().unwrap()
    }

    #[test]
    fn a_folder_is_walked_and_sorted() {
        let folder = folder(&[
            ("b.csv", b"x\n1\n"),
            ("part/a.csv", b"x\n1\n"),
            ("_SUCCESS", b""),
            ("note.txt", b"hi"),
        ]);
        let listing = find(folder.path().to_str().unwrap()).unwrap();
        assert_eq!(listing.format, Format::Csv);
        let names: Vec<_> = listing
            .paths
            .iter()
            .map(|path| path.strip_prefix(folder.path()).unwrap().to_str().unwrap())
            .collect();
        assert_eq!(names, ["b.csv", "part/a.csv"]);
        let pattern = folder.path().join("*.csv");
        assert_eq!(find(pattern.to_str().unwrap()).unwrap().paths.len(), 1);
    }

    #[test]
    fn what_cannot_be_a_table_is_told() {
        let folder = folder(&[
            ("empty.csv", b""),
            ("fake.parquet", b"a,b\n1,2\n"),
            ("named.csv", b"PAR1xxxxPAR1"),
            ("book.csv", b"PK\x03\x04zip"),
            ("what.bin", b"abcdefgh"),
            ("none/readme.txt", b"hi"),
        ]);
        let at = |name: &str| folder.path().join(name);
        assert!(error(&at("empty.csv")).to_string().ends_with("the file is empty"));
        assert!(error(&at("fake.parquet")).to_string().contains("is not Parquet"));
        assert!(error(&at("named.csv")).to_string().contains("is Parquet, although its name says CSV"));
        assert_eq!(
            error(&at("book.csv")).hint_text(),
            Some("it looks like a zip archive or an Excel workbook")
        );
        assert!(error(&at("what.bin")).to_string().contains("cannot tell the format"));
        assert!(error(&at("none")).to_string().contains("no data files"));
        assert!(error(&at("absent.csv")).to_string().contains("cannot read"));
        let unmatched = error(&at("*.feather"));
        assert!(unmatched.to_string().contains("no file matches"), "{unmatched}");
        assert!(unmatched.hint_text().unwrap().contains("`empty.csv`"));
    }

    #[test]
    fn formats_do_not_mix() {
        let folder = folder(&[("a.csv", b"x\n1\n"), ("b.parquet", b"PAR1xxxxPAR1")]);
        let error = error(folder.path());
        assert!(error.to_string().contains("b.parquet: is Parquet"), "{error}");
    }
}
