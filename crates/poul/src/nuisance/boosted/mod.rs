//! Boosted trees: many small trees on binned features, each fitted to what those before it left over (Friedman 2001), split
//! by gradients and curvatures of the loss (Chen and Guestrin 2016), leaf by leaf from histograms (Ke et al. 2017).
//!
//! | file | subject |
//! |---|---|
//! | `params` | what can be set, with its defaults |
//! | `tiles` | rows by bin, eight features in a word |
//! | `objective` | gradients and curvatures of the losses |
//! | `quantised` | both as one whole number, so that sums do not depend on their order |
//! | `histogram` | sums by bin of a node |
//! | `split` | the best split of a node |
//! | `grow` | a tree, leaf by leaf |
//! | `fit` | tree after tree, until held-out rows gain no more |
//! | `kept` | trees left in a checkpoint, and found there |
//! | `model` | what comes out: predictions, and what a model file keeps |
//!
//! There is nothing random in it: rows and settings decide every bit, on any number of threads.

mod fit;
mod grow;
mod histogram;
mod kept;
mod model;
mod objective;
mod params;
mod quantised;
mod split;
mod tiles;

pub(super) use fit::{Rows, Target};
pub(super) use kept::boost_once;
pub(super) use model::{Boosted, BoostedManifest, FoldTrees};
pub use params::BoostedParams;
pub(super) use tiles::{Tiles, room};

pub(crate) use crate::tree::Cuts;
