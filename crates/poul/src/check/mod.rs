//! One profile of a data set that a person can act on: is it what it says it is, was assignment sound, what can be
//! learned from it?
//!
//! Two passes over the source, in memory that does not grow with it: the first fits the encoder, the second adds up
//! arms, balance, outcomes and correlations, and keeps a bounded sample for the permutation test.

//!
//! Of rows that are never in one place, [`CheckSums`] tells what sums can (`in_parts`, `summed`).

mod arms;
mod balance;
mod coverage;
mod few_rows;
mod findings;
mod in_parts;
mod leak;
mod outcome;
pub(crate) mod screen;
mod summed;
mod units;

use std::collections::BTreeMap;

use serde::Serialize;

pub use arms::{Arm, SampleRatio};
pub use balance::{Imbalance, PermutationTest};
pub use coverage::AtomCoverage;
pub(crate) use few_rows::few_rows;
pub use findings::{Finding, Level};
pub use in_parts::CheckSums;
pub use leak::Leak;
pub use outcome::OutcomeSummary;
pub use summed::{FeatureSummary, SummedProfile};

use crate::data::{ColumnKind, Columns, Encoder, EncoderParams, RowReader, Source};
use crate::policy::{Assigner, PolicySet};
use crate::{Error, Progress, Result, Seed};
use balance::{Groups, Sample, Sums};
use leak::Correlations;
use outcome::Accumulator;
use screen::{EncodedRows, FirstRows};
use units::Units;

/// How to profile.
#[derive(Clone, Debug)]
pub struct Params {
    /// Declared assignment shares by policy, for the sample-ratio test; empty: no test.
    pub shares: BTreeMap<String, f64>,
    /// Permutations of the balance test; default 499, 0 for none.
    pub permutations: usize,
    /// Most rows in the sample that is permuted; default 200,000.
    pub sample_rows: usize,
    /// Root of the random streams; default 3407.
    pub seed: u64,
}

impl Default for Params {
    fn default() -> Self {
        Self { shares: BTreeMap::new(), permutations: 499, sample_rows: 200_000, seed: 3407 }
    }
}

/// What `check` found.
#[derive(Clone, Debug, Serialize)]
pub struct Profile {
    /// Rows that pass the population filter.
    pub rows: u64,
    /// Units of assignment: clusters, or rows where there are none.
    pub units: u64,
    /// Feature columns by kind.
    pub features: BTreeMap<&'static str, usize>,
    /// Columns after encoding.
    pub encoded_columns: usize,
    /// Each outcome.
    pub outcomes: Vec<OutcomeSummary>,
    /// The policy others are compared with, if it is in the data.
    pub control: Option<String>,
    /// Each policy that has rows.
    pub arms: Vec<Arm>,
    /// Defined policies without a row.
    pub unused_policies: Vec<String>,
    /// Assigned units against declared shares.
    pub sample_ratio: Option<SampleRatio>,
    /// The twenty largest standardised differences.
    pub imbalances: Vec<Imbalance>,
    /// The permutation test of balance.
    pub balance: Option<PermutationTest>,
    /// Rows behind each atom.
    pub atoms: Vec<AtomCoverage>,
    /// Policies that are the same mixture under different names.
    pub aliases: Vec<Vec<String>>,
    /// Features with a single value.
    pub constant_columns: Vec<String>,
    /// Features that follow an outcome too closely.
    pub leaks: Vec<Leak>,
    /// Features that differ between policies far beyond chance.
    pub post_treatment_columns: Vec<String>,
    /// (stratum, policy) pairs without a row.
    pub empty_cells: Vec<(String, String)>,
    /// What to look at, most serious first.
    pub findings: Vec<Finding>,
}

/// Most policies for which balance is shown by policy; beyond, it is shown by atom.
const MOST_POLICY_GROUPS: usize = 200;
/// Policies and atoms with fewer rows are left out of the balance table: their differences are noise.
const LEAST_ROWS: f64 = 30.0;
/// Bound on the floats in the sample that is permuted.
const SAMPLE_FLOATS: usize = 4_000_000;

