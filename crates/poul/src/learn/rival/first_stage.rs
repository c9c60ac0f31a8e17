//! What some rivals know before their own networks are trained, out of fold: m(x), π(t|x), and μ(x, t) of every arm.

use super::effect_heads::MetaParams;
use super::fit::{Problem, build};
use super::fitted::{All, Fitted, Manifest};
use super::params::TrainingParams;
use super::s_learner::{SLearner, SLearnerParams};
use super::surface::{Rows, Surface};
use super::t_learner::{TLearner, TLearnerParams};
use super::treatments::{Tier, Treatments};
use crate::effect::ValidTrainingData;
use crate::net::{RowSource, predict};
use crate::nuisance::{FirstStage, Folds, Propensity, SomeRows};
use crate::{Result, Run, counted};

/// What a rival needs of a first stage.
#[derive(Default)]
pub(super) struct Needs<'m> {
    /// Outcomes less m(x).
    pub(super) residual: bool,
    /// π(t|x), none below this; or a tenth of the arm's share, if that is less.
    pub(super) propensity: Option<f32>,
    /// μ(x, t), by networks of these settings.
    pub(super) levels: Option<&'m MetaParams>,
}

/// The first stage of all outcomes, but for μ, which each outcome fits when its turn comes.
pub(super) struct RivalStage {
    /// Row-major, one column per outcome; empty where it is not needed.
    residual: Vec<f32>,
    pub(super) propensity: ArmPropensity,
    /// The folds of the method itself.
    pub(super) folds: Folds,
    /// What the user should know.
    pub(super) notes: Vec<String>,
}

impl RivalStage {
    /// Fits what is needed, on the folds and by the streams of the method itself.
    pub(super) fn fit(
        data: &ValidTrainingData<'_>,
        needs: &Needs<'_>,
        arms: &[usize],
        n_folds: usize,
        run: Run<'_>,
    ) -> Result<Self> {
        let (rows, clip) = (data.observed(), needs.propensity);
        let first = FirstStage::shared(&rows, n_folds, needs.residual, clip, run)?;
        let mut notes = Vec::new();
        let mut propensity = ArmPropensity::none();
        if let (Some(fit), Some(clip)) = (first.propensity, clip) {
            notes.extend(fit.report.clipping_note(clip, data.n_rows()));
            propensity = ArmPropensity::new(data, fit.propensity, arms, clip);
            notes.extend(propensity.note(data, clip));
        }
        let residual = first.outcome.map_or_else(Vec::new, |outcome| outcome.values);
        Ok(Self { residual, propensity, folds: first.folds, notes })
    }

    /// One outcome less m(x), where that is needed.
    pub(super) fn residual(&self, outcome: usize, n_outcomes: usize) -> Option<Vec<f32>> {
        let values = self.residual.iter().skip(outcome).step_by(n_outcomes).copied();
        (!self.residual.is_empty()).then(|| values.collect())
    }
}

/// π of every arm in every row.
pub(super) struct ArmPropensity {
    propensity: Propensity,
    n_policies: usize,
    /// The policy of each arm.
    arms: Vec<usize>,
    /// Less than this counts as this, by arm.
    floor: Vec<f32>,
}

impl ArmPropensity {
    fn none() -> Self {
        Self {
            propensity: Propensity::Shares(Vec::new()),
            n_policies: 0,
            arms: Vec::new(),
            floor: Vec::new(),
        }
    }

    fn new(data: &ValidTrainingData<'_>, propensity: Propensity, arms: &[usize], clip: f32) -> Self {
        let total: f64 = data.policy_mass().iter().sum();
        let floor = |policy: &usize| clip.min((0.1 * data.policy_mass()[*policy] / total) as f32);
        let n_policies = data.policies.len();
        Self { propensity, n_policies, floor: arms.iter().map(floor).collect(), arms: arms.to_vec() }
    }

    /// π of an arm in a row, as it was fitted or given.
    pub(super) fn plain(&self, row: usize, arm: usize) -> f32 {
        self.propensity.of_row(row, self.n_policies)[self.arms[arm]]
    }

    /// π of an arm in a row, lifted to the floor: what may be divided by.
    pub(super) fn lifted(&self, row: usize, arm: usize) -> f32 {
        self.plain(row, arm).max(self.floor[arm])
    }

    /// Whether all rows have the same.
    pub(super) fn is_same_for_all(&self) -> bool {
        matches!(self.propensity, Propensity::Shares(_))
    }

