//! Bootstrap draws of long tables: rows next to each other in the ranking are added up before anything is measured.
//!
//! A draw of n rows costs n steps of every metric. Here the ranking is cut into buckets of equal size (a tie is never
//! parted), and a draw first adds up the rows of each bucket and arm, eight draws at a time; the metrics then see a few
//! thousand rows, each the mean of many. The draws are the same as those of [`Bootstrap::draw`]. What is lost is the order
//! within a bucket: the difference that this makes to the sample itself is taken off every draw.

use rayon::prelude::*;

use super::bootstrap::{Bootstrap, Draws};
use super::ranked::Ranked;
use super::resample;
use crate::dispatch::kernels;
use crate::{Error, Progress, Result, Rng};

/// Tables with fewer rows are drawn row by row.
pub(super) const MIN_ROWS: usize = 1 << 17;
const N_BUCKETS: usize = 2048;
/// Draws that are added up together.
const LANES: usize = 8;
/// Rows that are added up in single precision before they are added to the rest.
const BLOCK: usize = 1024;

/// A long table, and `Q` columns of it besides the weight that metrics need the sums of.
pub(super) struct Coarse<'a, const Q: usize> {
    ranked: &'a Ranked,
    /// The unit of every row, in the order of cells.
    units: Vec<u32>,
    /// The cell of every place of the ranking.
    cell_of: Vec<u32>,
    /// By cell (treated, then control, of each bucket), where its rows end.
    ends: Vec<usize>,
    /// Weight, and weight times column, of each of `rows`.
    weight: Vec<f32>,
    values: Vec<[f32; Q]>,
    /// Mean score of each cell.
    score: Vec<f64>,
}

/// The cells of one draw as rows of a table, and the mean of each column in each.
pub(super) struct Drawn<const Q: usize> {
    pub(super) ranked: Ranked,
    pub(super) means: [Vec<f64>; Q],
}

