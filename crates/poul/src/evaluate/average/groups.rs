//! Groups of rows with names: quantiles of a number, the commonest categories, what is missing.
//!
//! Rows with equal values are always in one group, so a number with many ties has fewer groups than asked for.

use std::sync::Arc;

use crate::data::{MISSING, RawCells, RawColumn, is_moment};

/// Which group each row belongs to, and what the groups are called.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::evaluate) struct Groups {
    /// Group of each row.
    pub(in crate::evaluate) of_row: Vec<u16>,
    /// Their names.
    pub(in crate::evaluate) labels: Vec<String>,
    /// For numbers, the least value of every group but the first; the group of missing values is not among them.
    pub(in crate::evaluate) cuts: Vec<f64>,
    /// The names of these values.
    pub(in crate::evaluate) cut_names: Vec<String>,
    /// Whether the last group holds the missing values.
    pub(in crate::evaluate) has_missing: bool,
    /// Whether the groups have an order: those of numbers and dates.
    pub(in crate::evaluate) ordered: bool,
}

impl Groups {
    /// All rows in one group.
    pub(in crate::evaluate) fn whole(n_rows: usize) -> Self {
        let (of_row, labels) = (vec![0; n_rows], vec!["all rows".to_owned()]);
        Self { of_row, labels, cuts: Vec::new(), cut_names: Vec::new(), has_missing: false, ordered: false }
    }

    /// Quantiles of the predicted effect, the highest first: `1 of 10`, `2 of 10`, …
    pub(in crate::evaluate) fn of_effect(values: &[f64], weight: Option<&[f64]>, n_groups: usize) -> Self {
        let cuts = quantile_cuts(values, weight, n_groups);
        let last = cuts.len();
        let of = |value: &f64| (last - cuts.partition_point(|cut| cut <= value)) as u16;
        let of_row = values.iter().map(of).collect();
        let labels = (1..=last + 1).map(|number| format!("{number} of {}", last + 1)).collect();
        Self { of_row, labels, cuts, cut_names: Vec::new(), has_missing: false, ordered: true }
    }

    /// Quantiles of a number, or the `n_categories` commonest categories and `other`; missing values last. Dates, as such or
    /// as text, are in the order of time: each its own group where they are few, quantiles where they are many.
    pub(in crate::evaluate) fn of_column(
        column: &RawColumn,
        weight: Option<&[f64]>,
        n_quantiles: usize,
        n_categories: usize,
    ) -> Self {
        match column.cells() {
            RawCells::Numbers(values) => {
                let few = column.is_time().then(|| distinct(values, n_categories)).flatten();
                let cuts = few.unwrap_or_else(|| quantile_cuts(values, weight, n_quantiles));
                of_numbers(values, cuts, |value| column.number_name(value))
            }
            RawCells::Categories { codes, labels } => match moments(codes, labels.names()) {
                Some((values, names)) => {
                    let few = distinct(&values, n_categories);
                    let cuts = few.unwrap_or_else(|| quantile_cuts(&values, weight, n_quantiles));
                    of_numbers(&values, cuts, |place| names[place as usize].to_string())
                }
                None => of_categories(codes, labels.names(), n_categories),
            },
        }
    }

    /// How many groups there are.
    pub(in crate::evaluate) fn len(&self) -> usize {
        self.labels.len()
    }
}

/// Every value but the least, where there are at most `most` different ones.
fn distinct(values: &[f64], most: usize) -> Option<Vec<f64>> {
    let mut found: Vec<f64> = Vec::with_capacity(most + 1);
    for value in values.iter().filter(|value| !value.is_nan()) {
        if let Err(place) = found.binary_search_by(|known| known.total_cmp(value)) {
            if found.len() == most {
                return None;
            }
            found.insert(place, *value);
        }
    }
    Some(found.into_iter().skip(1).collect())
}

/// Where every category is a date written as text: each row's place among the dates, and the dates in order.
fn moments(codes: &[u32], names: &[Arc<str>]) -> Option<(Vec<f64>, Vec<Arc<str>>)> {
    let length = names.first()?.len();
    if !names.iter().all(|name| name.len() == length && is_moment(name)) {
        return None;
    }
    let mut sorted: Vec<u32> = (0..names.len() as u32).collect();
    sorted.sort_by_key(|code| &names[*code as usize]);
    let mut place = vec![0.0; names.len()];
    sorted.iter().enumerate().for_each(|(at, code)| place[*code as usize] = at as f64);
    let of = |code: &u32| place.get(*code as usize).copied().unwrap_or(f64::NAN);
    let ordered = sorted.iter().map(|code| names[*code as usize].clone()).collect();
    Some((codes.iter().map(of).collect(), ordered))
}

