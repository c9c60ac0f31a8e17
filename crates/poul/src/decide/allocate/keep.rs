//! Which options of a user are worth keeping.

use super::problem::{Adds, Limit};

/// What a builder keeps of the options it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Everything: what a choice of few policies is made from, since an option that others beat may be the best of the few.
    All,
    /// With one load and no limit on the users of a policy: the upper convex hull of value over load, in the order of loads.
    /// At every price of the load the best option is on it.
    Hull,
    /// What no other option beats, with several loads or with limits on the users of policies.
    Undominated {
        /// Whether a limit makes users of a policy dear: its options beat no others.
        capped: Vec<bool>,
        /// Whether a limit asks for users of a policy: its options are always kept.
        floored: Vec<bool>,
    },
}

impl Keep {
    /// What must be kept for these limits, whatever their amounts are.
    pub fn for_limits(limits: &[Limit], n_loads: usize) -> Self {
        let mut capped = Vec::new();
        let mut floored = Vec::new();
        for limit in limits {
            match limit.adds {
                Adds::Load(_) => {}
                Adds::Users(policy) => set(&mut capped, policy),
                Adds::MinusUsers(policy) => set(&mut floored, policy),
            }
        }
        if n_loads == 1 && capped.is_empty() && floored.is_empty() {
            Self::Hull
        } else {
            Self::Undominated { capped, floored }
        }
    }
}

fn set(flags: &mut Vec<bool>, policy: u16) {
    let policy = usize::from(policy);
    if flags.len() <= policy {
        flags.resize(policy + 1, false);
    }
    flags[policy] = true;
}

/// The options that no other beats: one with at least the value and at most every load, whose policy no limit makes dear.
/// Of equal options the first is kept.
pub(super) fn undominated(
    policies: &[u16],
    values: &[f32],
    loads: &[f32],
    (capped, floored): (&[bool], &[bool]),
) -> Vec<usize> {
    let n_loads = loads.len() / values.len().max(1);
    let flag = |flags: &[bool], k: usize| flags.get(usize::from(policies[k])).copied().unwrap_or(false);
    let own = |k: usize| &loads[k * n_loads..(k + 1) * n_loads];
    let beats = |a: usize, b: usize| {
        let no_worse = values[a] >= values[b] && own(a).iter().zip(own(b)).all(|(a, b)| a <= b);
        // Of two that are equal in all, both cannot go.
        let differs = || values[a] > values[b] || own(a).iter().zip(own(b)).any(|(a, b)| a < b);
        no_worse && !flag(capped, a) && (differs() || flag(capped, b) || a < b)
    };
    let n = values.len();
    (0..n).filter(|b| flag(floored, *b) || !(0..n).any(|a| a != *b && beats(a, *b))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beaten_options_go_unless_a_limit_needs_them() {
        let (policies, values) = ([0, 1, 2, 3], [0.0, 2.0, 1.0, 2.0]);
        let loads = [0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 1.0, 1.0];
        let kept =
            |capped: &[bool], floored: &[bool]| undominated(&policies, &values, &loads, (capped, floored));
        // Policies 1 and 3 are the same but for their names; 2 gives less and loads more.
        assert_eq!(kept(&[], &[]), [0, 1]);
        assert_eq!(kept(&[], &[false, false, true]), [0, 1, 2]);
        assert_eq!(kept(&[false, true], &[]), [0, 3]);
        assert_eq!(kept(&[false, true, false, true], &[]), [0, 1, 2, 3]);
    }

    #[test]
    fn one_load_alone_needs_the_hull_only() {
        let limit = |adds| Limit { name: String::new(), adds, group: None, at_most: 0.0 };
        assert_eq!(Keep::for_limits(&[limit(Adds::Load(0))], 1), Keep::Hull);
        let with_cap = Keep::for_limits(&[limit(Adds::Load(0)), limit(Adds::Users(1))], 1);
        assert_eq!(with_cap, Keep::Undominated { capped: vec![false, true], floored: Vec::new() });
    }
}
