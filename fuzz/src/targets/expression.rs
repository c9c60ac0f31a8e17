//! Population expressions: made by a grammar or from bytes, and asked of rows.

use std::path::Path;

use arrow_array::RecordBatch;
use poul::data::Filter;

use super::Target;
use crate::corpus;
use crate::execution::{Ended, judged, promised};
use crate::mutate::{self, WORDS};
use crate::random::Random;

/// Parentheses and `not` go as deep as this.
const DEEP: usize = 3000;
const COLUMNS: [&str; 12] =
    ["user", "policy", "y", "cost", "age", "city", "trips", "core", "home", "w", "day", "`seen`"];

pub(crate) fn open(_: &Path) -> Result<Box<dyn Target>, String> {
    Ok(Box::new(Expressions { rows: corpus::table(30, 5) }))
}

struct Expressions {
    rows: RecordBatch,
}

impl Target for Expressions {
    fn generate(&mut self, random: &mut Random) -> Vec<u8> {
        if random.once_in(500) {
            let word = *random.pick(&["(", "not ", "core and ", "not (", "core or ("]);
            return format!("{}core", word.repeat(random.below(DEEP))).into_bytes();
        }
        let mut input = condition(random, 4).into_bytes();
        if random.once_in(2) {
            let other = condition(random, 2);
            mutate::bytes(random, &mut input, other.as_bytes());
        }
        input
    }

    fn run(&mut self, input: &[u8]) -> Result<Ended, String> {
        let text = String::from_utf8_lossy(input);
        let Some(filter) = judged(Filter::parse(&text, &self.rows.schema()))? else {
            return Ok(Ended::Refused);
        };
        let Some(mask) = judged(filter.mask(&self.rows))? else { return Ok(Ended::Refused) };
        promised(mask.len() == self.rows.num_rows(), || "a mask of another length than the rows".to_owned())?;
        // A row counts or not by itself.
        let mut alone = Vec::with_capacity(mask.len());
        for row in 0..mask.len() {
            alone.extend(
                filter.mask(&self.rows.slice(row, 1)).map_err(|error| format!("row {row} alone: {error}"))?,
            );
        }
        promised(alone == mask, || format!("`{text}` says other things of rows alone"))?;
        // Whoever negates it gets the others, or is told that it is too deep.
        if let Some(negated) = judged(Filter::parse(&format!("not ({text})"), &self.rows.schema()))?
            && let Some(others) = judged(negated.mask(&self.rows))?
        {
            let apart = mask.iter().zip(&others).all(|(one, other)| !(*one && *other));
            promised(apart, || format!("rows are both in `{text}` and in its negation"))?;
        }
        Ok(Ended::Accepted)
    }
}

fn condition(random: &mut Random, depth: usize) -> String {
    let column = *random.pick(&COLUMNS);
    if depth == 0 || random.once_in(3) {
        let compare = *random.pick(&["=", "==", "!=", "<>", "<", "<=", ">", ">="]);
        return match random.below(7) {
            0 => format!("{column} is null"),
            1 => format!("{column} is not null"),
            2 => format!("{column} in ({}, {})", value(random), value(random)),
            3 => format!("{column} not in ({})", value(random)),
            4 => "core".to_owned(),
            _ => format!("{column} {compare} {}", value(random)),
        };
    }
    let inner = condition(random, depth - 1);
    match random.below(4) {
        0 => format!("not {inner}"),
        1 => format!("({inner})"),
        2 => format!("{inner} and {}", condition(random, depth - 1)),
        _ => format!("{inner} or {}", condition(random, depth - 1)),
    }
}

fn value(random: &mut Random) -> String {
    match random.below(8) {
        0 => "'Rome'".to_owned(),
        1 => "\"control\"".to_owned(),
        2 => random.below(60).to_string(),
        3 => format!("{:.2}", random.normal()),
        4 => format!("'2022-01-{:02}'", random.below(40)),
        5 => (*random.pick(&["true", "false", "0", "1", "-1", "1e308", "9223372036854775808"])).to_owned(),
        6 => format!("'1970-01-{:02}T{:02}:00:00Z'", 1 + random.below(31), random.below(26)),
        _ => (*random.pick(WORDS)).to_owned(),
    }
}
