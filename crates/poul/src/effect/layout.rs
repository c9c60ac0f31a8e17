//! The columns that effects are written in: long, a row for each row and policy, or wide, a column for each policy.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, Float64Array, Int64Array, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::Scores;
use super::table::{EffectTable, Piece, piece_rows};
use crate::data::Source;
use crate::{Error, Result};

/// The columns of the output, and those of them that repeat from piece to piece.
pub(super) struct Layout {
    pub(super) schema: SchemaRef,
    /// Rows of output for each row of input.
    n_repeats: usize,
    /// Columns of effects for each outcome.
    n_columns: usize,
    /// Columns after the ids and after the effects that are the same in every piece, as long as the longest piece.
    before: Vec<ArrayRef>,
    after: Vec<ArrayRef>,
}

impl Layout {
    pub(super) fn new(table: &EffectTable<'_>, source: &Source) -> Result<Self> {
        let n_policies = table.policies.len();
        let (n_repeats, n_columns) = if table.wide { (1, n_policies) } else { (n_policies, 1) };
        let mut fields = ids(table, source)?;
        let mut before: Vec<ArrayRef> = Vec::new();
        let n_longest = piece_rows(n_policies) * n_repeats;
        if !table.wide {
            fields.push(Field::new("policy", DataType::Utf8, false));
            fields.push(Field::new("against", DataType::Utf8, false));
            let names = table.policies.iter().map(String::as_str).cycle().take(n_longest);
            let against = std::iter::repeat_n(table.against, n_longest);
            before.push(Arc::new(StringArray::from_iter_values(names)));
            before.push(Arc::new(StringArray::from_iter_values(against)));
        }
        // What stands after the name of a column.
        let suffixes: Vec<String> = match table.wide {
            true => table.policies.iter().map(|policy| format!("_{policy}")).collect(),
            false => vec![String::new()],
        };
        let number = |name: String| Field::new(name, DataType::Float32, false);
        for outcome in table.outcomes {
            fields.extend(suffixes.iter().map(|suffix| number(format!("effect_{outcome}{suffix}"))));
        }
        if table.interval.is_some() {
            for outcome in table.outcomes {
                for suffix in &suffixes {
                    fields.push(number(format!("lower_{outcome}{suffix}")));
                    fields.push(number(format!("upper_{outcome}{suffix}")));
                }
            }
        }
        let mut after: Vec<ArrayRef> = Vec::new();
        for (name, shares) in [("unseen_share", table.unseen_share), ("support", table.support)] {
            let Some(shares) = shares else { continue };
            for (place, suffix) in suffixes.iter().enumerate() {
                fields.push(Field::new(format!("{name}{suffix}"), DataType::Float64, false));
                let own = if table.wide { &shares[place..=place] } else { shares };
                let cells = own.iter().copied().cycle().take(n_longest);
                after.push(Arc::new(Float64Array::from_iter_values(cells)));
            }
        }
        check_names(&fields)?;
        Ok(Self { schema: Arc::new(Schema::new(fields)), n_repeats, n_columns, before, after })
    }

    /// The rows of output of a piece; `z` is how many standard deviations bounds are from the mean.
    pub(super) fn batch(&self, piece: Piece, z: Option<f32>) -> Result<RecordBatch> {
        let Piece { rows, ids, scores } = piece;
        let n_out = rows.len() * self.n_repeats;
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        if ids.is_empty() {
            let numbers = rows.iter().flat_map(|row| std::iter::repeat_n(*row as i64, self.n_repeats));
            arrays.push(Arc::new(Int64Array::from_iter_values(numbers)));
        } else if self.n_repeats == 1 {
            arrays.extend(ids);
        } else {
            let each = (0..rows.len() as u32).flat_map(|row| std::iter::repeat_n(row, self.n_repeats));
            let each = UInt32Array::from_iter_values(each);
            for id in &ids {
                let repeated = arrow_select::take::take(id, &each, None);
                arrays.push(repeated.map_err(|error| Error::other(format!("cannot repeat ids: {error}")))?);
            }
        }
        let repeated = |columns: &[ArrayRef]| -> Vec<ArrayRef> {
            columns.iter().map(|column| column.slice(0, n_out)).collect()
        };
        arrays.extend(repeated(&self.before));
        self.push_effects(scores, z, &mut arrays);
        arrays.extend(repeated(&self.after));
        RecordBatch::try_new(Arc::clone(&self.schema), arrays)
            .map_err(|error| Error::other(format!("cannot assemble effects: {error}")).source(error))
    }

    /// The columns of effects, outcome after outcome, then those of bounds.
    fn push_effects(&self, scores: Scores, z: Option<f32>, arrays: &mut Vec<ArrayRef>) {
        let n_columns = self.n_columns;
        let mut bounds: Vec<ArrayRef> = Vec::new();
        if let Some(z) = z {
            for (mean, spread) in scores.mean.iter().zip(&scores.spread) {
                for column in 0..n_columns {
                    for sign in [-1.0, 1.0] {
                        let cells = mean.iter().zip(spread).skip(column).step_by(n_columns);
                        let bound = cells.map(|(mean, spread)| mean + sign * z * spread);
                        bounds.push(Arc::new(Float32Array::from_iter_values(bound)));
                    }
                }
            }
        }
        for mean in scores.mean {
            if n_columns == 1 {
                arrays.push(Arc::new(Float32Array::from(mean)));
                continue;
            }
            for column in 0..n_columns {
                let cells = mean.iter().copied().skip(column).step_by(n_columns);
                arrays.push(Arc::new(Float32Array::from_iter_values(cells)));
            }
        }
        arrays.extend(bounds);
    }
}

/// The id columns, or `row`.
fn ids(table: &EffectTable<'_>, source: &Source) -> Result<Vec<Field>> {
    let mut fields: Vec<Field> = Vec::new();
    for id in &table.columns.ids {
        let field = source.schema().field_with_name(id);
        let field = field.map_err(|_| Error::missing_column(id, source.column_names()).at("id"))?;
        fields.push(field.clone());
    }
    if fields.is_empty() {
        fields.push(Field::new("row", DataType::Int64, false));
    }
    Ok(fields)
}

fn check_names(fields: &[Field]) -> Result<()> {
    let mut names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => {
            let error = Error::usage(format!("two columns of the effects are called `{}`", pair[0]));
            Err(error.hint("rename the id column, or name others: ‹id=COL›"))
        }
    }
}
