//! Cross-fitting of the propensity model, with a fallback for what a fold never saw.

use std::sync::Arc;

use crate::net::{Ensemble, Epoch, Fit, RowSource, mean_outputs};
use crate::nuisance::boosted::room;
use crate::nuisance::choice::OutOfFold;
use crate::nuisance::classes::{PolicyClasses, masses};
use crate::nuisance::rows::SomeRows;
use crate::nuisance::{ChoiceLoss, Folds, NuisanceChoice, NuisanceModel};
use crate::{Error, Progress, Result, Run};

use super::assignment::{Assignment, PropensityFit};
use super::boosted::{BoostedPropensity, MOST_CLASSES, fit_folds};
use super::clip::{clip, floors};
use super::network::{PropensityNet, Shape, Training};
use super::params::{PropensityKind, PropensityParams, ValidPropensityParams};
use super::report::{AbsentPolicies, PropensityReport};
use super::stored::{Blend, PropensityModels};
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
    run: Run<'_>,
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
    let PropensityParams { min_rows, max_classes, kind, .. } = *params;
    let max_classes =
        if kind == PropensityKind::Boosted { max_classes.min(MOST_CLASSES) } else { max_classes };
    let classes = PolicyClasses::new(assignment.policy, assignment.weight, n_policies, min_rows, max_classes);
    let class = classes.of_rows(assignment.policy);
    let task = Task { x, folds, assignment, params, classes: &classes, class: &class, run };
    let Fitted { probabilities, models, boosted, blend, choice } = match kind {
        PropensityKind::Network => task.networks()?,
        PropensityKind::Boosted => task.boosted()?,
        PropensityKind::Auto => task.auto()?,
    };
    let mut table = vec![0.0; table_len];
    for (probabilities, policies) in probabilities.chunks(classes.len()).zip(table.chunks_mut(n_policies)) {
        classes.expand(probabilities, policies);
    }
    let shares = normalised(&masses(assignment.policy, assignment.weight, n_policies)).unwrap_or_default();
    let floors = floors(&shares, params.clip);
    let clipped = clip(&mut table, &floors, Some(assignment.policy));
    let propensity = Propensity::Rows(Arc::new(table));
    let absent: Vec<&[u32]> = match &boosted {
        Some(own) => own.absent.iter().map(Vec::as_slice).collect(),
        None => models.iter().map(|model| model.absent.as_slice()).collect(),
    };
    let report = PropensityReport {
        pooled_policies: classes.n_pooled,
        absent: absent_policies(&absent, &classes, assignment),
        ..PropensityReport::new(&propensity, assignment, clipped)
    };
    warn(&report, run.progress);
    let models = PropensityModels { shape: task.shape(), classes, floors, models, boosted, blend };
    Ok(PropensityFit { propensity, report, models: Some(models), choice })
}

/// What is fitted, and how.
struct Task<'a> {
    x: &'a dyn RowSource,
    folds: &'a Folds,
    assignment: &'a Assignment<'a>,
    params: &'a PropensityParams,
    classes: &'a PolicyClasses,
    class: &'a [u32],
    run: Run<'a>,
}

/// Probabilities of classes out of fold, row-major, and the models.
struct Fitted {
    probabilities: Vec<f32>,
    models: Vec<FoldModel>,
    boosted: Option<BoostedPropensity>,
    blend: Option<Blend>,
    choice: Option<NuisanceChoice>,
}

