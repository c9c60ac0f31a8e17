//! Rows in descending order of predicted effect, from which every curve is computed in one pass.

use super::order::descending;
use super::sample::Sample;

/// A [`Sample`] sorted once: columns laid out in rank order, with the ends of tie groups marked.
#[derive(Clone, Debug)]
pub struct Ranked {
    order: Vec<u32>,
    score: Vec<f64>,
    outcome: Vec<f64>,
    flags: Vec<u8>,
    weight: Option<Vec<f64>>,
    cluster: Option<Vec<u32>>,
    n_clusters: usize,
    whole_weights: bool,
    binary: bool,
}

const TREATED: u8 = 1;
const LAST_OF_TIE: u8 = 2;

/// The rows of a [`Ranked`], or a bootstrap draw of them: what every metric takes.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    pub(super) ranked: &'a Ranked,
    pub(super) counts: Option<&'a [u8]>,
}

/// Sums over the top of the ranking, by arm. With weights, sums of weights.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Treated rows.
    pub n_treated: f64,
    /// Control rows.
    pub n_control: f64,
    /// Sum of the outcome over treated rows.
    pub y_treated: f64,
    /// Sum of the outcome over control rows.
    pub y_control: f64,
}

impl Ranked {
    /// Sorts the sample. Rows of weight zero are left out.
    pub fn new(sample: &Sample<'_>) -> Self {
        let (mut order, mut score) = descending(sample.score());
        if let Some(weight) = sample.weight()
            && weight.contains(&0.0)
        {
            let kept = |row: &u32| weight[*row as usize] > 0.0;
            score = order.iter().zip(&score).filter(|(row, _)| kept(row)).map(|(_, score)| *score).collect();
            order.retain(kept);
        }
        let n_rows = order.len();
        let mut flags: Vec<u8> =
            order.iter().map(|row| TREATED * u8::from(sample.treated()[*row as usize])).collect();
        for (flag, pair) in flags.iter_mut().zip(score.windows(2)) {
            *flag |= LAST_OF_TIE * u8::from(pair[0] != pair[1]);
        }
        if let Some(flag) = flags.last_mut() {
            *flag |= LAST_OF_TIE;
        }
        let weight = sample.weight().map(|weight| {
            let mut weight: Vec<f64> = order.iter().map(|row| weight[*row as usize]).collect();
            let total: f64 = weight.iter().sum();
            let scale = n_rows as f64 / total;
            if scale > 1.0 {
                weight.iter_mut().for_each(|weight| *weight *= scale);
                // Equal shares become counts of exactly one, whatever was rounded on the way.
                if weight.iter().all(|weight| (weight - weight.round()).abs() < 1e-9) {
                    weight.iter_mut().for_each(|weight| *weight = weight.round());
                }
            }
            weight
        });
        let (cluster, n_clusters) = match sample.cluster() {
            None => (None, n_rows),
            Some(cluster) => {
                let codes: Vec<u32> = order.iter().map(|row| cluster[*row as usize]).collect();
                let (codes, n_clusters) = dense_codes(codes);
                (Some(codes), n_clusters)
            }
        };
        let outcome: Vec<f64> = order.iter().map(|row| sample.outcome()[*row as usize]).collect();
        let whole_weights =
            weight.as_ref().is_none_or(|weight| weight.iter().all(|weight| weight.fract() == 0.0));
        let binary = outcome.iter().all(|outcome| *outcome == 0.0 || *outcome == 1.0);
        Self { order, score, outcome, flags, weight, cluster, n_clusters, whole_weights, binary }
    }

