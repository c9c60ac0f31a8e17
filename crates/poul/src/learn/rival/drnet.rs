//! DRNet: a shared trunk, and a head for each stratum of dose, which reads the dose too (Schwab et al. 2020).
//!
//! The published network has a dose for each treatment. Our reading for policies: the dose is d_Π from control, one
//! number for how much a policy does; control has a head of its own, and the policies that were run are cut by dose into
//! strata with about as many rows each. Heads read the dose, and the mixture over atoms too with `tier = "spec"`.

use serde::{Deserialize, Serialize};

use super::params::{RepresentationParams, Rule, check_rules};
use super::surface::{Shape, Surface};
use super::treatments::{Chosen, Tier, Treatments};
use super::trunk::Trunk;
use crate::Result;
use crate::net::{Activation, Init, LayoutBuilder, Mlp, Tape, Var};

/// `[model]` of the learner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct DrNetParams {
    /// Trunk and heads; `tier` is `spec` by default, and `min_arm_rows` counts for nothing.
    #[serde(flatten)]
    pub(super) network: RepresentationParams,
    /// Strata of dose, besides control. Default 5; 1 to 1000.
    pub(super) strata: usize,
}

impl Default for DrNetParams {
    fn default() -> Self {
        let network = RepresentationParams { tier: Tier::Spec, ..RepresentationParams::default() };
        Self { network, strata: 5 }
    }
}

/// Trunk and heads.
pub(super) struct DrNet {
    trunk: Trunk,
    /// Control's, then those of the strata.
    heads: Vec<Mlp>,
    /// The greatest dose of each stratum but the last.
    edges: Vec<f32>,
    reads_mixture: bool,
}

impl Surface for DrNet {
    const NAME: &'static str = "drnet";
    type Model = DrNetParams;

    fn check(model: &DrNetParams) -> Result<()> {
        model.network.check()?;
        check_rules(&[Rule("model.strata", (1..=1000).contains(&model.strata), "1 to 1000")])
    }

    fn tier(model: &DrNetParams) -> Tier {
        model.network.tier
    }

    fn members(model: &DrNetParams) -> usize {
        model.network.members
    }

    fn build(layout: &mut LayoutBuilder, shape: &Shape<'_>, model: &DrNetParams) -> Self {
        let (trunk_group, head_group) = (layout.group("trunk"), layout.group("heads"));
        let network = &model.network;
        let trunk = Trunk::new(layout, "trunk", shape.n_features, network, false, trunk_group);
        let edges = edges(shape.treatments, model.strata);
        let reads_mixture = network.tier == Tier::Spec;
        let n_mixture = if reads_mixture { shape.treatments.width() } else { 0 };
        let mut widths = vec![trunk.width + 1 + n_mixture];
        widths.extend(&network.heads);
        widths.push(1);
        let head = |stratum: usize| {
            let name = format!("head.{stratum}");
            let mlp = Mlp::new(layout, &name, &widths, Activation::Elu, Init::Uniform, head_group);
            mlp.dropout(network.dropout)
        };
        let heads = (0..edges.len() + 2).map(head).collect();
        Self { trunk, heads, edges, reads_mixture }
    }

    fn shared(&self, tape: &mut Tape<'_>, treatments: &Chosen) {
        let mut inputs = vec![tape.column(treatments.dose.iter().copied())];
        if self.reads_mixture {
            inputs.push(treatments.vectors(tape));
        }
        let inputs = tape.concat(&inputs);
        tape.share(inputs);
    }

