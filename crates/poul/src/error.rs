//! The library's one error: what went wrong, where, and a hint.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::spelling::{plainly, spelled};

/// What every fallible function of the library returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Something wrong with a setting, an input or an output.
///
/// Built by kind and then placed: `Error::input("column `gmv` is missing").file(path).hint("…")`.
/// [`Display`](fmt::Display) gives the message and the place on one line; the hint is kept apart so that a front
/// end can set it off. Settings stand in both as `‹name=value›`: [`told`](Self::told) spells them as a front end does,
/// all else by their names.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: Kind,
    what: String,
    file: Option<PathBuf>,
    place: Vec<String>,
    hint: Option<Hint>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What to do about it: as written, and with settings by their names.
#[derive(Debug)]
struct Hint {
    marked: String,
    plain: String,
}

/// Whose fault it is; a front end maps each to an exit code or an exception class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A wrong or contradictory setting.
    Usage,
    /// A file or table that cannot be used as it is.
    Input,
    /// Something could not be written.
    Output,
    /// The caller asked to stop.
    Cancelled,
    /// Anything else.
    Other,
}

impl Error {
    /// A wrong or contradictory setting.
    pub fn usage(what: impl Into<String>) -> Self {
        Self::new(Kind::Usage, what)
    }

    /// A file or table that cannot be used as it is.
    pub fn input(what: impl Into<String>) -> Self {
        Self::new(Kind::Input, what)
    }

    /// Something that could not be written to `path`.
    pub fn output(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        let hint = match source.kind() {
            std::io::ErrorKind::NotFound => Some("create the folder first"),
            std::io::ErrorKind::PermissionDenied => Some("choose a folder you may write to"),
            std::io::ErrorKind::AlreadyExists | std::io::ErrorKind::NotADirectory => {
                Some("a file stands where a folder is needed: choose another folder")
            }
            std::io::ErrorKind::StorageFull => Some("free some space, or choose another disk"),
            _ => None,
        };
        let error = Self::new(Kind::Output, format!("cannot write: {source}")).file(path).source(source);
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }

    /// A file that could not be read.
    pub fn read(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        let error = Self::input(format!("cannot read: {source}")).file(path);
        let missing = source.kind() == std::io::ErrorKind::NotFound;
        let error = error.source(source);
        if missing { error.hint("check the path; nothing is there") } else { error }
    }

    /// Anything that is neither the user's nor the disk's fault.
    pub fn other(what: impl Into<String>) -> Self {
        Self::new(Kind::Other, what)
    }

    /// The caller asked to stop.
    pub fn cancelled() -> Self {
        Self::new(Kind::Cancelled, "stopped on request")
    }

    /// The column `name` is not among `known`.
    pub(crate) fn missing_column<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let error = Self::input(format!("there is no column `{name}`"));
        error.hint(suggestion("columns", name, &known))
    }

    /// `name` is not among the `known` members of `group` ("policies", "scenarios", …).
    pub fn unknown<'a>(
        kind: Kind,
        what: &str,
        name: &str,
        group: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        Self::new(kind, format!("unknown {what} `{name}`")).hint(suggestion(group, name, &known))
    }

    fn new(kind: Kind, what: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            what: what.into(),
            file: None,
            place: Vec::new(),
            hint: None,
            source: None,
        }))
    }

    /// Names the file; the first name given stays.
    #[must_use]
    pub fn file(mut self, path: impl AsRef<Path>) -> Self {
        self.0.file.get_or_insert_with(|| path.as_ref().to_path_buf());
        self
    }

    /// Names a place inside the file, such as `line 3`, ``column `gmv` `` or ``policy `T2` ``.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.0.place.push(place.into());
        self
    }

    /// Says in what the place so far lies: it is told before it.
    #[must_use]
    pub(crate) fn within(mut self, place: impl Into<String>) -> Self {
        self.0.place.insert(0, place.into());
        self
    }

    /// Names a row by its number, as the column `row` of effects counts them: from 0.
    #[must_use]
    pub fn at_row(self, row: impl fmt::Display) -> Self {
        self.at(row_name(row))
    }

    /// Says what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        let marked = hint.into();
        self.0.hint = Some(Hint { plain: plainly(&marked), marked });
        self
    }

    /// Adds a second way out to the hint.
    #[must_use]
    pub fn otherwise(mut self, other: &str) -> Self {
        let hint = match self.0.hint.take().map(|hint| hint.marked) {
            Some(hint) if hint.ends_with('?') => format!("{hint} Otherwise {other}"),
            Some(hint) => format!("{hint}; otherwise {other}"),
            None => other.to_string(),
        };
        self.hint(hint)
    }

    /// Keeps the error beneath.
    #[must_use]
    pub fn source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Whose fault it is.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// What to do about it, where the library knows.
    pub fn hint_text(&self) -> Option<&str> {
        self.0.hint.as_ref().map(|hint| hint.plain.as_str())
    }

    /// The message and the hint, with settings spelled as in [`spelled`](crate::spelled).
    pub fn told(&self, spell: impl Fn(&str, Option<&str>) -> String) -> (String, Option<String>) {
        let hint = self.0.hint.as_ref().map(|hint| spelled(&hint.marked, &spell));
        (spelled(&self.marked(), &spell), hint)
    }

    fn marked(&self) -> String {
        let inner = &self.0;
        let file = inner.file.iter().map(|file| file.display().to_string());
        let places = file.chain(inner.place.iter().cloned()).chain([inner.what.clone()]);
        places.collect::<Vec<_>>().join(": ")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&plainly(&self.marked()))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}

