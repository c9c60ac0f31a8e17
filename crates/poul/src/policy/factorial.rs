//! The factorial form: each treatment column is a context, each of its values an action, each combination a policy.

use std::collections::{BTreeMap, HashSet};

use super::builder::{EVERY_OTHER, Names, PolicySetBuilder};
use super::set::PolicySet;
use super::weights::ContextWeights;
use crate::{Error, Result};

impl PolicySet {
    /// The policies that are the distinct `combinations`: one value for each of `contexts`, in that order.
    ///
    /// Combinations may repeat, so rows of data can be passed as they come. Policies are named by
    /// `combination_name`. Contexts are weighted uniformly unless each has a weight.
    ///
    /// ```
    /// use poul::policy::PolicySet;
    /// let contexts = ["Gender".to_owned(), "Education".to_owned()];
    /// let rows = [["male", "high school"], ["female", "college"], ["male", "high school"]];
    /// let set = PolicySet::factorial(&contexts, rows, None)?;
    /// assert_eq!(set.names(), ["Education=college, Gender=female", "Education=high school, Gender=male"]);
    /// # Ok::<(), poul::Error>(())
    /// ```
    pub fn factorial<'a, I>(
        contexts: &[String],
        combinations: I,
        weights: Option<&BTreeMap<String, f64>>,
    ) -> Result<PolicySet>
    where
        I: IntoIterator,
        I::Item: AsRef<[&'a str]>,
    {
        check_contexts(contexts)?;
        let mut builder = PolicySetBuilder::default();
        if let Some(weights) = weights {
            builder.replace_weights(&ContextWeights::from_map(weights));
        }
        let mut values: Vec<Names> = contexts.iter().map(|_| Names::default()).collect();
        // Only asked about members, never walked.
        let mut seen: HashSet<Vec<u32>> = HashSet::new();
        let mut key = Vec::with_capacity(contexts.len());
        for combination in combinations {
            let combination = combination.as_ref();
            if combination.len() != contexts.len() {
                return Err(Error::input(format!(
                    "a combination has {} values for {} treatment columns",
                    combination.len(),
                    contexts.len()
                )));
            }
            key.clear();
            key.extend(values.iter_mut().zip(combination).map(|(names, value)| names.number(value)));
            if seen.contains(&key) {
                continue;
            }
            seen.insert(key.clone());
            let pairs = || contexts.iter().map(String::as_str).zip(combination.iter().copied());
            let name = combination_name(pairs());
            for (context, action) in pairs() {
                builder.add(&name, context, action, 1.0);
            }
        }
        builder.build()
    }
}

/// The name of a combination: `Education=high school, Gender=male`, contexts in byte order.
///
/// A context or value that contains a comma (a context: also `=`), or begins with a quotation mark, is quoted,
/// so that different combinations always have different names.
pub(crate) fn combination_name<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut pairs: Vec<(&str, &str)> = pairs.into_iter().collect();
    pairs.sort_unstable();
    let mut name = String::new();
    for (i, (context, value)) in pairs.into_iter().enumerate() {
        name.push_str(if i == 0 { "" } else { ", " });
        push_quoted(&mut name, context, &[',', '=']);
        name.push('=');
        push_quoted(&mut name, value, &[',']);
    }
    name
}

fn push_quoted(out: &mut String, text: &str, separators: &[char]) {
    if !text.starts_with('"') && !text.contains(separators) {
        out.push_str(text);
        return;
    }
    out.push('"');
    for character in text.chars() {
        if matches!(character, '"' | '\\') {
            out.push('\\');
        }
        out.push(character);
    }
    out.push('"');
}

fn check_contexts(contexts: &[String]) -> Result<()> {
    let mut sorted: Vec<&String> = contexts.iter().collect();
    sorted.sort_unstable();
    if sorted.is_empty() {
        return Err(Error::usage("a factorial treatment needs at least one treatment column"));
    }
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        let error = Error::usage(format!("treatment column `{}` is given twice", pair[0]));
        return Err(error.hint("name each treatment column once"));
    }
    if sorted.iter().any(|context| *context == EVERY_OTHER) {
        return Err(Error::usage("a treatment column cannot be called `*`").hint("rename the column"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    proptest! {
        #[test]
        fn different_combinations_have_different_names(
            a in prop::collection::vec("[a=,\" \\\\]{1,4}", 2),
            b in prop::collection::vec("[a=,\" \\\\]{1,4}", 2),
            contexts in prop::collection::btree_set("[a=,\" \\\\]{1,4}", 2),
        ) {
            let name = |values: &[String]| {
                combination_name(contexts.iter().map(String::as_str).zip(values.iter().map(String::as_str)))
            };
            prop_assert_eq!(a == b, name(&a) == name(&b));
        }
    }

    #[test]
    fn order_of_columns_and_rows_does_not_matter() {
        let weights = BTreeMap::from([("x".to_owned(), 3.0), ("y".to_owned(), 1.0)]);
        let a =
            PolicySet::factorial(&names(&["x", "y"]), [["1", "2"], ["3", "2"], ["1", "2"]], Some(&weights));
        let b = PolicySet::factorial(&names(&["y", "x"]), [["2", "3"], ["2", "1"]], Some(&weights));
        let (a, b) = (a.unwrap(), b.unwrap());
        assert_eq!(a.canonical_bytes(), b.canonical_bytes());
        assert_eq!(a.names(), ["x=1, y=2", "x=3, y=2"]);
        assert_eq!(a.distance(0, 1), 1.5);
    }

    #[test]
    fn wrong_columns_are_refused() {
        let fail = |contexts: &[&str], row: &[&str], weights: Option<&[(&str, f64)]>| {
            let weights =
                weights.map(|pairs| pairs.iter().map(|(name, w)| ((*name).to_owned(), *w)).collect());
            let error = PolicySet::factorial(&names(contexts), [row], weights.as_ref()).unwrap_err();
            assert!(error.hint_text().is_some() || contexts.is_empty() || row.len() != contexts.len());
            error.to_string()
        };
        assert_eq!(fail(&[], &[], None), "a factorial treatment needs at least one treatment column");
        assert_eq!(fail(&["x", "x"], &["1", "2"], None), "treatment column `x` is given twice");
        assert_eq!(fail(&["*"], &["1"], None), "a treatment column cannot be called `*`");
        assert_eq!(fail(&["x", "y"], &["1"], None), "a combination has 1 values for 2 treatment columns");
        assert_eq!(fail(&["x"], &[""], None), "policy `x=`: the name of the action is empty");
        let missing = fail(&["x", "y"], &["1", "2"], Some(&[("x", 1.0)]));
        assert_eq!(missing, "policy `x=1, y=2`: context `y` has no weight");
        let unknown = fail(&["x"], &["1"], Some(&[("x", 1.0), ("z", 1.0)]));
        assert_eq!(unknown, "unknown context `z`");
        assert_eq!(
            PolicySet::factorial(&names(&["x"]), [[""; 1]; 0], None).unwrap_err().to_string(),
            "there are no policies"
        );
    }
}
