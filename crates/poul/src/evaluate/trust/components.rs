//! Components: what switching one context from what the policy compared with does there to one action does to the average
//! outcome of the population. In a conjoint these are the average marginal component effects (Hainmueller, Hopkins and
//! Yamamoto 2014).
//!
//! Each is the average effect of a policy that differs in that context alone, so that all that is known of averages holds
//! for it: its error, and its covariance with the others, from which simultaneous bands follow.

use crate::Result;
use crate::effect::{AverageEstimate, Averages, Support};
use crate::evaluate::{AtomEffect, max_t_quantile, sidak_quantile};
use crate::model::Model;
use crate::net::RowSource;
use crate::nuisance::SomeRows;
use crate::policy::PolicySet;
use crate::stats::normal_quantile;
use crate::{Error, Seed};

/// Most atoms, those with the most training rows.
const MOST_ATOMS: usize = 2000;
/// Most rows that effects are averaged over, and most pairs of row and atom.
const MOST_ROWS: usize = 4096;
const MOST_PAIRS: usize = 1 << 20;
/// Rows that effects are averaged over at least, where there are so many.
const FEWEST_ROWS: usize = 256;
/// Most cells of the policies that are made up for it.
const MOST_CELLS: usize = 1 << 22;
/// Beyond so many components their correlation is not computed, and the band is Šidák's.
const MOST_CORRELATED: usize = 128;

/// The components, and what to know about them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Components {
    /// One for each outcome and atom, outcomes first.
    pub atoms: Vec<AtomEffect>,
    /// What was left out.
    pub notes: Vec<String>,
}

/// One atom, and the policy that has it in place of what the other does there.
struct Cell {
    context: usize,
    action: String,
    rows: u64,
    is_control: bool,
    can_be_scored: bool,
}

/// The components of a set that holds the model's own policies, against one of them, with intervals of a level.
///
/// Learners that know how sure their averages are say so; of others the mean predicted effect over `rows` is taken, which
/// may have weights. A learner that knows policies by name only cannot tell, unless the changed policy was run.
pub fn components(
    model: &Model,
    policies: &PolicySet,
    against: usize,
    level: f64,
    rows: Option<(&dyn RowSource, Option<&[f64]>)>,
) -> Result<Components> {
    let policies = &*model.weighted(policies);
    let (cells, mut notes) = cells(model, policies, against);
    let names = free_names(policies, cells.len());
    let scored: Vec<usize> =
        (0..cells.len()).filter(|cell| cells[*cell].can_be_scored && !cells[*cell].is_control).collect();
    let outcomes = model.effects().outcomes();
    let blank = |outcome: &String, cell: &Cell| AtomEffect {
        outcome: outcome.clone(),
        context: policies.contexts()[cell.context].clone(),
        action: cell.action.clone(),
        effect: cell.is_control.then_some(0.0),
        rows: cell.rows,
        control: cell.is_control,
        weight: policies.weights()[cell.context],
        ..AtomEffect::default()
    };
    let mut atoms: Vec<Vec<AtomEffect>> =
        outcomes.iter().map(|outcome| cells.iter().map(|cell| blank(outcome, cell)).collect()).collect();
    if !scored.is_empty() {
        let all = with_cells(policies, against, &cells, &scored, &names)?;
        let targets = targets(model, &all, &scored, &names)?;
        let against = all.require(policies.name(against))?;
        let joint = scored.len() <= MOST_CORRELATED;
        match (model.effects().averages(&all, &targets, against, joint)?, rows) {
            (Some(averages), _) => {
                for (atoms, own) in atoms.iter_mut().zip(&averages) {
                    fill(atoms, &scored, own, level);
                }
            }
            (None, Some((x, weight))) => {
                for (place, means) in mean_effects(model, &all, &targets, against, x, weight)? {
                    let atoms = atoms.iter_mut().zip(means);
                    atoms.for_each(|(atoms, mean)| atoms[scored[place]].effect = Some(mean));
                }
            }
            (None, None) => {
                let learner = &model.manifest().learner;
                let what = format!("the learner `{learner}` does not know how sure its averages are");
                return Err(
                    Error::usage(what).hint("fit with the learner `poul`, or evaluate the model on rows")
                );
            }
        }
        if let Some(unknown) = unknown(&cells) {
            notes.push(unknown);
        }
    }
    Ok(Components { atoms: atoms.into_iter().flatten().collect(), notes })
}

/// Writes estimates, intervals and the band into the atoms they are of.
fn fill(atoms: &mut [AtomEffect], scored: &[usize], averages: &Averages, level: f64) {
    let n = scored.len();
    let p = 0.5 + level / 2.0;
    let quantile = match &averages.covariance {
        Some(covariance) => max_t_quantile(covariance, n, level, Seed::new(0).child("components")),
        None => sidak_quantile(n, level),
    };
    // Normal draws do not know that errors are themselves estimated: as much wider as each interval is.
    let widened = |own: &AverageEstimate| quantile * own.quantile(p) / normal_quantile(p);
    for (cell, own) in scored.iter().zip(&averages.estimates) {
        let atom = &mut atoms[*cell];
        let half = widened(own) * own.se;
        atom.effect = Some(own.effect);
        atom.se = Some(own.se);
        atom.interval = Some(own.interval(level));
        atom.band = Some([own.effect - half, own.effect + half]);
    }
}