fn of_numbers(values: &[f64], cuts: Vec<f64>, name: impl Fn(f64) -> String) -> Groups {
    let n_cuts = cuts.len();
    let has_missing = values.iter().any(|value| value.is_nan());
    let has_numbers = values.iter().any(|value| !value.is_nan());
    let missing = if has_numbers { n_cuts + 1 } else { 0 };
    let of = |value: &f64| match value.is_nan() {
        true => missing as u16,
        false => cuts.partition_point(|cut| cut <= value) as u16,
    };
    let of_row: Vec<u16> = values.iter().map(of).collect();
    // The ends of a group as they occur: a group of one value is called by it.
    let mut ends = vec![(f64::INFINITY, f64::NEG_INFINITY); missing];
    for (value, group) in values.iter().zip(&of_row).filter(|(value, _)| !value.is_nan()) {
        let (low, high) = &mut ends[usize::from(*group)];
        (*low, *high) = (low.min(*value), high.max(*value));
    }
    let label = |(low, high): &(f64, f64)| {
        let (low, high) = (name(*low), name(*high));
        if low == high { low } else { format!("{low} to {high}") }
    };
    let mut labels: Vec<String> = ends.iter().map(label).collect();
    if has_missing {
        labels.push("missing".to_owned());
    }
    let cut_names = cuts.iter().map(|cut| name(*cut)).collect();
    Groups { of_row, labels, cuts, cut_names, has_missing, ordered: true }
}

fn of_categories(codes: &[u32], names: &[Arc<str>], n_categories: usize) -> Groups {
    let mut rows = vec![0_u64; names.len()];
    codes.iter().filter(|code| **code != MISSING).for_each(|code| rows[*code as usize] += 1);
    let mut by_rows: Vec<u32> = (0..names.len() as u32).filter(|code| rows[*code as usize] > 0).collect();
    // By name where equally common: the order of rows must not matter.
    by_rows.sort_by_key(|code| (std::cmp::Reverse(rows[*code as usize]), &names[*code as usize]));
    // `other` for a single category would only hide its name.
    let n_named = if by_rows.len() == n_categories + 1 { by_rows.len() } else { n_categories };
    let mut group_of = vec![n_named as u16; names.len()];
    for (group, code) in by_rows.iter().take(n_named).enumerate() {
        group_of[*code as usize] = group as u16;
    }
    let mut labels: Vec<String> =
        by_rows.iter().take(n_named).map(|code| names[*code as usize].to_string()).collect();
    if by_rows.len() > n_named {
        labels.push("other".to_owned());
    }
    let has_missing = codes.contains(&MISSING);
    let missing = labels.len() as u16;
    if has_missing {
        labels.push("missing".to_owned());
    }
    let of_row =
        codes.iter().map(|code| if *code == MISSING { missing } else { group_of[*code as usize] }).collect();
    Groups { of_row, labels, cuts: Vec::new(), cut_names: Vec::new(), has_missing, ordered: false }
}

