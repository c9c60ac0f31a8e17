//! Which of several models predicts best out of fold, or whether a convex combination of them does.

use serde::{Deserialize, Serialize};

use crate::stats::least_on_simplex;

/// Steps in search of the likeliest weights of probabilities.
const STEPS: usize = 200;
/// Weights below this are none.
const LEAST_WEIGHT: f64 = 1e-3;
/// The probability nearest to 0 that a loss counts with.
const LEAST: f64 = 1e-7;

/// A model of a nuisance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NuisanceModel {
    /// A line in the encoded features.
    Ridge,
    /// Networks.
    Network,
    /// Boosted trees.
    Boosted,
}

impl NuisanceModel {
    /// What a person calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ridge => "ridge",
            Self::Network => "network",
            Self::Boosted => "boosted trees",
        }
    }
}

/// What a choice goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChoiceLoss {
    /// Squared error.
    Squared,
    /// −log-likelihood.
    Log,
}

/// What was chosen for an outcome, or for the propensity, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NuisanceChoice {
    /// What it goes by.
    pub by: ChoiceLoss,
    /// The models that were fitted.
    pub candidates: Vec<NuisanceCandidate>,
    /// Out-of-fold loss of what was chosen.
    pub loss: f64,
    /// Share of the loss of a constant that it takes away: R² under squared error.
    pub explained: f64,
    /// Why a model is not among the candidates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

/// A model that was fitted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NuisanceCandidate {
    /// Which.
    pub model: NuisanceModel,
    /// Its out-of-fold loss.
    pub loss: f64,
    /// Share of the loss of a constant that it takes away.
    pub explained: f64,
    /// Its weight in what was chosen; weights sum to 1.
    pub weight: f64,
}

impl NuisanceChoice {
    /// The weight of a model; 0 for one that was not fitted.
    pub fn weight(&self, model: NuisanceModel) -> f64 {
        self.candidates.iter().filter(|own| own.model == model).map(|own| own.weight).sum()
    }

    /// In plain words: what was chosen of `what`, and how the others did.
    pub fn sentence(&self, what: &str) -> String {
        let figure = |explained: f64| format!("{explained:.3}");
        let name = match self.by {
            ChoiceLoss::Squared => "out-of-fold R2",
            ChoiceLoss::Log => "out-of-fold share of the log loss explained",
        };
        let mut chosen: Vec<&NuisanceCandidate> =
            self.candidates.iter().filter(|own| own.weight > 0.0).collect();
        let mut others: Vec<&NuisanceCandidate> = self.candidates.iter().collect();
        chosen.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        others.sort_by(|a, b| a.loss.total_cmp(&b.loss));
        let chosen = match chosen.as_slice() {
            [only] => {
                others.retain(|own| own.model != only.model);
                only.model.name().to_owned()
            }
            several => {
                let part = |own: &&NuisanceCandidate| format!("{:.2} {}", own.weight, own.model.name());
                format!("a mix, {}", several.iter().map(part).collect::<Vec<_>>().join(" + "))
            }
        };
        let others: Vec<String> =
            others.iter().map(|own| format!("{} {}", own.model.name(), figure(own.explained))).collect();
        let others = if others.is_empty() { String::new() } else { format!("; {}", others.join(", ")) };
        let left_out = self.left_out.as_ref().map_or_else(String::new, |why| format!("; {why}"));
        format!("{what}: {chosen} ({name} {}{others}{left_out})", figure(self.explained))
    }
}

/// What models predict of rows they were not fitted on.
pub(super) struct OutOfFold<'a> {
    /// By model, in the order of rows; probabilities of what happened where outcomes are none.
    pub(super) predicted: Vec<(NuisanceModel, Vec<f32>)>,
    /// What happened; none: probabilities are already of that.
    pub(super) outcome: Option<Vec<f32>>,
    /// The loss of the best constant.
    pub(super) constant: f64,
    pub(super) by: ChoiceLoss,
    pub(super) weight: Option<&'a [f32]>,
    pub(super) cluster: Option<&'a [u32]>,
}

