//! What turns a representation of a unit into outcomes under treatments: a head for each arm, or one head that reads
//! the policy's vector.

use super::surface::Shape;
use super::treatments::{Chosen, Tier};
use crate::net::{Activation, Dense, Group, Init, LayoutBuilder, Mlp, Tape, Var};

/// Heads of one kind of output, one number each.
pub(super) enum Heads {
    /// A head for each arm; arms with few rows share one.
    ByArm {
        heads: Vec<Mlp>,
        /// The head of each arm.
        of_arm: Vec<u32>,
    },
    /// One head whose first layer also reads the policy's vector. What comes from the policy is computed once for all
    /// rows.
    ByVector { stem: Dense, treatment: Dense, rest: Mlp, activation: Activation, dropout: f32 },
}

/// The layers of heads.
pub(super) struct HeadParams<'a> {
    /// Widths of the hidden layers; at least one.
    pub(super) hidden: &'a [usize],
    pub(super) activation: Activation,
    pub(super) dropout: f32,
    /// Arms with fewer rows than this share a head.
    pub(super) min_arm_rows: u64,
}

impl Heads {
    /// Declares the weights; `n_in` is the width of the representation.
    pub(super) fn new(
        layout: &mut LayoutBuilder,
        name: &str,
        n_in: usize,
        shape: &Shape<'_>,
        params: &HeadParams<'_>,
        group: Group,
    ) -> Self {
        let treatments = shape.treatments;
        let (activation, dropout) = (params.activation, params.dropout);
        if treatments.tier == Tier::Spec {
            return Self::by_vector(layout, name, n_in, treatments.width(), params, group);
        }
        let (of_arm, n_heads) = head_of_arm(&treatments.arm_rows, treatments.control, params.min_arm_rows);
        let mut widths = vec![n_in];
        widths.extend(params.hidden);
        widths.push(1);
        let head = |head: usize| {
            let name = format!("{name}.{head}");
            Mlp::new(layout, &name, &widths, activation, Init::Uniform, group).dropout(dropout)
        };
        Self::ByArm { heads: (0..n_heads).map(head).collect(), of_arm }
    }

    /// One head that reads vectors of length `width`, whatever they stand for.
    pub(super) fn by_vector(
        layout: &mut LayoutBuilder,
        name: &str,
        n_in: usize,
        width: usize,
        params: &HeadParams<'_>,
        group: Group,
    ) -> Self {
        let first = params.hidden[0];
        let stem = layout.dense(&format!("{name}.stem"), n_in, first, Init::Uniform, group);
        let treatment = layout.linear(&format!("{name}.treatment"), width, first, Init::Uniform, group);
        let mut widths = params.hidden.to_vec();
        widths.push(1);
        let rest = Mlp::new(layout, name, &widths, params.activation, Init::Uniform, group);
        let (activation, dropout) = (params.activation, params.dropout);
        Self::ByVector { stem, treatment, rest: rest.dropout(dropout), activation, dropout }
    }

    /// Hands over what all rows share: one matrix, where the head reads vectors, and nothing otherwise.
    pub(super) fn share(&self, tape: &mut Tape<'_>, treatments: &Chosen) {
        if matches!(self, Self::ByVector { .. }) {
            let vectors = treatments.vectors(tape);
            self.share_vectors(tape, vectors);
        }
    }

    /// [`share`](Self::share) for vectors that were computed.
    pub(super) fn share_vectors(&self, tape: &mut Tape<'_>, vectors: Var) {
        let Self::ByVector { treatment, .. } = self else { return };
        let parts = tape.dense(vectors, *treatment, Activation::Identity);
        tape.share(parts);
    }

    /// How many matrices [`share`](Self::share) hands over.
    pub(super) fn n_shared(&self) -> usize {
        usize::from(matches!(self, Self::ByVector { .. }))
    }