impl Task<'_> {
    fn shape(&self) -> Shape {
        Shape {
            n_features: self.x.n_cols(),
            hidden: self.params.hidden.clone(),
            dropout: self.params.dropout,
            n_classes: self.classes.len(),
        }
    }

    /// Rows that a fold's model is fitted on, and rows it is stopped by.
    fn rows(&self, held_of: &Folds, fold: usize) -> (Vec<u32>, Vec<u32>) {
        let training = self.folds.training(fold);
        training.iter().partition(|row| held_of.of_row[**row as usize] != 0)
    }

    fn held_of(&self) -> Folds {
        let seed = self.run.seed.child("validation");
        Folds::deal(self.assignment.policy.len(), self.assignment.cluster, HELD_PARTS, seed)
    }

    fn networks(&self) -> Result<Fitted> {
        let (folds, classes, shape, held_of) = (self.folds, self.classes, self.shape(), self.held_of());
        let mut probabilities = vec![0.0; self.class.len() * classes.len()];
        let mut models = Vec::with_capacity(folds.n_folds);
        for fold in 0..folds.n_folds {
            let (rows, held) = self.rows(&held_of, fold);
            let stage = match folds.n_folds {
                1 => "Propensity".to_owned(),
                n_folds => format!("Propensity, fold {} of {n_folds}", fold + 1),
            };
            let run = self.run.child("fold").index(fold as u64);
            let weight = self.assignment.weight;
            let data = Data { x: self.x, class: self.class, weight, rows: &rows, held: &held };
            let model = FoldModel::fit(&data, &shape, self.params, &stage, run)?;
            let inside = folds.rows(fold);
            let own = model.predict(&SomeRows { x: self.x, rows: &inside }, classes)?;
            place(&own, &inside, classes.len(), &mut probabilities);
            models.push(model);
        }
        Ok(Fitted { probabilities, models, boosted: None, blend: None, choice: None })
    }

    fn boosted(&self) -> Result<Fitted> {
        room(self.x, self.x.n_rows())?;
        let held_of = self.held_of();
        let of = (self.class, self.assignment.weight);
        let rows = |fold: usize| match self.params.boosted.patience {
            0 => (self.folds.training(fold), Vec::new()),
            _ => self.rows(&held_of, fold),
        };
        let (shares, params) = (&self.classes.shares, &self.params.boosted);
        let (probabilities, boosted) = fit_folds(self.x, self.folds, shares, params, self.run, &rows, of)?;
        Ok(Fitted { probabilities, models: Vec::new(), boosted: Some(boosted), blend: None, choice: None })
    }

    /// Networks, trees, or a mixture of both.
    fn auto(&self) -> Result<Fitted> {
        if self.folds.n_folds < 2 {
            let error = Error::usage(
                "`auto` chooses the propensity by out-of-fold loss, which one fold does not have",
            );
            return Err(error.hint("set `training.folds` to 2 or more, or name the outcome model"));
        }
        let networks = self.networks()?;
        let n_classes = self.classes.len();
        let (boosted, left_out) = match room(self.x, self.x.n_rows()) {
            Err(why) => (None, Some(format!("boosted trees left out: {why}"))),
            Ok(()) if n_classes > MOST_CLASSES => {
                let why = format!(
                    "boosted trees left out: {n_classes} policies are more than the {MOST_CLASSES} they take"
                );
                (None, Some(why))
            }
            Ok(()) => (Some(self.boosted()?), None),
        };
        let own = |fitted: &Fitted| -> Vec<f32> {
            let rows = fitted.probabilities.chunks(n_classes).zip(self.class);
            rows.map(|(probabilities, class)| probabilities[*class as usize]).collect()
        };
        let mut predicted = vec![(NuisanceModel::Network, own(&networks))];
        predicted.extend(boosted.as_ref().map(|boosted| (NuisanceModel::Boosted, own(boosted))));
        let shares = self.classes.shares.iter().filter(|share| **share > 0.0);
        let rows = OutOfFold {
            predicted,
            outcome: None,
            constant: -shares.map(|share| share * share.ln()).sum::<f64>(),
            by: ChoiceLoss::Log,
            weight: self.assignment.weight,
            cluster: self.assignment.cluster,
        };
        let choice = rows.choose(left_out);
        let weight_of = |model| choice.weight(model) as f32;
        let blend =
            Blend { network: weight_of(NuisanceModel::Network), boosted: weight_of(NuisanceModel::Boosted) };
        let Fitted { mut probabilities, models, .. } = networks;
        let mut trees = None;
        if let Some(fitted) = boosted.filter(|_| blend.boosted > 0.0) {
            for (own, other) in probabilities.iter_mut().zip(&fitted.probabilities) {
                *own = blend.network * *own + blend.boosted * other;
            }
            trees = fitted.boosted;
        }
        let models = if blend.network > 0.0 { models } else { Vec::new() };
        Ok(Fitted { probabilities, models, boosted: trees, blend: Some(blend), choice: Some(choice) })
    }
}

/// Puts the probabilities of a fold's rows in their places.
pub(super) fn place(own: &[f32], rows: &[u32], n_classes: usize, probabilities: &mut [f32]) {
    for (own, row) in own.chunks(n_classes).zip(rows) {
        probabilities[*row as usize * n_classes..][..n_classes].copy_from_slice(own);
    }
}

/// What one fold is fitted on.
pub(super) struct Data<'a> {
    pub(super) x: &'a dyn RowSource,
    pub(super) class: &'a [u32],
    pub(super) weight: Option<&'a [f32]>,
    pub(super) rows: &'a [u32],
    pub(super) held: &'a [u32],
}