impl<'a, const Q: usize> Coarse<'a, Q>
where
    [f32; Q]: Summed<Q>,
{
    /// `columns` are in the order of the ranking; the first is the outcome.
    pub(super) fn new(ranked: &'a Ranked, columns: [&[f64]; Q]) -> Self {
        let n_rows = ranked.n_rows();
        let bucket_rows = n_rows.div_ceil(N_BUCKETS).max(1);
        let (mut rows, mut ends, mut score) = (Vec::with_capacity(n_rows), Vec::new(), Vec::new());
        let mut first = 0;
        while first < n_rows {
            let full = (first + bucket_rows).min(n_rows) - 1;
            let last = (full..n_rows).find(|row| ranked.is_last_of_tie(*row)).unwrap_or(n_rows - 1);
            for treated in [true, false] {
                let start = rows.len();
                rows.extend(
                    (first..=last).filter(|row| ranked.is_treated(*row) == treated).map(|row| row as u32),
                );
                ends.push(rows.len());
                let own = &rows[start..];
                let sum: f64 = own.iter().map(|row| ranked.score()[*row as usize]).sum();
                let mean = if own.is_empty() { ranked.score()[first] } else { sum / own.len() as f64 };
                score.push(mean);
            }
            first = last + 1;
        }
        let mut cell_of = vec![0; n_rows];
        let mut start = 0;
        for (cell, end) in ends.iter().enumerate() {
            rows[start..*end].iter().for_each(|row| cell_of[*row as usize] = cell as u32);
            start = *end;
        }
        let weight: Vec<f32> = rows.iter().map(|row| ranked.weight_of(*row as usize) as f32).collect();
        let value = |(row, weight): (&u32, &f32)| columns.map(|column| weight * column[*row as usize] as f32);
        let values = rows.iter().zip(&weight).map(value).collect();
        let units = match ranked.cluster() {
            None => rows,
            Some(cluster) => rows.iter().map(|row| cluster[*row as usize]).collect(),
        };
        Self { ranked, units, cell_of, ends, weight, values, score }
    }

    /// The mean of a column in every cell of the sample, for what hardly differs within a cell.
    pub(super) fn mean_of(&self, column: &[f64]) -> Vec<f64> {
        let mut sums = vec![(0.0, 0.0); self.ends.len()];
        for (place, value) in column.iter().enumerate() {
            let (sum, n) = &mut sums[self.cell_of[place] as usize];
            *sum += value;
            *n += 1.0;
        }
        sums.into_iter().map(|(sum, n)| if n > 0.0 { sum / n } else { 0.0 }).collect()
    }

    /// What `measure` gives for every draw with replacement, as [`Bootstrap::draw`].
    pub(super) fn draw(
        &self,
        bootstrap: &Bootstrap,
        progress: &dyn Progress,
        measure: impl Fn(&Drawn<Q>) -> Vec<f64> + Sync,
        whole: &[f64],
    ) -> Result<Draws> {
        self.run(bootstrap, "bootstrap", resample::with_replacement, progress, measure, whole)
    }

    /// What `measure` gives for every half of the units, as [`Bootstrap::half_samples`].
    pub(super) fn half_samples(
        &self,
        bootstrap: &Bootstrap,
        progress: &dyn Progress,
        measure: impl Fn(&Drawn<Q>) -> Vec<f64> + Sync,
        whole: &[f64],
    ) -> Result<Draws> {
        self.run(bootstrap, "half-sample", resample::half, progress, measure, whole)
    }

    /// `whole` is what is measured row by row on the sample itself, or not a number where nothing is to be taken off.
    fn run(
        &self,
        bootstrap: &Bootstrap,
        stream: &str,
        fill: impl Fn(&mut Rng, &mut [u8]) + Sync,
        progress: &dyn Progress,
        measure: impl Fn(&Drawn<Q>) -> Vec<f64> + Sync,
        whole: &[f64],
    ) -> Result<Draws> {
        bootstrap.check()?;
        let seed = bootstrap.seed.child(stream);
        let once = vec![[1; LANES]; self.ranked.n_units()];
        let same = measure(&self.drawn(&self.sums(&once), 0));
        let shift = |(whole, same): (&f64, &f64)| if whole.is_finite() { whole - same } else { 0.0 };
        let shift: Vec<f64> = whole.iter().zip(&same).map(shift).collect();
        let groups: Vec<usize> = (0..bootstrap.draws).step_by(LANES).collect();
        let measured: Result<Vec<Vec<Vec<f64>>>> = groups
            .into_par_iter()
            .map_init(
                || (Vec::new(), Vec::new()),
                |(units, counts): &mut (Vec<u8>, Vec<[u8; LANES]>), first| {
                    if progress.cancelled() {
                        return Err(Error::cancelled());
                    }
                    let draws = first..bootstrap.draws.min(first + LANES);
                    units.resize(self.ranked.n_units(), 0);
                    counts.resize(self.ranked.n_units(), [0; LANES]);
                    for (lane, draw) in draws.clone().enumerate() {
                        fill(&mut seed.index(draw as u64).rng(), units);
                        counts.iter_mut().zip(&*units).for_each(|(counts, unit)| counts[lane] = *unit);
                    }
                    let sums = self.sums(counts);
                    let of_lane = |lane: usize| {
                        let measured = measure(&self.drawn(&sums, lane));
                        progress.advance(1);
                        measured.iter().zip(&shift).map(|(value, shift)| value + shift).collect()
                    };
                    Ok((0..draws.len()).map(of_lane).collect())
                },
            )
            .collect();
        Ok(Draws::of(measured?.into_iter().flatten().collect()))
    }

    /// For every cell the weight and the columns, added up for each lane.
    fn sums(&self, counts: &[[u8; LANES]]) -> Vec<Cell<Q>> {
        let mut start = 0;
        let cell = |end: &usize| {
            let rows = start..*end;
            start = *end;
            let mut total = Cell::default();
            let blocks = self.units[rows.clone()].chunks(BLOCK).zip(self.weight[rows.clone()].chunks(BLOCK));
            for ((units, weight), values) in blocks.zip(self.values[rows].chunks(BLOCK)) {
                let (mut mass, mut sums) = ([0.0; LANES], [[0.0; LANES]; Q]);
                <[f32; Q]>::add_up(units, weight, values, counts, &mut mass, &mut sums);
                total.add(&mass, &sums);
            }
            total
        };
        self.ends.iter().map(cell).collect()
    }

    /// The cells of a lane as a table.
    fn drawn(&self, sums: &[Cell<Q>], lane: usize) -> Drawn<Q> {
        let mass: Vec<f64> = sums.iter().map(|cell| cell.mass[lane]).collect();
        let means: [Vec<f64>; Q] = std::array::from_fn(|column| {
            let mean = |(cell, mass): (&Cell<Q>, &f64)| {
                if *mass > 0.0 { cell.sums[column][lane] / mass } else { 0.0 }
            };
            sums.iter().zip(&mass).map(mean).collect()
        });
        let ranked = self.ranked.of_cells(self.score.clone(), means[0].clone(), mass);
        Drawn { ranked, means }
    }
}

