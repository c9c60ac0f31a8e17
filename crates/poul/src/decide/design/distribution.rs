//! What a policy does in one context: actions by number, ascending, with their probabilities.

use crate::policy::PolicySet;

/// Actions and their probabilities in a context.
pub(super) type Distribution = Vec<(u32, f64)>;

/// What a policy does in every context.
pub(super) fn of_policy(policies: &PolicySet, policy: usize) -> Vec<Distribution> {
    let mut contexts = vec![Vec::new(); policies.contexts().len()];
    for (atom, probability) in policies.mixture(policy).atoms.iter().zip(policies.conditional(policy)) {
        let atom = policies.atoms()[*atom as usize];
        contexts[atom.context as usize].push((atom.action, *probability));
    }
    contexts
}

/// ‖a − b‖₁.
pub(super) fn apart(a: &[(u32, f64)], b: &[(u32, f64)]) -> f64 {
    let of = |own: &[(u32, f64)], action: u32| {
        own.iter().find(|(other, _)| *other == action).map_or(0.0, |(_, p)| *p)
    };
    let kept: f64 = a.iter().map(|(action, p)| (p - of(b, *action)).abs()).sum();
    let new: f64 =
        b.iter().filter(|(action, _)| a.iter().all(|(own, _)| own != action)).map(|(_, p)| p).sum();
    kept + new
}

/// Every single action, and every two with a probability of the grid.
pub(super) fn mixes(actions: &[u32], grid: &[f64]) -> Vec<Distribution> {
    let mut found: Vec<Distribution> = actions.iter().map(|action| vec![(*action, 1.0)]).collect();
    for (place, first) in actions.iter().enumerate() {
        for second in &actions[place + 1..] {
            let mut shares: Vec<f64> =
                grid.iter().flat_map(|p| [*p, 1.0 - p]).filter(|p| *p > 1e-9 && *p < 1.0 - 1e-9).collect();
            shares.sort_by(f64::total_cmp);
            shares.dedup_by(|a, b| (*a - *b).abs() < 1e-9);
            found.extend(shares.iter().map(|share| vec![(*first, *share), (*second, 1.0 - share)]));
        }
    }
    found
}

/// `upgrade`, or `75 % upgrade, 25 % none`, the most likely first.
pub(super) fn words(own: &[(String, f64)]) -> String {
    if let [(action, _)] = own {
        return action.clone();
    }
    let mut sorted: Vec<&(String, f64)> = own.iter().collect();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let share = |p: f64| {
        let percent = 100.0 * p;
        if (percent - percent.round()).abs() < 1e-6 {
            format!("{percent:.0}")
        } else {
            format!("{percent:.1}")
        }
    };
    let parts: Vec<String> = sorted.iter().map(|(action, p)| format!("{} % {action}", share(*p))).collect();
    parts.join(", ")
}

/// The same with the names of actions.
pub(super) fn named(policies: &PolicySet, own: &[(u32, f64)]) -> Vec<(String, f64)> {
    own.iter().map(|(action, p)| (policies.actions()[*action as usize].clone(), *p)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_are_distributions_on_the_grid() {
        let found = mixes(&[0, 2, 3], &[0.0, 0.25, 0.5, 0.75, 1.0]);
        assert_eq!(found.len(), 3 + 3 * 3);
        assert!(found.iter().all(|own| (own.iter().map(|(_, p)| p).sum::<f64>() - 1.0).abs() < 1e-12));
        assert_eq!(mixes(&[1, 4], &[0.0, 1.0]).len(), 2);
        assert_eq!(mixes(&[1, 4], &[0.0, 0.3, 1.0]).len(), 4);
    }

    #[test]
    fn distances_are_symmetric_and_at_most_two() {
        let (a, b) = (vec![(0, 0.5), (1, 0.5)], vec![(1, 1.0)]);
        assert_eq!((apart(&a, &b), apart(&b, &a), apart(&a, &a)), (1.0, 1.0, 0.0));
        assert_eq!(apart(&[(0, 1.0)], &[(2, 1.0)]), 2.0);
    }

    #[test]
    fn words_begin_with_the_likeliest() {
        let of = |own: &[(&str, f64)]| {
            words(&own.iter().map(|(name, p)| ((*name).to_owned(), *p)).collect::<Vec<_>>())
        };
        assert_eq!(of(&[("none", 1.0)]), "none");
        assert_eq!(of(&[("a", 0.25), ("b", 0.75)]), "75 % b, 25 % a");
        assert_eq!(of(&[("a", 0.125), ("b", 0.875)]), "87.5 % b, 12.5 % a");
    }
}
