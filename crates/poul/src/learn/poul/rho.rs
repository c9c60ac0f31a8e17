//! ρ: a linear part beside one hidden layer, h = z·S + tanh(z·U + u)·V + v (Eq. 2 of the paper); optionally normalised,
//! optionally with a known Lipschitz constant (Proposition 3: L_ρ ≤ ‖S‖ + ‖U‖·‖V‖, since tanh has slope 1 at most).

use super::params::ModelParams;
use crate::net::{Activation, Dense, Init, LayerNorm, Layout, LayoutBuilder, Tape, Var, Weight};
use crate::stats::TopSingular;

/// The bound is kept with this much to spare, relatively: more than f32 rounds.
const TO_SPARE: f64 = 1e-5;

/// Weights of ρ.
#[derive(Clone, Debug)]
pub(super) struct Rho {
    skip: Option<Dense>,
    hidden: Option<Hidden>,
    /// Most that L_ρ may be.
    bound: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Hidden {
    first: Dense,
    norm: Option<LayerNorm>,
    second: Dense,
}

impl Rho {
    /// Declares the weights.
    pub(super) fn new(layout: &mut LayoutBuilder, name: &str, model: &ModelParams) -> Self {
        let group = layout.group("rho");
        let (r, d, width) = (model.embedding_dim, model.effect_dim, model.rho_hidden);
        let skip = (model.rho_skip || width == 0)
            .then(|| layout.linear(&format!("{name}.skip"), r, d, Init::Uniform, group));
        let hidden = (width > 0).then(|| Hidden {
            first: layout.dense(&format!("{name}.rho.0"), r, width, Init::Uniform, group),
            second: layout.dense(&format!("{name}.rho.1"), width, d, Init::Uniform, group),
            norm: model.layer_norm.then(|| layout.layer_norm(&format!("{name}.rho.norm"), width, group)),
        });
        let bound = (model.lipschitz > 0.0).then(|| f64::from(model.lipschitz) * (1.0 - TO_SPARE));
        Self { skip, hidden, bound }
    }

    /// h of each row of z.
    pub(super) fn forward(&self, tape: &mut Tape<'_>, z: Var) -> Var {
        let linear = self.skip.map(|skip| tape.dense(z, skip, Activation::Identity));
        let bent = self.hidden.map(|Hidden { first, norm, second }| {
            let hidden = match norm {
                None => tape.dense(z, first, Activation::Tanh),
                Some(norm) => {
                    let hidden = tape.dense(z, first, Activation::Identity);
                    let hidden = tape.layer_norm(hidden, norm);
                    tape.activate(hidden, Activation::Tanh)
                }
            };
            tape.dense(hidden, second, Activation::Identity)
        });
        let h = match (linear, bent) {
            (Some(linear), Some(bent)) => tape.add(linear, bent),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => z,
        };
        match self.bound {
            Some(bound) => self.within(tape, h, bound),
            None => h,
        }
    }

    /// The part of h that is linear in z, where nothing else scales it: its expectation is that of the expected z.
    pub(super) fn linear(&self, tape: &mut Tape<'_>, z: Var) -> Option<Var> {
        let skip = self.skip.filter(|_| self.bound.is_none())?;
        Some(tape.dense(z, skip, Activation::Identity))
    }

    /// Whether h is linear in z.
    pub(super) fn is_linear(&self) -> bool {
        self.hidden.is_none() && self.bound.is_none()
    }

    /// h·min(1, bound / L_ρ), with the gradient of L_ρ.
    fn within(&self, tape: &mut Tape<'_>, h: Var, bound: f64) -> Var {
        let mut terms = self.skip.map(|skip| spectral_norm(tape, skip.weight));
        if let Some(Hidden { first, second, .. }) = self.hidden {
            let (first, second) = (spectral_norm(tape, first.weight), spectral_norm(tape, second.weight));
            let product = tape.mul(first, second);
            terms = Some(terms.map_or(product, |skip| tape.add(skip, product)));
        }
        let Some(total) = terms else { return h };
        if tape.value(total).first().is_none_or(|total| f64::from(*total) <= bound) {
            return h;
        }
        let inverse = tape.reciprocal(total);
        let factor = tape.scale(inverse, bound as f32);
        tape.mul(h, factor)
    }

    /// What the forward pass multiplies h by: 1, or less where weights alone would pass the bound.
    pub(super) fn factor(&self, layout: &Layout, weights: &[f32]) -> f64 {
        match (self.bound, self.norms(layout, weights)) {
            (Some(bound), Some(total)) if total > bound => bound / total,
            _ => 1.0,
        }
    }

    /// L_ρ, as far as singular values tell; unknown where rows are normalised.
    pub(super) fn lipschitz(&self, layout: &Layout, weights: &[f32]) -> Option<f64> {
        Some(self.norms(layout, weights)? * self.factor(layout, weights))
    }

    /// As [`lipschitz`](Self::lipschitz), for h with axis k multiplied by `scales[k]`.
    pub(super) fn lipschitz_along(&self, layout: &Layout, weights: &[f32], scales: &[f64]) -> Option<f64> {
        let mut scaled = weights.to_vec();
        for weight in self.outputs().0 {
            for row in scaled[layout.segment(weight).range()].chunks_exact_mut(scales.len().max(1)) {
                row.iter_mut()
                    .zip(scales)
                    .for_each(|(value, scale)| *value = (f64::from(*value) * scale) as f32);
            }
        }
        // The factor is that of the weights as they are.
        Some(self.norms(layout, &scaled)? * self.factor(layout, weights))
    }