    /// All rows, each counted once.
    pub fn rows(&self) -> Rows<'_> {
        Rows { ranked: self, counts: None }
    }

    /// The number of ranked rows.
    pub fn n_rows(&self) -> usize {
        self.order.len()
    }

    /// The number of units a bootstrap draws from: clusters where given, rows otherwise.
    pub(crate) fn n_units(&self) -> usize {
        self.n_clusters
    }

    /// The sample's row at each rank.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Predicted effects, descending.
    pub fn score(&self) -> &[f64] {
        &self.score
    }

    /// Outcomes in rank order.
    pub(super) fn outcome(&self) -> &[f64] {
        &self.outcome
    }

    /// Cluster of each ranked row, as dense codes.
    pub(super) fn cluster(&self) -> Option<&[u32]> {
        self.cluster.as_deref()
    }

    /// Whether all weights are whole numbers, so that they can be read as counts.
    pub(super) fn has_whole_weights(&self) -> bool {
        self.whole_weights
    }

    /// Whether every outcome is 0 or 1.
    pub(super) fn is_binary(&self) -> bool {
        self.binary
    }

    /// Whether the row at a place of the ranking got the policy.
    pub(super) fn is_treated(&self, place: usize) -> bool {
        self.flags[place] & TREATED != 0
    }

    /// Whether the next place has another score.
    pub(super) fn is_last_of_tie(&self, place: usize) -> bool {
        self.flags[place] & LAST_OF_TIE != 0
    }

    /// The weight of the row at a place of the ranking.
    pub(super) fn weight_of(&self, place: usize) -> f64 {
        self.weight.as_ref().map_or(1.0, |weight| weight[place])
    }

    /// A table of pairs of cells, the treated rows of a bucket and its control rows, in the place of their rows.
    pub(super) fn of_cells(&self, score: Vec<f64>, outcome: Vec<f64>, mass: Vec<f64>) -> Self {
        let n_cells = score.len();
        let flags = (0..n_cells).map(|cell| if cell % 2 == 0 { TREATED } else { LAST_OF_TIE }).collect();
        Self {
            order: (0..n_cells as u32).collect(),
            score,
            outcome,
            flags,
            weight: Some(mass),
            cluster: None,
            n_clusters: n_cells,
            whole_weights: self.whole_weights,
            binary: self.binary,
        }
    }

    /// Such a table of rows that were never in one place: pairs of cells, treated and control, with what their rows weigh
    /// together. Weights are no counts.
    pub(in crate::evaluate) fn from_cells(score: Vec<f64>, outcome: Vec<f64>, mass: Vec<f64>) -> Self {
        let nothing = Self {
            order: Vec::new(),
            score: Vec::new(),
            outcome: Vec::new(),
            flags: Vec::new(),
            weight: None,
            cluster: None,
            n_clusters: 0,
            whole_weights: false,
            binary: false,
        };
        nothing.of_cells(score, outcome, mass)
    }

    /// A column of the sample in rank order.
    pub(super) fn ranked_column(&self, column: &[f64]) -> Vec<f64> {
        self.order.iter().map(|row| column[*row as usize]).collect()
    }
}

impl<'a> From<&'a Ranked> for Rows<'a> {
    fn from(ranked: &'a Ranked) -> Self {
        ranked.rows()
    }
}

/// One ranked row as a metric sees it.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) index: usize,
    /// Weight times the number of times it was drawn.
    pub(super) mass: f64,
    pub(super) score: f64,
    pub(super) outcome: f64,
    /// 1 where treated, 0 otherwise: arithmetic on it keeps the loops free of branches that cannot be predicted.
    pub(super) treated: f64,
    pub(super) last_of_tie: bool,
}

impl<'a> Rows<'a> {
    /// Sums over all rows.
    pub fn totals(self) -> Totals {
        let mut totals = Totals::default();
        self.for_each(|row| totals.add(row));
        totals
    }

    /// Calls `cut` at the end of every tie group, with the sums before and after it.
    #[inline(always)]
    pub(super) fn for_each_cut(self, mut cut: impl FnMut(&Totals, &Totals)) {
        let mut before = Totals::default();
        let mut after = Totals::default();
        self.for_each(|row| {
            after.add(row);
            if row.last_of_tie {
                cut(&before, &after);
                before = after;
            }
        });
    }