/// Profiles the rows of `source` that `columns` selects, assigned to `policies`.
pub(crate) fn profile(
    source: &Source,
    columns: &Columns,
    policies: &PolicySet,
    params: &Params,
    progress: &dyn Progress,
) -> Result<Profile> {
    let encoder = Encoder::fit(source, columns, &EncoderParams::default().check()?, progress)?;
    let groups = groups(policies, columns.control.as_deref());
    let names = encoder.names();
    let width = encoder.width();
    let mut units = Units::new(policies.len(), columns.stratum.is_some());
    let mut outcomes: Vec<Accumulator> =
        columns.outcomes.iter().map(|_| Accumulator::new(policies.len())).collect();
    let mut sums = Sums::new(width, groups.names.len());
    let mut correlations = Correlations::new(width, columns.outcomes.len());
    let mut first = FirstRows::new(columns);
    let mut sample =
        Sample::new(width, columns.outcomes.len(), params.sample_rows.min(SAMPLE_FLOATS / width.max(1)));

    let mut reader = RowReader::new(source, columns)?;
    let mut assigner = Assigner::new(policies, columns);
    progress.start("Profiling", "rows", source.n_rows());
    let mut x = Vec::new();
    while let Some(batch) = reader.next_batch()? {
        let labels: Vec<_> = (0..columns.treatment.len()).map(|column| reader.labels(column)).collect();
        let policy = assigner.assign(&batch.treatment, &labels, &batch.rows)?;
        x.resize(policy.len() * width, 0.0);
        encoder.encode(&batch.features, &mut x)?;
        first.add(&batch.features);
        for (row, &policy) in policy.iter().enumerate() {
            let cluster = batch.cluster.as_ref().map(|cluster| cluster[row]);
            let stratum = batch.stratum.as_ref().map_or(0, |stratum| stratum[row]);
            units.add(policy, cluster, stratum);
            let unit = cluster.map_or(batch.rows[row], u64::from);
            let outcome = |place: usize| batch.outcomes[place][row];
            sample.offer(unit, &x[row * width..(row + 1) * width], policy, cluster, stratum, outcome);
        }
        for (accumulator, values) in outcomes.iter_mut().zip(&batch.outcomes) {
            for (&value, &policy) in values.iter().zip(&policy) {
                accumulator.add(value, policy as usize);
            }
        }
        sums.add(&x, &policy, batch.weight.as_deref(), &groups);
        correlations.add(&x, &batch.outcomes, policy.len());
        progress.advance(policy.len() as u64);
        if progress.cancelled() {
            return Err(Error::cancelled());
        }
    }
    progress.finish();

    let counts = &units.rows;
    require_two_arms(counts, policies)?;
    let assigned = units.by_policy();
    let declared = arms::declared_shares(&params.shares, policies, assigned)?;
    let sample_ratio = declared.as_ref().map(|declared| arms::sample_ratio(assigned, declared, policies));
    let by_cluster = units.assigned_by_cluster();
    let seed = Seed::new(params.seed).child("check");
    let balance = balance::permutation_test(&sample, &names, &groups, by_cluster, params.permutations, seed);
    let mut imbalances = sums.imbalances(&names, &groups, LEAST_ROWS);
    imbalances.truncate(20);
    let total_units: u64 = assigned.iter().sum();
    let arms = (0..policies.len()).filter(|&policy| counts[policy] > 0).map(|policy| Arm {
        policy: policies.name(policy).to_string(),
        rows: counts[policy],
        units: assigned[policy],
        share: assigned[policy] as f64 / total_units as f64,
        declared: declared.as_ref().map(|declared| declared[policy]),
        outcome_means: outcomes.iter().map(|outcome| outcome.policy_mean(policy)).collect(),
    });
    let unused = (0..policies.len()).filter(|&policy| counts[policy] == 0);
    let mut profile = Profile {
        rows: counts.iter().sum(),
        units: total_units,
        features: kinds(columns),
        encoded_columns: width,
        outcomes: outcomes.iter().zip(&columns.outcomes).map(|(sums, name)| sums.summary(name)).collect(),
        control: columns.control.clone(),
        arms: arms.collect(),
        unused_policies: unused.map(|policy| policies.name(policy).to_string()).collect(),
        sample_ratio,
        imbalances,
        atoms: coverage::atom_coverage(policies, counts),
        aliases: aliases(policies),
        constant_columns: constant_columns(&encoder),
        leaks: correlations.leaks(&names, &columns.outcomes),
        post_treatment_columns: balance.as_ref().map_or_else(Vec::new, |test| test.columns.clone()),
        balance,
        empty_cells: units.empty_cells(policies, reader.stratum_labels().names()),
        findings: Vec::new(),
    };
    let rows = EncodedRows {
        encoder: &encoder,
        x: &sample.x,
        policy: &sample.policy,
        outcomes: &sample.outcomes,
        cluster: columns.cluster.as_ref().map(|_| sample.cluster.as_slice()),
        stratum: columns.stratum.as_ref().map(|_| sample.stratum.as_slice()),
    };
    let mut screened = screen::by_name(columns);
    screened.extend(first.findings());
    screened.extend(screen::by_rows(&rows, columns, &groups, false));
    profile.findings = findings::findings(&profile, columns, &units, screened);
    Ok(profile)
}

