//! Stage 2 of Algorithm 1: g and h on residuals, by the orthogonalised loss; the best state by validation R-loss.

use super::calibration::{Calibration, calibrate};
use super::centring::{Assigned, Centre, OwnExposure};
use super::halves::{Team, teams};
use super::held_out::HeldOutParts;
use super::objective::{Target, Training};
use super::params::{Centring, ValidParams};
use super::phases::TrainingPhase;
use super::r_loss::{Validation, r_loss};
use super::space::{Mixtures, TreatmentSpace};
use super::uplift_net::UpliftNet;
use super::warm_start::WarmStart;
use crate::effect::Phase;
use crate::net::{Adam, AdamParams, Fit, GroupRule, Layout, RowSource};
use crate::{Result, Run};

/// How much faster gates learn than weights. Gates start open, and training stops at its best epoch: slow ones would still
/// let every feature in by then, most of all where noise is strong or rows are few and the best epoch comes early.
const GATE_RATE: f32 = 6.0;

/// What is learned from.
pub(super) struct Problem<'a> {
    /// Encoded features.
    pub x: &'a dyn RowSource,
    /// The atoms that were seen.
    pub space: &'a TreatmentSpace,
    /// The policies, all of them, run or not, as mixtures.
    pub mixtures: &'a Mixtures,
    /// Policy of each row.
    pub policy: &'a [u32],
    /// Outcomes, and what stage 1 makes of them.
    pub target: Target<'a>,
    /// Number of outcomes.
    pub n_outcomes: usize,
    /// Sample weights.
    pub weight: Option<&'a [f32]>,
    /// The root of what each row and outcome counts by its noise, row-major.
    pub precision: Option<&'a [f32]>,
    /// Clusters.
    pub cluster: Option<&'a [u32]>,
    /// π(t | x), or what follows from it.
    pub assigned: Assigned<'a>,
    /// Where rows have exposures of their own.
    pub own: Option<OwnExposure<'a>>,
    /// How h is centred, settled.
    pub centring: Centring,
    /// The phases of training, at least one.
    pub phases: &'a [TrainingPhase],
    /// A saved model to start from.
    pub start: Option<&'a WarmStart>,
}

