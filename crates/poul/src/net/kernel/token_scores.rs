//! Scores of scaled tokens for a row of its own: y_j = Σ_k relu(x_j·p_jk + t_k)·w_k, without a matrix of rows × tokens × k.

use super::attention::{Strip, WIDTH};
use super::rowwise::total;
use crate::dispatch::kernels;

/// What comes back: to p turned, to the t of each row, to w and to x.
pub(in crate::net) struct ScoreGradients {
    pub(in crate::net) turned: Vec<Strip>,
    pub(in crate::net) own: Vec<f32>,
    pub(in crate::net) w: Vec<f32>,
    pub(in crate::net) x: Vec<f32>,
}

/// The inputs: p turned, the rows of x with n columns, the t of each, and w.
#[derive(Clone, Copy)]
pub(in crate::net) struct Scored<'a> {
    pub(in crate::net) n: usize,
    pub(in crate::net) turned: &'a [Strip],
    pub(in crate::net) x: &'a [f32],
    pub(in crate::net) own: &'a [f32],
    pub(in crate::net) w: &'a [f32],
}

impl Scored<'_> {
    pub(in crate::net) fn gradients(&self) -> ScoreGradients {
        ScoreGradients {
            turned: vec![[0.0; WIDTH]; self.turned.len()],
            own: vec![0.0; self.own.len()],
            w: vec![0.0; self.w.len()],
            x: vec![0.0; self.x.len()],
        }
    }
}

kernels! {
    /// y of every row.
    fn token_scores(scored: Scored<'_>, y: &mut [f32]) {
        let Scored { n, turned, x, own, w } = scored;
        let strips = n.div_ceil(WIDTH);
        let mut keys = vec![[0.0; WIDTH]; strips];
        let rows = x.chunks_exact(n).zip(own.chunks_exact(w.len())).zip(y.chunks_exact_mut(n));
        for ((x, own), y) in rows {
            keys.as_flattened_mut()[..n].copy_from_slice(x);
            for (strip, (x, y)) in keys.iter().zip(y.chunks_mut(WIDTH)).enumerate() {
                let mut sum = [0.0; WIDTH];
                for ((p, own), w) in turned[strip..].iter().step_by(strips).zip(own).zip(w) {
                    sum = std::array::from_fn(|i| sum[i] + positive(x[i] * p[i] + own) * w);
                }
                y.copy_from_slice(&sum[..y.len()]);
            }
        }
    }

    /// Adds what comes back, given the gradient of y.
    fn token_score_gradients(scored: Scored<'_>, dy: &[f32], gradients: &mut ScoreGradients) {
        let Scored { n, turned, x, own, w } = scored;
        let strips = n.div_ceil(WIDTH);
        let zeros = vec![[0.0; WIDTH]; strips];
        let (mut keys, mut back, mut dx) = (zeros.clone(), zeros.clone(), zeros);
        let rows = x.chunks_exact(n).zip(own.chunks_exact(w.len())).zip(dy.chunks_exact(n));
        let outs = gradients.own.chunks_exact_mut(w.len()).zip(gradients.x.chunks_exact_mut(n));
        for (((x, own), dy), (own_back, x_back)) in rows.zip(outs) {
            keys.as_flattened_mut()[..n].copy_from_slice(x);
            back.as_flattened_mut()[..n].copy_from_slice(dy);
            dx.fill([0.0; WIDTH]);
            let columns = turned.chunks_exact(strips).zip(gradients.turned.chunks_exact_mut(strips));
            let each = own.iter().zip(own_back).zip(w.iter().zip(&mut gradients.w));
            for (((own, own_back), (w, dw)), (p, dp)) in each.zip(columns) {
                let (mut own_sum, mut w_sum) = ([0.0; WIDTH], [0.0; WIDTH]);
                for strip in 0..strips {
                    let (x, p, dy) = (keys[strip], p[strip], back[strip]);
                    let inside: Strip = std::array::from_fn(|i| x[i] * p[i] + own);
                    let moved: Strip = std::array::from_fn(|i| if inside[i] > 0.0 { dy[i] * w } else { 0.0 });
                    w_sum = std::array::from_fn(|i| w_sum[i] + dy[i] * positive(inside[i]));
                    own_sum = std::array::from_fn(|i| own_sum[i] + moved[i]);
                    let (old_p, old_x) = (dp[strip], dx[strip]);
                    dp[strip] = std::array::from_fn(|i| old_p[i] + moved[i] * x[i]);
                    dx[strip] = std::array::from_fn(|i| old_x[i] + moved[i] * p[i]);
                }
                *own_back += total(&own_sum);
                *dw += total(&w_sum);
            }
            x_back.copy_from_slice(&dx.as_flattened()[..n]);
        }
    }
}

#[inline(always)]
fn positive(value: f32) -> f32 {
    if value > 0.0 { value } else { 0.0 }
}