    fn norms(&self, layout: &Layout, weights: &[f32]) -> Option<f64> {
        let norm = |layer: Dense| {
            let segment = layout.segment(layer.weight);
            TopSingular::of(&weights[segment.range()], segment.n_cols).norm
        };
        let skip = self.skip.map_or(0.0, norm);
        match self.hidden {
            Some(Hidden { norm: Some(_), .. }) => None,
            Some(Hidden { first, second, .. }) => Some(skip + norm(first) * norm(second)),
            None => Some(skip),
        }
    }

    /// Whether the Lipschitz constant is bounded, which a change of scale would undo.
    pub(super) fn is_bounded(&self) -> bool {
        self.bound.is_some()
    }

    /// The matrices whose columns are the axes of h, and the bias added to it.
    pub(super) fn outputs(&self) -> (Vec<Weight>, Option<Weight>) {
        let layers = self.skip.into_iter().chain(self.hidden.map(|hidden| hidden.second));
        (layers.map(|layer| layer.weight).collect(), self.hidden.and_then(|hidden| hidden.second.bias))
    }
}

/// ‖W‖ = uᵀ·W·v: with u and v held, its gradient u·vᵀ is that of the norm.
fn spectral_norm(tape: &mut Tape<'_>, weight: Weight) -> Var {
    let matrix = tape.weight(weight);
    let n_cols = tape.shape(matrix).1.max(1);
    let top = TopSingular::of(tape.value(matrix), n_cols);
    let single = |values: &[f64]| values.iter().map(|value| *value as f32).collect::<Vec<f32>>();
    let left = tape.constant(1, top.left.len(), &single(&top.left));
    let right = tape.constant(top.right.len(), 1, &single(&top.right));
    let product = tape.matmul(left, matrix);
    tape.matmul(product, right)
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::Seed;
    use crate::net::Workspace;

    const N: usize = 6;

    fn rho(change: impl FnOnce(&mut ModelParams)) -> (Rho, Layout, Vec<f32>) {
        let mut model =
            ModelParams { embedding_dim: 4, effect_dim: 3, rho_hidden: 5, ..ModelParams::default() };
        change(&mut model);
        let mut layout = Layout::builder();
        let rho = Rho::new(&mut layout, "h", &model);
        let layout = layout.finish().unwrap();
        let weights = layout.init(Seed::new(5)).iter().map(|weight| 2.0 * weight).collect();
        (rho, layout, weights)
    }

    fn points(scale: f32) -> Vec<f32> {
        let mut rng = Seed::new(6).rng();
        (0..N * 4).map(|_| scale * rng.random_range(-1.0_f32..1.0)).collect()
    }

    fn h(rho: &Rho, layout: &Layout, weights: &[f32], z: &[f32]) -> Vec<f32> {
        let build = |tape: &mut Tape<'_>| {
            let z = tape.constant(z.len() / 4, 4, z);
            rho.forward(tape, z)
        };
        Workspace::default().value(layout, weights, build).unwrap()
    }

    fn distance(a: &[f32], b: &[f32]) -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt()
    }

    #[test]
    fn pairs_of_points_stay_within_the_constant() {
        for bound in [0.0, 0.7] {
            let (rho, layout, weights) = rho(|model| model.lipschitz = bound);
            let known = rho.lipschitz(&layout, &weights).unwrap();
            assert!(if bound > 0.0 { known <= f64::from(bound) } else { known > 0.7 }, "{known}");
            let mut steepest = 0.0_f64;
            for scale in [1e-2, 0.3, 3.0] {
                let z = points(scale);
                let h = h(&rho, &layout, &weights, &z);
                for (i, j) in (0..N).flat_map(|i| (0..i).map(move |j| (i, j))) {
                    let far = distance(&z[i * 4..][..4], &z[j * 4..][..4]);
                    steepest = steepest.max(distance(&h[i * 3..][..3], &h[j * 3..][..3]) / far);
                }
            }
            assert!(steepest <= known && steepest > 0.2 * known, "{steepest} of {known}");
        }
    }

    #[test]
    fn gradients_of_every_form_agree_with_differences() {
        let forms: [fn(&mut ModelParams); 4] = [
            |model| model.lipschitz = 0.7,
            |model| (model.lipschitz, model.rho_skip) = (0.2, false),
            |model| (model.lipschitz, model.rho_hidden) = (0.2, 0),
            |model| model.layer_norm = true,
        ];
        for (form, change) in forms.into_iter().enumerate() {
            let (rho, layout, weights) = rho(change);
            let z = points(1.0);
            let loss = |tape: &mut Tape<'_>| {
                let z = tape.constant(N, 4, &z);
                let h = rho.forward(tape, z);
                let target = tape.constant(N, 3, &[0.3; N * 3]);
                tape.squared_loss(h, target, None, 1.0)
            };
            let mut workspace = Workspace::default();
            workspace.loss_and_gradient(&layout, &weights, loss).unwrap();
            let gradient = workspace.gradient().to_vec();
            let largest = gradient.iter().fold(0.0_f32, |largest, own| largest.max(own.abs()));
            for i in layout.segments().iter().flat_map(crate::net::Segment::range) {
                let step = 1e-2;
                let mut at = |change: f32| {
                    let mut weights = weights.clone();
                    weights[i] += change;
                    workspace.loss_and_gradient(&layout, &weights, loss).unwrap()
                };
                let slope = (at(step) - at(-step)) / f64::from(2.0 * step);
                let error = (slope - f64::from(gradient[i])).abs();
                assert!(
                    error < 5e-3 * f64::from(largest.max(0.1)),
                    "form {form}, {i}: {slope} {}",
                    gradient[i]
                );
            }
        }
    }
}
