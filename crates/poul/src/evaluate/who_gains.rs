//! Who gains: along which features predicted effects differ, and a small tree of them.
//!
//! A feature's share is that of the variance of predicted effects that lies between its groups (deciles of a number, the
//! 10 commonest categories, missing values). It describes the predictions; whether they are right is told by the averages.

use rayon::prelude::*;

use super::average::groups::Groups;
use super::effect_tree::effect_tree;
use super::reasons::{FeatureEffect, FeatureGroup, WhoGains};
use crate::data::RawColumn;
use crate::{Error, Result};

/// Features shown, at most.
const FEATURES: usize = 6;
const QUANTILES: usize = 10;
const CATEGORIES: usize = 10;

/// A column of predicted effects on a sample of rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampledEffects<'a> {
    /// Name of the outcome.
    pub outcome: &'a str,
    /// Name of the policy.
    pub policy: &'a str,
    /// Name of the policy it is compared with.
    pub against: &'a str,
    /// The predicted effect in each row of the sample.
    pub values: &'a [f64],
}

/// How predicted effects differ between rows, for each column of effects. `features` are raw columns of the same rows.
pub(crate) fn who_gains(
    effects: &[SampledEffects<'_>],
    features: &[RawColumn],
    weight: Option<&[f64]>,
) -> Result<Vec<WhoGains>> {
    let n_rows = effects.first().map_or(0, |own| own.values.len());
    let lengths = effects.iter().map(|own| own.values.len()).chain(features.iter().map(RawColumn::len));
    if lengths.chain(weight.map(<[f64]>::len)).any(|length| length != n_rows) {
        return Err(Error::other("effects and features of different rows"));
    }
    if let Some(own) = effects.iter().find(|own| own.values.iter().any(|value| !value.is_finite())) {
        return Err(Error::input("a predicted effect is not finite")
            .at(format!("`{}` on `{}`", own.policy, own.outcome))
            .hint("drop the row, or give a finite number"));
    }
    let groups: Vec<Groups> =
        features.par_iter().map(|column| Groups::of_column(column, weight, QUANTILES, CATEGORIES)).collect();
    let names: Vec<&str> = features.iter().map(RawColumn::name).collect();
    Ok(effects.par_iter().map(|own| of_effects(own, &names, &groups, weight)).collect())
}

fn of_effects(
    effects: &SampledEffects<'_>,
    names: &[&str],
    groups: &[Groups],
    weight: Option<&[f64]>,
) -> WhoGains {
    let mut gains = WhoGains {
        outcome: effects.outcome.to_owned(),
        policy: effects.policy.to_owned(),
        against: effects.against.to_owned(),
        ..WhoGains::default()
    };
    let mass = |row: usize| weight.map_or(1.0, |weight| weight[row]);
    let total: f64 = (0..effects.values.len()).map(mass).sum();
    if total <= 0.0 {
        return gains;
    }
    let sum_of = |term: &dyn Fn(f64) -> f64| -> f64 {
        effects.values.iter().enumerate().map(|(row, value)| mass(row) * term(*value)).sum()
    };
    let mean = sum_of(&|value| value) / total;
    let variation = sum_of(&|value| (value - mean).powi(2));
    // Effects that differ by rounding alone do not differ.
    if variation <= 1e-12 * total * mean * mean || variation <= 0.0 {
        return gains;
    }
    let mut features: Vec<FeatureEffect> = names
        .iter()
        .zip(groups)
        .map(|(name, groups)| along(name, groups, effects.values, &mass, mean, variation))
        .collect();
    // The first column wins a tie.
    features.sort_by(|a, b| b.share.total_cmp(&a.share));
    features.retain(|feature| feature.share > 0.0 && feature.groups.len() > 1);
    features.truncate(FEATURES);
    gains.features = features;
    let (tree, explained) = effect_tree(effects.values, weight, names, groups);
    gains.tree = tree;
    gains.tree_share = Some((explained / variation).clamp(0.0, 1.0));
    gains
}

/// Predicted effects along one feature.
fn along(
    name: &str,
    groups: &Groups,
    values: &[f64],
    mass: &dyn Fn(usize) -> f64,
    mean: f64,
    variation: f64,
) -> FeatureEffect {
    let (mut n_rows, mut masses, mut sums) =
        (vec![0; groups.len()], vec![0.0; groups.len()], vec![0.0; groups.len()]);
    for (row, (group, value)) in groups.of_row.iter().zip(values).enumerate() {
        let (group, mass) = (usize::from(*group), mass(row));
        n_rows[group] += usize::from(mass > 0.0);
        masses[group] += mass;
        sums[group] += mass * (value - mean);
    }
    let met = |group: &usize| masses[*group] > 0.0;
    let between: f64 =
        (0..groups.len()).filter(met).map(|group| sums[group] * sums[group] / masses[group]).sum();
    let groups = (0..groups.len()).filter(met).map(|group| FeatureGroup {
        label: groups.labels[group].clone(),
        rows: n_rows[group],
        effect: mean + sums[group] / masses[group],
    });
    FeatureEffect { feature: name.to_owned(), share: between / variation, groups: groups.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;
    use rand::RngExt;

    /// Effects that follow trips (a step) and city, among other columns.
    fn world(n_rows: usize) -> (Vec<f64>, Vec<RawColumn>) {
        let mut rng = Seed::new(5).rng();
        let uniform: Vec<[f64; 3]> = (0..n_rows).map(|_| rng.random()).collect();
        let trips: Vec<f64> = uniform.iter().map(|u| (20.0 * u[0]).floor()).collect();
        let city = |row: usize| ["Rome", "Oslo", "Lima"][(3.0 * uniform[row][1]) as usize];
        let noise: Vec<f64> = uniform.iter().map(|u| u[2]).collect();
        let effect = |row: usize| {
            let step = if trips[row] >= 10.0 { 2.0 } else { 0.0 };
            step + if city(row) == "Oslo" { 1.0 } else { 0.0 }
        };
        let values = (0..n_rows).map(effect).collect();
        let columns = vec![
            RawColumn::of_numbers("noise", noise),
            RawColumn::of_numbers("trips", trips),
            RawColumn::of_categories("city", (0..n_rows).map(|row| Some(city(row)))),
        ];
        (values, columns)
    }

    fn of(values: &[f64], columns: &[RawColumn], weight: Option<&[f64]>) -> WhoGains {
        let own = SampledEffects { outcome: "gmv", policy: "T1", against: "control", values };
        who_gains(&[own], columns, weight).unwrap().remove(0)
    }

    #[test]
    fn what_matters_comes_first_and_the_tree_finds_it() {
        let (values, columns) = world(4_000);
        let gains = of(&values, &columns, None);
        let names: Vec<&str> = gains.features.iter().map(|own| own.feature.as_str()).collect();
        assert_eq!(names, ["trips", "city", "noise"]);
        // Variances 1 and 2/9 of independent parts.
        assert!((gains.features[0].share - 0.82).abs() < 0.03, "{}", gains.features[0].share);
        assert!((gains.features[1].share - 0.18).abs() < 0.03, "{}", gains.features[1].share);
        assert!(gains.tree_share.unwrap() > 0.999);
        let rules: Vec<&str> = gains.tree.iter().map(|node| node.rule.as_str()).collect();
        assert_eq!(rules[..3], ["all rows", "trips < 10", "trips ≥ 10"]);
        assert!(rules.contains(&"city is Oslo") && rules.contains(&"city is not Oslo"), "{rules:?}");
        let groups = gains.features[0].groups.iter();
        assert_eq!(groups.map(|group| group.rows).sum::<usize>(), 4_000);
    }

    #[test]
    fn units_of_effects_and_row_order_do_not_matter() {
        let (values, columns) = world(1_000);
        let gains = of(&values, &columns, None);
        let scaled: Vec<f64> = values.iter().map(|value| 8.0 * value + 3.0).collect();
        let other = of(&scaled, &columns, None);
        for (a, b) in gains.features.iter().zip(&other.features) {
            assert_eq!(a.feature, b.feature);
            assert!((a.share - b.share).abs() < 1e-9);
        }
        assert_eq!(gains.tree.len(), other.tree.len());
        let weighted = of(&values, &columns, Some(&[2.5; 1_000]));
        assert!((weighted.tree_share.unwrap() - gains.tree_share.unwrap()).abs() < 1e-9);
    }

    #[test]
    fn constant_effects_have_nobody_who_gains() {
        let (_, columns) = world(100);
        let gains = of(&[0.3; 100], &columns, None);
        assert!(gains.features.is_empty() && gains.tree.is_empty() && gains.tree_share.is_none());
        let own = SampledEffects { outcome: "gmv", policy: "T1", against: "control", values: &[1.0] };
        assert!(who_gains(&[own], &columns, None).is_err());
    }
}
