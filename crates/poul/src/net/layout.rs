//! Where each weight of a network lives: named matrices in one flat arena, with how they start and how they learn.

use std::collections::BTreeSet;
use std::ops::Range;

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use crate::{Error, Result, Rng, Seed};

/// Matrices start at multiples of this many values, so that loops over them start on a cache line.
const ALIGNMENT: usize = 16;
/// Beyond this many weights their bytes cannot be counted.
const MOST_VALUES: usize = isize::MAX as usize / 16;

/// How a matrix of weights starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// Uniform within ±1/√n_in; the bias too. What PyTorch's linear layers start with.
    Uniform,
    /// Uniform within ±√(6/n_in); the bias is 0. For layers followed by ReLU (He et al. 2015).
    Kaiming,
    /// Uniform within ±√(6/(n_in + n_out)); the bias is 0. For layers followed by tanh (Glorot & Bengio 2010).
    Xavier,
    /// Normal with this standard deviation; the bias is 0.
    Normal(f32),
    /// The same value everywhere.
    Constant(f32),
}

/// A set of weights that share a learning rate and a decay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group(pub(super) usize);

/// A matrix of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight(pub(super) usize);

/// The weights of a dense layer: a matrix stored `[in, out]`, and a bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dense {
    /// The matrix.
    pub weight: Weight,
    /// The bias, where there is one.
    pub bias: Option<Weight>,
}

/// The weights of a layer normalisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerNorm {
    /// What each standardised column is multiplied by.
    pub gain: Weight,
    /// What is then added to it.
    pub shift: Weight,
}

/// One named matrix of the arena.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Its name, such as `g.0.weight`.
    pub name: String,
    /// Rows; inputs, for a dense layer.
    pub n_rows: usize,
    /// Columns; outputs, for a dense layer.
    pub n_cols: usize,
    /// Whose learning rate and decay it takes.
    pub group: Group,
    /// Whether weight decay applies; not to biases, gains and shifts.
    pub decays: bool,
    start: Start,
    offset: usize,
}

impl Segment {
    /// Where it lies in the arena.
    pub fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.n_rows * self.n_cols
    }
}

/// The matrices of a network, in the order in which they were declared.
#[derive(Clone, Debug)]
pub struct Layout {
    segments: Vec<Segment>,
    n_values: usize,
}

impl Layout {
    /// Starts an empty layout.
    pub fn builder() -> LayoutBuilder {
        LayoutBuilder { segments: Vec::new(), groups: Vec::new(), n_values: 0 }
    }

    /// The matrices.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The matrix of a weight of this network. Panics for a weight of another layout, as slices do.
    pub fn segment(&self, weight: Weight) -> &Segment {
        &self.segments[weight.0]
    }

    /// The length of the arena, with the gaps between matrices.
    pub(crate) fn n_values(&self) -> usize {
        self.n_values
    }

    /// Weights at their start. Each matrix has its own stream, so adding one leaves the others as they were.
    pub fn init(&self, seed: Seed) -> Vec<f32> {
        let mut weights = vec![0.0; self.n_values];
        for segment in &self.segments {
            segment.start.fill(seed.child(&segment.name).rng(), &mut weights[segment.range()]);
        }
        weights
    }

    /// The parts of matrices within `range` of the arena.
    pub(super) fn parts(&self, range: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> + '_ {
        let first = self.segments.partition_point(|segment| segment.range().end <= range.start);
        let after = self.segments.partition_point(|segment| segment.offset < range.end);
        (first..after).map(move |index| {
            let segment = self.segments[index].range();
            (index, segment.start.max(range.start)..segment.end.min(range.end))
        })
    }
}

/// Collects the matrices of a network.
#[derive(Clone, Debug)]
pub struct LayoutBuilder {
    segments: Vec<Segment>,
    groups: Vec<String>,
    n_values: usize,
}

impl LayoutBuilder {
    /// A group of this name, new or not.
    pub fn group(&mut self, name: &str) -> Group {
        match self.groups.iter().position(|group| group == name) {
            Some(index) => Group(index),
            None => {
                self.groups.push(name.to_owned());
                Group(self.groups.len() - 1)
            }
        }
    }

    /// A matrix.
    pub fn matrix(&mut self, name: &str, n_rows: usize, n_cols: usize, init: Init, group: Group) -> Weight {
        self.push(name.to_owned(), (n_rows, n_cols), Start::of(init, n_rows, n_cols), group, true)
    }

    /// A dense layer with a bias: `<name>.weight` and `<name>.bias`.
    pub fn dense(&mut self, name: &str, n_in: usize, n_out: usize, init: Init, group: Group) -> Dense {
        let weight = self.matrix(&format!("{name}.weight"), n_in, n_out, init, group);
        let bias = match init {
            Init::Uniform => Start::Within(1.0 / (n_in.max(1) as f32).sqrt()),
            _ => Start::Constant(0.0),
        };
        Dense { weight, bias: Some(self.push(format!("{name}.bias"), (1, n_out), bias, group, false)) }
    }

    /// A dense layer without a bias: `<name>.weight`.
    pub fn linear(&mut self, name: &str, n_in: usize, n_out: usize, init: Init, group: Group) -> Dense {
        Dense { weight: self.matrix(&format!("{name}.weight"), n_in, n_out, init, group), bias: None }
    }

