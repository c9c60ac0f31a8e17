//! Limits of groups of users, from a table with a row for each group.
//!
//! ```text
//! city,cost,cap_T2
//! Rome,50000,0.3
//! Oslo,20000,
//! ```
//! A column named after an outcome holds budgets, `cap_POLICY` and `floor_POLICY` hold shares of the group's users. An empty
//! cell is no limit.

use std::collections::BTreeMap;

use super::limits::AskedLimit;
use super::request::{check_shares, share_of};
use crate::data::{Labels, Source, numbers};
use crate::{Error, Result};

/// Reads the limits, by the labels of the column `group`.
pub(super) fn read_group_limits(
    table: &Source,
    group: &str,
    outcomes: &[String],
) -> Result<BTreeMap<String, Vec<AskedLimit>>> {
    let read = read(table, group, outcomes);
    read.map_err(|error| table.locate(error))
}

fn read(table: &Source, group: &str, outcomes: &[String]) -> Result<BTreeMap<String, Vec<AskedLimit>>> {
    let names = table.column_names();
    let key = [group, "group"].into_iter().find(|name| names.contains(name));
    let Some(key) = key else {
        return Err(Error::missing_column(group, names).at("‹group_budgets›"));
    };
    let kinds: Vec<Option<Kind<'_>>> = names
        .iter()
        .map(|name| if *name == key { Ok(None) } else { Kind::of(name, outcomes).map(Some) })
        .collect::<Result<_>>()?;
    let mut labels = Labels::new();
    let mut limits: BTreeMap<String, Vec<AskedLimit>> = BTreeMap::new();
    let mut n_read = 0;
    for batch in table.batches(&names, 4096)? {
        let batch = batch?;
        let place = |row: usize| format!("row {}", n_read + row + 1);
        let key = names.iter().position(|name| *name == key).unwrap_or(0);
        let codes = labels.codes_of(batch.column(key));
        let codes = codes.map_err(|row| Error::input("the group is null").at(place(row)))?;
        for (row, code) in codes.iter().enumerate() {
            let name = labels.name(*code).unwrap_or_default().to_owned();
            if limits.insert(name.clone(), Vec::new()).is_some() {
                return Err(Error::input(format!("the group `{name}` has two rows"))
                    .at(place(row))
                    .hint("give each group one row, with a column for each limit"));
            }
        }
        for ((name, kind), array) in names.iter().zip(&kinds).zip(batch.columns()) {
            let Some(kind) = kind else { continue };
            let amounts = numbers(array.as_ref())
                .ok_or_else(|| Error::input("limits must be numbers").at(format!("column `{name}`")))?;
            for (row, amount) in amounts.iter().enumerate().filter(|(_, amount)| !amount.is_nan()) {
                let limit = kind.limit(*amount).map_err(|error| {
                    Error::input(error.to_string()).at(place(row)).at(format!("column `{name}`"))
                })?;
                let label = labels.name(codes[row]).unwrap_or_default();
                limits.entry(label.to_owned()).or_default().push(limit);
            }
        }
        n_read += batch.num_rows();
    }
    for (group, limits) in &limits {
        check_shares(limits, &format!(" in `{group}`"))?;
    }
    Ok(limits)
}

/// What a column limits.
enum Kind<'a> {
    Budget(&'a str),
    Cap(&'a str),
    Floor(&'a str),
}

impl<'a> Kind<'a> {
    fn of(name: &'a str, outcomes: &[String]) -> Result<Self> {
        if outcomes.iter().any(|outcome| outcome == name) {
            return Ok(Self::Budget(name));
        }
        if let Some(policy) = name.strip_prefix("cap_") {
            return Ok(Self::Cap(policy));
        }
        if let Some(policy) = name.strip_prefix("floor_") {
            return Ok(Self::Floor(policy));
        }
        let known = outcomes.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        Err(Error::input(format!("the column `{name}` is no limit")).hint(format!(
            "a budget has the name of an outcome ({known}), a share that of a policy: `cap_POLICY`, `floor_POLICY`"
        )))
    }

    fn limit(&self, amount: f64) -> Result<AskedLimit> {
        match self {
            Self::Budget(outcome) if amount.is_finite() => {
                Ok(AskedLimit::Budget { outcome: (*outcome).to_owned(), amount })
            }
            Self::Budget(_) => Err(Error::input("the budget is infinite")),
            Self::Cap(policy) => {
                share_of("cap", policy, amount)?;
                Ok(AskedLimit::Cap { policy: (*policy).to_owned(), share: amount })
            }
            Self::Floor(policy) => {
                share_of("floor", policy, amount)?;
                Ok(AskedLimit::Floor { policy: (*policy).to_owned(), share: amount })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(text: &str) -> Result<BTreeMap<String, Vec<AskedLimit>>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("groups.csv");
        std::fs::write(&path, text).unwrap();
        let table = Source::open(&path.to_string_lossy()).unwrap();
        read_group_limits(&table, "city", &["gmv".to_owned(), "cost".to_owned()])
    }

    #[test]
    fn every_cell_is_a_limit_and_an_empty_one_is_none() {
        let found = limits("city,cost,cap_T2\nRome,50,0.3\nOslo,20,\n").unwrap();
        assert_eq!(found["Oslo"], [AskedLimit::Budget { outcome: "cost".to_owned(), amount: 20.0 }]);
        assert_eq!(found["Rome"][1], AskedLimit::Cap { policy: "T2".to_owned(), share: 0.3 });
        // A key of any name can be called `group`.
        assert_eq!(limits("group,cost\nRome,5\n").unwrap().len(), 1);
    }

    #[test]
    fn mistakes_are_told() {
        for (text, says) in [
            ("town,cost\nRome,5\n", "no column `city`"),
            ("city,costs\nRome,5\n", "`costs` is no limit"),
            ("city,cost\nRome,5\nRome,6\n", "`Rome` has two rows"),
            ("city,cap_T2\nRome,5\n", "cap of `T2` is 5"),
            ("city,cost\nRome,dear\n", "must be numbers"),
            ("city,floor_T1,floor_T2\nRome,0.6,0.6\n", "in `Rome`"),
        ] {
            let error = limits(text).unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}