impl OutOfFold<'_> {
    /// The best model; or the best convex combination, where it is better by more than a standard error of the difference.
    pub(super) fn choose(&self, left_out: Option<String>) -> NuisanceChoice {
        let n_models = self.predicted.len();
        let single =
            |model: usize| (0..n_models).map(|own| f64::from(u8::from(own == model))).collect::<Vec<f64>>();
        let losses: Vec<f64> =
            (0..n_models).map(|model| self.mean(|row| self.loss(row, &single(model)))).collect();
        let best = (0..n_models).min_by(|a, b| losses[*a].total_cmp(&losses[*b])).unwrap_or(0);
        let mut weights = single(best);
        let stacked = self.stacked();
        let gain = |row: usize| self.loss(row, &weights) - self.loss(row, &stacked);
        let mean_gain = self.mean(gain);
        if mean_gain > self.standard_error(|row| gain(row) - mean_gain) {
            weights = stacked;
        }
        let explained = |loss: f64| if self.constant > 0.0 { 1.0 - loss / self.constant } else { 0.0 };
        let loss = self.mean(|row| self.loss(row, &weights));
        let candidates = self.predicted.iter().zip(&losses).zip(&weights);
        let candidates = candidates.map(|(((model, _), loss), weight)| NuisanceCandidate {
            model: *model,
            loss: *loss,
            explained: explained(*loss),
            weight: *weight,
        });
        let candidates = candidates.collect();
        NuisanceChoice { by: self.by, candidates, loss, explained: explained(loss), left_out }
    }

    fn n_rows(&self) -> usize {
        self.predicted.first().map_or(0, |(_, predicted)| predicted.len())
    }

    fn weight_of(&self, row: usize) -> f64 {
        self.weight.map_or(1.0, |weight| f64::from(weight[row]))
    }

    fn outcome(&self, row: usize) -> f64 {
        self.outcome.as_ref().map_or(1.0, |outcome| f64::from(outcome[row]))
    }

    /// The loss of a row under some weights.
    fn loss(&self, row: usize, weights: &[f64]) -> f64 {
        let own = |(model, weight): (&(NuisanceModel, Vec<f32>), &f64)| weight * f64::from(model.1[row]);
        let (y, predicted) = (self.outcome(row), self.predicted.iter().zip(weights).map(own).sum::<f64>());
        match self.by {
            ChoiceLoss::Squared => (y - predicted).powi(2),
            ChoiceLoss::Log => {
                -(y * predicted.max(LEAST).ln() + (1.0 - y) * (1.0 - predicted).max(LEAST).ln())
            }
        }
    }

    fn mean(&self, value: impl Fn(usize) -> f64) -> f64 {
        let (mut total, mut mass) = (0.0, 0.0);
        for row in (0..self.n_rows()).filter(|row| self.weight_of(*row) > 0.0) {
            total += self.weight_of(row) * value(row);
            mass += self.weight_of(row);
        }
        if mass > 0.0 { total / mass } else { 0.0 }
    }

    /// Of a mean, given how far each row is from it; rows of a cluster belong together.
    fn standard_error(&self, off: impl Fn(usize) -> f64) -> f64 {
        let n_units =
            self.cluster.map_or(self.n_rows(), |own| own.iter().max().map_or(0, |last| *last as usize + 1));
        let mut sums = vec![0.0; n_units];
        let mut mass = 0.0;
        for row in (0..self.n_rows()).filter(|row| self.weight_of(*row) > 0.0) {
            let unit = self.cluster.map_or(row, |cluster| cluster[row] as usize);
            sums[unit] += self.weight_of(row) * off(row);
            mass += self.weight_of(row);
        }
        sums.iter().map(|sum| sum * sum).sum::<f64>().sqrt() / mass
    }

    /// The best convex combination.
    fn stacked(&self) -> Vec<f64> {
        let n_models = self.predicted.len();
        let mut weights = match self.by {
            ChoiceLoss::Squared => {
                let left =
                    |model: usize, row: usize| self.outcome(row) - f64::from(self.predicted[model].1[row]);
                let products: Vec<f64> = (0..n_models * n_models)
                    .map(|pair| self.mean(|row| left(pair / n_models, row) * left(pair % n_models, row)))
                    .collect();
                least_on_simplex(&products, &vec![0.0; n_models])
            }
            ChoiceLoss::Log => self.likeliest(),
        };
        weights.iter_mut().filter(|weight| **weight < LEAST_WEIGHT).for_each(|weight| *weight = 0.0);
        let total: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= total);
        weights
    }

    /// The weights of a mixture of probabilities, by expectation and maximisation: every step raises the likelihood.
    fn likeliest(&self) -> Vec<f64> {
        let n_models = self.predicted.len();
        let mut weights = vec![1.0 / n_models as f64; n_models];
        for _ in 0..STEPS {
            let mut next = vec![0.0; n_models];
            for row in (0..self.n_rows()).filter(|row| self.weight_of(*row) > 0.0) {
                let y = self.outcome(row);
                for (share, is_one) in [(y, true), (1.0 - y, false)] {
                    if share <= 0.0 {
                        continue;
                    }
                    let of = |model: usize| {
                        let p = f64::from(self.predicted[model].1[row]);
                        weights[model] * if is_one { p } else { 1.0 - p }.max(LEAST)
                    };
                    let total: f64 = (0..n_models).map(of).sum();
                    let factor = self.weight_of(row) * share / total;
                    next.iter_mut().enumerate().for_each(|(model, next)| *next += factor * of(model));
                }
            }
            let total: f64 = next.iter().sum();
            if total > 0.0 {
                weights = next.iter().map(|next| next / total).collect();
            }
        }
        weights
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use rand_distr::StandardNormal;

    use super::*;
    use crate::Seed;

    fn rows(predicted: Vec<Vec<f32>>, outcome: Option<Vec<f32>>, by: ChoiceLoss) -> OutOfFold<'static> {
        let models = [NuisanceModel::Ridge, NuisanceModel::Network, NuisanceModel::Boosted];
        let predicted = models.into_iter().zip(predicted).collect();
        OutOfFold { predicted, outcome, constant: 2.0, by, weight: None, cluster: None }
    }

    #[test]
    fn the_best_is_chosen_unless_a_mix_is_clearly_better() {
        let mut rng = Seed::new(3).rng();
        let mut noise = || (0..2000).map(|_| rng.sample(StandardNormal)).collect::<Vec<f32>>();
        let (signal, other, noise) = (noise(), noise(), noise());
        let add = |a: &[f32], b: &[f32], share: f32| {
            a.iter().zip(b).map(|(a, b)| a + share * b).collect::<Vec<f32>>()
        };
        let y = add(&add(&signal, &other, 1.0), &noise, 1.0);
        // Each knows one half of it.
        let choice = rows(
            vec![signal.iter().map(|s| 2.0 * s).collect(), other.iter().map(|s| 2.0 * s).collect()],
            Some(y.clone()),
            ChoiceLoss::Squared,
        )
        .choose(None);
        assert!((choice.candidates[0].weight - 0.5).abs() < 0.1, "{choice:?}");
        assert!(choice.sentence("m").starts_with("m: a mix, 0."), "{}", choice.sentence("m"));
        // One knows all that the other knows.
        let all = add(&signal, &other, 1.0);
        let choice =
            rows(vec![signal, all], Some(y), ChoiceLoss::Squared).choose(Some("no trees".to_owned()));
        assert_eq!((choice.weight(NuisanceModel::Ridge), choice.weight(NuisanceModel::Network)), (0.0, 1.0));
        let said = choice.sentence("outcome model of `y`");
        assert!(said.starts_with("outcome model of `y`: network (out-of-fold R2 0."), "{said}");
        assert!(said.contains("; ridge ") && said.ends_with("; no trees)"), "{said}");
    }

    #[test]
    fn mixtures_of_probabilities_are_the_likeliest() {
        let mut rng = Seed::new(4).rng();
        let p: Vec<f32> = (0..4000).map(|_| rng.random_range(0.05..0.95)).collect();
        let q: Vec<f32> = (0..4000).map(|_| rng.random_range(0.05..0.95)).collect();
        let mixed = p.iter().zip(&q).map(|(p, q)| 0.7 * p + 0.3 * q);
        let y: Vec<f32> = mixed.map(|p| f32::from(u8::from(rng.random_bool(f64::from(p))))).collect();
        let own = |p: &[f32]| {
            p.iter().zip(&y).map(|(p, y)| if *y == 1.0 { *p } else { 1.0 - p }).collect::<Vec<f32>>()
        };
        // The same by outcomes, and by the probability of what happened.
        let by_own = rows(vec![own(&p), own(&q)], None, ChoiceLoss::Log).choose(None);
        let choice = rows(vec![p, q], Some(y), ChoiceLoss::Log).choose(None);
        assert!((choice.candidates[0].weight - 0.7).abs() < 0.1, "{choice:?}");
        assert!((choice.loss - by_own.loss).abs() < 1e-6);
    }
}
