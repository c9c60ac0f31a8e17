//! The first stage: folds, m and π of some rows, out of fold (Sec. 2.2 of the paper). Whoever needs one of them has it from
//! here: the method, its rivals, comparisons and checks.

use super::{
    Folds, ObservedRows, OutcomeLoss, OutcomeParams, PropensityFit, PropensityParams, Residuals,
    ValidOutcomeParams, ValidPropensityParams,
};
use crate::{Error, Result, Run};

/// Folds where nothing is said, and where rows are few: there an outcome model that has seen 5 rows of 6 is much better than one
/// that has seen 4, and costs little.
const FOLDS: usize = 3;
const FOLDS_OF_FEW: usize = 6;
const FEW_ROWS: usize = 5_000;

/// The folds of some rows, and what was fitted on them.
pub(crate) struct FirstStage {
    /// The folds of m and π.
    pub folds: Folds,
    /// Outcomes less m, where that was needed.
    pub outcome: Option<Residuals>,
    /// π, where it was needed.
    pub propensity: Option<PropensityFit>,
}

/// What is needed of a first stage.
#[derive(Clone, Copy, Default)]
pub(crate) struct Needs<'a> {
    /// Folds. Default 0: as many as the rows call for.
    pub n_folds: usize,
    /// m, by these settings. Default: not needed.
    pub outcome: Option<(&'a ValidOutcomeParams, OutcomeLoss)>,
    /// Whether outcomes are learned in the order of their names, so that the order in which they are given changes nothing.
    pub by_name: bool,
    /// π, by these settings. Default: not needed.
    pub propensity: Option<&'a ValidPropensityParams>,
}

impl FirstStage {
    /// Fits what is needed.
    pub(crate) fn fit(rows: &ObservedRows<'_>, needs: &Needs<'_>, run: Run<'_>) -> Result<Self> {
        let n_folds = match needs.n_folds {
            0 if rows.n_rows() <= FEW_ROWS => FOLDS_OF_FEW,
            0 => FOLDS,
            given => given,
        };
        let folds = Folds::deal(rows.n_rows(), rows.cluster, n_folds, run.seed.child("folds"));
        let weight = rows.single_weight();
        let weight = weight.as_deref();
        let outcome = needs
            .outcome
            .map(|(params, loss)| Residuals::fit(rows, weight, &folds, (params, loss), needs.by_name, run));
        let outcome = outcome.transpose()?;
        let propensity = needs.propensity.map(|params| rows.fit_propensity(weight, &folds, params, run));
        let missing = || Error::usage("an observational design needs features or propensities");
        let propensity = propensity.transpose()?.map(|fit| fit.ok_or_else(missing)).transpose()?;
        Ok(Self { folds, outcome, propensity })
    }

    /// The first stage that the method has by default, for rivals: the same folds, the same streams, the same bits. m where
    /// `residual` says so; π where there is a least one that is divided by, `clip`.
    pub(crate) fn shared(
        rows: &ObservedRows<'_>,
        n_folds: usize,
        residual: bool,
        clip: Option<f32>,
        run: Run<'_>,
    ) -> Result<Self> {
        let outcome = OutcomeParams::default().check()?;
        let propensity = clip.map(|clip| PropensityParams { clip, ..PropensityParams::default() }.check());
        let propensity = propensity.transpose()?;
        let needs = Needs {
            n_folds,
            outcome: residual.then_some((&outcome, OutcomeLoss::Squared)),
            by_name: true,
            propensity: propensity.as_ref(),
        };
        Self::fit(rows, &needs, run.child("poul"))
    }

    /// Outcomes less m, which were asked for.
    pub(crate) fn take_outcome(&mut self) -> Result<Residuals> {
        self.outcome
            .take()
            .ok_or_else(|| Error::other("a first stage without the outcome model it is asked for"))
    }