/// Sums over the rows of a cell, by lane.
#[derive(Clone, Copy)]
struct Cell<const Q: usize> {
    mass: [f64; LANES],
    sums: [[f64; LANES]; Q],
}

impl<const Q: usize> Default for Cell<Q> {
    fn default() -> Self {
        Self { mass: [0.0; LANES], sums: [[0.0; LANES]; Q] }
    }
}

impl<const Q: usize> Cell<Q> {
    fn add(&mut self, mass: &[f32; LANES], sums: &[[f32; LANES]; Q]) {
        self.mass.iter_mut().zip(mass).for_each(|(total, mass)| *total += f64::from(*mass));
        for (total, sums) in self.sums.iter_mut().zip(sums) {
            total.iter_mut().zip(sums).for_each(|(total, sum)| *total += f64::from(*sum));
        }
    }
}

/// Columns that can be added up: so many have a kernel.
pub(super) trait Summed<const Q: usize>: Sized {
    /// Adds count · weight and count · value of every row to the sums of each lane.
    fn add_up(
        units: &[u32],
        weight: &[f32],
        values: &[[f32; Q]],
        counts: &[[u8; LANES]],
        mass: &mut [f32; LANES],
        sums: &mut [[f32; LANES]; Q],
    );
}

macro_rules! summed {
    ($($q:literal $kernel:ident),*) => {$(
        kernels! {
            /// [`Summed::add_up`] of so many columns.
            fn $kernel(
                units: &[u32],
                weight: &[f32],
                values: &[[f32; $q]],
                counts: &[[u8; LANES]],
                mass: &mut [f32; LANES],
                sums: &mut [[f32; LANES]; $q],
            ) {
                for ((unit, weight), values) in units.iter().zip(weight).zip(values) {
                    let counts = counts[*unit as usize].map(f32::from);
                    for (mass, count) in mass.iter_mut().zip(&counts) {
                        *mass += count * weight;
                    }
                    for (sums, value) in sums.iter_mut().zip(values) {
                        for (sum, count) in sums.iter_mut().zip(&counts) {
                            *sum += count * value;
                        }
                    }
                }
            }
        }

        impl Summed<$q> for [f32; $q] {
            fn add_up(
                units: &[u32],
                weight: &[f32],
                values: &[[f32; $q]],
                counts: &[[u8; LANES]],
                mass: &mut [f32; LANES],
                sums: &mut [[f32; LANES]; $q],
            ) {
                $kernel(units, weight, values, counts, mass, sums);
            }
        }
    )*};
}