    fn factual(&self, tape: &mut Tape<'_>, treatments: &Chosen, own: &[u32]) -> Var {
        let stem = self.trunk.forward(tape);
        let inputs = tape.shared(0);
        // Each head sees the rows of its stratum only.
        let strata: Vec<usize> = own.iter().map(|own| self.stratum(treatments, *own as usize)).collect();
        let mut place = vec![0_u32; own.len()];
        let (mut parts, mut n_placed) = (Vec::new(), 0);
        for (stratum, head) in self.heads.iter().enumerate() {
            let rows: Vec<u32> =
                (0..own.len() as u32).filter(|row| strata[*row as usize] == stratum).collect();
            if rows.is_empty() {
                continue;
            }
            rows.iter().enumerate().for_each(|(i, row)| place[*row as usize] = n_placed + i as u32);
            n_placed += rows.len() as u32;
            let given = tape.gather(inputs, rows.iter().map(|row| own[*row as usize]));
            let stem = tape.gather(stem, rows);
            let input = tape.concat(&[stem, given]);
            let output = head.forward(tape, input);
            parts.push(tape.transpose(output));
        }
        let joined = tape.concat(&parts);
        let joined = tape.transpose(joined);
        tape.gather(joined, place)
    }

    fn all(&self, tape: &mut Tape<'_>, treatments: &Chosen) -> Var {
        let stem = self.trunk.forward(tape);
        let n_rows = tape.shape(stem).0;
        let inputs = tape.shared(0);
        let columns: Vec<Var> = (0..treatments.arm.len())
            .map(|treatment| {
                let given = tape.gather(inputs, std::iter::repeat_n(treatment as u32, n_rows));
                let input = tape.concat(&[stem, given]);
                self.heads[self.stratum(treatments, treatment)].forward(tape, input)
            })
            .collect();
        tape.concat(&columns)
    }
}

impl DrNet {
    /// The head of a treatment: control's, or that of its dose.
    fn stratum(&self, treatments: &Chosen, treatment: usize) -> usize {
        if treatments.is_control[treatment] {
            return 0;
        }
        1 + self.edges.partition_point(|edge| *edge < treatments.dose[treatment])
    }
}

/// Where strata end: arms in order of dose, cut where a further share of the treated rows is reached.
fn edges(treatments: &Treatments, n_strata: usize) -> Vec<f32> {
    let doses = treatments.doses.iter().copied().zip(treatments.arm_rows.iter().copied());
    let mut arms: Vec<(f64, u64)> =
        doses.enumerate().filter(|(arm, _)| *arm != treatments.control).map(|(_, arm)| arm).collect();
    arms.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: u64 = arms.iter().map(|arm| arm.1).sum();
    let mut edges = Vec::new();
    let mut rows = 0;
    for pair in arms.windows(2) {
        rows += pair[0].1;
        let is_full = rows as f64 * n_strata as f64 >= (edges.len() + 1) as f64 * total as f64;
        // Equal doses stay together, and the last stratum keeps an arm.
        if is_full && edges.len() + 1 < n_strata && pair[0].0 < pair[1].0 {
            edges.push(pair[0].0 as f32);
        }
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::poul::TreatmentSpace;
    use crate::policy::PolicySet;

    #[test]
    fn strata_have_about_as_many_rows_and_keep_equal_doses_together() {
        let mut builder = PolicySet::builder();
        builder.add("a", "s", "none", 1.0).add("b", "s", "up", 1.0);
        let space = TreatmentSpace::new(&builder.build().unwrap(), &[0.5, 0.5]);
        let treatments = |doses: &[f64], arm_rows: &[u64]| Treatments {
            tier: Tier::Id,
            arms: (0..doses.len()).map(|arm| arm.to_string()).collect(),
            arm_rows: arm_rows.to_vec(),
            control: 0,
            doses: doses.to_vec(),
            space: space.clone(),
        };
        let of = |doses: &[f64], rows: &[u64], n| edges(&treatments(doses, rows), n);
        assert_eq!(of(&[0.0, 0.4, 0.1, 0.3, 0.2], &[90, 10, 10, 10, 10], 2), [0.2]);
        assert_eq!(of(&[0.0, 0.5, 0.5, 0.5, 0.9], &[90, 10, 10, 10, 10], 4), [0.5]);
        assert_eq!(of(&[0.0, 0.5], &[90, 10], 4), Vec::<f32>::new());
        assert_eq!(of(&[0.0, 0.1, 0.2, 0.3], &[5, 1000, 10, 10], 3), [0.1, 0.2]);
    }
}