    /// π, which was asked for.
    pub(crate) fn take_propensity(&mut self) -> Result<PropensityFit> {
        self.propensity
            .take()
            .ok_or_else(|| Error::other("a first stage without the propensity it is asked for"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Design;
    use crate::net::{DenseRows, Schedule};
    use crate::nuisance::{OutcomeColumn, PropensityColumn, PropensityOrigin};
    use crate::{Seed, Silent};

    const ROWS: usize = 60;

    fn params() -> ValidOutcomeParams {
        let schedule = Schedule { epochs: 2, ..Schedule::default() };
        let own = OutcomeParams { hidden: vec![4], members: 1, schedule, ..OutcomeParams::default() };
        own.check().unwrap()
    }

    #[test]
    fn the_order_in_which_outcomes_are_given_changes_nothing() {
        let names = ["a".to_owned(), "b".to_owned()];
        let policy: Vec<u32> = (0..ROWS as u32).map(|row| row % 2).collect();
        let x: Vec<f32> = (0..ROWS).map(|row| ((row * 37) % 41) as f32 / 20.0 - 1.0).collect();
        let x = DenseRows::new(&x, 1).unwrap();
        let y: Vec<f64> = (0..ROWS).map(|row| ((row * 11) % 17) as f64).collect();
        let z: Vec<f64> = (0..ROWS).map(|row| 100.0 + ((row * 7) % 13) as f64).collect();
        let column = |name, values| OutcomeColumn { name, values, prediction: None };
        let (params, seed) = (params(), Seed::new(3));
        let needs = Needs {
            n_folds: 2,
            outcome: Some((&params, OutcomeLoss::Squared)),
            by_name: true,
            propensity: None,
        };
        let fit = |outcomes| {
            let rows = ObservedRows { x: Some(&x), outcomes, ..ObservedRows::new(&names, &policy) };
            FirstStage::fit(&rows, &needs, Run::new(seed, &Silent)).unwrap().take_outcome().unwrap()
        };
        let one = fit(vec![column("y", &y), column("z", &z)]);
        let other = fit(vec![column("z", &z), column("y", &y)]);
        let swapped: Vec<f32> = other.values.chunks(2).flat_map(|row| [row[1], row[0]]).collect();
        assert_eq!(one.values, swapped);
        assert_eq!((one.scales[0], one.means[1]), (other.scales[1], other.means[0]));
        assert_eq!(one.outcome.r2[1], other.outcome.r2[0]);
        assert!((one.means[1] - z.iter().sum::<f64>() / ROWS as f64).abs() < 1e-9);
    }

    #[test]
    fn what_is_not_asked_for_is_not_fitted() {
        let names = ["a".to_owned(), "b".to_owned()];
        let policy: Vec<u32> = (0..ROWS as u32).map(|row| row % 2).collect();
        let rows = ObservedRows::new(&names, &policy);
        let mut first = FirstStage::fit(&rows, &Needs::default(), Run::new(Seed::new(1), &Silent)).unwrap();
        assert_eq!(first.folds.n_folds, FOLDS_OF_FEW);
        assert!(first.take_outcome().is_err() && first.take_propensity().is_err());
    }

    #[test]
    fn columns_win_over_the_design_and_nothing_is_learned_from_nothing() {
        let names = ["a".to_owned(), "b".to_owned()];
        let policy: Vec<u32> = (0..ROWS as u32).map(|row| row % 2).collect();
        let (a, b) = (vec![0.25; ROWS], vec![0.75; ROWS]);
        let given = [("a", &a), ("b", &b)];
        let given = given.map(|(policy, values)| PropensityColumn { column: "p", policy, values });
        let params = PropensityParams::default().check().unwrap();
        let needs = Needs { propensity: Some(&params), ..Needs::default() };
        let rows = ObservedRows { design: Design::Observational, ..ObservedRows::new(&names, &policy) };
        assert_eq!(rows.propensity_origin(), PropensityOrigin::Learned);
        let error = FirstStage::fit(&rows, &needs, Run::new(Seed::new(1), &Silent)).err().unwrap();
        assert!(error.to_string().contains("needs features or propensities"), "{error}");
        let rows = ObservedRows { propensity: given.to_vec(), ..rows };
        assert_eq!(rows.propensity_origin(), PropensityOrigin::Columns);
        let fit = FirstStage::fit(&rows, &needs, Run::new(Seed::new(1), &Silent))
            .unwrap()
            .take_propensity()
            .unwrap();
        assert_eq!(fit.propensity.of_row(7, 2), [0.25, 0.75]);
    }
}
