//! What each action does in each context: the effect of changing that one cell of the policy compared with, through
//! ordinary policies and the ordinary scorer.

use crate::Result;
use crate::effect::Support;
use crate::evaluate::AtomEffect;
use crate::model::Model;
use crate::net::RowSource;
use crate::nuisance::SomeRows;
use crate::policy::PolicySet;

/// Most atoms, those with the most training rows.
const MOST_ATOMS: usize = 2000;
/// Most rows that effects are averaged over, and most pairs of row and atom.
const MOST_ROWS: usize = 4096;
const MOST_PAIRS: usize = 1 << 20;
/// Rows that effects are averaged over at least, where there are so many.
const FEWEST_ROWS: usize = 256;
/// Most cells of the policies that are made up for it.
const MOST_CELLS: usize = 1 << 22;

/// The effects of atoms, and what to know about them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AtomEffects {
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

/// The mean effect over rows of every atom of a set that holds the model's own policies, against one of them.
///
/// A learner that knows policies by name only cannot tell: its effects are none, unless the changed policy was run.
pub fn atom_effects(
    model: &Model,
    policies: &PolicySet,
    against: usize,
    x: &dyn RowSource,
    weight: Option<&[f64]>,
) -> Result<AtomEffects> {
    let (cells, notes) = cells(model, policies, against);
    let names = free_names(policies, cells.len());
    let scored: Vec<usize> =
        (0..cells.len()).filter(|cell| cells[*cell].can_be_scored && !cells[*cell].is_control).collect();
    let outcomes = model.effects().outcomes();
    let mut effects = vec![vec![None; cells.len()]; outcomes.len()];
    for of_outcome in &mut effects {
        cells
            .iter()
            .zip(of_outcome)
            .filter(|(cell, _)| cell.is_control)
            .for_each(|(_, own)| *own = Some(0.0));
    }
    if !scored.is_empty() {
        let all = with_cells(policies, against, &cells, &scored, &names)?;
        let targets = targets(model, &all, &scored, &names)?;
        let against = all.require(policies.name(against))?;
        let scorer = model.effects().prepare(&all, &targets, against)?;
        // A learner that knows names only says which policy it took instead.
        let stands_in = |target: usize| {
            let policy = format!("policy `{}` was never run", all.name(target));
            scorer.notes().iter().any(|note| note.starts_with(&policy))
        };
        let rows = sample(x.n_rows(), targets.len());
        let scores = scorer.score(&SomeRows { x, rows: &rows }, false)?;
        let mass: f64 = rows.iter().map(|row| weight.map_or(1.0, |weight| weight[*row as usize])).sum();
        for (place, (cell, target)) in scored.iter().zip(&targets).enumerate() {
            if stands_in(*target) || mass <= 0.0 {
                continue;
            }
            let w = policies.weights()[cells[*cell].context];
            for (mean, effects) in scores.mean.iter().zip(&mut effects) {
                let own = mean.iter().skip(place).step_by(targets.len()).zip(&rows);
                let sum: f64 = own
                    .map(|(effect, row)| {
                        weight.map_or(1.0, |weight| weight[*row as usize]) * f64::from(*effect)
                    })
                    .sum();
                effects[*cell] = Some(sum / mass / w);
            }
        }
    }
    let atoms = outcomes.iter().zip(effects).flat_map(|(outcome, effects)| {
        let of_cell = |(cell, effect): (&Cell, Option<f64>)| AtomEffect {
            outcome: outcome.clone(),
            context: policies.contexts()[cell.context].clone(),
            action: cell.action.clone(),
            effect,
            rows: cell.rows,
            control: cell.is_control,
        };
        cells.iter().zip(effects).map(of_cell).collect::<Vec<_>>()
    });
    Ok(AtomEffects { atoms: atoms.collect(), notes })
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