    /// Calls `visit` on every row in rank order, those drawn zero times included.
    ///
    /// `visit` is called in one place so that it is inlined, and its sums stay in registers.
    #[inline(always)]
    pub(super) fn for_each(self, mut visit: impl FnMut(Row)) {
        let Ranked { score, outcome, flags, weight, .. } = self.ranked;
        let (counts, weight) = (self.counts, weight.as_deref());
        for (index, ((score, outcome), flag)) in score.iter().zip(outcome).zip(flags).enumerate() {
            let count = counts.map_or(1.0, |counts| f64::from(counts[index]));
            visit(Row {
                index,
                mass: weight.map_or(count, |weight| count * weight[index]),
                score: *score,
                outcome: *outcome,
                treated: f64::from(flag & TREATED),
                last_of_tie: flag & LAST_OF_TIE != 0,
            });
        }
    }
}

impl Totals {
    /// Rows of both arms: the k of the curves.
    #[inline(always)]
    pub fn k(&self) -> f64 {
        self.n_treated + self.n_control
    }

    /// Difference of the arms' mean outcomes, where both have rows.
    #[inline(always)]
    pub fn lift(&self) -> Option<f64> {
        (self.n_treated > 0.0 && self.n_control > 0.0)
            .then(|| self.y_treated / self.n_treated - self.y_control / self.n_control)
    }

    #[inline(always)]
    pub(super) fn add(&mut self, row: Row) {
        let treated = row.mass * row.treated;
        let control = row.mass - treated;
        self.n_treated += treated;
        self.n_control += control;
        self.y_treated += treated * row.outcome;
        self.y_control += control * row.outcome;
    }

    /// The sums at a share of the way from `self` to `after`: how a cut divides a tie group.
    pub(super) fn toward(&self, after: &Self, share: f64) -> Self {
        let between = |a: f64, b: f64| a + (b - a) * share;
        Self {
            n_treated: between(self.n_treated, after.n_treated),
            n_control: between(self.n_control, after.n_control),
            y_treated: between(self.y_treated, after.y_treated),
            y_control: between(self.y_control, after.y_control),
        }
    }
}

/// Codes renumbered 0, 1, … in order of their value, and how many there are.
fn dense_codes(mut codes: Vec<u32>) -> (Vec<u32>, usize) {
    let largest = codes.iter().copied().max().unwrap_or(0) as usize;
    if largest < codes.len().saturating_mul(4) {
        let mut renumbered = vec![0_u32; largest + 1];
        codes.iter().for_each(|code| renumbered[*code as usize] = 1);
        let mut n_codes = 0;
        for slot in &mut renumbered {
            (*slot, n_codes) = (n_codes, n_codes + *slot);
        }
        codes.iter_mut().for_each(|code| *code = renumbered[*code as usize]);
        return (codes, n_codes as usize);
    }
    let mut distinct = codes.clone();
    distinct.sort_unstable();
    distinct.dedup();
    for code in &mut codes {
        *code = distinct.partition_point(|known| known < code) as u32;
    }
    (codes, distinct.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_become_dense_in_order_of_value() {
        assert_eq!(dense_codes(vec![3, 1, 3, 0]), (vec![2, 1, 2, 0], 3));
        assert_eq!(dense_codes(vec![u32::MAX, 7, u32::MAX]), (vec![1, 0, 1], 2));
    }

    #[test]
    fn zero_weights_leave_and_small_weights_are_scaled_to_the_rows() {
        let sample = Sample::new(&[0.1, 0.3, 0.2, 0.3], &[1.0; 4], &[true, false, true, false]).unwrap();
        let weight = [0.25, 0.25, 0.0, 0.5];
        let ranked = Ranked::new(&sample.with_weight(&weight).unwrap());
        assert_eq!(ranked.order(), [1, 3, 0]);
        assert_eq!(ranked.weight, Some(vec![0.75, 1.5, 0.75]));
        assert_eq!(ranked.rows().totals().k(), 3.0);
        let mut cuts = Vec::new();
        ranked.rows().for_each_cut(|before, after| cuts.push((before.k(), after.k())));
        assert_eq!(cuts, [(0.0, 2.25), (2.25, 3.0)]);
    }
}