impl Data<'_> {
    /// Shares of classes in the training part, and the classes that it lacks.
    pub(super) fn shares(&self, n_classes: usize) -> Result<(Vec<f32>, Vec<u32>)> {
        let mut mass = vec![0.0; n_classes];
        for row in self.rows {
            mass[self.class[*row as usize] as usize] += self.weight_of(*row);
        }
        let Some(shares) = normalised(&mass) else {
            let error = Error::input("all rows that the propensity would be fitted on have weight 0");
            return Err(error.hint("fewer folds, or other weights"));
        };
        let absent = (0..n_classes as u32).filter(|class| mass[*class as usize] <= 0.0).collect();
        Ok((shares, absent))
    }

    pub(super) fn weight_of(&self, row: u32) -> f64 {
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
        stage: &str,
        run: Run<'_>,
    ) -> Result<Self> {
        let (shares, absent) = data.shares(shape.n_classes)?;
        let log_share = |share: &f32| if *share > 0.0 { share.ln().max(ABSENT) } else { ABSENT };
        let (net, layout) = shape.build(shares.iter().map(log_share).collect())?;
        let training = Training { net: &net, class: data.class, weight: data.weight };
        let some = SomeRows { x: data.x, rows: data.held };
        let judge = |weights: &[&[f32]]| {
            let outputs = mean_outputs(&layout, weights, &net, &some, shape.n_classes)?;
            Ok(data.held_loss(&outputs, shape.n_classes))
        };
        let is_weighty = data.held.iter().any(|row| data.weight_of(*row) > 0.0);
        let fit = Fit {
            x: data.x,
            rows: data.rows,
            loss: &training,
            judge: is_weighty.then_some(&judge),
            adam: params.adam().check()?,
            n_members: params.members,
            start: None,
            schedule: &params.schedule,
            part: 0,
            stage,
        };
        let fitted = fit.run(layout.clone(), run)?;
        Ok(Self { net, ensemble: fitted.ensemble, absent, history: fitted.history, best: fitted.best })
    }

    /// Probabilities of classes. A class that the training part lacked has its share of all rows, and the others what
    /// that leaves: nothing else is known of it.
    pub(super) fn predict(&self, x: &dyn RowSource, classes: &PolicyClasses) -> Result<Vec<f32>> {
        let mut probabilities = self.ensemble.mean(&self.net, x, classes.len())?;
        by_share(&mut probabilities, &self.absent, &classes.shares);
        Ok(probabilities)
    }
}

/// Gives absent classes their shares of all rows, and the others what that leaves.
pub(super) fn by_share(probabilities: &mut [f32], absent: &[u32], shares: &[f64]) {
    if absent.is_empty() {
        return;
    }
    let taken: f64 = absent.iter().map(|class| shares[*class as usize]).sum();
    for row in probabilities.chunks_mut(shares.len()) {
        absent.iter().for_each(|class| row[*class as usize] = 0.0);
        let rest: f64 = row.iter().map(|probability| f64::from(*probability)).sum();
        let factor = ((1.0 - taken) / rest.max(f64::MIN_POSITIVE)) as f32;
        row.iter_mut().for_each(|probability| *probability *= factor);
        for class in absent {
            row[*class as usize] = shares[*class as usize] as f32;
        }
    }
}

fn absent_policies(
    absent: &[&[u32]],
    classes: &PolicyClasses,
    assignment: &Assignment<'_>,
) -> Vec<AbsentPolicies> {
    let of_fold = |(fold, own): (usize, &&[u32])| {
        let is_absent = |policy: &usize| own.contains(&classes.class_of[*policy]);
        let absent: Vec<usize> = (0..assignment.policy_names.len()).filter(is_absent).collect();
        let policies = absent.iter().map(|policy| assignment.policy_names[*policy].clone()).collect();
        let n_rows =
            |policy: &usize| assignment.policy.iter().filter(|own| **own as usize == *policy).count();
        AbsentPolicies { fold, policies, rows: absent.iter().map(|policy| n_rows(policy) as u64).collect() }
    };
    absent.iter().enumerate().filter(|(_, own)| !own.is_empty()).map(of_fold).collect()
}

fn warn(report: &PropensityReport, progress: &dyn Progress) {
    report.absent.iter().for_each(|absent| progress.warn(&absent.note()));
}
