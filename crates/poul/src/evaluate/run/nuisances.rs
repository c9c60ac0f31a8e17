//! m̂ and π of the evaluated rows, for average effects and for what was assigned.

use super::measure::Compared;
use crate::data::Table;
use crate::net::RowSource;
use crate::nuisance::{EvaluatedNuisances, ObservedRows, Propensity, evaluated_nuisances};
use crate::{Result, Run};

/// What average effects, and metrics of each row's own policy, need beside predicted effects.
pub(super) struct Nuisances {
    /// m̂ by outcome, where it was fitted.
    pub(super) predictions: Vec<Option<Vec<f64>>>,
    /// π(t|x); none where it cannot be known.
    pub(super) propensity: Option<Propensity>,
}

impl Nuisances {
    /// By outcome, the m̂ that averages are taken with, of the rows with these numbers: the user's own, or what was fitted.
    pub(super) fn expected(&self, rows: &Table, numbers: &[u64]) -> Vec<Option<Vec<f64>>> {
        // Both are in the order of the source.
        let mut places = rows.rows.iter().enumerate();
        let place = |number: &u64| places.find(|(_, own)| *own == number).map(|(place, _)| place);
        let places: Vec<usize> = numbers.iter().filter_map(place).collect();
        let of = |(outcome, fitted): (usize, &Option<Vec<f64>>)| {
            let values = rows.prediction(outcome).or(fitted.as_deref())?;
            let values = (places.len() == numbers.len()).then_some(values)?;
            Some(places.iter().map(|place| values[*place]).collect())
        };
        self.predictions.iter().enumerate().map(of).collect()
    }

    /// By the design of the columns; `x` are the encoded features, where there is a model.
    pub(super) fn of(compared: &Compared<'_>, x: Option<&dyn RowSource>, run: Run<'_>) -> Result<Self> {
        let Compared { rows: table, policies, .. } = compared;
        let rows = ObservedRows { x, ..ObservedRows::of(table, policies.names()) };
        let EvaluatedNuisances { predictions, propensity } = evaluated_nuisances(&rows, run)?;
        let Some(fit) = propensity else {
            run.progress.warn(
                "no average effects: an observational design needs a model, or columns of probabilities (‹propensity›)",
            );
            return Ok(Self { predictions, propensity: None });
        };
        if fit.report.clipped_own_rows > 0 {
            let share = 100.0 * fit.report.clipped_own_rows as f64 / table.n_rows() as f64;
            run.progress.warn(&format!(
                "{share:.1} % of the rows had next to no chance of the policy that they have: its average leaves them out"
            ));
        }
        Ok(Self { predictions, propensity: Some(fit.propensity) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Silent;
    use crate::data::{Need, Roles, Source};

    #[test]
    fn the_rows_of_a_sample_have_the_m_of_their_averages() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.csv");
        let lines: Vec<String> = (0..6).map(|row| format!("a,{row},{},{row}.5,{row}", 2 * row)).collect();
        std::fs::write(&path, format!("policy,y,z,m,x\n{}\n", lines.join("\n"))).unwrap();
        let source = Source::open(path.to_str().unwrap()).unwrap();
        let roles = Roles {
            outcome: vec!["y".into(), "z".into()],
            prediction: [("y".to_owned(), "m".to_owned())].into_iter().collect(),
            population: Some("x > 0".into()),
            ..Roles::default()
        };
        let columns = roles.check(source.schema(), Need::FIT).unwrap();
        let rows = Table::read(&source, &columns, "Reading", |_, _, _| Ok(None), &Silent).unwrap();
        let fitted = vec![10.0, 20.0, 30.0, 40.0, 50.0];
        let nuisances = Nuisances { predictions: vec![None, Some(fitted)], propensity: None };
        // The first row of the file is not of the population.
        let expected = nuisances.expected(&rows, &[2, 5]);
        assert_eq!(expected, [Some(vec![2.5, 5.5]), Some(vec![20.0, 50.0])]);
        assert_eq!(nuisances.expected(&rows, &[0, 2]), [None, None]);
    }
}
