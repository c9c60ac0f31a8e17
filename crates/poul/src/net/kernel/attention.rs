//! Loops of attention among scaled tokens: a row's n numbers x, and an n × n block of shares for it.

use super::rowwise::{dot, total};
use super::special::exp;
use crate::dispatch::kernels;

kernels! {
    /// `shares` = softmax over j of x_i·x_j·a_ij; y = shares·x_j.
    fn attention_shares(n: usize, x: &[f32], a: &[f32], shares: &mut [f32], y: &mut [f32]) {
        let blocks = shares.chunks_exact_mut(n * n).zip(y.chunks_exact_mut(n * n));
        for (x, (shares, y)) in x.chunks_exact(n).zip(blocks) {
            let rows = shares.chunks_exact_mut(n).zip(y.chunks_exact_mut(n)).zip(a.chunks_exact(n));
            for (own, ((shares, y), a)) in x.iter().zip(rows) {
                for ((share, a), x) in shares.iter_mut().zip(a).zip(x) {
                    *share = own * x * a;
                }
                let top = shares.iter().fold(f32::NEG_INFINITY, |top, score| if *score > top { *score } else { top });
                for share in shares.iter_mut() {
                    *share = exp(*share - top);
                }
                let inverse = 1.0 / total(shares);
                for ((share, y), x) in shares.iter_mut().zip(y).zip(x) {
                    *share *= inverse;
                    *y = *share * x;
                }
            }
        }
    }

    /// The gradient of y in `dy` becomes that of the scores within the softmax.
    fn score_gradients(n: usize, x: &[f32], shares: &[f32], dy: &mut [f32]) {
        let blocks = shares.chunks_exact(n * n).zip(dy.chunks_exact_mut(n * n));
        for (x, (shares, dy)) in x.chunks_exact(n).zip(blocks) {
            for (shares, dy) in shares.chunks_exact(n).zip(dy.chunks_exact_mut(n)) {
                dy.iter_mut().zip(x).for_each(|(dy, x)| *dy *= x);
                let mean = dot(shares, dy);
                dy.iter_mut().zip(shares).for_each(|(dy, share)| *dy = share * (*dy - mean));
            }
        }
    }

    /// da_ij += Σ over rows of the gradient of score ij times x_i·x_j.
    fn pair_gradients(n: usize, x: &[f32], scores: &[f32], da: &mut [f32]) {
        for (x, scores) in x.chunks_exact(n).zip(scores.chunks_exact(n * n)) {
            let rows = scores.chunks_exact(n).zip(da.chunks_exact_mut(n));
            for (own, (scores, da)) in x.iter().zip(rows) {
                for ((da, score), x) in da.iter_mut().zip(scores).zip(x) {
                    *da += score * (own * x);
                }
            }
        }
    }

    /// dx += the gradient of y = shares·x_j by x, which is in the factor, in the keys and in the queries.
    fn x_gradients(n: usize, x: &[f32], a: &[f32], shares: &[f32], dy: &[f32], dx: &mut [f32]) {
        let blocks = shares.chunks_exact(n * n).zip(dy.chunks_exact(n * n));
        for ((x, dx), (shares, dy)) in x.chunks_exact(n).zip(dx.chunks_exact_mut(n)).zip(blocks) {
            let rows = shares.chunks_exact(n).zip(dy.chunks_exact(n)).zip(a.chunks_exact(n));
            for (i, ((shares, dy), a)) in rows.enumerate() {
                let mean: f32 = (0..n).map(|j| shares[j] * dy[j] * x[j]).sum();
                let mut query = 0.0;
                for j in 0..n {
                    let score = shares[j] * (dy[j] * x[j] - mean);
                    dx[j] += dy[j] * shares[j] + score * x[i] * a[j];
                    query += score * x[j] * a[j];
                }
                dx[i] += query;
            }
        }
    }
}
