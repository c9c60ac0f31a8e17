//! Random: levels drawn from the seed, the row's features and the policy's name; what any ranking must beat.
//!
//! A row's draw is a hash of its features, so that it does not depend on its neighbours. AUUC is 0.5 by construction.

use serde::{Deserialize, Serialize};

use super::fit::standard;
use crate::effect::{EffectModel, Scorer, Scores, Settings, Tensor, Tensors, Trained, ValidTrainingData};
use crate::learn::Learner;
use crate::net::RowSource;
use crate::policy::PolicySet;
use crate::stored::{contradiction, read_stored, store};
use crate::{Result, Run, Seed};

/// The learner.
pub(crate) const RANDOM: Learner = Learner {
    name: NAME,
    summary: "effects drawn from the seed: what any ranking must beat",
    settle,
    train,
    load,
};

const NAME: &str = "random";

fn settle(settings: &Settings) -> Result<Settings> {
    settings.require_none(NAME)
}

fn train(data: &ValidTrainingData<'_>, settings: &Settings, run: Run<'_>) -> Result<Trained> {
    settle(settings)?;
    let model = Random {
        outcomes: data.outcomes.iter().map(|outcome| outcome.name.to_owned()).collect(),
        scales: data.outcomes.iter().map(|outcome| standard(outcome.values, data.weight).1).collect(),
        n_features: data.x.n_cols(),
        seed: run.seed.child(NAME).value(),
    };
    Ok(Trained { effects: Box::new(model), history: Vec::new(), notes: Vec::new() })
}

fn load(manifest: &serde_json::Value, _tensors: &mut Tensors) -> Result<Box<dyn EffectModel>> {
    let model: Random = read_stored(manifest)?;
    if model.scales.len() != model.outcomes.len() || model.n_features == 0 {
        return Err(contradiction());
    }
    Ok(Box::new(model))
}

#[derive(Debug, Serialize, Deserialize)]
struct Random {
    outcomes: Vec<String>,
    /// The standard deviation of each outcome.
    scales: Vec<f64>,
    n_features: usize,
    seed: u64,
}

impl EffectModel for Random {
    fn outcomes(&self) -> &[String] {
        &self.outcomes
    }

    fn n_features(&self) -> usize {
        self.n_features
    }

    fn prepare<'m>(
        &'m self,
        policies: &PolicySet,
        targets: &[usize],
        against: usize,
    ) -> Result<Box<dyn Scorer + 'm>> {
        let names = targets.iter().chain([&against]).map(|policy| policies.name(*policy).to_owned());
        Ok(Box::new(RandomScorer { model: self, names: names.collect() }))
    }

    fn manifest(&self) -> Result<serde_json::Value> {
        store(self)
    }

    fn tensors(&self) -> Vec<Tensor<'_>> {
        Vec::new()
    }
}

struct RandomScorer<'m> {
    model: &'m Random,
    /// The targets, then the policy compared with.
    names: Vec<String>,
}

impl Scorer for RandomScorer<'_> {
    fn score(&self, x: &dyn RowSource, _spread: bool) -> Result<Scores> {
        let n_targets = self.names.len() - 1;
        let mut features = vec![0.0_f32; x.n_cols()];
        let mut mean = vec![Vec::with_capacity(x.n_rows() * n_targets); self.model.outcomes.len()];
        for row in 0..x.n_rows() as u32 {
            x.copy_rows(&[row], &mut features);
            // Adding zero makes −0 and 0 one number.
            let hash = |seed: Seed, value: &f32| seed.index(u64::from((value + 0.0).to_bits()));
            let seed = features.iter().fold(Seed::new(self.model.seed), hash);
            for (outcome, (mean, scale)) in mean.iter_mut().zip(&self.model.scales).enumerate() {
                let seed = seed.index(outcome as u64);
                let level = |name: &String| scale * uniform(seed.child(name));
                let base = level(&self.names[n_targets]);
                mean.extend(self.names[..n_targets].iter().map(|name| (level(name) - base) as f32));
            }
        }
        Ok(Scores { mean, spread: Vec::new() })
    }

    fn has_spread(&self) -> bool {
        false
    }
}

/// A number in [−1, 1) from a stream's own number.
fn uniform(seed: Seed) -> f64 {
    (seed.value() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::DenseRows;

    #[test]
    fn draws_are_even_and_a_matter_of_the_row_alone() {
        let model = Random {
            outcomes: vec!["y".into(), "z".into()],
            scales: vec![1.0, 10.0],
            n_features: 2,
            seed: 7,
        };
        let mut builder = PolicySet::builder();
        builder.add("a", "s", "none", 1.0).add("b", "s", "up", 1.0).add("c", "s", "down", 1.0);
        let policies = builder.build().unwrap();
        let values: Vec<f32> = (0..4000).map(|value| (value / 2) as f32).collect();
        let scorer = model.prepare(&policies, &[1, 2], 0).unwrap();
        let scores = scorer.score(&DenseRows::new(&values, 2).unwrap(), false).unwrap();
        let effects = &scores.mean[0];
        let n = effects.len() as f64;
        let mean = effects.iter().map(|effect| f64::from(*effect)).sum::<f64>() / n;
        let variance = effects.iter().map(|effect| f64::from(*effect).powi(2)).sum::<f64>() / n;
        // A difference of two uniform draws on [−1, 1): mean 0, variance 2/3.
        assert!(mean.abs() < 0.05 && (variance - 2.0 / 3.0).abs() < 0.05, "{mean} {variance}");
        let few = scorer.score(&DenseRows::new(&values[20..24], 2).unwrap(), false).unwrap();
        assert_eq!(few.mean[0], effects[20..24]);
        assert_ne!(scores.mean[1][0], 10.0 * scores.mean[0][0], "outcomes share draws");
    }
}
