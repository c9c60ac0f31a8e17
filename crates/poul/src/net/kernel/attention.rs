//! Attention among scaled tokens, a row of data at a time, in tiles that stay in registers and the nearest cache: no share
//! goes through memory, and the way back computes shares anew (as Dao et al. 2022, FlashAttention).
//!
//! A row has n numbers x. Query i shares itself out among keys j, P_i = softmax over j of x_i·x_j·a_ij, and takes
//! y_i = Σ_j P_ij·x_j·v_j.

use super::rowwise::{dot, total};
use super::special::exp;
use crate::dispatch::kernels;

/// Queries of a tile.
const QUERIES: usize = 4;
/// Numbers of a strip: two AVX2 registers, so that those of all queries fit.
pub(super) const WIDTH: usize = 16;

/// Numbers that are worked on together. Strips are read and written whole, which compiles to vector instructions.
pub(in crate::net) type Strip = [f32; WIDTH];

/// Products a (n × n) and values v (n × dim) in whole strips, with zeros around them.
pub(in crate::net) struct Tokens {
    n: usize,
    dim: usize,
    /// Strips of all keys.
    strips: usize,
    a: Vec<Strip>,
    /// A strip of columns after the other, each for all keys.
    v: Vec<Strip>,
    /// A column after the other.
    turned: Vec<Strip>,
}

/// What [`attend`] was given and made, and the gradient of y.
pub(in crate::net) struct Attended<'a> {
    pub(in crate::net) x: &'a [f32],
    pub(in crate::net) scales: &'a [[f32; 2]],
    pub(in crate::net) y: &'a [f32],
    pub(in crate::net) dy: &'a [f32],
}

/// What comes back to a, and to v turned.
pub(in crate::net) struct TokenGradients {
    a: Vec<Strip>,
    turned: Vec<Strip>,
}

impl Tokens {
    pub(in crate::net) fn new(n: usize, a: &[f32], v: &[f32]) -> Self {
        let (dim, strips) = (v.len() / n.max(1), n.div_ceil(WIDTH));
        let (wide, deep) = (strips * WIDTH, dim.div_ceil(WIDTH));
        let mut padded = vec![[0.0; WIDTH]; wide * strips];
        for (out, a) in padded.as_flattened_mut().chunks_exact_mut(wide).zip(a.chunks_exact(n)) {
            out[..n].copy_from_slice(a);
        }
        let mut values = vec![[0.0; WIDTH]; deep * wide];
        for (key, v) in v.chunks_exact(dim).enumerate() {
            for (column, v) in v.iter().enumerate() {
                values[column / WIDTH * wide + key][column % WIDTH] = *v;
            }
        }
        Self { n, dim, strips, a: padded, v: values, turned: turned(n, v) }
    }

    pub(in crate::net) fn gradients(&self) -> TokenGradients {
        TokenGradients { a: vec![[0.0; WIDTH]; self.a.len()], turned: vec![[0.0; WIDTH]; self.turned.len()] }
    }

    /// Adds what came back to a.
    pub(in crate::net) fn add_a(&self, gradients: &TokenGradients, da: &mut [f32]) {
        let sums = gradients.a.as_flattened().chunks_exact(self.strips * WIDTH);
        for (da, sums) in da.chunks_exact_mut(self.n).zip(sums) {
            da.iter_mut().zip(sums).for_each(|(da, sum)| *da += sum);
        }
    }

    /// Adds what came back to v.
    pub(in crate::net) fn add_v(&self, gradients: &TokenGradients, dv: &mut [f32]) {
        add_turned(self.n, &gradients.turned, dv);
    }
}

/// A matrix with n rows, column after column in whole strips; as many columns as fill strips.
pub(in crate::net) fn turned(n: usize, values: &[f32]) -> Vec<Strip> {
    let (n_cols, strips) = (values.len() / n.max(1), n.div_ceil(WIDTH));
    let mut turned = vec![[0.0; WIDTH]; n_cols.next_multiple_of(WIDTH) * strips];
    for (row, values) in values.chunks_exact(n_cols.max(1)).enumerate() {
        for (column, value) in values.iter().enumerate() {
            turned[column * strips + row / WIDTH][row % WIDTH] = *value;
        }
    }
    turned
}

