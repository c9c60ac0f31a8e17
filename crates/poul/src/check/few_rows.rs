//! Policies that were run on so few rows that what is said of them is mostly chance.

use super::findings::listed;
use crate::policy::PolicySet;

/// Rows from which the noise of a policy's own mean is less than half of that of one row.
const ENOUGH: u64 = 5;

/// A sentence about the policies that were run, but hardly, if there are any; `rows` are those of each policy.
pub(crate) fn few_rows(policies: &PolicySet, rows: &[u64]) -> Option<String> {
    let few = (0..policies.len()).filter(|policy| (1..ENOUGH).contains(&rows[*policy]));
    let few: Vec<String> =
        few.map(|policy| format!("`{}` ({})", policies.name(policy), rows[policy])).collect();
    if few.is_empty() {
        return None;
    }
    let have =
        if few.len() == 1 { "1 policy was".to_owned() } else { format!("{} policies were", few.len()) };
    Some(format!(
        "{have} run on fewer than {ENOUGH} rows: {}; what rests on those rows alone is mostly chance",
        listed(&few)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_that_were_hardly_run_are_named_with_their_rows() {
        let toml =
            "[contexts]\ns = 1\n[policies.a]\ns = \"x\"\n[policies.b]\ns = \"y\"\n[policies.c]\ns = \"z\"\n";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policies.toml");
        std::fs::write(&path, toml).unwrap();
        let policies = PolicySet::read(&path, None).unwrap();
        assert_eq!(few_rows(&policies, &[5, 100, 0]), None);
        let said = few_rows(&policies, &[1, 100, 4]).unwrap();
        assert!(said.starts_with("2 policies were run on fewer than 5 rows: `a` (1), `c` (4);"), "{said}");
        let said = few_rows(&policies, &[100, 1, 0]).unwrap();
        assert!(said.starts_with("1 policy was run on fewer than 5 rows: `b` (1);"), "{said}");
    }
}
