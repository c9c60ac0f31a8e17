//! A whole design: from a model to the policies to run next.

use super::base::{Start, start};
use super::candidates::Candidates;
use super::choose::{batch, pool};
use super::learn::Knowledge;
use super::params::ValidDesignParams;
use super::power::{noise, plan};
use super::proposals::{Facts, Named, base_of, proposals};
use super::result::{Arm, Design, Learn, Noise, Population, Search};
use super::search::{Searched, search};
use super::space::{Candidate, Refusal, Space};
use super::users::Users;
use super::valuation::{Valuation, move_to};
use super::words::{conclusion, plan_conclusion};
use crate::effect::{AverageEstimate, Support};
use crate::model::Model;
use crate::{Error, Progress, Result, Run, Seed};

/// Policies of a plan where none are named.
const PLANNED: usize = 5;

/// Finds the policies to run next. Averages are over the `users`, or over the training population without them.
pub fn design(
    model: &Model,
    params: &ValidDesignParams,
    mut users: Option<Users<'_>>,
    progress: &dyn Progress,
) -> Result<Design> {
    let valuation = Valuation::new(model, params)?;
    let noise = noise(model);
    let mut found = Design {
        maximize: params.given.maximize.clone(),
        by: params.given.by,
        against: valuation.control.to_owned(),
        population: if users.is_some() { Population::Users } else { Population::Training },
        users: users.as_ref().map(|users| users.len() as u64),
        base: None,
        search: None,
        proposals: Vec::new(),
        noise: noise.clone(),
        plan: None,
        learn: None,
        conclusion: String::new(),
        notes: Vec::new(),
        policies: None,
    };
    if found.noise.iter().any(|own| !own.known) {
        found.notes.push(
            "the model was fitted before the noise of users was kept: that of the outcome itself stands for it, which asks for \
             more users than are needed"
                .to_owned(),
        );
    }
    if params.given.maximize.is_none() {
        only_plan(&valuation, params, &mut users, &mut found)?;
        return Ok(found);
    }
    let weighted = model.weighted(&model.manifest().policies);
    let support = Support::new(&weighted, &model.manifest().policy_rows);
    let Start { base, valued, incumbent } = start(&valuation, params, (&weighted, &support), users.as_ref())?;
    let grid = params.grid(model.is_factorial());
    let space = Space::new(&weighted, &support, base, params, &grid)?;
    let seed = Seed::new(params.given.seed).child("design");
    let (named, batch) = {
        let mut candidates = Candidates::new(&space, &valuation, &incumbent, users.as_ref());
        progress.start("Searching", "policies", None);
        let searched = search(&mut candidates, Run::new(seed, progress))?;
        progress.finish();
        found.search = Some(told(&candidates, &searched, params, grid));
        let pool = pool(&candidates);
        if pool.is_empty() {
            return Err(nothing(&candidates, params));
        }
        choose(&candidates, &pool, params, &found.noise, seed)?
    };
    let facts =
        Facts { model, valuation: &valuation, space: &space, params, noise: &noise, incumbent: &incumbent };
    let named = Named::new(&facts, named)?;
    found.base = Some(base_of(&facts, &support, &valued));
    let averages = facts.averages(&named, &mut users)?;
    found.proposals = proposals(&facts, &named, &averages, &mut users)?;
    found.learn = batch.map(|batch| batch.told(&facts, &named));
    if let (Some(rows), None) = (params.rows, &found.learn) {
        found.plan = Some(plan(&valuation, &named.all, &named.targets, &averages, rows, &found.noise)?);
    }
    found.policies = Some(named.file);
    let wanted = if params.given.learn { params.batch } else { params.proposals };
    if found.proposals.len() < wanted {
        found.notes.push(format!(
            "there are {} policies to propose that differ, not {wanted}: allow more edits, or a greater distance",
            found.proposals.len()
        ));
    }
    found.conclusion = conclusion(&found, params.given.level);
    Ok(found)
}

/// The candidates to propose; in the order of what they teach, with their shares, where that is asked for.
fn choose(
    candidates: &Candidates<'_>,
    pool: &[Candidate],
    params: &ValidDesignParams,
    noise: &[Noise],
    seed: Seed,
) -> Result<(Vec<Candidate>, Option<Taught>)> {
    let of = |places: &[usize]| places.iter().map(|place| pool[*place].clone()).collect::<Vec<_>>();
    let Some(rows) = params.rows.filter(|_| params.given.learn) else {
        return Ok((of(&batch(candidates, pool, params.proposals, seed)?), None));
    };
    let places: Vec<&Candidate> = pool.iter().collect();
    let covariance = candidates.covariance(&places)?;
    let deviations: Vec<f64> = noise.iter().map(|own| own.deviation).collect();
    let deviation = candidates.valuation.net_deviation(&deviations);
    let n = pool.len();
    let batch = Knowledge { covariance: &covariance, n, deviation, rows: rows as f64 }.batch(params.batch);
    let mean = |total: f64| (total / n as f64).sqrt();
    let before: Vec<AverageEstimate> = candidates.valued(&places)?.into_iter().map(|own| own.net).collect();
    let taught = Taught {
        rows,
        candidates: n,
        se: mean((0..n).map(|own| covariance[own * n + own]).sum()),
        se_after: mean(batch.variance.iter().sum()),
        arms: batch
            .chosen
            .iter()
            .zip(&batch.shares)
            .map(|(own, share)| (*share, before[*own], batch.variance[*own].sqrt()))
            .collect(),
    };
    Ok((of(&batch.chosen), Some(taught)))
}

