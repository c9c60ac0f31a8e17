//! Sums of powers of two columns, from which sums of any polynomial in them follow: a standard error, once the means are known,
//! without going through the rows again.

use crate::Result;
use crate::stats::Exact;
use crate::wire::{Reader, Wire};

/// Sums of v·xᵃ·yᵇ for a + b ≤ 2.
pub(super) type Squares = Powers<6>;
/// The same for a + b ≤ 4.
pub(super) type Fourths = Powers<15>;

/// Sums of v·xᵃ·yᵇ, by a + b and then by b. Columns should be centred near their means: what is squared loses the digits that
/// the mean has beyond the spread, whoever adds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Powers<const N: usize>([Exact; N]);

/// a + b·x + c·y.
#[derive(Clone, Copy, Debug)]
pub(super) struct Linear {
    pub(super) constant: f64,
    pub(super) x: f64,
    pub(super) y: f64,
}

/// The largest degree there is room for.
const DEGREE: usize = 4;

const fn place(a: usize, b: usize) -> usize {
    (a + b) * (a + b + 1) / 2 + b
}

impl<const N: usize> Default for Powers<N> {
    fn default() -> Self {
        Self([Exact::default(); N])
    }
}

impl<const N: usize> Powers<N> {
    #[inline(always)]
    pub(super) fn add(&mut self, v: f64, x: f64, y: f64) {
        let mut of_y = v;
        for b in 0..=DEGREE {
            let mut term = of_y;
            for a in 0..=DEGREE - b {
                if place(a, b) < N {
                    self.0[place(a, b)].add(term);
                }
                term *= x;
            }
            of_y *= y;
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| own.merge(other));
    }

    /// Σ v.
    pub(super) fn mass(&self) -> f64 {
        self.of(0, 0)
    }

    /// Σ v·xᵃ·yᵇ.
    pub(super) fn of(&self, a: usize, b: usize) -> f64 {
        self.0[place(a, b)].value()
    }

    /// Σ v·Π forms: of no more forms than the degree.
    pub(super) fn product(&self, forms: &[Linear]) -> f64 {
        let mut polynomial = [0.0; 15];
        polynomial[0] = 1.0;
        for (degree, form) in forms.iter().enumerate() {
            let mut next = [0.0; 15];
            for a in 0..=degree {
                for b in 0..=degree - a {
                    let own = polynomial[place(a, b)];
                    next[place(a, b)] += own * form.constant;
                    next[place(a + 1, b)] += own * form.x;
                    next[place(a, b + 1)] += own * form.y;
                }
            }
            polynomial = next;
        }
        let mut total = Exact::default();
        for (sum, factor) in self.0.iter().zip(polynomial) {
            if factor != 0.0 {
                total.add(sum.value() * factor);
            }
        }
        total.value()
    }
}

impl<const N: usize> Wire for Powers<N> {
    fn write(&self, bytes: &mut Vec<u8>) {
        self.0.write(bytes);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        Wire::read(reader).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_forms_are_those_of_the_rows() {
        let rows: Vec<[f64; 3]> =
            (0..50).map(f64::from).map(|i| [1.0 + i % 3.0, (i * 0.7).sin(), (i * 1.3).cos() - 0.2]).collect();
        let (mut fourths, mut squares) = (Fourths::default(), Squares::default());
        for [v, x, y] in &rows {
            fourths.add(*v, *x, *y);
            squares.add(*v, *x, *y);
        }
        let (f, g) = (Linear { constant: 0.3, x: 1.0, y: 0.0 }, Linear { constant: -1.1, x: -0.6, y: 1.0 });
        let value = |form: &Linear, [_, x, y]: &[f64; 3]| form.constant + form.x * x + form.y * y;
        let expected: f64 = rows.iter().map(|row| row[0] * (value(&f, row) * value(&g, row)).powi(2)).sum();
        assert!((fourths.product(&[f, f, g, g]) / expected - 1.0).abs() < 1e-12);
        let expected: f64 = rows.iter().map(|row| row[0] * value(&f, row) * value(&g, row)).sum();
        assert!((squares.product(&[f, g]) / expected - 1.0).abs() < 1e-12);
        assert_eq!(squares.of(1, 1), fourths.of(1, 1));
        assert!((squares.mass() - rows.iter().map(|row| row[0]).sum::<f64>()).abs() < 1e-12);
    }
}
