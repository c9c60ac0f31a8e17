//! The contexts of a set and their weights w(s), normalised to sum 1 (Sec. 2.1).

use super::builder::{EVERY_OTHER, PolicySetBuilder};
use super::canonical::{REST, sort};
use crate::{Error, Kind, Result};

/// Sorted contexts with weights that sum to 1: those that were given one, or else all that were named.
pub(super) fn contexts_and_weights(builder: &PolicySetBuilder) -> Result<(Vec<String>, Vec<f64>)> {
    let Some(given) = &builder.weights else {
        let (mut contexts, _) = sort(builder.contexts.as_slice());
        contexts.retain(|context| context != EVERY_OTHER);
        if contexts.is_empty() {
            let error = Error::input("no context is named");
            let hint = "name the contexts that `*` stands for, with their weights";
            return Err(builder.source.place(error, 0).hint(hint));
        }
        let weights = vec![1.0 / contexts.len() as f64; contexts.len()];
        return Ok((contexts, weights));
    };
    let source = &builder.weight_source;
    let mut given: Vec<_> = given.iter().collect();
    given.sort_by(|a, b| (&a.context, a.place).cmp(&(&b.context, b.place)));
    if let Some(pair) = given.windows(2).find(|pair| pair[0].context == pair[1].context) {
        let error = Error::input(format!("context `{}` has two weights", pair[1].context));
        return Err(source.place(error, pair[1].place).hint("keep one of them"));
    }
    // With `*` a context may be weighted that no policy names.
    let extra = given.iter().find(|entry| !builder.contexts.contains(&entry.context));
    if let Some(extra) = extra.filter(|_| builder.weights_apart && !builder.contexts.contains(EVERY_OTHER)) {
        let named = builder.contexts.as_slice().iter().map(String::as_str);
        let error = Error::unknown(Kind::Input, "context", &extra.context, "contexts of the policies", named);
        return Err(source.place(error, extra.place));
    }
    let mut weights: Vec<f64> = given.iter().map(|entry| entry.weight).collect();
    let mut sum: f64 = weights.iter().sum();
    if sum.is_infinite() {
        weights.iter_mut().for_each(|weight| *weight /= f64::MAX);
        sum = weights.iter().sum();
    }
    if weights.is_empty() || sum == 0.0 {
        let what = if weights.is_empty() { "no context has a weight" } else { "every context has weight 0" };
        let hint = "give at least one context a positive weight, or leave the weights out";
        return Err(source.place(Error::input(what), 0).hint(hint));
    }
    if let Some(scale) = scale_to_one(sum, weights.len()) {
        weights.iter_mut().for_each(|weight| *weight /= scale);
    }
    Ok((given.into_iter().map(|entry| entry.context.clone()).collect(), weights))
}

/// The index of each of the builder's contexts among `contexts`.
pub(super) fn rank_contexts(builder: &PolicySetBuilder, contexts: &[String]) -> Result<Vec<u32>> {
    let mut unknown = None;
    let mut ranks = Vec::with_capacity(builder.contexts.as_slice().len());
    for (number, name) in builder.contexts.as_slice().iter().enumerate() {
        ranks.push(match contexts.binary_search(name) {
            Ok(rank) => rank as u32,
            Err(_) if name == EVERY_OTHER => REST,
            Err(_) => {
                unknown.get_or_insert(number as u32);
                REST
            }
        });
    }
    // Contexts are numbered as they appear, so this is the first row that names an unknown one.
    let Some(row) = unknown.and_then(|number| builder.rows.iter().find(|row| row.context == number)) else {
        return Ok(ranks);
    };
    let name = &builder.contexts.as_slice()[row.context as usize];
    let policy = &builder.policies.as_slice()[row.policy as usize];
    let listed = contexts.iter().map(String::as_str);
    let error = Error::unknown(Kind::Input, "context", name, "contexts with a weight", listed);
    let otherwise = match (&builder.weight_source.file, builder.weights_apart) {
        (Some(file), true) => format!("give `{name}` a weight in {}", file.display()),
        _ => format!("give `{name}` a weight"),
    };
    let nearest = error.hint_text().unwrap_or_default().to_owned();
    let error = match builder.weights_apart {
        true => Error::input(format!("context `{name}` has no weight")).hint(nearest),
        false => error,
    };
    Err(builder.source.place(error, row.place).at(format!("policy `{policy}`")).otherwise(&otherwise))
}

/// What to divide by, unless the sum is 1 up to rounding: then a set written out and read again keeps its bytes.
///
/// Quotients are each off by at most half an ulp and so is each partial sum: n·ε bounds both together.
pub(super) fn scale_to_one(sum: f64, n_terms: usize) -> Option<f64> {
    ((sum - 1.0).abs() > n_terms as f64 * f64::EPSILON).then_some(sum)
}