    /// How many rows have a policy that was lifted.
    fn note(&self, data: &ValidTrainingData<'_>, clip: f32) -> Option<String> {
        let mut arm_of = vec![0; self.n_policies];
        self.arms.iter().enumerate().for_each(|(arm, policy)| arm_of[*policy] = arm);
        let is_low = |row: &usize| {
            let arm = arm_of[data.policy[*row] as usize];
            self.plain(*row, arm) < self.floor[arm]
        };
        let n_low = (0..data.n_rows()).filter(is_low).count();
        (n_low > 0).then(|| {
            let share = 100.0 * n_low as f64 / data.n_rows() as f64;
            format!(
                "{} ({share:.1} %) received a policy whose estimated probability was below the floor (`clip` = {clip})",
                counted(n_low, "row", "rows")
            )
        })
    }
}

/// μ(x, t): a network for each arm, or one that reads the mixture.
pub(super) enum LevelModel {
    ByArm(Fitted<TLearner>),
    ByMixture(Fitted<SLearner>),
}

impl LevelModel {
    /// The networks before any training.
    pub(super) fn new(
        data: &ValidTrainingData<'_>,
        treatments: &Treatments,
        params: &MetaParams,
    ) -> Result<Self> {
        let MetaParams { hidden, dropout, min_arm_rows, members, .. } = params.clone();
        Ok(match treatments.tier {
            Tier::Id => Self::ByArm(unfitted(
                data,
                treatments,
                TLearnerParams { hidden, dropout, min_arm_rows, members },
            )?),
            Tier::Spec => {
                let params = SLearnerParams { tier: Tier::Spec, hidden, dropout, members };
                Self::ByMixture(unfitted(data, treatments, params)?)
            }
        })
    }

    /// μ of every row under every arm, rows × arms, each row by networks that never saw its fold.
    ///
    /// `parts` are the folds, and the parts of which the first is held out for early stopping.
    pub(super) fn out_of_fold(
        &self,
        rows: &Rows<'_>,
        x: &dyn RowSource,
        parts: (&Folds, Option<&Folds>),
        training: &TrainingParams,
        run: Run<'_>,
    ) -> Result<Vec<f32>> {
        match self {
            Self::ByArm(fit) => out_of_fold(fit, rows, x, parts, training, run),
            Self::ByMixture(fit) => out_of_fold(fit, rows, x, parts, training, run),
        }
    }
}

fn unfitted<S: Surface>(
    data: &ValidTrainingData<'_>,
    treatments: &Treatments,
    model: S::Model,
) -> Result<Fitted<S>> {
    let n_features = data.x.n_cols();
    let (surface, layout) = build::<S>(n_features, treatments, &model)?;
    let (outcomes, scales, treatments) = (Vec::new(), Vec::new(), treatments.clone());
    let shifts = Vec::new();
    let manifest = Manifest { outcomes, scales, n_features, treatments, model, shifts };
    Ok(Fitted { manifest, surface, layout, ensembles: Vec::new() })
}

fn out_of_fold<S: Surface>(
    fit: &Fitted<S>,
    rows: &Rows<'_>,
    x: &dyn RowSource,
    (folds, parts): (&Folds, Option<&Folds>),
    training: &TrainingParams,
    run: Run<'_>,
) -> Result<Vec<f32>> {
    let n_arms = rows.treatments.arm.len();
    let network = All { surface: &fit.surface, treatments: rows.treatments };
    let mut levels = vec![0.0; rows.arm.len() * n_arms];
    for fold in 0..folds.n_folds {
        let is_held = |row: &u32| parts.is_some_and(|parts| parts.of_row[*row as usize] == 0);
        let (held, fitted): (Vec<u32>, Vec<u32>) = folds.training(fold).iter().partition(|row| is_held(row));
        let stage = format!("Outcomes by policy, fold {} of {}", fold + 1, folds.n_folds);
        let problem = Problem { rows: *rows, x, fitted: &fitted, held: &held, stage };
        let trained = problem.fit(fit, training, run.child("fold").index(fold as u64))?;
        let inside = folds.rows(fold);
        let share = 1.0 / trained.ensemble.weights.len() as f32;
        for (member, weights) in trained.ensemble.weights.iter().enumerate() {
            let source = SomeRows { x, rows: &inside };
            let values = predict(&fit.layout, weights, &network, &source, n_arms, member)?;
            for (row, values) in inside.iter().zip(values.chunks(n_arms)) {
                let levels = &mut levels[*row as usize * n_arms..][..n_arms];
                levels.iter_mut().zip(values).for_each(|(level, value)| *level += share * value);
            }
        }
    }
    Ok(levels)
}