/// Adds what [`turned`] lays out to a matrix with n rows.
pub(in crate::net) fn add_turned(n: usize, turned: &[Strip], values: &mut [f32]) {
    let (n_cols, wide) = (values.len() / n.max(1), n.next_multiple_of(WIDTH));
    for (column, sums) in turned.as_flattened().chunks_exact(wide).enumerate().take(n_cols) {
        values.iter_mut().skip(column).step_by(n_cols).zip(sums).for_each(|(value, sum)| *value += sum);
    }
}

kernels! {
    /// y of every row; `scales` has the largest score of each query, and 1 / Σ exp(score − largest).
    fn attend(tokens: &Tokens, x: &[f32], scales: &mut [[f32; 2]], y: &mut [f32]) {
        let &Tokens { n, dim, strips, ref a, ref v, .. } = tokens;
        let wide = strips * WIDTH;
        let mut keys = vec![[0.0; WIDTH]; strips];
        let mut scaled = v.clone();
        let mut shares = vec![[0.0; WIDTH]; QUERIES * strips];
        let mut queries = Vec::with_capacity(n);
        let rows = y.chunks_exact_mut(n * dim).zip(scales.chunks_exact_mut(n));
        for (x, (y, scales)) in x.chunks_exact(n).zip(rows) {
            keys.as_flattened_mut()[..n].copy_from_slice(x);
            for (scaled, v) in scaled.chunks_exact_mut(wide).zip(v.chunks_exact(wide)) {
                for ((scaled, v), x) in scaled.iter_mut().zip(v).zip(keys.as_flattened()) {
                    *scaled = v.map(|v| v * x);
                }
            }
            queries.clear();
            queries.extend((0..n).filter(|query| x[*query] != 0.0));
            for tile in queries.chunks(QUERIES) {
                let mut inverses = [0.0; QUERIES];
                for ((query, inverse), shares) in tile.iter().zip(&mut inverses).zip(shares.chunks_exact_mut(strips)) {
                    let top = scores(n, x[*query], &keys, &a[query * strips..][..strips], shares);
                    let shares = shares.as_flattened_mut();
                    shares.iter_mut().for_each(|share| *share = exp(*share - top));
                    *inverse = 1.0 / total(shares);
                    scales[*query] = [top, *inverse];
                }
                for (strip, scaled) in scaled.chunks_exact(wide).enumerate() {
                    let sums = mixed(wide, shares.as_flattened(), scaled);
                    for ((query, sums), inverse) in tile.iter().zip(sums).zip(inverses) {
                        let y = &mut y[query * dim..][..dim][strip * WIDTH..];
                        y.iter_mut().zip(sums).for_each(|(y, sum)| *y = sum * inverse);
                    }
                }
            }
            // Of a query of 0 all scores are 0: it takes the mean.
            for (strip, scaled) in scaled.chunks_exact(wide).enumerate() {
                let mut sum = [0.0; WIDTH];
                for scaled in scaled {
                    sum = std::array::from_fn(|i| sum[i] + scaled[i]);
                }
                for query in (0..n).filter(|query| x[*query] == 0.0) {
                    let y = &mut y[query * dim..][..dim][strip * WIDTH..];
                    y.iter_mut().zip(sum).for_each(|(y, sum)| *y = sum * (1.0 / n as f32));
                    scales[query] = [0.0, 1.0 / n as f32];
                }
            }
        }
    }

    /// Adds what comes back to a and v.
    fn attend_gradients(tokens: &Tokens, attended: &Attended<'_>, gradients: &mut TokenGradients) {
        let &Tokens { n, dim, strips, ref a, ref turned, .. } = tokens;
        let &Attended { x, scales, y, dy } = attended;
        let mut keys = vec![[0.0; WIDTH]; strips];
        let mut scaled = turned.clone();
        let mut shares = vec![[0.0; WIDTH]; QUERIES * strips];
        let mut back = vec![[[0.0; WIDTH]; QUERIES]; dim.div_ceil(WIDTH)];
        let mut queries = Vec::with_capacity(n);
        let mut even = vec![0.0; dim];
        let rows = y.chunks_exact(n * dim).zip(dy.chunks_exact(n * dim)).zip(scales.chunks_exact(n));
        for (x, ((y, dy), scales)) in x.chunks_exact(n).zip(rows) {
            keys.as_flattened_mut()[..n].copy_from_slice(x);
            for (scaled, turned) in scaled.chunks_exact_mut(strips).zip(turned.chunks_exact(strips)) {
                for ((scaled, turned), x) in scaled.iter_mut().zip(turned).zip(&keys) {
                    *scaled = std::array::from_fn(|i| turned[i] * x[i]);
                }
            }
            queries.clear();
            queries.extend((0..n).filter(|query| x[*query] != 0.0));
            for tile in queries.chunks(QUERIES) {
                let mut means = [0.0; QUERIES];
                if tile.len() < QUERIES {
                    // No query: it gives nothing to any key, and nothing comes back from it.
                    shares.fill([0.0; WIDTH]);
                    back.fill([[0.0; WIDTH]; QUERIES]);
                }
                for (place, (query, shares)) in tile.iter().zip(shares.chunks_exact_mut(strips)).enumerate() {
                    scores(n, x[*query], &keys, &a[query * strips..][..strips], shares);
                    let [top, inverse] = scales[*query];
                    let shares = shares.as_flattened_mut();
                    shares.iter_mut().for_each(|share| *share = exp(*share - top) * inverse);
                    let (y, dy) = (&y[query * dim..][..dim], &dy[query * dim..][..dim]);
                    means[place] = dot(y, dy);
                    for (back, dy) in back.iter_mut().zip(dy.chunks(WIDTH)) {
                        back[place][..dy.len()].copy_from_slice(dy);
                    }
                }
                for (strip, keys) in keys.iter().enumerate() {
                    let mut sums = [[0.0; WIDTH]; QUERIES];
                    for (back, scaled) in back.iter().zip(scaled.chunks_exact(WIDTH * strips)) {
                        sums = with_products(sums, back, strips, &scaled[strip..]);
                    }
                    let mut taken = [[0.0; WIDTH]; QUERIES];
                    for (place, ((query, sums), mean)) in tile.iter().zip(sums).zip(means).enumerate() {
                        let (own, share) = (x[*query], shares[place * strips + strip]);
                        let da = &mut gradients.a[query * strips + strip];
                        let old = *da;
                        *da = std::array::from_fn(|i| old[i] + share[i] * (sums[i] - mean) * (own * keys[i]));
                        taken[place] = std::array::from_fn(|i| share[i] * keys[i]);
                    }
                    for (back, dv) in back.iter().zip(gradients.turned.chunks_exact_mut(WIDTH * strips)) {
                        add_mixed(&taken, back, strips, &mut dv[strip..]);
                    }
                }
            }
            // Queries of 0 take the mean, whatever a is.
            even.fill(0.0);
            for query in (0..n).filter(|query| x[*query] == 0.0) {
                even.iter_mut().zip(&dy[query * dim..][..dim]).for_each(|(sum, dy)| *sum += dy);
            }
            for (even, dv) in even.iter().zip(gradients.turned.chunks_exact_mut(strips)) {
                let share = even * (1.0 / n as f32);
                for (dv, keys) in dv.iter_mut().zip(&keys) {
                    let old = *dv;
                    *dv = std::array::from_fn(|i| old[i] + share * keys[i]);
                }
            }
        }
    }

    /// dx += what comes back to x, which is in the values, in the keys and in the queries. Features have no gradient, so
    /// this is not made to be fast.
    fn attend_input_gradient(tokens: &Tokens, attended: &Attended<'_>, dx: &mut [f32]) {
        let &Tokens { n, dim, strips, ref a, ref v, .. } = tokens;
        let &Attended { x, scales, dy, .. } = attended;
        let wide = strips * WIDTH;
        let mut values = vec![0.0; n];
        for (row, (x, dx)) in x.chunks_exact(n).zip(dx.chunks_exact_mut(n)).enumerate() {
            for query in 0..n {
                let number = row * n + query;
                let [top, inverse] = scales[number];
                let dy = &dy[number * dim..][..dim];
                let a = &a.as_flattened()[query * wide..][..n];
                let share = |key: usize| exp(x[query] * x[key] * a[key] - top) * inverse;
                for (key, value) in values.iter_mut().enumerate() {
                    let parts = dy.chunks(WIDTH).zip(v.chunks_exact(wide));
                    *value = parts.map(|(dy, v)| dot(dy, &v[key][..dy.len()])).sum();
                }
                let mean: f32 = (0..n).map(|key| share(key) * values[key] * x[key]).sum();
                for key in 0..n {
                    let (share, a) = (share(key), a[key]);
                    let score = share * (values[key] * x[key] - mean);
                    dx[key] += share * values[key] + score * x[query] * a;
                    dx[query] += score * x[key] * a;
                }
            }
        }
    }
}

