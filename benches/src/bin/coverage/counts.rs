//! How often intervals of averages held the truth, and what was found.

use std::collections::BTreeMap;

use poul::evaluate::AverageEffect;

const FALSE_DISCOVERIES: f64 = 0.1;

/// What was inside, over experiments.
#[derive(Default)]
pub(super) struct Counts {
    averages: [usize; 2],
    deciles: [usize; 2],
    bands: [usize; 2],
    found: usize,
    true_policies: usize,
    /// Sum over experiments of the share of discoveries that are false.
    false_share: f64,
    n_experiments: usize,
    /// By policy, errors of averages in standard errors.
    errors: BTreeMap<String, Vec<f64>>,
}

impl Counts {
    /// Counts the averages of one experiment, each with its truth.
    pub(super) fn add<'a>(&mut self, averages: impl Iterator<Item = &'a (f64, AverageEffect)>) {
        let inside = |ends: Option<[f64; 2]>, truth: f64| {
            ends.is_some_and(|[low, high]| low <= truth && truth <= high)
        };
        let (mut all_inside, mut found, mut false_found) = (true, 0, 0);
        for (truth, own) in averages.filter(|(_, own)| own.se.is_some()) {
            let truth = *truth;
            let is_placebo = own.policy.starts_with("placebo");
            if own.by.is_some() {
                self.deciles[0] += usize::from(inside(own.interval, truth));
                self.deciles[1] += 1;
                continue;
            }
            let errors = self.errors.entry(own.policy.clone()).or_default();
            errors.push((own.effect.unwrap_or(f64::NAN) - truth) / own.se.unwrap_or(f64::NAN));
            self.averages[0] += usize::from(inside(own.interval, truth));
            self.averages[1] += 1;
            all_inside &= inside(own.band, truth);
            self.true_policies += usize::from(!is_placebo);
            if own.q_value.is_some_and(|q| q <= FALSE_DISCOVERIES) {
                found += 1;
                false_found += usize::from(is_placebo);
            }
        }
        self.bands[0] += usize::from(all_inside);
        self.bands[1] += 1;
        self.found += found - false_found;
        self.false_share += if found > 0 { false_found as f64 / found as f64 } else { 0.0 };
        self.n_experiments += 1;
    }

    /// The shares, as a line of the table.
    pub(super) fn line(&self) -> String {
        let share = |[inside, all]: [usize; 2]| match all {
            0 => "    –".to_owned(),
            _ => format!("{:.3}", inside as f64 / all as f64),
        };
        format!(
            "{:>8}  {:>7}  {}  {:.3}  {:.3}  {:.2}  {:.2}",
            share(self.averages),
            share(self.deciles),
            share(self.bands),
            self.found as f64 / self.true_policies.max(1) as f64,
            self.false_share / self.n_experiments.max(1) as f64,
            self.bias(),
            self.spread(),
        )
    }

    /// Mean errors of the policies' averages, root mean square over policies, in standard errors: 0 without bias, up to
    /// the noise of a mean over experiments.
    fn bias(&self) -> f64 {
        let squares = self.errors.values().map(|errors| mean(errors).powi(2));
        (squares.sum::<f64>() / self.errors.len().max(1) as f64).sqrt()
    }

    /// Standard deviation of the errors about their policies' means, in standard errors: 1 where these are right.
    fn spread(&self) -> f64 {
        let variance = |errors: &Vec<f64>| {
            let mean = mean(errors);
            errors.iter().map(|error| (error - mean).powi(2)).sum::<f64>() / (errors.len().max(2) - 1) as f64
        };
        (self.errors.values().map(variance).sum::<f64>() / self.errors.len().max(1) as f64).sqrt()
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
