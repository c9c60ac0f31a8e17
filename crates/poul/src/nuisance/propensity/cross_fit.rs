//! Cross-fitting of the softmax propensity network, with a fallback for what a fold never saw.

use std::sync::Arc;

use crate::net::{Epoch, RowSource};
use crate::nuisance::Folds;
use crate::nuisance::classes::{PolicyClasses, masses};
use crate::nuisance::ensemble::{Ensemble, Fit};
use crate::nuisance::rows::SomeRows;
use crate::{Error, Progress, Result, Seed};

use super::assignment::{Assignment, PropensityFit};
use super::clip::{clip, floors};
use super::network::{PropensityNet, Shape, Training};
use super::params::{PropensityParams, ValidPropensityParams};
use super::report::{AbsentPolicies, PropensityReport};
use super::stored::PropensityModels;
use super::{Propensity, normalised};

/// One row in so many is held out for early stopping.
const HELD_PARTS: usize = 10;
/// The logit of a class that a training part lacks.
const ABSENT: f32 = -30.0;

/// The network that was fitted without the rows of one fold.
#[derive(Clone, Debug)]
pub(super) struct FoldModel {
    pub(super) net: PropensityNet,
    pub(super) ensemble: Ensemble,
    /// Classes that the training part lacked.
    pub(super) absent: Vec<u32>,
    pub(super) history: Vec<Epoch>,
    pub(super) best: usize,
}

/// Fits π(t | x) on the other folds for every fold, predicts each row by the model that never saw its fold, and clips.
pub(super) fn fit_softmax(
    x: &dyn RowSource,
    folds: &Folds,
    assignment: &Assignment<'_>,
    params: &ValidPropensityParams,
    seed: Seed,
    progress: &dyn Progress,
) -> Result<PropensityFit> {
    let params = &params.0;
    let (n_rows, n_policies) = (assignment.policy.len(), assignment.policy_names.len());
    folds.check(n_rows)?;
    if x.n_rows() != n_rows {
        return Err(Error::other(format!("features of {} rows for policies of {n_rows}", x.n_rows())));
    }
    let Some(table_len) = n_rows.checked_mul(n_policies) else {
        return Err(Error::input("too many rows and policies for a table of propensities"));
    };
    let PropensityParams { min_rows, max_classes, .. } = *params;
    let classes = PolicyClasses::new(assignment.policy, assignment.weight, n_policies, min_rows, max_classes);
    let class = classes.of_rows(assignment.policy);
    let shape = Shape {
        n_features: x.n_cols(),
        hidden: params.hidden.clone(),
        dropout: params.dropout,
        n_classes: classes.len(),
    };
    let held_of = Folds::deal(n_rows, assignment.cluster, HELD_PARTS, seed.child("validation"));
    let mut table = vec![0.0; table_len];
    let mut models = Vec::with_capacity(folds.n_folds);
    for fold in 0..folds.n_folds {
        let (held, rows): (Vec<u32>, Vec<u32>) =
            folds.training(fold).iter().partition(|row| held_of.of_row[**row as usize] == 0);
        let stage = match folds.n_folds {
            1 => "Propensity".to_owned(),
            n_folds => format!("Propensity, fold {} of {n_folds}", fold + 1),
        };
        let seed = seed.child("fold").index(fold as u64);
        let data = Data { x, class: &class, weight: assignment.weight, rows: &rows, held: &held };
        let model = FoldModel::fit(&data, &shape, params, stage, seed, progress)?;
        let inside = folds.rows(fold);
        let probabilities = model.predict(&SomeRows { x, rows: &inside }, &classes)?;
        for (probabilities, row) in probabilities.chunks(classes.len()).zip(&inside) {
            classes.expand(probabilities, &mut table[*row as usize * n_policies..][..n_policies]);
        }
        models.push(model);
    }
    let shares = normalised(&masses(assignment.policy, assignment.weight, n_policies)).unwrap_or_default();
    let floors = floors(&shares, params.clip);
    let clipped = clip(&mut table, &floors, Some(assignment.policy));
    let propensity = Propensity::Rows(Arc::new(table));
    let report = PropensityReport {
        pooled_policies: classes.n_pooled,
        absent: absent_policies(&models, &classes, assignment),
        ..PropensityReport::new(&propensity, assignment, clipped)
    };
    warn(&report, progress);
    let models = PropensityModels { shape, classes, floors, models };
    Ok(PropensityFit { propensity, report, models: Some(models) })
}