/// What a row is called in messages, from its number as the column `row` of effects counts them.
///
/// ```
/// assert_eq!(poul::row_name(6), "row 6 (counted from 0)");
/// ```
pub fn row_name(row: impl fmt::Display) -> String {
    format!("row {row} (counted from 0)")
}

/// The member of `known` that `name` was most likely meant to be, if one is close enough.
pub fn nearest_name<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let lower = name.to_lowercase();
    // A name of which nothing is left was not meant: `0` is no slip of the pen for `1`.
    let n = name.chars().count();
    let limit = n.div_ceil(3).min(n.saturating_sub(1));
    known
        .iter()
        .map(|candidate| (edit_distance(&lower, &candidate.to_lowercase()), *candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

fn suggestion(group: &str, name: &str, known: &[&str]) -> String {
    const SHOWN: usize = 12;
    if let Some(nearest) = nearest_name(name, known) {
        return format!("did you mean `{nearest}`?");
    }
    let shown: Vec<String> = known.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    let more = known.len().saturating_sub(SHOWN);
    match (known.is_empty(), more) {
        (true, _) => format!("there are no {group}"),
        (false, 0) => format!("the {group} are {}", shown.join(", ")),
        (false, more) => format!("the {group} are {} and {more} more", shown.join(", ")),
    }
}

/// Edits from one word to the other over characters: insert, delete, replace, or swap two neighbours.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut edits = replaced.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                edits = edits.min(before[j - 2] + 1);
            }
            row.push(edits);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_file_then_place_then_cause() {
        let error = Error::input("probability is negative").file("p.csv").at("line 3").hint("use 0 to 1");
        assert_eq!(error.to_string(), "p.csv: line 3: probability is negative");
        assert_eq!(error.hint_text(), Some("use 0 to 1"));
        assert_eq!(error.kind(), Kind::Input);
    }

    #[test]
    fn settings_are_named_here_and_spelled_by_the_front_end() {
        let error = Error::usage("needs a stratum").at("‹design›").hint("name it: ‹stratum=COL›");
        assert_eq!(error.to_string(), "`design`: needs a stratum");
        assert_eq!(error.hint_text(), Some("name it: `stratum = COL`"));
        let (what, hint) = error.told(|name, value| format!("{name}<{}>", value.unwrap_or_default()));
        assert_eq!(
            (what.as_str(), hint.as_deref()),
            ("design<>: needs a stratum", Some("name it: stratum<COL>"))
        );
    }

    #[test]
    fn near_names_are_suggested_and_far_ones_listed() {
        assert_eq!(nearest_name("gvm", &["cost", "gmv"]), Some("gmv"));
        assert_eq!(nearest_name("vgm", &["cost", "gmv"]), None);
        assert_eq!((nearest_name("0", &["1"]), nearest_name("T9", &["T1"])), (None, Some("T1")));
        assert_eq!(nearest_name("A", &["a"]), Some("a"));
        assert_eq!(nearest_name("outcom", &["cost", "outcome"]), Some("outcome"));
        let error = Error::missing_column("zzz", ["cost", "gmv"]);
        assert_eq!(error.hint_text(), Some("the columns are `cost`, `gmv`"));
        let error = error.otherwise("add it");
        assert_eq!(error.hint_text(), Some("the columns are `cost`, `gmv`; otherwise add it"));
        let error = Error::missing_column("gvm", ["gmv"]).otherwise("add it");
        assert_eq!(error.hint_text(), Some("did you mean `gmv`? Otherwise add it"));
    }
}
