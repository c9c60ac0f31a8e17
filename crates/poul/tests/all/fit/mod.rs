//! Fits from a table to a model: stopped and gone on, in phases, by presets, from a saved model.

mod bench;
mod phases;
mod resume;
mod warm_start;
