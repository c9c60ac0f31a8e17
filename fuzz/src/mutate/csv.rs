//! A table of text with some of its cells, rows and columns changed: it stays a table more often than bytes would.

use super::WORDS;
use crate::random::Random;

/// Changes a few cells, rows or columns of a table in which nothing is quoted.
pub(crate) fn csv(random: &mut Random, text: &str) -> String {
    let mut rows: Vec<Vec<String>> =
        text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect();
    for _ in 0..1 + random.below(4) {
        if rows.is_empty() {
            break;
        }
        let row = random.below(rows.len());
        let column = random.below(rows[row].len());
        match random.below(10) {
            0..=3 => set(&mut rows[row], column, random.pick::<&str>(WORDS)),
            4 => {
                // A whole column of one thing.
                let word = *random.pick(WORDS);
                rows.iter_mut().skip(1).for_each(|cells| set(cells, column, word));
            }
            5 => drop(rows.remove(row)),
            6 => rows.insert(row, rows[row].clone()),
            7 if !rows[row].is_empty() => drop(rows[row].remove(column)),
            8 => {
                let (number, exponent) = (random.normal(), random.below(640) as i32 - 320);
                set(&mut rows[row], column, &format!("{number}e{exponent}"));
            }
            _ => {
                let other = random.below(rows.len());
                rows.swap(row, other);
            }
        }
    }
    let (comma, end) = (*random.pick(&[",", ",", ",", ";", "\t"]), *random.pick(&["\n", "\n", "\r\n", "\r"]));
    rows.iter().map(|cells| cells.join(comma) + end).collect()
}

fn set(cells: &mut [String], column: usize, word: &str) {
    if let Some(cell) = cells.get_mut(column) {
        word.clone_into(cell);
    }
}
