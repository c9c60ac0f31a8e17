//! `--budget`, `--rate`, `--cap`, `--floor` and `--eligible` as typed.

use std::collections::BTreeMap;

use poul::{Error, Result};

/// Reads `NAME=AMOUNT`; a name may hold `=`, an amount may be written `1e6`.
pub(super) fn amounts(entries: &[String], flag: &str, form: &str) -> Result<BTreeMap<String, f64>> {
    let mut amounts = BTreeMap::new();
    for entry in entries {
        let wrong = || {
            Error::usage(format!("{flag}: `{entry}` is not of the form {form}"))
                .hint(format!("such as {flag} {}", example(flag)))
        };
        let (name, amount) = entry.rsplit_once('=').ok_or_else(wrong)?;
        let amount: f64 = amount.trim().parse().map_err(|_| wrong())?;
        if name.trim().is_empty() {
            return Err(wrong());
        }
        if amounts.insert(name.trim().to_owned(), amount).is_some() {
            return Err(Error::usage(format!("{flag} names `{}` twice", name.trim())));
        }
    }
    Ok(amounts)
}

/// Reads `POLICY: EXPR`.
pub(super) fn eligible(entries: &[String]) -> Result<BTreeMap<String, String>> {
    let mut eligible = BTreeMap::new();
    for entry in entries {
        let (policy, expression) = entry.split_once(':').ok_or_else(|| {
            Error::usage(format!("--eligible: `{entry}` is not of the form POLICY: EXPR"))
                .hint("such as --eligible 'T2: age >= 18'")
        })?;
        if eligible.insert(policy.trim().to_owned(), expression.trim().to_owned()).is_some() {
            return Err(Error::usage(format!("--eligible names `{}` twice", policy.trim()))
                .hint("join the expressions with `and`"));
        }
    }
    Ok(eligible)
}

fn example(flag: &str) -> &'static str {
    match flag {
        "--budget" => "cost=1000000",
        "--rate" => "cost/gmv=0.2",
        _ => "T2=0.3",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_what_separates() {
        let typed = ["cost=1e6".to_owned(), "Gender=f, Job=cook=0.3".to_owned()];
        let found = amounts(&typed, "--cap", "POLICY=SHARE").unwrap();
        assert_eq!((found["cost"], found["Gender=f, Job=cook"]), (1e6, 0.3));
        assert!(amounts(&["cost".to_owned()], "--budget", "").is_err());
        assert!(amounts(&["cost=x".to_owned()], "--budget", "").is_err());
        assert!(amounts(&["c=1".to_owned(), "c=2".to_owned()], "--budget", "").is_err());
        let found = eligible(&["T2: city = \"a:b\"".to_owned()]).unwrap();
        assert_eq!(found["T2"], "city = \"a:b\"");
    }
}
