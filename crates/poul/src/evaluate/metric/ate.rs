//! The average effect as a difference in means, with row and cluster-robust standard errors.

use super::definition::{About, Better, Definition, Shown};
use super::ranked::{Ranked, Rows};

pub(super) const ATE: Definition = Definition {
    better: Better::Neither,
    evaluated: Shown::INTERVAL,
    se: Some(|whole| ate(whole.ranked)?.shown_se(whole.ranked)),
    ..Definition::new("ate", "effect", About::Average, |pass| pass.totals.lift())
};

pub(super) const ATE_PREDICTED: Definition = Definition {
    better: Better::Neither,
    evaluated: Shown::VALUE,
    has_interval: false,
    ..Definition::new("ate_predicted", "predicted", About::Average, |pass| {
        (pass.totals.k() > 0.0).then(|| pass.score_sum / pass.totals.k())
    })
};

/// The difference of the arms' mean outcomes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ate {
    /// Treated mean less control mean.
    pub value: f64,
    /// Neyman's standard error (each arm's variance over its rows); `None` where an arm has one row.
    pub se: Option<f64>,
    /// Standard error that lets rows of a cluster be related; `None` without clusters, or with one.
    pub cluster_se: Option<f64>,
}

impl Ate {
    /// The standard error to show: by cluster where clusters are given.
    pub(crate) fn shown_se(&self, ranked: &Ranked) -> Option<f64> {
        if ranked.cluster().is_some() { self.cluster_se } else { self.se }
    }
}

/// The average effect of a ranked sample.
pub fn ate(ranked: &Ranked) -> Option<Ate> {
    let rows = ranked.rows();
    let totals = rows.totals();
    let value = totals.lift()?;
    let mean = [totals.y_control / totals.n_control, totals.y_treated / totals.n_treated];
    let mass = [totals.n_control, totals.n_treated];
    let influence = |row: super::ranked::Row| {
        let arm = usize::from(row.treated > 0.0);
        (arm, row.mass * (row.outcome - mean[arm]) / mass[arm])
    };
    Some(Ate {
        value,
        se: row_se(rows, influence, 1),
        cluster_se: ranked.cluster().and_then(|cluster| {
            cluster_se(rows, cluster, ranked.n_units(), |row| {
                let (arm, influence) = influence(row);
                if arm == 1 { influence } else { -influence }
            })
        }),
    })
}

/// √ of the arms' summed squared influences, each scaled by n/(n − `lost`) of its rows.
pub(super) fn row_se(
    rows: Rows<'_>,
    influence: impl Fn(super::ranked::Row) -> (usize, f64),
    lost: usize,
) -> Option<f64> {
    let mut n_rows = [0_usize; 2];
    let mut squares = [0.0; 2];
    rows.for_each(|row| {
        let (arm, influence) = influence(row);
        n_rows[arm] += 1;
        squares[arm] += influence * influence;
    });
    if n_rows.iter().any(|n| *n <= lost) {
        return None;
    }
    let scaled = |arm: usize| squares[arm] * n_rows[arm] as f64 / (n_rows[arm] - lost) as f64;
    Some((scaled(0) + scaled(1)).sqrt())
}

/// √ of the clusters' squared summed influences, scaled by G/(G − 1).
pub(super) fn cluster_se(
    rows: Rows<'_>,
    cluster: &[u32],
    n_clusters: usize,
    influence: impl Fn(super::ranked::Row) -> f64,
) -> Option<f64> {
    if n_clusters < 2 {
        return None;
    }
    let mut sums = vec![0.0; n_clusters];
    rows.for_each(|row| sums[cluster[row.index] as usize] += influence(row));
    let squares: f64 = sums.iter().map(|sum| sum * sum).sum();
    Some((squares * n_clusters as f64 / (n_clusters - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::super::Sample;
    use super::*;

    const OUTCOME: [f64; 6] = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0];
    const TREATED: [bool; 6] = [true, false, true, false, true, false];

    #[test]
    fn neyman_by_hand() {
        let sample = Sample::new(&[0.0; 6], &OUTCOME, &TREATED).unwrap();
        let ate = ate(&Ranked::new(&sample)).unwrap();
        assert!((ate.value - (4.0 - 11.0 / 3.0)).abs() < 1e-15);
        // Sample variances 1 and 64/3.
        assert!((ate.se.unwrap() - (1.0_f64 / 3.0 + 64.0 / 9.0).sqrt()).abs() < 1e-12);
        assert_eq!(ate.cluster_se, None);
    }

    #[test]
    fn doubling_every_row_within_its_cluster_changes_no_cluster_error() {
        let cluster = [0, 1, 2, 3, 4, 5];
        let sample = Sample::new(&[0.0; 6], &OUTCOME, &TREATED).unwrap().with_cluster(&cluster).unwrap();
        let once = ate(&Ranked::new(&sample)).unwrap();
        let twice = |values: &[f64]| [values, values].concat();
        let (score, outcome) = (twice(&[0.0; 6]), twice(&OUTCOME));
        let (treated, cluster) = ([TREATED, TREATED].concat(), [cluster, cluster].concat());
        let sample = Sample::new(&score, &outcome, &treated).unwrap().with_cluster(&cluster).unwrap();
        let again = ate(&Ranked::new(&sample)).unwrap();
        assert!((once.cluster_se.unwrap() - again.cluster_se.unwrap()).abs() < 1e-12);
        assert!(again.se.unwrap() < once.se.unwrap());
    }
}
