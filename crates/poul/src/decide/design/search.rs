//! The search: every candidate where there are few, else a beam of edits and coordinate ascent from several starts.

use rand::RngExt;
use rand::seq::SliceRandom;

use super::candidates::Candidates;
use super::space::{Candidate, Space};
use crate::{Progress, Result, Rng, Run};

/// Spaces of at most so many policies are searched whole.
const MOST_EXACT: f64 = 20_000.0;
/// Policies that are carried from one edit to the next.
const BEAM: usize = 24;
/// Options of a context that are tried beyond the first edit: the best by themselves.
const SHORTLIST: usize = 8;
/// Starts of coordinate ascent: the best of the beam, and as many at random.
const STARTS: usize = 4;
/// Rounds of coordinate ascent; it usually ends long before.
const ROUNDS: usize = 20;

/// How a space was searched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Searched {
    pub(super) is_exact: bool,
    /// Starts of the ascent, and how many of them ended at the best policy found.
    pub(super) starts: usize,
    pub(super) agreeing: usize,
}

/// Judges the candidates that matter.
pub(super) fn search(candidates: &mut Candidates<'_>, run: Run<'_>) -> Result<Searched> {
    let space = candidates.space;
    if space.size() <= MOST_EXACT {
        candidates.judge(&space.all(), run.progress)?;
        return Ok(Searched { is_exact: true, starts: 0, agreeing: 0 });
    }
    let shortlist = shortlist(candidates, run.progress)?;
    let mut beam = first_beam(space);
    let changed: Vec<Candidate> = beam.iter().filter(|own| !own.0.is_empty()).cloned().collect();
    candidates.judge(&changed, run.progress)?;
    let mut reached = beam.clone();
    let first = beam.first().map_or(0, |own| own.0.len());
    for _ in first..space.edits() {
        let next: Vec<Candidate> = beam.iter().flat_map(|own| extended(own, &shortlist)).collect();
        candidates.judge(&next, run.progress)?;
        beam = kept(candidates, next);
        reached.extend(beam.iter().cloned());
    }
    let mut starts = best_of(candidates, &reached);
    starts.truncate(STARTS);
    let mut rng = run.seed.child("restarts").rng();
    for _ in 0..STARTS {
        starts.push(random(space, &shortlist, &mut rng));
    }
    let n_starts = starts.len();
    let ends = ascend(candidates, starts, &shortlist, run.progress)?;
    let best = candidates.best(candidates.all().map(|(own, _)| own).collect::<Vec<_>>().into_iter());
    let agreeing = best.map_or(0, |(best, _)| ends.iter().filter(|own| *own == best).count());
    Ok(Searched { is_exact: false, starts: n_starts, agreeing })
}

/// For each context, its options by what they do alone, the best first.
fn shortlist(candidates: &mut Candidates<'_>, progress: &dyn Progress) -> Result<Vec<Vec<usize>>> {
    let space = candidates.space;
    let single = |context: usize| {
        (0..space.n_options(context)).map(move |option| (option, Candidate::default().with(context, option)))
    };
    let all: Vec<Candidate> = (0..space.n_contexts()).flat_map(single).map(|(_, own)| own).collect();
    candidates.judge(&all, progress)?;
    let of_context = |context: usize| {
        let mut scored: Vec<(usize, f64)> = single(context)
            .filter_map(|(option, own)| candidates.of(&own).map(|judged| (option, judged.score)))
            .collect();
        scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        scored.into_iter().map(|(option, _)| option).take(SHORTLIST).collect()
    };
    Ok((0..space.n_contexts()).map(of_context).collect())
}

/// Contexts that must change are changed first, each to its first options.
fn first_beam(space: &Space<'_>) -> Vec<Candidate> {
    let mut beam = vec![Candidate::default()];
    for context in space.must_change() {
        let options = 0..space.n_options(context);
        beam = beam.iter().flat_map(|own| options.clone().map(|option| own.with(context, option))).collect();
        beam.truncate(BEAM);
    }
    beam
}

