//! What to do next, by what a model knows: [`design`] finds the policies to run.

pub mod design;