/// The scores of a query among all keys, −∞ beyond the last; and the largest.
#[inline(always)]
fn scores(n: usize, own: f32, keys: &[Strip], a: &[Strip], out: &mut [Strip]) -> f32 {
    for ((out, x), a) in out.iter_mut().zip(keys).zip(a) {
        *out = std::array::from_fn(|i| own * x[i] * a[i]);
    }
    out.as_flattened_mut()[n..].fill(f32::NEG_INFINITY);
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let mut tops = [f32::NEG_INFINITY; WIDTH];
    for strip in &*out {
        tops = std::array::from_fn(|i| larger(tops[i], strip[i]));
    }
    tops.into_iter().fold(f32::NEG_INFINITY, larger)
}

/// Σ over keys of each query's share times the key's values.
#[inline(always)]
fn mixed(wide: usize, shares: &[f32], values: &[Strip]) -> [Strip; QUERIES] {
    let mut sums = [[0.0; WIDTH]; QUERIES];
    let mut rows = shares.chunks_exact(wide);
    let [Some(a), Some(b), Some(c), Some(d)] = std::array::from_fn(|_| rows.next()) else { return sums };
    for ((((a, b), c), d), values) in a.iter().zip(b).zip(c).zip(d).zip(values) {
        for (sums, share) in sums.iter_mut().zip([*a, *b, *c, *d]) {
            let sum = *sums;
            *sums = std::array::from_fn(|i| sum[i] + share * values[i]);
        }
    }
    sums
}

/// dv of a strip of keys, column after column, += Σ over queries of their shares times what comes back to them.
#[inline(always)]
fn add_mixed(shares: &[Strip; QUERIES], back: &[Strip; QUERIES], strips: usize, dv: &mut [Strip]) {
    for (column, dv) in dv.iter_mut().step_by(strips).take(WIDTH).enumerate() {
        let mut sum = *dv;
        for (share, back) in shares.iter().zip(back) {
            let back = back[column];
            sum = std::array::from_fn(|i| sum[i] + back * share[i]);
        }
        *dv = sum;
    }
}

/// `sums` + the products of what comes back to queries with the values of a strip of keys, given column after column.
#[inline(always)]
fn with_products(
    mut sums: [Strip; QUERIES],
    back: &[Strip; QUERIES],
    strips: usize,
    scaled: &[Strip],
) -> [Strip; QUERIES] {
    for (column, values) in scaled.iter().step_by(strips).take(WIDTH).enumerate() {
        for (sums, back) in sums.iter_mut().zip(back) {
            let (sum, back) = (*sums, back[column]);
            *sums = std::array::from_fn(|i| sum[i] + back * values[i]);
        }
    }
    sums
}
