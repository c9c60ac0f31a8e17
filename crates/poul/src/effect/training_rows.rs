//! Some rows of training data, with columns of their own: what is left when a fold is held out.

use super::{GivenPropensity, OutcomeColumn, TrainingData};
use crate::data::pick;
use crate::net::RowSource;

/// The columns of some rows. Clusters and strata keep their numbers.
pub(crate) struct TrainingRows {
    /// The rows, by number.
    pub(crate) rows: Vec<u32>,
    policy: Vec<u32>,
    /// Values, and the user's own predictions.
    outcomes: Vec<(Vec<f64>, Option<Vec<f64>>)>,
    auxiliary: Vec<Vec<f64>>,
    weight: Option<Vec<f64>>,
    cluster: Option<Vec<u32>>,
    stratum: Option<Vec<u32>>,
    propensity: Vec<Vec<f32>>,
    populations: Vec<Vec<bool>>,
    numbers: Vec<u64>,
}

impl TrainingRows {
    pub(crate) fn new(data: &TrainingData<'_>, rows: Vec<u32>) -> Self {
        Self {
            policy: pick(data.policy, &rows),
            outcomes: data
                .outcomes
                .iter()
                .map(|own| (pick(own.values, &rows), own.prediction.map(|values| pick(values, &rows))))
                .collect(),
            auxiliary: data.auxiliary.iter().map(|own| pick(own.values, &rows)).collect(),
            weight: data.weight.map(|weight| pick(weight, &rows)),
            cluster: data.cluster.map(|cluster| pick(cluster, &rows)),
            stratum: data.stratum.map(|stratum| pick(stratum, &rows)),
            propensity: data.propensity.iter().map(|given| pick(given.values, &rows)).collect(),
            populations: data.populations.iter().map(|(_, mask)| pick(mask, &rows)).collect(),
            numbers: match data.rows {
                Some(numbers) => pick(numbers, &rows),
                None => rows.iter().map(|row| u64::from(*row)).collect(),
            },
            rows,
        }
    }

    /// These rows as data to learn from; `x` are their features, and `all` what they were taken from.
    pub(crate) fn data<'a>(&'a self, all: &TrainingData<'a>, x: &'a dyn RowSource) -> TrainingData<'a> {
        let outcomes = all.outcomes.iter().zip(&self.outcomes).map(|(own, (values, prediction))| {
            OutcomeColumn { name: own.name, values, prediction: prediction.as_deref() }
        });
        let auxiliary = all.auxiliary.iter().zip(&self.auxiliary);
        let propensity = all.propensity.iter().zip(&self.propensity);
        TrainingData {
            x,
            policy: &self.policy,
            outcomes: outcomes.collect(),
            auxiliary: auxiliary.map(|(own, values)| OutcomeColumn { values, ..*own }).collect(),
            weight: self.weight.as_deref(),
            cluster: self.cluster.as_deref(),
            stratum: self.stratum.as_deref(),
            propensity: propensity.map(|(own, values)| GivenPropensity { values, ..*own }).collect(),
            populations: all
                .populations
                .iter()
                .zip(&self.populations)
                .map(|((text, _), mask)| (*text, mask.as_slice()))
                .collect(),
            rows: Some(&self.numbers),
            ..all.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::DenseRows;
    use crate::nuisance::SomeRows;
    use crate::policy::PolicySet;

    #[test]
    fn rows_keep_what_belongs_to_them() {
        let mut builder = PolicySet::builder();
        builder.add("a", "s", "none", 1.0).add("b", "s", "up", 1.0);
        let policies = builder.build().unwrap();
        let x = [0.0, 1.0, 2.0, 3.0];
        let x = DenseRows::new(&x, 1).unwrap();
        let outcomes = vec![OutcomeColumn {
            name: "y",
            values: &[5.0, 6.0, 7.0, 8.0],
            prediction: Some(&[0.5, 0.6, 0.7, 0.8]),
        }];
        let all = TrainingData {
            weight: Some(&[1.0, 2.0, 3.0, 4.0]),
            cluster: Some(&[0, 0, 7, 7]),
            populations: vec![("core", &[true, false, true, false])],
            propensity: vec![GivenPropensity { policy: 1, column: "p", values: &[0.1, 0.2, 0.3, 0.4] }],
            ..TrainingData::new(&x, &policies, &[0, 1, 1, 0], outcomes)
        };
        let part = TrainingRows::new(&all, vec![3, 1]);
        let x = SomeRows { x: all.x, rows: &part.rows };
        let data = part.data(&all, &x);
        assert_eq!((data.policy, data.outcomes[0].values), (&[0, 1][..], &[8.0, 6.0][..]));
        assert_eq!(data.outcomes[0].prediction, Some(&[0.8, 0.6][..]));
        assert_eq!((data.weight, data.cluster), (Some(&[4.0, 2.0][..]), Some(&[7, 0][..])));
        assert_eq!((data.populations[0], data.rows), (("core", &[false, false][..]), Some(&[3, 1][..])));
        assert_eq!(data.propensity[0].values, [0.4, 0.2]);
        let mut features = [0.0; 2];
        data.x.copy_rows(&[0, 1], &mut features);
        assert_eq!(features, [3.0, 1.0]);
    }
}
