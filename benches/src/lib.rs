//! What several of the programs do alike.

mod arguments;
mod truth;

pub use arguments::Arguments;
pub use truth::{outcomes_of_truth, true_effects};
