//! Fits from a table to a model: stopped and gone on, in phases, by presets, from a saved model.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod bench;
mod phases;
mod resume;
mod warm_start;
