//! Policy files by the ending of their names.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::builder::PolicySetBuilder;
use super::set::PolicySet;
use super::weights::ContextWeights;
use super::{json_form, long_form, toml_form};
use crate::{Error, Result};

impl PolicySet {
    /// Reads a policy file: `.toml`, `.json`, `.csv`, `.csv.gz` or `.parquet`.
    ///
    /// `contexts` is a file of context weights (see [`ContextWeights::read`]) for policies that carry none.
    pub fn read(path: &Path, contexts: Option<&Path>) -> Result<PolicySet> {
        builder(path, contexts)?.build()
    }
}

pub(super) fn builder(path: &Path, contexts: Option<&Path>) -> Result<PolicySetBuilder> {
    let name = path.to_string_lossy().to_lowercase();
    let mut builder = if name.ends_with(".toml") {
        toml_form::builder(&read_text(path)?, path)?
    } else if name.ends_with(".json") {
        json_form::builder(&read_text(path)?, path)?
    } else if name.ends_with(".csv") {
        long_form::csv(open(path)?, path)?
    } else if name.ends_with(".csv.gz") {
        long_form::csv(MultiGzDecoder::new(BufReader::new(open(path)?)), path)?
    } else if name.ends_with(".parquet") {
        long_form::parquet(open(path)?, path)?
    } else {
        let error = Error::input("not a policy file by its name").file(path);
        return Err(error.hint("use a file that ends in .toml, .json, .csv, .csv.gz or .parquet"));
    };
    if let Some(contexts) = contexts {
        if builder.weights.is_some() {
            let error =
                Error::usage(format!("context weights are given twice: here and in {}", contexts.display()));
            return Err(error
                .file(path)
                .hint("drop `contexts` from the policy file, or the file of weights"));
        }
        builder.replace_weights(&ContextWeights::read(contexts)?);
    }
    Ok(builder)
}

fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(|error| Error::read(path, error))
}

fn read_text(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).map_err(|error| Error::read(path, error))?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..valid].iter().filter(|byte| **byte == b'\n').count();
        let error = Error::input("the text is not UTF-8").file(path).at(format!("line {line}"));
        error.hint("save the file as UTF-8")
    })
}
