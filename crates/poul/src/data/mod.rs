//! Tables in: files, roles, filters, features as numbers, rows in bounded memory.
//!
//! [`Source`] → [`Roles`] → [`Columns`] → [`RowReader`] → [`Encoder`] → [`Dataset`].

mod batches;
mod csv;
mod fingerprint;
mod ipc;
mod kind;
mod listing;
mod parquet;
mod source;
mod unify;
mod values;

pub use kind::ColumnKind;
pub use source::Source;
pub use values::numbers;
