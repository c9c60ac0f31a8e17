//! Plain aligned tables on stdout.

use std::fmt;

use poul::effect::name_beside;

/// Rows of cells under a heading; the first column is set left, all others right.
pub(crate) struct Table {
    heading: Vec<String>,
    rows: Vec<Vec<String>>,
    left: usize,
}

impl Table {
    pub(crate) fn new<const N: usize>(heading: [&str; N]) -> Self {
        Self { heading: heading.map(String::from).to_vec(), rows: Vec::new(), left: 1 }
    }

    /// More columns, for `row_with` to fill.
    pub(crate) fn with(mut self, heading: impl IntoIterator<Item = String>) -> Self {
        self.heading.extend(heading);
        self
    }

    /// Sets the first `n` columns left.
    pub(crate) fn left(mut self, n: usize) -> Self {
        self.left = n;
        self
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.row_with(cells, []);
    }

    pub(crate) fn row_with<const N: usize>(
        &mut self,
        cells: [String; N],
        more: impl IntoIterator<Item = String>,
    ) {
        let row: Vec<String> = cells.into_iter().chain(more).collect();
        debug_assert_eq!(row.len(), self.heading.len());
        self.rows.push(row);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = || std::iter::once(&self.heading).chain(&self.rows);
        let width = |column: usize| lines().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.heading.len()).map(width).collect();
        for line in lines() {
            let mut text = String::new();
            for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
                let pad = " ".repeat(width - cell.chars().count());
                let gap = if column == 0 { "" } else { "  " };
                text.push_str(gap);
                match column < self.left {
                    true => text.extend([cell.as_str(), pad.as_str()]),
                    false => text.extend([pad.as_str(), cell.as_str()]),
                }
            }
            writeln!(f, "{}", text.trim_end())?;
        }
        Ok(())
    }
}

/// More would push the numbers off the screen: combinations of many columns have names of hundreds of characters. The JSON
/// has them whole.
const WIDEST: usize = 100;

/// A policy's name, cut to what differs from the policy compared with where it is too long.
pub(crate) fn shortened_beside(name: &str, against: &str) -> String {
    name_beside(name, against, WIDEST)
}

/// A name, cut where it is too long.
pub(crate) fn shortened(name: &str) -> String {
    match name.chars().count() > WIDEST {
        true => name.chars().take(WIDEST - 1).chain(['…']).collect(),
        false => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut() {
        assert_eq!(shortened("T2"), "T2");
        assert_eq!(shortened(&"é".repeat(500)), format!("{}…", "é".repeat(99)));
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(["policy", "rows"]);
        table.row(["control".into(), "12".into()]);
        table.row(["T2".into(), "3,400".into()]);
        assert_eq!(table.to_string(), "policy    rows\ncontrol     12\nT2       3,400\n");
    }
}