    /// The output of each row under its own treatment, rows × 1; `shared` is the number of the shared matrix.
    pub(super) fn factual(
        &self,
        tape: &mut Tape<'_>,
        input: Var,
        treatments: &Chosen,
        own: &[u32],
        shared: usize,
    ) -> Var {
        match self {
            Self::ByVector { stem, .. } => {
                let from_input = tape.dense(input, *stem, Activation::Identity);
                let parts = tape.shared(shared);
                let from_treatment = tape.gather(parts, own.iter().copied());
                let sum = tape.add(from_input, from_treatment);
                self.finish(tape, sum)
            }
            Self::ByArm { heads, of_arm } => {
                // Each head sees its own rows only: the cost does not grow with the number of arms.
                let head_of = |own: &u32| of_arm[treatments.arm[*own as usize] as usize];
                let mut place = vec![0_u32; own.len()];
                let (mut parts, mut n_placed) = (Vec::new(), 0);
                for (head, mlp) in heads.iter().enumerate() {
                    let rows: Vec<u32> = (0..own.len() as u32)
                        .filter(|row| head_of(&own[*row as usize]) == head as u32)
                        .collect();
                    if rows.is_empty() {
                        continue;
                    }
                    rows.iter().enumerate().for_each(|(i, row)| place[*row as usize] = n_placed + i as u32);
                    n_placed += rows.len() as u32;
                    let own_input = tape.gather(input, rows);
                    let output = mlp.forward(tape, own_input);
                    parts.push(tape.transpose(output));
                }
                let joined = tape.concat(&parts);
                let joined = tape.transpose(joined);
                tape.gather(joined, place)
            }
        }
    }

    /// The output of each row under every treatment, one column each.
    pub(super) fn all(&self, tape: &mut Tape<'_>, input: Var, treatments: &Chosen, shared: usize) -> Var {
        let columns: Vec<Var> = match self {
            Self::ByVector { stem, .. } => {
                let from_input = tape.dense(input, *stem, Activation::Identity);
                let parts = tape.shared(shared);
                let column = |treatment: u32| {
                    let from_treatment = tape.gather(parts, [treatment]);
                    let sum = tape.add(from_input, from_treatment);
                    self.finish(tape, sum)
                };
                (0..treatments.arm.len() as u32).map(column).collect()
            }
            Self::ByArm { heads, of_arm } => {
                let mut outputs: Vec<Option<Var>> = vec![None; heads.len()];
                let column = |arm: &u32| {
                    let head = of_arm[*arm as usize] as usize;
                    *outputs[head].get_or_insert_with(|| heads[head].forward(tape, input))
                };
                treatments.arm.iter().map(column).collect()
            }
        };
        tape.concat(&columns)
    }

    /// The layers after the first.
    fn finish(&self, tape: &mut Tape<'_>, first: Var) -> Var {
        let Self::ByVector { rest, activation, dropout, .. } = self else { return first };
        let first = tape.activate(first, *activation);
        let first = tape.dropout(first, *dropout);
        rest.forward(tape, first)
    }
}

/// The head of each arm, and how many heads there are: arms with few rows, other than control, share one.
fn head_of_arm(arm_rows: &[u64], control: usize, min_arm_rows: u64) -> (Vec<u32>, usize) {
    let is_small = |arm: usize| arm != control && arm_rows[arm] < min_arm_rows;
    let n_small = (0..arm_rows.len()).filter(|arm| is_small(*arm)).count();
    let mut n_heads = 0;
    let mut pooled = None;
    let of_arm = (0..arm_rows.len())
        .map(|arm| {
            if n_small > 1
                && is_small(arm)
                && let Some(head) = pooled
            {
                return head;
            }
            let head = n_heads as u32;
            n_heads += 1;
            if is_small(arm) {
                pooled = Some(head);
            }
            head
        })
        .collect();
    (of_arm, n_heads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_arms_share_a_head_and_control_keeps_its_own() {
        assert_eq!(head_of_arm(&[10, 500, 20, 600, 30], 2, 100), (vec![0, 1, 2, 3, 0], 4));
        assert_eq!(head_of_arm(&[500, 20, 600], 0, 100), (vec![0, 1, 2], 3));
        assert_eq!(head_of_arm(&[5, 5], 0, 100), (vec![0, 1], 2));
    }
}
