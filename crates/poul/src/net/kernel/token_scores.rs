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
        let wide = n.next_multiple_of(WIDTH);
        let zeros = vec![0.0; wide];
        let (mut keys, mut back, mut dx) = (zeros.clone(), zeros.clone(), zeros.clone());
        // What comes back to the inside of relu, and its output times dy.
        let (mut moved, mut acted) = (zeros.clone(), zeros);
        let rows = x.chunks_exact(n).zip(own.chunks_exact(w.len())).zip(dy.chunks_exact(n));
        let outs = gradients.own.chunks_exact_mut(w.len()).zip(gradients.x.chunks_exact_mut(n));
        for (((x, own), dy), (own_back, x_back)) in rows.zip(outs) {
            keys[..n].copy_from_slice(x);
            back[..n].copy_from_slice(dy);
            dx.fill(0.0);
            let columns = turned.as_flattened().chunks_exact(wide);
            let columns = columns.zip(gradients.turned.as_flattened_mut().chunks_exact_mut(wide));
            let each = own.iter().zip(own_back).zip(w.iter().zip(&mut gradients.w));
            for (((own, own_back), (w, dw)), (p, dp)) in each.zip(columns) {
                let inputs = keys.iter().zip(p).zip(&back);
                for ((moved, acted), ((x, p), dy)) in moved.iter_mut().zip(&mut acted).zip(inputs) {
                    let inside = x * p + own;
                    *moved = if inside > 0.0 { dy * w } else { 0.0 };
                    *acted = dy * positive(inside);
                }
                dp.iter_mut().zip(&moved).zip(&keys).for_each(|((dp, moved), x)| *dp += moved * x);
                dx.iter_mut().zip(&moved).zip(p).for_each(|((dx, moved), p)| *dx += moved * p);
                *own_back += total(&moved);
                *dw += total(&acted);
            }
            x_back.copy_from_slice(&dx[..n]);
        }
    }
}

#[inline(always)]
fn positive(value: f32) -> f32 {
    if value > 0.0 { value } else { 0.0 }
}
