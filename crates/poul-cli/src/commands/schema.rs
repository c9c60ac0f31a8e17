//! `poul schema`: JSON Schema of the files that people write, on stdout.

use poul::Result;

use crate::args::{Schema, SchemaKind};
use crate::schema;

pub(crate) fn run(args: &Schema) -> Result<()> {
    super::print_json(&match args.kind {
        SchemaKind::Config => schema::config()?,
        SchemaKind::Policies => schema::policies(),
    })
}