    /// A layer normalisation of `n_cols` columns: `<name>.gain` and `<name>.shift`.
    pub fn layer_norm(&mut self, name: &str, n_cols: usize, group: Group) -> LayerNorm {
        LayerNorm {
            gain: self.push(format!("{name}.gain"), (1, n_cols), Start::Constant(1.0), group, false),
            shift: self.push(format!("{name}.shift"), (1, n_cols), Start::Constant(0.0), group, false),
        }
    }

    /// The layout, if names are unique, no matrix is empty and all fit into an address space.
    pub fn finish(self) -> Result<Layout> {
        if self.n_values > MOST_VALUES {
            return Err(Error::usage("a network of these sizes does not fit into any memory")
                .hint("give smaller widths, or fewer features"));
        }
        let mut names = BTreeSet::new();
        for Segment { name, n_rows, n_cols, group, .. } in &self.segments {
            if !names.insert(name) {
                return Err(Error::other(format!("two matrices of a network are called `{name}`")));
            }
            if *n_rows == 0 || *n_cols == 0 {
                return Err(Error::other(format!("the matrix `{name}` is empty ({n_rows} × {n_cols})")));
            }
            if group.0 >= self.groups.len() {
                return Err(Error::other(format!("the group of the matrix `{name}` is not of this network")));
            }
        }
        Ok(Layout { segments: self.segments, n_values: self.n_values })
    }

    fn push(
        &mut self,
        name: String,
        (n_rows, n_cols): (usize, usize),
        start: Start,
        group: Group,
        decays: bool,
    ) -> Weight {
        let offset = self.n_values;
        // What is too large stays too large, and `finish` refuses it.
        let end = offset.saturating_add(n_rows.saturating_mul(n_cols));
        self.n_values = end.checked_next_multiple_of(ALIGNMENT).unwrap_or(usize::MAX);
        self.segments.push(Segment { name, n_rows, n_cols, group, decays, start, offset });
        Weight(self.segments.len() - 1)
    }
}

/// An [`Init`] for a known shape.
#[derive(Clone, Copy, Debug)]
enum Start {
    Within(f32),
    Normal(f32),
    Constant(f32),
}

impl Start {
    fn of(init: Init, n_in: usize, n_out: usize) -> Self {
        let (n_in, n_out) = (n_in.max(1) as f32, n_out as f32);
        match init {
            Init::Uniform => Self::Within(1.0 / n_in.sqrt()),
            Init::Kaiming => Self::Within((6.0 / n_in).sqrt()),
            Init::Xavier => Self::Within((6.0 / (n_in + n_out)).sqrt()),
            Init::Normal(deviation) => Self::Normal(deviation),
            Init::Constant(value) => Self::Constant(value),
        }
    }

    fn fill(self, mut rng: Rng, weights: &mut [f32]) {
        for weight in weights {
            *weight = match self {
                Self::Within(limit) => rng.random_range(-1.0_f32..1.0) * limit,
                Self::Normal(deviation) => {
                    deviation * <StandardNormal as Distribution<f32>>::sample(&StandardNormal, &mut rng)
                }
                Self::Constant(value) => value,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> LayoutBuilder {
        let mut layout = Layout::builder();
        let group = layout.group("all");
        layout.dense("a", 100, 7, Init::Uniform, group);
        layout.matrix("b", 300, 5, Init::Normal(0.1), group);
        layout
    }

    #[test]
    fn a_new_matrix_leaves_the_others_as_they_were() {
        let seed = Seed::new(1);
        let before = small().finish().unwrap();
        let mut builder = small();
        let group = builder.group("all");
        builder.dense("c", 3, 3, Init::Xavier, group);
        let after = builder.finish().unwrap();
        assert_eq!(before.init(seed), after.init(seed)[..before.n_values()]);
        assert_ne!(before.init(seed), before.init(Seed::new(2)));
    }

    #[test]
    fn weights_start_with_the_spread_asked_for() {
        let layout = small().finish().unwrap();
        let weights = layout.init(Seed::new(3));
        let [a, bias, b] = [0, 1, 2].map(|index| &weights[layout.segments()[index].range()]);
        assert!(a.iter().chain(bias).all(|weight| weight.abs() <= 0.1 && *weight != 0.0));
        let variance = b.iter().map(|weight| f64::from(weight * weight)).sum::<f64>() / b.len() as f64;
        assert!((variance.sqrt() - 0.1).abs() < 0.01, "{variance}");
    }

    #[test]
    fn parts_cover_every_weight_once() {
        let layout = small().finish().unwrap();
        let mut seen = vec![0; layout.n_values()];
        for start in (0..layout.n_values()).step_by(48) {
            for (index, range) in layout.parts(start..(start + 48).min(layout.n_values())) {
                assert!(range.clone().all(|i| layout.segments()[index].range().contains(&i)));
                range.for_each(|i| seen[i] += 1);
            }
        }
        for segment in layout.segments() {
            assert!(segment.range().all(|i| seen[i] == 1), "{}", segment.name);
        }
    }

    #[test]
    fn wrong_layouts_are_named() {
        let mut builder = small();
        let group = builder.group("all");
        builder.matrix("b", 1, 1, Init::Constant(0.0), group);
        assert!(builder.finish().unwrap_err().to_string().contains("`b`"));
        let mut builder = small();
        builder.matrix("empty", 0, 1, Init::Constant(0.0), group);
        assert!(builder.finish().unwrap_err().to_string().contains("`empty`"));
    }
}
