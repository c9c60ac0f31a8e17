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
pub use dataset::Dataset;
pub use encoder::{Encoder, EncoderFit, EncoderParams, Unseen, ValidEncoderParams};
pub use filter::Filter;
pub(crate) use fingerprint::Digest;
pub(crate) use gather::gather_rows;
pub use kind::ColumnKind;
pub use labels::Labels;
pub use matrix::{Matrix, MatrixBuilder};
pub(crate) use moment::is_moment;
pub use raw_column::{MISSING, RawCells, RawColumn};
pub use reader::{Batch, RowReader};
pub(crate) use reader_check::LARGEST;
pub use roles::{
    Columns, Design, ExposureColumn, ExposureRole, ExposureScale, Feature, Need, Prediction, Propensity,
    Roles,
};
pub use source::Source;
pub use table::Table;
pub(crate) use table::pick;
pub use values::numbers;
pub use write::TableWriter;