summed!(1 add_up_1, 2 add_up_2, 4 add_up_4);

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::evaluate::Metric;
    use crate::evaluate::metric::reading::{Columns, read};
    use crate::evaluate::{Params, Sample};
    use crate::{Seed, Silent};

    /// Draw by draw, bucket by bucket against row by row.
    fn compare(ties: bool, clusters: bool) {
        const N: usize = 20_000;
        let mut rng = Seed::new(5).rng();
        let score: Vec<f64> = (0..N)
            .map(|_| {
                let score = rng.random_range(-1.0..2.0_f64);
                if ties { (score * 20.0).round() / 20.0 } else { score }
            })
            .collect();
        let treated: Vec<bool> = (0..N).map(|_| rng.random_bool(0.3)).collect();
        let outcome: Vec<f64> = score
            .iter()
            .zip(&treated)
            .map(|(score, treated)| 3.0 + rng.random_range(-2.0..2.0) + if *treated { *score } else { 0.0 })
            .collect();
        let cluster: Vec<u32> = (0..N as u32).map(|row| row * 7919 % 6000).collect();
        let mut sample = Sample::new(&score, &outcome, &treated).unwrap();
        if clusters {
            sample = sample.with_cluster(&cluster).unwrap();
        }
        let ranked = Ranked::new(&sample);
        let arm: Vec<f64> = treated.iter().map(|treated| f64::from(*treated) - 0.3).collect();
        let residual: Vec<f64> = outcome.iter().map(|outcome| outcome - 3.15).collect();
        let dr: Vec<f64> = residual.iter().zip(&arm).map(|(residual, arm)| residual * arm / 0.21).collect();
        let columns = Columns {
            dr_score: ranked.ranked_column(&dr),
            residual: ranked.ranked_column(&residual),
            arm_residual: ranked.ranked_column(&arm),
            truth: None,
            residual_variance: None,
        };
        let bootstrap = Bootstrap { draws: 21, ..Bootstrap::default() };
        let params = Params { bootstrap, ..Params::default() }.check().unwrap();
        let whole = read(ranked.rows(), &columns, &params);
        let exact = bootstrap.draw(&ranked, &Silent, |rows| read(rows, &columns, &params).0).unwrap();
        let squares: Vec<f64> = columns.residual.iter().map(|residual| residual * residual).collect();
        let summed = [ranked.outcome(), &columns.dr_score, &columns.residual, &squares];
        let coarse = Coarse::new(&ranked, summed);
        let arm_residual = coarse.mean_of(&columns.arm_residual);
        let measure = |drawn: &Drawn<4>| {
            let [_, dr_score, residual, squares] = drawn.means.clone();
            let arm_residual = arm_residual.clone();
            let variance = squares.iter().zip(&residual).map(|(square, mean)| square - mean * mean).collect();
            let residual_variance = Some(variance);
            let columns = Columns { dr_score, residual, arm_residual, truth: None, residual_variance };
            read(drawn.ranked.rows(), &columns, &params).0
        };
        let coarse = coarse.draw(&bootstrap, &Silent, measure, &whole.0).unwrap();
        for scalar in [
            Metric::Ate,
            Metric::AtePredicted,
            Metric::Auuc,
            Metric::Qini,
            Metric::QiniCausalml,
            Metric::CalibrationSlope,
            Metric::RateAutoc,
            Metric::RateQini,
            Metric::RLoss,
            Metric::RScore,
        ] {
            let place = scalar as usize;
            let spread = exact.standard_deviation(place).unwrap();
            for (exact, coarse) in exact.values().iter().zip(coarse.values()) {
                let difference = (exact[place] - coarse[place]).abs();
                assert!(
                    difference < 0.05 * spread,
                    "{scalar:?}: {difference} where draws scatter by {spread}"
                );
            }
        }
    }

    #[test]
    fn buckets_give_the_draws_of_rows() {
        compare(false, false);
        compare(true, false);
        compare(false, true);
    }
}
