//! Tables in: files, roles, filters, features as numbers, rows in bounded memory.
//!
//! [`Source`] → [`Roles`] → [`Columns`] → [`RowReader`] → [`Table`], and with an [`Encoder`] → [`Dataset`].

mod batches;
mod budget;
mod csv;
mod dataset;
mod encoder;
mod filter;
mod fingerprint;
mod gather;
mod ipc;
mod kind;
mod labels;
mod listing;
mod matrix;
mod moment;
mod parquet;
mod prefetch;
mod raw_column;
mod reader;
mod reader_check;
mod roles;
mod scratch;
mod source;
mod state;
mod table;
mod unify;
mod values;
mod wildcard;
mod write;

pub use budget::Budget;
pub(crate) use encoder::Unseen;
pub use encoder::{EncoderParams, ValidEncoderParams};
pub(crate) use fingerprint::Digest;
pub(crate) use gather::gather_rows;
pub(crate) use moment::is_moment;
pub(crate) use parquet::Pages;
pub(crate) use raw_column::MISSING;
pub(crate) use reader_check::LARGEST;
pub use roles::{Design, ExposureRole, ExposureScale, Roles};
pub use source::Source;
pub(crate) use table::pick;

// For front ends, tests and benchmarks: no part of the interface for users.
#[doc(hidden)]
pub use dataset::Dataset;
#[doc(hidden)]
pub use encoder::{Encoder, EncoderFit};
#[doc(hidden)]
pub use filter::Filter;
#[doc(hidden)]
pub use kind::ColumnKind;
#[doc(hidden)]
pub use labels::Labels;
#[doc(hidden)]
pub use matrix::{Matrix, MatrixBuilder};
#[doc(hidden)]
pub use raw_column::{RawCells, RawColumn};
#[doc(hidden)]
pub use reader::{Batch, RowReader};
#[doc(hidden)]
pub use roles::{Columns, ExposureColumn, Feature, Need, Prediction, Propensity};
#[doc(hidden)]
pub use table::Table;
#[doc(hidden)]
pub use values::numbers;
#[doc(hidden)]
pub use write::TableWriter;
