//! The inverse of the basis, kept as a dense matrix: it is as wide as there are limits, which are few.

use super::columns::Columns;

/// A pivot below this is no pivot, in units of the greatest entry of its column.
const SINGULAR: f64 = 1e-11;

/// What stands in a place of the basis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// What a limit leaves.
    Slack(usize),
    /// An option beside its user's key.
    Option(usize),
}

pub(super) struct Basis {
    pub(super) heads: Vec<Head>,
    /// Row after row.
    inverse: Vec<f64>,
    /// The values of what stands in the basis.
    pub(super) values: Vec<f64>,
}

impl Basis {
    /// Slacks only.
    pub(super) fn new(columns: &Columns, amounts: &[f64], keys: &[u32]) -> Self {
        let m = amounts.len();
        let mut inverse = vec![0.0; m * m];
        (0..m).for_each(|l| inverse[l * m + l] = 1.0);
        let mut basis = Self { heads: (0..m).map(Head::Slack).collect(), inverse, values: Vec::new() };
        basis.evaluate(columns, amounts, keys);
        basis
    }

    fn m(&self) -> usize {
        self.heads.len()
    }

    fn row(&self, place: usize) -> &[f64] {
        &self.inverse[place * self.m()..][..self.m()]
    }

    /// The values of the basis, from the amounts that keys leave.
    pub(super) fn evaluate(&mut self, columns: &Columns, amounts: &[f64], keys: &[u32]) {
        let mut left = amounts.to_vec();
        for key in keys {
            for (limit, entry) in columns.entries(*key as usize) {
                left[*limit as usize] -= entry;
            }
        }
        self.values = (0..self.m()).map(|place| dot(self.row(place), &left)).collect();
    }

    /// Prices of limits at which what stands in the basis, worth so much, is worth what it pays.
    pub(super) fn prices(&self, worth: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut prices = vec![0.0; self.m()];
        for place in 0..self.m() {
            let worth = worth(place);
            if worth != 0.0 {
                prices.iter_mut().zip(self.row(place)).for_each(|(price, own)| *price += worth * own);
            }
        }
        prices
    }

    /// What a unit of a column takes from every place of the basis.
    pub(super) fn direction(&self, column: &[(u32, f64)]) -> Vec<f64> {
        let along =
            |place: usize| column.iter().map(|(limit, entry)| self.row(place)[*limit as usize] * entry).sum();
        (0..self.m()).map(along).collect()
    }

    /// Puts a column into a place; `direction` is what it takes from every place.
    pub(super) fn replace(&mut self, place: usize, head: Head, direction: &[f64]) {
        let m = self.m();
        self.heads[place] = head;
        let pivot = direction[place];
        let mut own = self.row(place).to_vec();
        own.iter_mut().for_each(|entry| *entry /= pivot);
        for (other, factor) in direction.iter().enumerate() {
            if other != place && *factor != 0.0 {
                let row = &mut self.inverse[other * m..][..m];
                row.iter_mut().zip(&own).for_each(|(entry, own)| *entry -= factor * own);
            }
        }
        self.inverse[place * m..][..m].copy_from_slice(&own);
    }

    /// Makes the option at `place` its user's key: the old key stands there in its stead, and the user's other options, at
    /// `others`, are differences from the new key.
    pub(super) fn exchange_key(&mut self, place: usize, others: &[usize]) {
        let m = self.m();
        let mut row = self.row(place).to_vec();
        for other in others {
            row.iter_mut().zip(self.row(*other)).for_each(|(entry, own)| *entry += own);
        }
        row.iter_mut().for_each(|entry| *entry = -*entry);
        self.inverse[place * m..][..m].copy_from_slice(&row);
    }

    /// Computes the inverse anew; false where there is none.
    pub(super) fn refactor(&mut self, columns: &Columns, keys: &[u32]) -> bool {
        let m = self.m();
        // [B | 1] to [1 | B⁻¹] by Gauss and Jordan with the greatest pivot of each column.
        let width = 2 * m;
        let mut rows = vec![0.0; m * width];
        for (place, head) in self.heads.iter().enumerate() {
            rows[place * width + m + place] = 1.0;
            match *head {
                Head::Slack(limit) => rows[limit * width + place] = 1.0,
                Head::Option(option) => {
                    let key = keys[columns.user(option)] as usize;
                    for (limit, entry) in columns.entries(option) {
                        rows[*limit as usize * width + place] += entry;
                    }
                    for (limit, entry) in columns.entries(key) {
                        rows[*limit as usize * width + place] -= entry;
                    }
                }
            }
        }
        for place in 0..m {
            let size = |row: usize| rows[row * width + place].abs();
            let Some(best) = (place..m).max_by(|a, b| size(*a).total_cmp(&size(*b)).then(b.cmp(a))) else {
                return false;
            };
            if size(best) <= SINGULAR {
                return false;
            }
            for column in 0..width {
                rows.swap(place * width + column, best * width + column);
            }
            let pivot = rows[place * width + place];
            rows[place * width..][..width].iter_mut().for_each(|entry| *entry /= pivot);
            let own = rows[place * width..][..width].to_vec();
            for row in (0..m).filter(|row| *row != place) {
                let factor = rows[row * width + place];
                if factor != 0.0 {
                    let row = &mut rows[row * width..][..width];
                    row.iter_mut().zip(&own).for_each(|(entry, own)| *entry -= factor * own);
                }
            }
        }
        for place in 0..m {
            let row = &rows[place * width + m..][..m];
            self.inverse[place * m..][..m].copy_from_slice(row);
        }
        true
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
