//! The policies a ride-hailing platform runs: two upgrades, rolled out by city tier, hour and share of requests.

use super::super::policies::PolicyTable;

/// City tiers.
pub(super) const TIERS: [&str; 3] = ["tier1", "tier2", "tier3"];
/// Hour bands.
pub(super) const HOURS: [&str; 3] = ["peak", "day", "night"];
/// Request classes; each has its own upgrade.
pub(super) const CLASSES: [&str; 2] = ["economy", "discount"];
/// Exposure of each context: the product of these.
const WEIGHTS: ([u32; 3], [u32; 3], [u32; 2]) = ([5, 3, 2], [7, 9, 4], [3, 2]);
const ACTIONS: [&str; 3] = ["none", "economy_to_express", "discount_to_economy"];
/// T1 upgrades economy requests, D1 discount requests, T2 both.
const KINDS: [(&str, [bool; 2]); 3] = [("T1", [true, false]), ("T2", [true, true]), ("D1", [false, true])];
/// What a platform starts with, by kind, tiers, hours and percent; the other combinations follow in order.
const FIRST: [Variant; 7] = [
    Variant { kind: 0, tiers: ALL, hours: ALL, percent: 100 },
    Variant { kind: 1, tiers: ALL, hours: ALL, percent: 100 },
    Variant { kind: 0, tiers: ALL, hours: PEAK, percent: 100 },
    Variant { kind: 1, tiers: TIER1, hours: ALL, percent: 100 },
    Variant { kind: 0, tiers: ALL, hours: ALL, percent: 50 },
    Variant { kind: 1, tiers: ALL, hours: ALL, percent: 50 },
    Variant { kind: 1, tiers: ALL, hours: PEAK, percent: 100 },
];
const ALL: [bool; 3] = [true; 3];
const PEAK: [bool; 3] = [true, false, false];
const TIER1: [bool; 3] = PEAK;

/// Contexts, actions, and the most policies there can be: control and 3 kinds × 7 sets of tiers × 7 sets of hours
/// × 4 shares.
pub(in super::super) const N_CONTEXTS: usize = TIERS.len() * HOURS.len() * CLASSES.len();
pub(in super::super) const N_ACTIONS: usize = ACTIONS.len();
pub(in super::super) const MAX_POLICIES: usize = 1 + 3 * 7 * 7 * 4;

#[derive(Clone, Copy, PartialEq)]
struct Variant {
    kind: usize,
    tiers: [bool; 3],
    hours: [bool; 3],
    percent: u8,
}

/// Control, T1, T2 and further variants of them.
pub(super) fn policies(n_policies: usize) -> PolicyTable {
    let mut table = PolicyTable {
        actions: ACTIONS.map(String::from).to_vec(),
        names: vec!["control".to_string()],
        ..PolicyTable::default()
    };
    for (tier, tier_weight) in TIERS.iter().zip(WEIGHTS.0) {
        for (hour, hour_weight) in HOURS.iter().zip(WEIGHTS.1) {
            for (class, class_weight) in CLASSES.iter().zip(WEIGHTS.2) {
                table.contexts.push(format!("{tier}_{hour}_{class}"));
                table.weights.push(tier_weight * hour_weight * class_weight);
            }
        }
    }
    table.rules.push([100, 0, 0].repeat(N_CONTEXTS));
    for variant in variants().into_iter().take(n_policies - 1) {
        table.names.push(variant.name());
        table.rules.push(variant.rules());
    }
    table
}

/// Control is the largest arm, then T1 and T2; variants are smaller and smaller.
pub(super) fn shares(n_policies: usize) -> Vec<f64> {
    let weight = |idx: usize| match idx {
        0 => 4.0,
        1 | 2 => 3.0,
        idx => ((idx - 2) as f64).powf(-0.7),
    };
    let total: f64 = (0..n_policies).map(weight).sum();
    (0..n_policies).map(|idx| weight(idx) / total).collect()
}

fn variants() -> Vec<Variant> {
    let mut variants = FIRST.to_vec();
    // Sets from the whole down to single members, so that the nearest relatives of T1 and T2 come first.
    let sets = [7_usize, 1, 2, 4, 3, 5, 6].map(|bits| [0, 1, 2].map(|bit| bits >> bit & 1 == 1));
    for percent in [100, 50, 25, 75] {
        for tiers in sets {
            for hours in sets {
                for kind in 0..KINDS.len() {
                    let variant = Variant { kind, tiers, hours, percent };
                    if !FIRST.contains(&variant) {
                        variants.push(variant);
                    }
                }
            }
        }
    }
    variants
}

impl Variant {
    /// Such as `T2_tier1_peak_50`.
    fn name(&self) -> String {
        let mut name = KINDS[self.kind].0.to_string();
        for (set, members) in [(self.tiers, TIERS), (self.hours, HOURS)] {
            if set != ALL {
                for (member, _) in members.iter().zip(set).filter(|(_, chosen)| *chosen) {
                    name.push('_');
                    name.push_str(member);
                }
            }
        }
        if self.percent < 100 {
            name.push_str(&format!("_{}", self.percent));
        }
        name
    }

    fn rules(&self) -> Vec<u8> {
        let mut rules = Vec::with_capacity(N_CONTEXTS * N_ACTIONS);
        for tier in self.tiers {
            for hour in self.hours {
                for (class_idx, upgraded) in KINDS[self.kind].1.into_iter().enumerate() {
                    let percent = if tier && hour && upgraded { self.percent } else { 0 };
                    let mut cell = [100 - percent, 0, 0];
                    cell[1 + class_idx] = percent;
                    rules.extend(cell);
                }
            }
        }
        rules
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn there_are_as_many_policies_as_said_and_no_two_alike() {
        let table = policies(MAX_POLICIES);
        assert_eq!(table.names.len(), MAX_POLICIES);
        assert_eq!(table.names.iter().collect::<BTreeSet<_>>().len(), MAX_POLICIES);
        assert_eq!(table.rules.iter().collect::<BTreeSet<_>>().len(), MAX_POLICIES);
    }

    #[test]
    fn three_policies_are_control_t1_and_t2() {
        let table = policies(3);
        assert_eq!(table.names, ["control", "T1", "T2"]);
        assert_eq!(table.contexts[0], "tier1_peak_economy");
        assert_eq!(table.contexts[1], "tier1_peak_discount");
        assert!(table.rules[1].chunks(6).all(|pair| pair == [0, 100, 0, 100, 0, 0]));
        assert!(table.rules[2].chunks(6).all(|pair| pair == [0, 100, 0, 0, 0, 100]));
        assert_eq!(shares(3), [0.4, 0.3, 0.3]);
    }

    #[test]
    fn the_default_eight_are_what_a_platform_would_run() {
        let names = policies(8).names;
        assert_eq!(names, ["control", "T1", "T2", "T1_peak", "T2_tier1", "T1_50", "T2_50", "T2_peak"]);
    }
}
