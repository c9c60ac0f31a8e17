//! Which policies are compared with which: names, combinations, or all.

use std::collections::BTreeSet;

use super::combination::combination;
use crate::policy::{PolicySet, combination_name};
use crate::{Error, Result};

/// A question as it is asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Question {
    /// Policies by name, or combinations of the factorial columns. Default: every policy but the one compared with.
    pub policies: Vec<String>,
    /// The policy compared with, named in the same way. No default here: a model supplies its control.
    pub against: Option<String>,
}

/// A question in terms of a set of policies.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The policies, with those that were asked for as combinations.
    pub policies: PolicySet,
    /// The policies asked for, in the order asked, as indices.
    pub targets: Vec<usize>,
    /// The policy compared with.
    pub against: usize,
}

impl Question {
    /// Finds the policies in `policies`. In the factorial form a combination that is not among them is added.
    #[doc(hidden)]
    pub fn ask(&self, policies: &PolicySet, factorial: bool) -> Result<Asked> {
        let Some(against) = &self.against else {
            let error = Error::usage("no policy to compare with is named, and the model has no control");
            return Err(error.hint("name one: ‹against=NAME›"));
        };
        let mut added: Vec<(String, Vec<(String, String)>)> = Vec::new();
        let mut find = |name: &str| -> Result<String> {
            if policies.index(name).is_some() || !factorial {
                return Ok(name.to_owned());
            }
            let pairs = combination(name)?;
            let missing =
                policies.contexts().iter().find(|context| pairs.iter().all(|(own, _)| own != *context));
            if let Some(missing) = missing {
                let what = format!("the combination `{name}` has no value for `{missing}`");
                let columns = policies.contexts().join("=…, ");
                return Err(Error::usage(what).hint(format!("write '{columns}=…'")));
            }
            let canonical = combination_name(pairs.iter().map(|(c, value)| (c.as_str(), value.as_str())));
            if policies.index(&canonical).is_none() {
                added.push((canonical.clone(), pairs));
            }
            Ok(canonical)
        };
        let against = find(against)?;
        let mut names: Vec<String> = Vec::with_capacity(self.policies.len());
        let mut seen: BTreeSet<String> = BTreeSet::new();
        for name in &self.policies {
            let name = find(name)?;
            if name == against {
                return Err(Error::usage(format!("`{name}` is compared with itself"))
                    .hint("choose another ‹policy› or ‹against›"));
            }
            if seen.insert(name.clone()) {
                names.push(name);
            }
        }
        let policies = with_combinations(policies, &added)?;
        let against = policies.require(&against).map_err(|error| error.at("the policy compared with"))?;
        let targets: Vec<usize> = match names.is_empty() {
            true => (0..policies.len()).filter(|policy| *policy != against).collect(),
            false => names.iter().map(|name| policies.require(name)).collect::<Result<_>>()?,
        };
        if targets.is_empty() {
            let error =
                Error::input("there is no policy to compare").at(format!("`{}`", policies.name(against)));
            return Err(error.hint("name one, ‹policy=NAME›, or define some, ‹policies=FILE›"));
        }
        Ok(Asked { policies, targets, against })
    }
}

fn with_combinations(policies: &PolicySet, added: &[(String, Vec<(String, String)>)]) -> Result<PolicySet> {
    let mut all = policies.clone();
    for (name, pairs) in added {
        // The same combination may be asked for twice.
        if all.index(name).is_some() {
            continue;
        }
        let mut builder = PolicySet::builder();
        for (context, value) in pairs {
            builder.add(name, context, value, 1.0);
        }
        all = all.union(&builder.build()?)?;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factorial() -> PolicySet {
        let contexts = ["Gender".to_owned(), "Job".to_owned()];
        PolicySet::factorial(&contexts, [["m", "cook"], ["f", "cook"], ["m", "nurse"]], None).unwrap()
    }

    fn ask(policies: &[&str], against: &str, factorial_form: bool) -> Result<Asked> {
        let policies = policies.iter().map(|name| (*name).to_owned()).collect();
        Question { policies, against: Some(against.to_owned()) }.ask(&factorial(), factorial_form)
    }

    #[test]
    fn combinations_are_found_in_any_order_or_added() {
        let asked = ask(&["Job=nurse,Gender=f", "Job=cook, Gender=f"], "Job=cook, Gender=m", true).unwrap();
        let names: Vec<&str> = asked.targets.iter().map(|target| asked.policies.name(*target)).collect();
        assert_eq!(names, ["Gender=f, Job=nurse", "Gender=f, Job=cook"]);
        assert_eq!(asked.policies.name(asked.against), "Gender=m, Job=cook");
        assert_eq!(asked.policies.len(), 4);
        assert_eq!(ask(&[], "Gender=m, Job=cook", true).unwrap().targets.len(), 2);
    }

    #[test]
    fn mistakes_are_told() {
        let message = |policies: &[&str], against: &str, factorial_form| {
            ask(policies, against, factorial_form).unwrap_err().to_string()
        };
        let control = "Gender=m, Job=cook";
        assert_eq!(message(&["T9"], control, false), "unknown policy `T9`");
        assert_eq!(message(&["T9"], control, true), "the combination `T9` has no value for `T9`");
        assert_eq!(message(&["Gender=f, Job=cook, Age=3"], control, true), "unknown context `Age`");
        assert_eq!(
            message(&["Gender=f"], control, true),
            "the combination `Gender=f` has no value for `Job`"
        );
        assert!(message(&["Job=cook, Gender=m"], control, true).contains("compared with itself"));
        assert!(Question::default().ask(&factorial(), true).unwrap_err().hint_text().is_some());
    }
}
