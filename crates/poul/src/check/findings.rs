//! What a person should look at, in words.

use serde::{Serialize, Serializer};

use super::{Leak, Profile, SampleRatio, Units};
use crate::data::{Columns, Design};
use crate::{counted, plainly, spelled};

/// One thing to look at.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// How serious it is.
    pub level: Level,
    /// What was found.
    #[serde(serialize_with = "named")]
    pub what: String,
    /// What to do about it.
    #[serde(serialize_with = "named")]
    pub hint: String,
}

impl Finding {
    /// Spells the settings it names as a front end does; see [`spelled`].
    pub fn spell(&mut self, spell: impl Fn(&str, Option<&str>) -> String) {
        self.what = spelled(&self.what, &spell);
        self.hint = spelled(&self.hint, &spell);
    }
}

fn named<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&plainly(text))
}

/// How serious a finding is; ordered from the most serious.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Effects from this data cannot be trusted until it is resolved.
    Problem,
    /// Worth knowing before acting on results.
    Warning,
    /// For information.
    Note,
}

/// Below this the sample ratio is called mismatched; the customary strict level, as the test is run on every data set.
const SAMPLE_RATIO_LEVEL: f64 = 0.001;
/// No more than one sound experiment in 500 is called unbalanced.
const BALANCE_LEVEL: f64 = 0.002;
const FEW_ROWS: u64 = 100;

pub(super) fn findings(
    profile: &Profile,
    columns: &Columns,
    units: &Units,
    screened: Vec<Finding>,
) -> Vec<Finding> {
    let mut list = List(Vec::new());
    sample_ratio(profile, &mut list);
    balance(profile, columns.design, &mut list);
    suspicious_columns(profile, screened, &mut list);
    policies_and_atoms(profile, &mut list);
    clusters_and_strata(profile, units, &mut list);
    // Stable: within a level, in the order found.
    list.0.sort_by_key(|finding| finding.level);
    list.0
}

struct List(Vec<Finding>);

impl List {
    fn add(&mut self, level: Level, what: String, hint: &str) {
        self.0.push(Finding { level, what, hint: hint.to_string() });
    }
}

fn sample_ratio(profile: &Profile, list: &mut List) {
    match &profile.sample_ratio {
        Some(ratio) => list.0.extend(sample_ratio_found(ratio)),
        None => list.add(
            Level::Note,
            "no sample-ratio test: the intended shares are not declared".to_string(),
            "declare them: ‹shares=POLICY=SHARE,…›",
        ),
    }
}

/// A sample ratio that chance does not explain.
pub(super) fn sample_ratio_found(ratio: &SampleRatio) -> Option<Finding> {
    (ratio.p_value < SAMPLE_RATIO_LEVEL).then(|| Finding {
        level: Level::Problem,
        what: format!(
            "sample-ratio mismatch: χ²({}) = {:.1}, p = {:.2e}, most of it from `{}`",
            ratio.degrees, ratio.statistic, ratio.p_value, ratio.worst_policy
        ),
        hint: "rows were lost or added after assignment, or the declared shares are wrong: find out before using effects"
            .to_owned(),
    })
}

fn balance(profile: &Profile, design: Design, list: &mut List) {
    let Some(test) = &profile.balance else {
        return;
    };
    if test.p_value > BALANCE_LEVEL {
        return;
    }
    let what = format!(
        "features differ between policies more than chance allows (permutation test on {} rows: p = {:.3})",
        test.rows, test.p_value
    );
    match design {
        Design::Observational => list.add(
            Level::Note,
            what,
            "expected without randomisation: the propensity model must account for it",
        ),
        Design::Randomized => list.add(
            Level::Problem,
            what,
            "exclude features measured after assignment; if that does not help, assignment was not random: name ‹stratum=COL›, or use ‹design=observational›",
        ),
        Design::Stratified => list.add(
            Level::Problem,
            what,
            "within strata policies should be alike: check the stratum column, and exclude features measured after assignment",
        ),
    }
    if design != Design::Observational && !test.columns.is_empty() {
        list.add(
            Level::Warning,
            format!("look post-treatment (they differ by policy beyond chance): {}", listed(&test.columns)),
            "if they were measured after assignment, leave them out with ‹exclude›",
        );
    }
}

