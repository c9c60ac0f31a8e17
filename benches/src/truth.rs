//! The true effects of a simulated world, as its `truth.parquet` holds them: a row for each user and policy.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use poul::policy::PolicySet;
use poul::{Result, Source};

/// The outcomes whose effects a table of true effects has.
pub fn outcomes_of_truth(truth: &Source) -> Vec<String> {
    let names = truth.column_names().into_iter();
    names.filter_map(|name| name.strip_prefix("effect_").map(str::to_owned)).collect()
}

/// By outcome, the true effects of so many users: users × policies.
pub fn true_effects(
    truth: &Source,
    outcomes: &[String],
    policies: &PolicySet,
    n_users: usize,
) -> Result<Vec<Vec<f64>>> {
    let mut effects = vec![vec![0.0; n_users * policies.len()]; outcomes.len()];
    for (effects, outcome) in effects.iter_mut().zip(outcomes) {
        let column = format!("effect_{outcome}");
        for batch in truth.batches(&["row", "policy", &column], 1 << 16)? {
            let batch = batch?;
            let (row, name) =
                (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_string::<i32>());
            let effect = batch.column(2).as_primitive::<Float64Type>();
            for i in 0..batch.num_rows() {
                let place = row.value(i) as usize * policies.len() + policies.require(name.value(i))?;
                effects[place] = effect.value(i);
            }
        }
    }
    Ok(effects)
}