/// What one fold is fitted on.
struct Data<'a> {
    x: &'a dyn RowSource,
    class: &'a [u32],
    weight: Option<&'a [f32]>,
    rows: &'a [u32],
    held: &'a [u32],
}

impl Data<'_> {
    fn weight_of(&self, row: u32) -> f64 {
        self.weight.map_or(1.0, |weight| f64::from(weight[row as usize]))
    }

    /// Mean −ln p of the held rows' classes.
    fn held_loss(&self, probabilities: &[f32], n_classes: usize) -> f64 {
        let (mut total, mut mass) = (0.0, 0.0);
        for (probabilities, row) in probabilities.chunks(n_classes).zip(self.held) {
            let weight = self.weight_of(*row);
            mass += weight;
            let own = probabilities[self.class[*row as usize] as usize];
            total -= weight * f64::from(own.max(1e-12)).ln();
        }
        total / mass
    }
}

impl FoldModel {
    fn fit(
        data: &Data<'_>,
        shape: &Shape,
        params: &PropensityParams,
        stage: String,
        seed: Seed,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let mut mass = vec![0.0; shape.n_classes];
        for row in data.rows {
            mass[data.class[*row as usize] as usize] += data.weight_of(*row);
        }
        let Some(shares) = normalised(&mass) else {
            let error = Error::input("all rows that the propensity would be fitted on have weight 0");
            return Err(error.hint("fewer folds, or other weights"));
        };
        let absent: Vec<u32> =
            (0..shape.n_classes as u32).filter(|class| mass[*class as usize] <= 0.0).collect();
        let log_share = |share: &f32| if *share > 0.0 { share.ln().max(ABSENT) } else { ABSENT };
        let (net, layout) = shape.build(shares.iter().map(log_share).collect())?;
        let training = Training { net: &net, class: data.class, weight: data.weight };
        let is_weighty = data.held.iter().any(|row| data.weight_of(*row) > 0.0);
        let fit = Fit {
            x: data.x,
            rows: data.rows,
            held: if is_weighty { data.held } else { &[] },
            loss: &training,
            outputs: &net,
            n_out: shape.n_classes,
            held_loss: &|probabilities: &[f32]| data.held_loss(probabilities, shape.n_classes),
            adam: params.adam(),
            n_members: params.members,
            schedule: &params.schedule,
            stage,
        };
        let fitted = fit.run(layout, seed, progress)?;
        Ok(Self { net, ensemble: fitted.ensemble, absent, history: fitted.history, best: fitted.best })
    }

    /// Probabilities of classes. A class that the training part lacked has its share of all rows, and the others what
    /// that leaves: nothing else is known of it.
    pub(super) fn predict(&self, x: &dyn RowSource, classes: &PolicyClasses) -> Result<Vec<f32>> {
        let mut probabilities = self.ensemble.mean(&self.net, x, classes.len())?;
        if self.absent.is_empty() {
            return Ok(probabilities);
        }
        let taken: f64 = self.absent.iter().map(|class| classes.shares[*class as usize]).sum();
        for row in probabilities.chunks_mut(classes.len()) {
            self.absent.iter().for_each(|class| row[*class as usize] = 0.0);
            let rest: f64 = row.iter().map(|probability| f64::from(*probability)).sum();
            let factor = ((1.0 - taken) / rest.max(f64::MIN_POSITIVE)) as f32;
            row.iter_mut().for_each(|probability| *probability *= factor);
            for class in &self.absent {
                row[*class as usize] = classes.shares[*class as usize] as f32;
            }
        }
        Ok(probabilities)
    }
}

fn absent_policies(
    models: &[FoldModel],
    classes: &PolicyClasses,
    assignment: &Assignment<'_>,
) -> Vec<AbsentPolicies> {
    let of_fold = |(fold, model): (usize, &FoldModel)| {
        let is_absent = |policy: &usize| model.absent.contains(&classes.class_of[*policy]);
        let absent: Vec<usize> = (0..assignment.policy_names.len()).filter(is_absent).collect();
        let policies = absent.iter().map(|policy| assignment.policy_names[*policy].clone()).collect();
        let n_rows =
            |policy: &usize| assignment.policy.iter().filter(|own| **own as usize == *policy).count();
        AbsentPolicies { fold, policies, rows: absent.iter().map(|policy| n_rows(policy) as u64).collect() }
    };
    models.iter().enumerate().filter(|(_, model)| !model.absent.is_empty()).map(of_fold).collect()
}

fn warn(report: &PropensityReport, progress: &dyn Progress) {
    report.absent.iter().for_each(|absent| progress.warn(&absent.note()));
}
