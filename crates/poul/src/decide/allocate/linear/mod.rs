//! The linear program in which users may be divided, by the simplex method.
//!
//! Maximise Σ v_o·x_o over x ≥ 0 with Σ_{o of i} x_o = 1 for each user i, under m limits Σ a_lo·x_o + s_l = b_l, s ≥ 0. There is a
//! row for every user, but those rows are so simple that they need no place in a basis (generalised upper bounds, Dantzig and
//! Van Slyke 1967): each user has a *key* option, whose share is what its other options leave, and the basis has m columns, of
//! slacks and of differences between an option and its user's key.
//!
//! | file | subject |
//! |---|---|
//! | `columns` | the options of users as columns of few entries |
//! | `basis` | the inverse of the basis |
//! | `ratio` | how far a step can go, and what it ends at |
//! | `simplex` | steps until none is better |

mod basis;
mod columns;
mod ratio;
mod simplex;

pub(super) use columns::Columns;
pub(super) use simplex::{Optimum, maximise};