/// The mean predicted effect of each target over a sample of the rows, by outcome; without targets that the learner takes
/// another policy for.
fn mean_effects(
    model: &Model,
    all: &PolicySet,
    targets: &[usize],
    against: usize,
    x: &dyn RowSource,
    weight: Option<&[f64]>,
) -> Result<Vec<(usize, Vec<f64>)>> {
    let scorer = model.effects().prepare(all, targets, against)?;
    // A learner that knows names only says which policy it took instead.
    let stands_in = |target: usize| {
        let policy = format!("policy `{}` was never run", all.name(target));
        scorer.notes().iter().any(|note| note.starts_with(&policy))
    };
    let rows = sample(x.n_rows(), targets.len());
    let scores = scorer.score(&SomeRows { x, rows: &rows }, false)?;
    let weight_of = |row: &u32| weight.map_or(1.0, |weight| weight[*row as usize]);
    let mass: f64 = rows.iter().map(weight_of).sum();
    let known = targets.iter().enumerate().filter(|(_, target)| mass > 0.0 && !stands_in(**target));
    let mean = |place: usize, values: &Vec<f32>| {
        let own = values.iter().skip(place).step_by(targets.len()).zip(&rows);
        own.map(|(effect, row)| weight_of(row) * f64::from(*effect)).sum::<f64>() / mass
    };
    let means = |place: usize| scores.mean.iter().map(|values| mean(place, values)).collect();
    Ok(known.map(|(place, _)| (place, means(place))).collect())
}

/// Atoms of which nothing is known, in words.
fn unknown(cells: &[Cell]) -> Option<String> {
    let n = cells.iter().filter(|cell| !cell.can_be_scored).count();
    (n > 0)
        .then(|| format!("{n} components have no estimate: no training row had the action in that context"))
}

/// The atoms in contexts that weigh anything, in order of names; the most covered where there are too many.
fn cells(model: &Model, policies: &PolicySet, against: usize) -> (Vec<Cell>, Vec<String>) {
    let manifest = model.manifest();
    let support = Support::new(&manifest.policies, &manifest.policy_rows);
    let control = policies.mixture(against);
    let certain = |atom: u32| {
        let entry = control.atoms.binary_search(&atom).ok();
        entry.is_some_and(|entry| policies.conditional(against)[entry] > 1.0 - 1e-9)
    };
    let mut cells = Vec::new();
    for (number, atom) in policies.atoms().iter().enumerate() {
        let (context, action) = (atom.context as usize, policies.actions()[atom.action as usize].clone());
        if policies.weights()[context] <= 0.0 {
            continue;
        }
        let name = &policies.contexts()[context];
        let rows = support.atom_rows(name, &action);
        let can_be_scored = rows > 0 || model.effects().embeds(name, &action, policies.attributes());
        cells.push(Cell { context, action, rows, is_control: certain(number as u32), can_be_scored });
    }
    let most = MOST_ATOMS.min(MOST_CELLS / control.atoms.len().max(1)).max(1);
    let mut notes = Vec::new();
    if cells.len() > most {
        notes.push(format!("of {} atoms, the {most} with the most training rows are shown", cells.len()));
        let mut order: Vec<usize> = (0..cells.len()).collect();
        order.sort_by_key(|cell| std::cmp::Reverse(cells[*cell].rows));
        let mut is_kept = vec![false; cells.len()];
        order[..most].iter().for_each(|cell| is_kept[*cell] = true);
        let mut kept = is_kept.into_iter();
        cells.retain(|_| kept.next().unwrap_or(false));
    }
    (cells, notes)
}

/// Names that no policy has.
fn free_names(policies: &PolicySet, n: usize) -> Vec<String> {
    let mut prefix = "atom ".to_owned();
    while policies.names().iter().any(|name| name.starts_with(&prefix)) {
        prefix.insert(0, '~');
    }
    (0..n).map(|number| format!("{prefix}{number}")).collect()
}

/// The policies, and for each scored cell the one that differs from `against` there alone.
fn with_cells(
    policies: &PolicySet,
    against: usize,
    cells: &[Cell],
    scored: &[usize],
    names: &[String],
) -> Result<PolicySet> {
    let mut builder = PolicySet::builder();
    let (control, conditional) = (policies.mixture(against), policies.conditional(against));
    for cell in scored {
        let Cell { context: changed, action, .. } = &cells[*cell];
        builder.add(&names[*cell], &policies.contexts()[*changed], action, 1.0);
        for (atom, probability) in control.atoms.iter().zip(conditional) {
            let atom = policies.atoms()[*atom as usize];
            if atom.context as usize != *changed {
                let context = &policies.contexts()[atom.context as usize];
                builder.add(&names[*cell], context, &policies.actions()[atom.action as usize], *probability);
            }
        }
    }
    policies.union(&builder.build()?)
}

/// The policy of each scored cell: one of the same mixture that was run, where there is one.
fn targets(model: &Model, all: &PolicySet, scored: &[usize], names: &[String]) -> Result<Vec<usize>> {
    let manifest = model.manifest();
    let is_run = |policy: &usize| {
        manifest.policies.index(all.name(*policy)).is_some_and(|own| manifest.policy_rows[own] > 0)
    };
    let mut same: Vec<usize> = (0..all.len()).collect();
    for group in all.aliases() {
        if let Some(run) = group.iter().copied().find(is_run) {
            group.iter().for_each(|policy| same[*policy] = run);
        }
    }
    scored.iter().map(|cell| Ok(same[all.require(&names[*cell])?])).collect()
}

/// Rows that effects are averaged over, evenly spaced.
fn sample(n_rows: usize, n_targets: usize) -> Vec<u32> {
    let n = n_rows.min(MOST_ROWS).min((MOST_PAIRS / n_targets.max(1)).max(FEWEST_ROWS));
    (0..n).map(|i| (i * n_rows / n) as u32).collect()
}
