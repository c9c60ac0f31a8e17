//! How much rows teach by how noisy their outcomes are.
//!
//! The spread of Y − m(x) often grows with m(x): that of spending does. The loss of Eq. 5 has the same minimum whatever
//! function of x its rows are weighted by, and 1/σ²(x) would give the least variance, if g and h could be anything. As
//! they are shrunk, weights also say where they should fit: we go half of the way, 1/σ, and σ counts as at least half of
//! what it is over all rows. It is taken for a function of m̂ alone, the spread of the residuals of rows for which m̂ says as much.
//! Calibration does not weigh by noise: effects get the size that they have over the rows as they are.

use rayon::slice::ParallelSliceMut;

/// Groups of rows along m̂, and how many rows a group needs at least.
const MOST_GROUPS: usize = 20;
const LEAST_ROWS: usize = 200;
/// The smallest σ, relative to that of all rows.
const LEAST_SIGMA: f64 = 0.5;

/// √(1/σ) of each row and outcome, row-major as the residuals are, scaled so that its squares have mean 1; nothing where
/// the rows are too few to tell.
pub(super) fn precisions(
    residual: &[f32],
    predicted: &[f32],
    weight: Option<&[f32]>,
    n_outcomes: usize,
) -> Option<Vec<f32>> {
    let n_rows = residual.len() / n_outcomes.max(1);
    let mass_of = |row: u32| weight.map_or(1.0, |weight| f64::from(weight[row as usize]));
    let n_counted = (0..n_rows as u32).filter(|row| mass_of(*row) > 0.0).count();
    let n_groups = (n_counted / LEAST_ROWS).min(MOST_GROUPS);
    if n_groups < 2 {
        return None;
    }
    let total: f64 = (0..n_rows as u32).map(mass_of).sum();
    let mut precisions = vec![1.0; residual.len()];
    let mut order: Vec<u32> = (0..n_rows as u32).collect();
    let mut group_of = vec![0_u8; n_rows];
    for outcome in 0..n_outcomes {
        let place = |row: u32| row as usize * n_outcomes + outcome;
        let m = |row: &u32| predicted[place(*row)];
        order.par_sort_unstable_by(|a, b| m(a).total_cmp(&m(b)).then(a.cmp(b)));
        let mut groups = vec![Group::default(); n_groups];
        let mut before = 0.0;
        // Rows for which m̂ says the same are of one group.
        for rows in order.chunk_by(|a, b| m(a) == m(b)) {
            let number = ((before / total * n_groups as f64) as usize).min(n_groups - 1);
            let group = &mut groups[number];
            for row in rows {
                group_of[*row as usize] = number as u8;
                let mass = mass_of(*row);
                group.mass += mass;
                group.squares += mass * f64::from(residual[place(*row)]).powi(2);
                before += mass;
            }
        }
        let overall = (groups.iter().map(|group| group.squares).sum::<f64>() / total).sqrt();
        let values: Vec<f64> = groups.iter().map(|group| group.precision(overall)).collect();
        let mean = values.iter().zip(&groups).map(|(value, group)| value * group.mass).sum::<f64>() / total;
        let own = precisions.iter_mut().skip(outcome).step_by(n_outcomes);
        own.zip(&group_of).for_each(|(own, group)| *own = (values[usize::from(*group)] / mean).sqrt() as f32);
    }
    Some(precisions)
}

#[derive(Clone, Default)]
struct Group {
    mass: f64,
    squares: f64,
}

impl Group {
    /// 1/σ in units of `overall`; that of all rows where the group has none that count.
    fn precision(&self, overall: f64) -> f64 {
        let sigma = (self.squares / self.mass).sqrt() / overall;
        if sigma.is_finite() { 1.0 / sigma.max(LEAST_SIGMA) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Residuals of ±σ, and m̂ that grows from row to row.
    fn table(sigma: impl Fn(usize) -> f32, n_rows: usize) -> (Vec<f32>, Vec<f32>) {
        let sign = |row: usize| if row.is_multiple_of(2) { 1.0 } else { -1.0 };
        ((0..n_rows).map(|row| sign(row) * sigma(row)).collect(), (0..n_rows).map(|row| row as f32).collect())
    }

    #[test]
    fn noisy_rows_count_less_by_the_root_of_their_variance() {
        let (residual, predicted) = table(|row| if row < 2000 { 1.0 } else { 3.0 }, 4000);
        let precisions = precisions(&residual, &predicted, None, 1).unwrap();
        let (quiet, noisy) = (precisions[0].powi(2), precisions[3999].powi(2));
        // σ of all rows is √5, of which 1 is less than half.
        assert!((quiet / noisy - 3.0 / (5.0_f32.sqrt() / 2.0)).abs() < 1e-4, "{quiet} against {noisy}");
        let mean = precisions.iter().map(|value| value.powi(2)).sum::<f32>() / 4000.0;
        assert!((mean - 1.0).abs() < 1e-4, "{mean}");
    }

    #[test]
    fn rows_alike_are_weighted_alike_and_outcomes_apart() {
        let (even, _) = table(|_| 2.0, 4000);
        let (uneven, predicted) = table(|row| 1.0 + row as f32 / 1000.0, 4000);
        let side_by_side = |a: &[f32], b: &[f32]| a.iter().zip(b).flat_map(|(a, b)| [*a, *b]).collect();
        let residual: Vec<f32> = side_by_side(&even, &uneven);
        let predicted: Vec<f32> = side_by_side(&predicted, &predicted);
        let found = precisions(&residual, &predicted, None, 2).unwrap();
        assert!(found.iter().step_by(2).all(|value| (value - 1.0).abs() < 1e-6));
        assert!(found[1] > 1.1 && found[7999] < 0.9);
        // An outcome model that says nothing has one group, and 399 rows are too few for two.
        let found = precisions(&uneven, &[0.0; 4000], None, 1).unwrap();
        assert!(found.iter().all(|value| (value - 1.0).abs() < 1e-6));
        assert!(precisions(&uneven[..399], &[0.0; 399], None, 1).is_none());
    }

    #[test]
    fn a_weight_of_two_is_a_row_twice() {
        let (residual, predicted) = table(|row| 1.0 + (row % 97) as f32 * (row / 500) as f32, 6000);
        let weight: Vec<f32> = (0..6000).map(|row| if row % 3 == 0 { 2.0 } else { 1.0 }).collect();
        let twice = |values: &[f32]| -> Vec<f32> {
            values.iter().zip(&weight).flat_map(|(value, w)| vec![*value; *w as usize]).collect()
        };
        let weighted = precisions(&residual, &predicted, Some(&weight), 1).unwrap();
        let repeated = precisions(&twice(&residual), &twice(&predicted), None, 1).unwrap();
        let same = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5);
        assert!(same(&twice(&weighted), &repeated));
        // Rows that do not count change nothing for the others.
        let half: Vec<f32> = (0..6000).map(|row| if row < 3000 { 1.0 } else { 0.0 }).collect();
        let counted = precisions(&residual, &predicted, Some(&half), 1).unwrap();
        let alone = precisions(&residual[..3000], &predicted[..3000], None, 1).unwrap();
        assert!(counted.iter().all(|value| value.is_finite()));
        assert!(same(&alone, &counted[..3000]));
    }
}
