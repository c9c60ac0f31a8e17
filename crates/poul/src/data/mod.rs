//! data.

mod write;
pub use write::TableWriter;