/// What a batch teaches.
struct Taught {
    rows: u64,
    candidates: usize,
    se: f64,
    se_after: f64,
    /// Share, what is known now, and the standard error after.
    arms: Vec<(f64, AverageEstimate, f64)>,
}

impl Taught {
    fn told(self, facts: &Facts<'_>, named: &Named) -> Learn {
        let Self { rows, candidates, se, se_after, arms } = self;
        let level = facts.params.given.level;
        let control_share = 1.0 - arms.iter().map(|(share, ..)| share).sum::<f64>();
        let arm = |((share, now, after), name): ((f64, AverageEstimate, f64), &String)| Arm {
            policy: name.clone(),
            share,
            rows: (share * rows as f64).round() as u64,
            interval: now.interval(level),
            interval_after: AverageEstimate { se: after, ..now }.interval(level),
        };
        let arms = arms.into_iter().zip(&named.names).map(arm).collect();
        Learn { rows, candidates, se, se_after, control_share, arms }
    }
}

/// A plan for policies that are known.
fn only_plan(
    valuation: &Valuation<'_>,
    params: &ValidDesignParams,
    users: &mut Option<Users<'_>>,
    found: &mut Design,
) -> Result<()> {
    let manifest = valuation.model.manifest();
    let policies = &manifest.policies;
    let control = policies.require(valuation.control)?;
    let targets: Vec<usize> = match params.given.policy.as_slice() {
        [] => {
            let mut run: Vec<usize> =
                (0..policies.len()).filter(|own| manifest.policy_rows[*own] > 0 && *own != control).collect();
            run.sort_by_key(|own| std::cmp::Reverse(manifest.policy_rows[*own]));
            run.truncate(PLANNED);
            run
        }
        names => {
            let place = |name: &String| policies.require(name).map_err(|error| error.at("policy"));
            names
                .iter()
                .map(place)
                .collect::<Result<Vec<usize>>>()?
                .into_iter()
                .filter(|own| *own != control)
                .collect()
        }
    };
    if targets.is_empty() {
        return Err(Error::usage("there is no policy to plan for but the control")
            .hint("name one that was run: ‹policy=NAME›"));
    }
    let mut averages = valuation.averages(policies, &targets, control, false)?;
    if let Some(users) = users {
        move_to(&mut averages, users.means_of_all(valuation.model, policies, &targets, control)?);
    }
    let rows = params.rows.unwrap_or(1);
    let planned = plan(valuation, policies, &targets, &averages, rows, &found.noise)?;
    found.conclusion = plan_conclusion(&planned, valuation.control);
    found.plan = Some(planned);
    Ok(())
}

/// What was searched.
fn told(
    candidates: &Candidates<'_>,
    searched: &Searched,
    params: &ValidDesignParams,
    grid: Vec<f64>,
) -> Search {
    Search {
        // Beyond what can be counted it is the largest number there is.
        policies: candidates.space.size() as u64,
        looked_at: candidates.all().count() as u64,
        eligible: candidates.all().filter(|(_, judged)| judged.is_good()).count() as u64,
        exact: searched.is_exact,
        starts: searched.starts,
        agreeing: searched.agreeing,
        edits: params.edits,
        within: params.given.within,
        min_rows: params.given.min_rows,
        grid,
    }
}

/// Which constraint leaves nothing.
fn nothing(candidates: &Candidates<'_>, params: &ValidDesignParams) -> Error {
    let n_with =
        |refusal: Option<Refusal>| candidates.all().filter(|(_, judged)| judged.refusal == refusal).count();
    let base = candidates.space.policies.name(candidates.space.base);
    if n_with(None) > 0 {
        let what = format!(
            "every policy that is `{base}` with at most {} contexts changed breaks the budget",
            params.edits
        );
        return Error::usage(what)
            .hint("raise the ‹budget›, allow more ‹edits›, or start ‹from› a cheaper policy");
    }
    if n_with(Some(Refusal::TooFar)) > 0 {
        let distances = candidates.all().filter_map(|(own, _)| candidates.space.nearest(own));
        let least =
            distances.map(|(_, distance)| distance).filter(|own| *own > 1e-9).fold(f64::MAX, f64::min);
        let what = format!(
            "no policy that is `{base}` with at most {} contexts changed is within {} of one that was run",
            params.edits, params.given.within
        );
        // Rounded up, so that it can be typed as it is.
        let least = (least * 1000.0).ceil() / 1000.0;
        return Error::usage(what).hint(format!("the nearest is {least} away: ‹within={least}›"));
    }
    let what = format!(
        "every policy that is `{base}` with at most {} contexts changed was run already",
        params.edits
    );
    Error::usage(what).hint("allow more ‹edits›, a finer ‹grid›, or start ‹from› another policy")
}
