//! The options of users as columns of few entries.

use std::ops::Range;

/// The columns of a linear program, and the amounts of its limits.
#[derive(Default)]
pub(in super::super) struct Columns {
    /// Where each user's options begin, and the end.
    starts: Vec<u32>,
    /// The user of each option.
    user: Vec<u32>,
    value: Vec<f64>,
    /// Where each option's entries begin, and the end.
    entry_starts: Vec<u32>,
    entries: Vec<(u32, f64)>,
    amounts: Vec<f64>,
}

impl Columns {
    /// A program without users.
    pub(in super::super) fn new(amounts: Vec<f64>) -> Self {
        Self { starts: vec![0], entry_starts: vec![0], amounts, ..Self::default() }
    }

    /// Adds an option of the user who comes next: its value, and what it adds to which limits.
    pub(in super::super) fn option(&mut self, value: f64, entries: impl Iterator<Item = (u32, f64)>) {
        self.user.push(self.starts.len() as u32 - 1);
        self.value.push(value);
        self.entries.extend(entries.filter(|(_, entry)| *entry != 0.0));
        self.entry_starts.push(self.entries.len() as u32);
    }

    /// The user who comes next has all its options.
    pub(in super::super) fn end_user(&mut self) {
        self.starts.push(self.value.len() as u32);
    }

    pub(in super::super) fn n_users(&self) -> usize {
        self.starts.len() - 1
    }

    pub(super) fn n_options(&self) -> usize {
        self.value.len()
    }

    /// The options of a user.
    pub(in super::super) fn of(&self, user: usize) -> Range<usize> {
        self.starts[user] as usize..self.starts[user + 1] as usize
    }

    pub(in super::super) fn user(&self, option: usize) -> usize {
        self.user[option] as usize
    }

    pub(super) fn value(&self, option: usize) -> f64 {
        self.value[option]
    }

    /// What an option adds to limits.
    pub(super) fn entries(&self, option: usize) -> &[(u32, f64)] {
        &self.entries[self.entry_starts[option] as usize..self.entry_starts[option + 1] as usize]
    }

    pub(super) fn amounts(&self) -> &[f64] {
        &self.amounts
    }

    /// What an option pays at prices.
    pub(super) fn paid(&self, option: usize, prices: &[f64]) -> f64 {
        self.entries(option).iter().map(|(limit, entry)| prices[*limit as usize] * entry).sum()
    }
}