/// Groups for the balance table: policies, or atoms where there are very many policies.
fn groups(policies: &PolicySet, control: Option<&str>) -> Groups {
    if policies.len() <= MOST_POLICY_GROUPS {
        return Groups {
            names: policies.names().to_vec(),
            members: (0..policies.len() as u32).map(|policy| vec![(policy, 1.0)]).collect(),
            reference: control.and_then(|control| policies.index(control)),
        };
    }
    let members = |policy: usize| {
        let atoms = policies.mixture(policy).atoms.iter().copied();
        atoms.zip(policies.conditional(policy).iter().copied()).collect()
    };
    Groups {
        names: (0..policies.atoms().len()).map(|atom| policies.atom_name(atom)).collect(),
        members: (0..policies.len()).map(members).collect(),
        reference: None,
    }
}

fn require_two_arms(counts: &[u64], policies: &PolicySet) -> Result<()> {
    let mut present = (0..counts.len()).filter(|&policy| counts[policy] > 0);
    match (present.next(), present.next()) {
        (Some(_), Some(_)) => Ok(()),
        (Some(only), None) => {
            Err(Error::input(format!("every row has the same policy, `{}`", policies.name(only)))
                .hint("an effect needs two policies; check the treatment column and the population filter"))
        }
        (None, _) => Err(Error::input("no row is left after the population filter")),
    }
}

fn kinds(columns: &Columns) -> BTreeMap<&'static str, usize> {
    let mut kinds = BTreeMap::new();
    for feature in &columns.features {
        let kind = match feature.kind {
            ColumnKind::Number => "numbers",
            ColumnKind::Boolean => "booleans",
            ColumnKind::Text => "texts",
            ColumnKind::Time => "times",
        };
        *kinds.entry(kind).or_insert(0) += 1;
    }
    kinds
}

/// Features that gave no encoded column.
fn constant_columns(encoder: &Encoder) -> Vec<String> {
    let mut used = vec![false; encoder.features().count()];
    encoder.origins().iter().for_each(|feature| used[*feature] = true);
    encoder.features().zip(used).filter(|(_, used)| !used).map(|(feature, _)| feature.name.clone()).collect()
}

fn aliases(policies: &PolicySet) -> Vec<Vec<String>> {
    let names = |group: &Vec<usize>| group.iter().map(|&policy| policies.name(policy).to_string()).collect();
    policies.aliases().iter().map(names).collect()
}