/// The least value of every group but the first, groups having equal weight as far as ties allow.
fn quantile_cuts(values: &[f64], weight: Option<&[f64]>, n_groups: usize) -> Vec<f64> {
    let known = values.iter().enumerate().filter(|(_, value)| !value.is_nan());
    let mut cuts: Vec<f64> = match weight {
        None => {
            let mut sorted: Vec<f64> = known.map(|(_, value)| value + 0.0).collect();
            sorted.sort_unstable_by(f64::total_cmp);
            let place = |group: usize| sorted.get(group * sorted.len() / n_groups).copied();
            (1..n_groups).filter_map(place).filter(|cut| *cut > sorted[0]).collect()
        }
        Some(weight) => {
            let mut sorted: Vec<(f64, f64)> = known
                .map(|(row, value)| (value + 0.0, weight[row]))
                .filter(|(_, mass)| *mass > 0.0)
                .collect();
            sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            let total: f64 = sorted.iter().map(|(_, mass)| mass).sum();
            let (mut below, mut group, mut cuts) = (0.0, 1, Vec::new());
            for (value, mass) in &sorted {
                below += mass;
                while group < n_groups && below > total * group as f64 / n_groups as f64 {
                    cuts.push(*value);
                    group += 1;
                }
            }
            cuts.retain(|cut| *cut > sorted[0].0);
            cuts
        }
    };
    cuts.dedup();
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deciles_are_even_and_the_highest_come_first() {
        let values: Vec<f64> = (0..1000).map(|row| f64::from((row * 7) % 1000)).collect();
        let groups = Groups::of_effect(&values, None, 10);
        assert_eq!(groups.labels[0], "1 of 10");
        for group in 0..10 {
            let own = (0..1000).filter(|row| groups.of_row[*row] == group);
            let own: Vec<f64> = own.map(|row| values[row]).collect();
            assert_eq!(own.len(), 100);
            assert!(own.iter().all(|value| *value >= 900.0 - 100.0 * f64::from(group)));
        }
        assert_eq!(Groups::of_effect(&values, Some(&[1.0; 1000]), 10), groups);
        assert_eq!(Groups::of_effect(&[2.0; 30], None, 10).labels, ["1 of 1"]);
    }

    #[test]
    fn weights_are_repeated_rows() {
        let values = [3.0, 1.0, 2.0, 5.0, 4.0];
        let weight = [2.0, 1.0, 3.0, 1.0, 4.0];
        let copies: Vec<usize> = (0..5).flat_map(|row| vec![row; weight[row] as usize]).collect();
        let repeated: Vec<f64> = copies.iter().map(|row| values[*row]).collect();
        for n_groups in 2..6 {
            let weighted = Groups::of_effect(&values, Some(&weight), n_groups);
            assert_eq!(weighted.cuts, Groups::of_effect(&repeated, None, n_groups).cuts);
        }
    }

    #[test]
    fn columns_have_readable_groups() {
        let trips = RawColumn::of_numbers("trips", vec![0.0, 0.0, 0.0, 1.0, 2.0, 3.5, 9.0, 8.0, f64::NAN]);
        let groups = Groups::of_column(&trips, None, 4, 10);
        assert_eq!(groups.labels, ["0 to 1", "2 to 3.5", "8 to 9", "missing"]);
        let missing = Groups::of_column(&RawColumn::of_numbers("m", vec![f64::NAN; 2]), None, 4, 10);
        assert_eq!((missing.labels, missing.of_row), (vec!["missing".to_owned()], vec![0, 0]));
        let cities = ["a", "b", "b", "c", "d", "d", "d"].map(Some);
        let column = RawColumn::of_categories("city", cities.into_iter().chain([None]));
        let groups = Groups::of_column(&column, None, 4, 2);
        assert_eq!(groups.labels, ["d", "b", "other", "missing"]);
        assert_eq!(groups.of_row, [2, 1, 1, 2, 0, 0, 0, 3]);
        assert_eq!(Groups::of_column(&column, None, 4, 3).labels, ["d", "b", "a", "c", "missing"]);
    }

    #[test]
    fn dates_are_told_as_dates_in_the_order_of_time() {
        let mut day = RawColumn::new("day", crate::data::ColumnKind::Time);
        let days = [Some(19_790), Some(19_783), Some(19_790), None, Some(19_783), Some(19_790)];
        day.append(&arrow_array::Date32Array::from(days.to_vec()), None).unwrap();
        let groups = Groups::of_column(&day, None, 4, 10);
        assert_eq!(groups.labels, ["2024-03-01", "2024-03-08", "missing"]);
        assert_eq!(
            (groups.of_row, groups.cut_names),
            (vec![1, 0, 1, 2, 0, 1], vec!["2024-03-08".to_owned()])
        );
        let mut stamp = RawColumn::new("stamp", crate::data::ColumnKind::Time);
        let stamps: Vec<i64> = (0..100).map(|minute| 1_709_251_200_000 + minute * 60_000).collect();
        stamp.append(&arrow_array::TimestampMillisecondArray::from(stamps), None).unwrap();
        let groups = Groups::of_column(&stamp, None, 2, 10);
        assert_eq!(groups.labels, ["2024-03-01 to 2024-03-01 00:49", "2024-03-01 00:50 to 2024-03-01 01:39"]);
        // The commonest week is the last.
        let weeks = ["2024-W11", "2024-W09", "2024-W11", "2024-W10"].map(Some);
        let column = RawColumn::of_categories("week", weeks.into_iter().chain([None]));
        let groups = Groups::of_column(&column, None, 4, 10);
        assert_eq!(groups.labels, ["2024-W09", "2024-W10", "2024-W11", "missing"]);
        assert_eq!((groups.of_row.as_slice(), groups.ordered), (&[2, 0, 2, 1, 3][..], true));
        let groups = Groups::of_column(&column, None, 2, 2);
        assert_eq!(groups.labels, ["2024-W09 to 2024-W10", "2024-W11", "missing"]);
    }
}
