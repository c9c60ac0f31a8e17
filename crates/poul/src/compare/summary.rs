//! Readings of all seeds as estimates, with intervals over test rows and paired differences to the reference.

use super::assigned::AssignedReadings;
use super::entrant::Entrant;
use super::result::{AssignedCell, Cell, Estimate, LearnerResult, Population};
use super::run::Finished;
use crate::evaluate::{Draws, Metric};
use crate::policy::PolicySet;

/// What the readings are of.
pub(super) struct Shape<'a> {
    pub(super) entrants: &'a [Entrant],
    pub(super) populations: Vec<Population>,
    pub(super) outcomes: &'a [String],
    pub(super) policies: &'a PolicySet,
    pub(super) n_seeds: usize,
    pub(super) level: f64,
}

/// The results of the entrants that finished with every seed, and the label of the reference if it is one of them.
pub(super) fn results(
    shape: &Shape<'_>,
    finished: &[Vec<Finished>],
    reference: &str,
) -> (Vec<LearnerResult>, Option<String>) {
    let whole: Vec<(&Entrant, &[Finished])> = shape
        .entrants
        .iter()
        .zip(finished)
        .filter(|(_, finished)| finished.len() == shape.n_seeds)
        .map(|(entrant, finished)| (entrant, finished.as_slice()))
        .collect();
    let losses: Vec<Option<f64>> = whole.iter().map(|(_, finished)| mean(&losses(finished))).collect();
    let is_selected = |index: usize| {
        let same = |other: &usize| whole[*other].0.learner.name == whole[index].0.learner.name;
        let by_loss = |a: &usize, b: &usize| {
            let of = |index: usize| losses[index].unwrap_or(f64::INFINITY);
            of(*a).total_cmp(&of(*b))
        };
        (0..whole.len()).filter(same).min_by(by_loss) == Some(index)
    };
    let is_reference = |index: &usize| {
        let entrant = whole[*index].0;
        entrant.label == reference || (entrant.learner.name == reference && is_selected(*index))
    };
    let reference = (0..whole.len()).find(is_reference);
    let result = |index: usize| {
        let (entrant, finished) = whole[index];
        let versus = reference.filter(|reference| *reference != index).map(|reference| whole[reference].1);
        let mut notes: Vec<String> = Vec::new();
        for note in finished.iter().flat_map(|own| &own.notes) {
            if !notes.contains(note) {
                notes.push(note.clone());
            }
        }
        let n_losses = finished.first().map_or(0, |own| own.r_loss.len());
        let by_outcome = |outcome: usize| {
            finished.iter().map(|own| own.r_loss[outcome]).sum::<f64>() / finished.len() as f64
        };
        LearnerResult {
            label: entrant.label.clone(),
            learner: entrant.learner.name.to_owned(),
            schedule: entrant.schedule,
            selected: is_selected(index),
            validation_r_loss: losses[index],
            validation_r_loss_by_outcome: (0..n_losses).map(by_outcome).collect(),
            validation_r_loss_seed_sd: deviation(&self::losses(finished)),
            cells: cells(shape, finished, versus),
            assigned: assigned(shape, finished, versus),
            notes,
            settings: entrant.settings.clone(),
        }
    };
    let label = reference.map(|reference| whole[reference].0.label.clone());
    ((0..whole.len()).map(result).collect(), label)
}

/// The mean R-loss over outcomes, by seed.
fn losses(finished: &[Finished]) -> Vec<f64> {
    finished.iter().filter_map(|own| mean(&own.r_loss)).collect()
}

fn cells(shape: &Shape<'_>, finished: &[Finished], versus: Option<&[Finished]>) -> Vec<Cell> {
    let Some(first) = finished.first() else { return Vec::new() };
    let mut cells = Vec::new();
    for (place, (population, readings)) in shape.populations.iter().zip(&first.readings).enumerate() {
        for (index, reading) in readings.iter().enumerate() {
            let of = |finished: &[Finished]| {
                let seeds = finished.iter().map(|own| &own.readings[place][index]);
                Averaged::new(seeds.map(|own| (own.values.as_slice(), own.draws.as_slice())).collect())
            };
            let (own, versus) = (of(finished), versus.map(of));
            let estimate =
                |(index, metric): (usize, Metric)| own.estimate(metric, index, versus.as_ref(), shape.level);
            cells.push(Cell {
                population: population.name.clone(),
                outcome: shape.outcomes[reading.outcome].clone(),
                policy: reading.policy.map(|policy| shape.policies.name(policy).to_owned()),
                n_treated: reading.n_treated,
                n_control: reading.n_control,
                ate: reading.ate,
                metrics: Metric::compared().enumerate().filter_map(estimate).collect(),
                note: reading.note.clone(),
            });
        }
    }
    cells
}