impl<'a> Problem<'a> {
    /// The loss for a network.
    pub(super) fn training(&self, network: &'a UpliftNet, params: &ValidParams) -> Training<'a> {
        let n_policies = self.mixtures.rows.n_rows();
        Training {
            network,
            mixtures: self.mixtures,
            centre: Centre::new(self.assigned, self.centring, n_policies, &params.model, self.own),
            policy: self.policy,
            target: self.target,
            weight: self.weight,
            held_out: None,
            precision: self.precision,
            is_sized: params.training.calibrate,
            gate_penalty: params.training.gate_penalty / (self.x.n_rows().max(1) as f32).sqrt(),
        }
    }
}

/// What came out of stage 2.
pub(super) struct Fitted {
    /// The weights of every member.
    pub weights: Vec<Vec<f32>>,
    /// How each phase went.
    pub history: Vec<Phase>,
    /// What held-out rows say of effects, where that was asked for and rows were held out.
    pub calibration: Calibration,
}

/// Fits the ensemble, phase by phase.
pub(super) fn fit(problem: &Problem<'_>, params: &ValidParams, run: Run<'_>) -> Result<Fitted> {
    let (network, layout, groups) =
        UpliftNet::new(problem.x.n_cols(), problem.n_outcomes, problem.space, params)?;
    let settings = &params.training;
    let decay = |weight_decay| GroupRule { rate_factor: 1.0, weight_decay };
    let adam = AdamParams {
        learning_rate: settings.learning_rate,
        clip_norm: (settings.clip_norm > 0.0).then_some(settings.clip_norm),
        average: (settings.average > 0.0).then_some(settings.average),
        ..AdamParams::default()
    };
    let adam = adam
        .check()?
        .group(groups.gate, GroupRule { rate_factor: GATE_RATE, weight_decay: 0.0 })
        .group(groups.g, decay(settings.decay_g))
        .group(groups.rho, decay(settings.decay_rho))
        .group(groups.phi, decay(settings.decay_phi))
        .group(groups.delta, decay(settings.decay_delta))
        .group(groups.running, GroupRule { rate_factor: 0.0, weight_decay: 0.0 });
    let parts = HeldOutParts::new(problem, settings.validation_share, run.seed);
    let mut weights: Vec<Vec<f32>> = Vec::with_capacity(params.model.members);
    let mut history = Vec::new();
    for team in teams(problem, &parts, params, run.seed) {
        let mut training = problem.training(&network, params);
        training.held_out = (parts.is_some() && team.n_members > 1).then_some((&parts, team.first));
        // In units of sd / √rows, of the rows that the team has.
        training.gate_penalty /= team.share.sqrt();
        let of_team = TeamRun {
            problem,
            team: &team,
            parts: &parts,
            training: &training,
            layout: &layout,
            adam: &adam,
        };
        weights.extend(of_team.phases(&mut history, run)?);
    }
    let training = problem.training(&network, params);
    let calibration = match problem.phases.last() {
        Some(phase) if settings.calibrate => {
            let validation = Validation::new(&parts, 0, weights.len(), phase);
            // With exposures of their own, rows share out what policies do on average: each outcome has its own g for it.
            let is_shared =
                params.model.shared_gain && params.model.shared_treatment_net && problem.own.is_none();
            calibrate(&training, &layout, &weights, problem.x, &validation, problem.cluster, is_shared)?
        }
        _ => Calibration { slopes: Vec::new(), deviations: None },
    };
    Ok(Fitted { weights, history, calibration })
}

/// The training of members that share their rows.
struct TeamRun<'a> {
    problem: &'a Problem<'a>,
    team: &'a Team,
    parts: &'a HeldOutParts,
    training: &'a Training<'a>,
    layout: &'a Layout,
    adam: &'a Adam,
}

impl TeamRun<'_> {
    /// Trains phase by phase; gives the weights of the members.
    fn phases(&self, history: &mut Vec<Phase>, run: Run<'_>) -> Result<Vec<Vec<f32>>> {
        let Self { problem, team, parts, training, layout, adam } = self;
        let mut weights: Option<Vec<Vec<f32>>> = None;
        for (index, phase) in problem.phases.iter().enumerate() {
            let saved = |fresh: &[&[f32]]| match (&weights, problem.start) {
                (Some(weights), _) => Ok(weights.clone()),
                (None, Some(start)) => {
                    let member = |member: usize| fresh[member.saturating_sub(team.first)];
                    let all: Vec<&[f32]> = (0..team.first + team.n_members).map(member).collect();
                    Ok(start.weights(problem.space, layout, &all)?.split_off(team.first))
                }
                (None, None) => Ok(fresh.iter().map(|own| own.to_vec()).collect()),
            };
            let validation = Validation::new(parts, team.first, team.n_members, phase);
            let judge = |weights: &[&[f32]]| r_loss(training, layout, weights, problem.x, &validation);
            let fit = Fit {
                x: problem.x,
                rows: &phase.select(&team.rows),
                loss: *training,
                judge: (!validation.is_empty()).then_some(&judge),
                adam: (*adam).clone(),
                n_members: team.n_members,
                start: (weights.is_some() || problem.start.is_some()).then_some(&saved),
                schedule: &phase.schedule,
                part: index as u64,
                stage: &format!("{}{}", phase.title, team.suffix),
            };
            let trained = fit.run((*layout).clone(), Run { seed: team.seed, ..run })?;
            let name = format!("{}{}", phase.name, team.suffix);
            history.push(Phase { name, epochs: trained.history, best: Some(trained.best) });
            weights = Some(trained.ensemble.weights);
        }
        Ok(weights.unwrap_or_default())
    }
}
