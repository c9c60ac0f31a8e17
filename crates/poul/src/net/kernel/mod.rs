//! The arithmetic beneath the tape: loops over slices of `f32`, and matrix products.
//!
//! All `unsafe` code of the crate's networks is here: the call of an AVX2 compilation (`crate::dispatch`) and the call of
//! the matrix product ([`product`]). Sums run in a fixed order, so a result depends only on its input.

pub(super) mod adam;
pub(super) mod attention;
pub(super) mod dropout;
pub(super) mod elementwise;
pub(super) mod few_rows;
pub(super) mod product;
pub(super) mod rowwise;
mod special;
pub(super) mod token_scores;