fn assigned(shape: &Shape<'_>, finished: &[Finished], versus: Option<&[Finished]>) -> Vec<AssignedCell> {
    let Some(first) = finished.first() else { return Vec::new() };
    let mut cells = Vec::new();
    for (place, (population, readings)) in shape.populations.iter().zip(&first.assigned).enumerate() {
        for reading in readings {
            // Learners and seeds have the same rows, hence the same readings; one of an older checkpoint has none.
            let of = |finished: &[Finished]| {
                let same = |own: &&AssignedReadings| {
                    (own.outcome, own.policies) == (reading.outcome, reading.policies)
                };
                let seeds: Vec<&AssignedReadings> =
                    finished.iter().filter_map(|own| own.assigned.get(place)?.iter().find(same)).collect();
                Averaged::new(seeds.iter().map(|own| (own.values.as_slice(), own.draws.as_slice())).collect())
            };
            let (own, versus) = (of(finished), versus.map(of));
            let estimate =
                |(index, metric): (usize, Metric)| own.estimate(metric, index, versus.as_ref(), shape.level);
            cells.push(AssignedCell {
                population: population.name.clone(),
                outcome: shape.outcomes[reading.outcome].clone(),
                policies: reading.policies,
                rows: reading.rows,
                n_policies: reading.n_policies,
                metrics: Metric::ASSIGNED.into_iter().enumerate().filter_map(estimate).collect(),
                notes: reading.notes.clone(),
            });
        }
    }
    cells
}

/// Values by metric, and draws of them.
type SeedReadings<'a> = (&'a [Option<f64>], &'a [Vec<Option<f64>>]);

/// Readings of one comparison by several seeds: draw by draw their mean, since all seeds have the same draws.
struct Averaged {
    /// By metric, then by seed.
    values: Vec<Vec<f64>>,
    /// By draw, then by metric.
    draws: Vec<Vec<f64>>,
}

impl Averaged {
    /// From the values and the draws of each seed, all of the same metrics.
    fn new(seeds: Vec<SeedReadings<'_>>) -> Self {
        let number = |value: Option<f64>| value.unwrap_or(f64::NAN);
        let n_metrics = seeds.first().map_or(0, |(values, _)| values.len());
        let values =
            (0..n_metrics).map(|metric| seeds.iter().map(|(values, _)| number(values[metric])).collect());
        let n_draws = seeds.iter().map(|(_, draws)| draws.len()).min().unwrap_or(0);
        let draw = |draw: usize| {
            let of = |metric: usize| {
                seeds.iter().map(|(_, draws)| number(draws[draw][metric])).sum::<f64>() / seeds.len() as f64
            };
            (0..n_metrics).map(of).collect()
        };
        Self { values: values.collect(), draws: (0..n_draws).map(draw).collect() }
    }

    fn estimate(&self, metric: Metric, index: usize, versus: Option<&Self>, level: f64) -> Option<Estimate> {
        let defined = |averaged: &Self| mean(averaged.values.get(index)?).filter(|value| value.is_finite());
        let value = defined(self)?;
        let base = versus.and_then(defined);
        let interval = Draws::of(self.draws.clone()).interval(index, level);
        let difference_interval = versus.filter(|_| base.is_some()).and_then(|versus| {
            let pairs = self.draws.iter().zip(&versus.draws);
            let differences = pairs.map(|(own, other)| vec![own[index] - other[index]]).collect();
            Draws::of(differences).interval(0, level)
        });
        Some(Estimate {
            metric,
            value,
            interval,
            seed_sd: deviation(&self.values[index]),
            difference: base.map(|base| value - base),
            difference_interval,
        })
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The standard deviation of two values or more.
fn deviation(values: &[f64]) -> Option<f64> {
    let centre = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::Readings;

    fn readings(auuc: f64, draws: &[f64]) -> Readings {
        let of = |value: f64| vec![Some(value), None, None, None, None, None];
        Readings {
            outcome: 0,
            policy: None,
            n_treated: 5,
            n_control: 5,
            ate: Some(1.0),
            values: of(auuc),
            draws: draws.iter().map(|value| of(*value)).collect(),
            note: None,
        }
    }

    #[test]
    fn seeds_are_averaged_and_differences_are_paired() {
        let noise: Vec<f64> = (0..40).map(|draw| f64::from(draw % 7)).collect();
        let lifted: Vec<f64> = noise.iter().map(|value| value + 0.25).collect();
        let averaged = |seeds: &[Readings]| {
            Averaged::new(seeds.iter().map(|own| (own.values.as_slice(), own.draws.as_slice())).collect())
        };
        let own = averaged(&[readings(0.7, &lifted), readings(0.9, &lifted)]);
        let other = averaged(&[readings(0.5, &noise), readings(0.6, &noise)]);
        let estimate = own.estimate(Metric::Auuc, 0, Some(&other), 0.9).unwrap();
        assert!((estimate.value - 0.8).abs() < 1e-12 && (estimate.difference.unwrap() - 0.25).abs() < 1e-12);
        // The noise of the draws is common to both, and cancels.
        let [low, high] = estimate.difference_interval.unwrap();
        assert!((low - 0.25).abs() < 1e-12 && (high - 0.25).abs() < 1e-12);
        let [low, high] = estimate.interval.unwrap();
        assert!(high - low > 4.0);
        assert!((estimate.seed_sd.unwrap() - 0.02_f64.sqrt()).abs() < 1e-12);
        assert!(own.estimate(Metric::Qini, 1, None, 0.9).is_none());
    }
}
