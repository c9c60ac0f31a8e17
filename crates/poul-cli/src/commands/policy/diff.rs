//! `poul policy diff`: what changes between two policies, of one file or of two.

use std::path::Path;

use poul::policy::{Diff, PolicySet};
use poul::{Error, Result};
use poul_report::number::{counted, percent, significant};
use serde_json::json;

use super::{distribution, find, read_weighted};
use crate::args::{PolicyArgs, PolicyDiff, PolicyFile};
use crate::commands::{print, print_json};
use crate::progress::Terminal;
use crate::table::Table;

pub(super) fn run(args: &PolicyDiff, terminal: &Terminal) -> Result<()> {
    let set = read_weighted(&args.file, terminal)?;
    let Some(with) = &args.with else {
        let [a, b] = args.names.as_slice() else {
            return Err(Error::usage("two policies are needed")
                .hint("name both, or a second file to compare with: --with FILE"));
        };
        let diff = set.diff(find(&set, a, &args.file)?, find(&set, b, &args.file)?);
        return one(&diff, args.file.json);
    };
    let file = PolicyFile {
        policy: PolicyArgs { policies: Some(with.clone()), ..PolicyArgs::default() },
        json: args.file.json,
    };
    let other = super::read(&file)?;
    let place = |error: Error| error.file(with);
    let (a, b) = match args.names.as_slice() {
        [] => return all(&set, &other, with, args.file.json),
        [name] => (name, name),
        [a, b, ..] => (a, b),
    };
    let (from, to) = (find(&set, a, &args.file)?, find(&other, b, &file)?);
    one(&set.diff_with(from, &other, to).map_err(place)?, args.file.json)
}

fn one(diff: &Diff, as_json: bool) -> Result<()> {
    if as_json {
        return print_json(&json!({ "from": diff.from, "to": diff.to, "diff": diff }));
    }
    if diff.contexts.is_empty() {
        return print(format!("{} and {} are the same mixture\n", diff.from, diff.to));
    }
    let (from, to) = match diff.from == diff.to {
        true => ("before", "after"),
        false => (diff.from.as_str(), diff.to.as_str()),
    };
    let mut table = Table::new(["context", "weight", from, to, "mass moved"]);
    for change in &diff.contexts {
        table.row([
            change.context.clone(),
            percent(change.weight),
            distribution(&change.from),
            distribution(&change.to),
            percent(change.mass_moved),
        ]);
    }
    print(table.to_string())?;
    let contexts = counted(diff.contexts.len(), "context differs", "contexts differ");
    let (moved, distance) = (percent(diff.mass_moved), significant(diff.distance));
    print(format!("{contexts}; {moved} of the mass moved; distance {distance}\n"))
}

/// Every policy of either file: whether the other has it, and how far apart they are.
fn all(set: &PolicySet, other: &PolicySet, with: &Path, as_json: bool) -> Result<()> {
    let mut diffs: Vec<Diff> = Vec::new();
    for (place, name) in set.names().iter().enumerate() {
        if let Some(theirs) = other.index(name) {
            diffs.push(set.diff_with(place, other, theirs).map_err(|error| error.file(with))?);
        }
    }
    let only = |own: &PolicySet, other: &PolicySet| -> Vec<String> {
        own.names().iter().filter(|name| other.index(name).is_none()).cloned().collect()
    };
    let (removed, added) = (only(set, other), only(other, set));
    let changed: Vec<&Diff> = diffs.iter().filter(|diff| !diff.contexts.is_empty()).collect();
    if as_json {
        return print_json(&json!({ "removed": removed, "added": added, "changed": changed }));
    }
    let mut table = Table::new(["policy", "change", "contexts", "mass moved", "distance"]).left(2);
    let dash = || "–".to_owned();
    for (names, what) in [(&removed, "removed"), (&added, "added")] {
        names.iter().for_each(|name| table.row([name.clone(), what.to_owned(), dash(), dash(), dash()]));
    }
    for diff in &changed {
        let (moved, distance) = (percent(diff.mass_moved), significant(diff.distance));
        table.row([
            diff.from.clone(),
            "changed".to_owned(),
            diff.contexts.len().to_string(),
            moved,
            distance,
        ]);
    }
    if !table.is_empty() {
        print(table.to_string())?;
    }
    print(format!("{} the same\n", counted(diffs.len() - changed.len(), "policy is", "policies are")))
}
