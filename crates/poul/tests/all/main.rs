//! The library from outside, a file a subject: one binary, since linking one for each costs more than the tests.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod allocate;
mod assess;
mod certificate_logistic;
mod data_corrupt;
mod data_encoder;
mod data_rows;
mod effect_table;
mod evaluate_assigned;
mod evaluate_average;
mod evaluate_golden;
mod evaluate_invariances;
mod evaluate_overlap;
mod evaluate_registry;
mod evaluate_table;
mod experiment;
#[path = "../../../../benches/src/bin/accuracy/experiments.rs"]
#[expect(dead_code, reason = "the program reads more experiments")]
mod experiments;
mod fit;
mod forest_effects;
mod learner_exposure;
mod learner_halves;
mod learner_objective;
mod learner_poul;
mod learner_shared;
mod learner_treatment;
mod learners_contract;
mod model_file;
mod net_attention;
mod net_gradients;
mod net_training;
mod nuisance_boosted;
mod nuisance_outcome;
mod nuisance_propensity;
mod nuisance_strata;
mod numbers_contract;
mod policy_errors;
mod policy_files;
mod policy_properties;
mod policy_table_errors;
mod real_data;
mod rival_dedl;
mod rivals;
mod short;
mod simulate_files;
mod stack;
mod tidy;
mod verdicts;

/// What a model file gives back of these.
fn taken_from(stored: &[poul::effect::Tensor<'_>]) -> poul::effect::Tensors {
    stored.iter().cloned().collect()
}