fn suspicious_columns(profile: &Profile, screened: Vec<Finding>, list: &mut List) {
    let is_told = |leak: &&Leak| {
        let name = format!("`{}`", leak.column);
        screened.iter().any(|finding| finding.level == Level::Problem && finding.what.contains(&name))
    };
    for leak in profile.leaks.iter().filter(|leak| !is_told(leak)) {
        list.add(
            Level::Problem,
            format!(
                "`{}` is almost the outcome `{}` (correlation {:.3})",
                leak.column, leak.outcome, leak.correlation
            ),
            "a feature must be known before assignment: leave it out with ‹exclude›",
        );
    }
    list.0.extend(screened);
    if !profile.constant_columns.is_empty() {
        list.add(
            Level::Note,
            format!("constant: {}", listed(&profile.constant_columns)),
            "they carry no information and are left out",
        );
    }
    for outcome in profile.outcomes.iter().filter(|outcome| outcome.sd == 0.0) {
        list.add(
            Level::Problem,
            format!("the outcome `{}` is constant ({})", outcome.outcome, outcome.mean),
            "no effect can be estimated: check the column",
        );
    }
}

fn policies_and_atoms(profile: &Profile, list: &mut List) {
    let few: Vec<String> =
        profile.arms.iter().filter(|arm| arm.rows < FEW_ROWS).map(|arm| arm.policy.clone()).collect();
    if !few.is_empty() {
        list.add(
            Level::Note,
            format!(
                "{} of {} {} fewer than {FEW_ROWS} rows: {}",
                few.len(),
                counted(profile.arms.len(), "policy", "policies"),
                if few.len() == 1 { "has" } else { "have" },
                listed(&few)
            ),
            "their effects rest on the atoms they share with other policies",
        );
    }
    if !profile.unused_policies.is_empty() {
        list.add(
            Level::Note,
            format!(
                "{} no row: {}",
                counted(profile.unused_policies.len(), "defined policy has", "defined policies have"),
                listed(&profile.unused_policies)
            ),
            "they can still be scored where their atoms are covered",
        );
    }
    let uncovered: Vec<String> = profile
        .atoms
        .iter()
        .filter(|atom| atom.rows == 0)
        .map(|atom| format!("{}:{}", atom.context, atom.action))
        .collect();
    if !uncovered.is_empty() {
        list.add(
            Level::Warning,
            format!(
                "{} never run: {}",
                counted(uncovered.len(), "atom was", "atoms were"),
                listed(&uncovered)
            ),
            "policies that carry them are scored by extrapolation",
        );
    }
    for group in &profile.aliases {
        list.add(
            Level::Note,
            format!("the same mixture under different names: {}", listed(group)),
            "they are one policy to the estimator",
        );
    }
    if profile.control.is_none() {
        list.add(
            Level::Note,
            "no control is named: balance is shown against the mean of all rows".to_string(),
            "name the policy that others are compared with: ‹control=NAME›",
        );
    }
}

fn clusters_and_strata(profile: &Profile, units: &Units, list: &mut List) {
    if units.split_clusters > 0 {
        let what = format!(
            "{} of {} clusters {} rows under different policies",
            units.split_clusters,
            units.n_clusters,
            if units.split_clusters == 1 { "has" } else { "have" }
        );
        match units.assigned_by_cluster() {
            true => list.add(
                Level::Warning,
                what,
                "policies seem to be assigned by cluster: find out why some are split",
            ),
            false => list.add(
                Level::Note,
                what,
                "taken as assigned row by row; clusters still count for standard errors",
            ),
        }
    }
    if !profile.empty_cells.is_empty() {
        let cells: Vec<String> =
            profile.empty_cells.iter().map(|(stratum, policy)| format!("{policy} in {stratum}")).collect();
        list.add(
            Level::Warning,
            format!(
                "{} missing from a stratum: {}",
                counted(cells.len(), "policy is", "policies are"),
                listed(&cells)
            ),
            "there is no overlap there: effects in those strata rest on other policies",
        );
    }
}

/// The first names, as many as fit on a line or two: combinations of many columns have very long ones.
pub(super) fn listed(names: &[String]) -> String {
    const MOST_NAMES: usize = 8;
    const MOST_CHARACTERS: usize = 160;
    let mut n_characters = 0;
    let fits = |name: &&String| {
        n_characters += name.chars().count() + 2;
        n_characters <= MOST_CHARACTERS
    };
    let mut shown: Vec<String> = names.iter().take(MOST_NAMES).take_while(fits).cloned().collect();
    if let (true, Some(first)) = (shown.is_empty(), names.first()) {
        shown.push(first.chars().take(MOST_CHARACTERS).chain(['…']).collect());
    }
    match names.len().saturating_sub(shown.len()) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_and_long_names_are_cut() {
        let names = |n: usize, width: usize| (0..n).map(|i| format!("{i:0width$}")).collect::<Vec<_>>();
        assert_eq!(listed(&names(3, 1)), "0, 1, 2");
        assert_eq!(listed(&names(10, 1)), "0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
        assert_eq!(listed(&names(3, 100)), format!("{} and 2 more", "0".repeat(100)));
        assert_eq!(listed(&names(1, 300)), format!("{}…", "0".repeat(160)));
    }
}