/// One change more.
fn extended(own: &Candidate, shortlist: &[Vec<usize>]) -> Vec<Candidate> {
    let open = (0..shortlist.len()).filter(|context| own.option(*context).is_none());
    open.flat_map(|context| shortlist[context].iter().map(move |option| own.with(context, *option))).collect()
}

/// The best: half of them whatever they cost, since a later edit may save it.
fn kept(candidates: &Candidates<'_>, mut of: Vec<Candidate>) -> Vec<Candidate> {
    of.sort();
    of.dedup();
    let mut scored: Vec<(Candidate, f64, bool)> = of
        .into_iter()
        .filter_map(|own| {
            candidates.of(&own).map(|judged| (judged.score, judged.is_good())).map(|(s, g)| (own, s, g))
        })
        .collect();
    scored.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let mut beam: Vec<Candidate> =
        scored.iter().filter(|(_, _, good)| *good).take(BEAM / 2).map(|(own, ..)| own.clone()).collect();
    for (own, ..) in scored {
        if beam.len() >= BEAM {
            break;
        }
        if !beam.contains(&own) {
            beam.push(own);
        }
    }
    beam
}

fn best_of(candidates: &Candidates<'_>, of: &[Candidate]) -> Vec<Candidate> {
    let good = |own: &&Candidate| candidates.of(own).is_some_and(super::candidates::Judged::is_good);
    let mut best: Vec<Candidate> = of.iter().filter(good).cloned().collect();
    best.sort();
    best.dedup();
    let score = |own: &Candidate| candidates.of(own).map_or(f64::MIN, |judged| judged.score);
    best.sort_by(|a, b| score(b).total_cmp(&score(a)));
    best
}

/// As many changes as there may be, anywhere.
fn random(space: &Space<'_>, shortlist: &[Vec<usize>], rng: &mut Rng) -> Candidate {
    let must = space.must_change();
    let mut others: Vec<usize> = (0..space.n_contexts())
        .filter(|context| !must.contains(context) && !shortlist[*context].is_empty())
        .collect();
    others.shuffle(rng);
    let chosen = must.iter().chain(&others).take(space.edits());
    chosen.fold(Candidate::default(), |own, context| {
        own.with(*context, rng.random_range(0..space.n_options(*context)))
    })
}

/// Climbs from every start until no single move is better; gives where each ended.
fn ascend(
    candidates: &mut Candidates<'_>,
    starts: Vec<Candidate>,
    shortlist: &[Vec<usize>],
    progress: &dyn Progress,
) -> Result<Vec<Candidate>> {
    candidates.judge(&starts, progress)?;
    let mut climbers: Vec<(Candidate, bool)> = starts.into_iter().map(|own| (own, true)).collect();
    for _ in 0..ROUNDS {
        let moves: Vec<Vec<Candidate>> = climbers
            .iter()
            .map(
                |(own, climbs)| {
                    if *climbs { neighbours(candidates.space, own, shortlist) } else { Vec::new() }
                },
            )
            .collect();
        candidates.judge(&moves.concat(), progress)?;
        for ((own, climbs), moves) in climbers.iter_mut().zip(&moves).filter(|((_, climbs), _)| *climbs) {
            let now =
                candidates.of(own).filter(|judged| judged.is_good()).map_or(f64::MIN, |judged| judged.score);
            match candidates.best(moves.iter()) {
                Some((best, score)) if score > now => *own = best.clone(),
                _ => *climbs = false,
            }
        }
        if climbers.iter().all(|(_, climbs)| !climbs) {
            break;
        }
    }
    Ok(climbers.into_iter().map(|(own, _)| own).collect())
}

/// Another option of a context that is changed, the change moved to another context, one change less or more.
fn neighbours(space: &Space<'_>, own: &Candidate, shortlist: &[Vec<usize>]) -> Vec<Candidate> {
    let mut found = Vec::new();
    for (context, _) in &own.0 {
        let context = *context as usize;
        found.extend((0..space.n_options(context)).map(|option| own.with(context, option)));
        let without = own.without(context);
        found.extend(extended(&without, shortlist));
        if !without.0.is_empty() {
            found.push(without);
        }
    }
    if own.0.len() < space.edits() {
        found.extend(extended(own, shortlist));
    }
    found.retain(|other| other != own);
    found
}
