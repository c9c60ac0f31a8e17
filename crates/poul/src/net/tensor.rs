//! Named numbers: what models hand to their file and take from it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::layout::Layout;
use crate::Result;
use crate::stored::damaged;

/// Numbers under a name, in a shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor<'a> {
    /// Unique in its model.
    pub name: String,
    /// The length of each axis, the slowest first.
    pub shape: Vec<usize>,
    /// As many numbers as the shape says.
    pub values: Cow<'a, [f32]>,
}

impl<'a> Tensor<'a> {
    /// A tensor.
    pub fn new(name: impl Into<String>, shape: &[usize], values: impl Into<Cow<'a, [f32]>>) -> Self {
        Self { name: name.into(), shape: shape.to_vec(), values: values.into() }
    }
}

/// The tensors of a model file, to be taken by name.
#[derive(Clone, Debug, Default)]
pub struct Tensors(BTreeMap<String, (Vec<usize>, Vec<f32>)>);

impl Tensors {
    /// Adds a tensor, which replaces one of the same name.
    pub fn insert(&mut self, name: impl Into<String>, shape: Vec<usize>, values: Vec<f32>) {
        self.0.insert(name.into(), (shape, values));
    }

    /// Takes a tensor out, which must be there, have this shape and hold finite numbers only.
    pub fn take(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let damaged = |what: String| damaged(what).at(format!("tensor `{name}`"));
        let (found, values) = self.0.remove(name).ok_or_else(|| damaged("is missing".to_owned()))?;
        let n_values = shape.iter().try_fold(1_usize, |n, length| n.checked_mul(*length));
        if found != shape || n_values != Some(values.len()) {
            return Err(damaged(format!("has shape {found:?} instead of {shape:?}")));
        }
        match values.iter().find(|value| !value.is_finite()) {
            Some(value) => Err(damaged(format!("holds {value}"))),
            None => Ok(values),
        }
    }

    /// Takes a column out, however long.
    pub(crate) fn take_column(&mut self, name: &str) -> Result<Vec<f32>> {
        let length = self.shape(name).and_then(|shape| shape.first().copied()).unwrap_or(0);
        self.take(name, &[length, 1])
    }

    /// Takes out the weights of a network, whose matrices have the names that `name` gives them. All are found before anything is
    /// allocated: a file may promise more than there is memory for.
    pub(crate) fn take_weights(
        &mut self,
        layout: &Layout,
        name: impl Fn(&str) -> String,
    ) -> Result<Vec<f32>> {
        let segments = layout.segments().iter();
        let found =
            segments.map(|segment| self.take(&name(&segment.name), &[segment.n_rows, segment.n_cols]));
        let found = found.collect::<Result<Vec<_>>>()?;
        let mut weights = vec![0.0; layout.n_values()];
        for (segment, values) in layout.segments().iter().zip(found) {
            weights[segment.range()].copy_from_slice(&values);
        }
        Ok(weights)
    }

    /// Takes out all tensors whose names begin so, which they lose.
    pub(crate) fn split_off(&mut self, prefix: &str) -> Self {
        let names: Vec<String> =
            self.names().filter(|name| name.starts_with(prefix)).map(str::to_owned).collect();
        let mut own = Self::default();
        for name in names {
            if let Some(value) = self.0.remove(&name) {
                own.0.insert(name[prefix.len()..].to_owned(), value);
            }
        }
        own
    }

    /// The shape of a tensor, if it is there.
    pub(crate) fn shape(&self, name: &str) -> Option<&[usize]> {
        self.0.get(name).map(|(shape, _)| shape.as_slice())
    }

    /// The names that were not taken yet, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl<'a> FromIterator<Tensor<'a>> for Tensors {
    fn from_iter<I: IntoIterator<Item = Tensor<'a>>>(all: I) -> Self {
        Self(all.into_iter().map(|own| (own.name, (own.shape, own.values.into_owned()))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_what_was_asked_for() {
        let mut tensors = Tensors::default();
        tensors.insert("w", vec![2, 3], vec![1.0; 6]);
        tensors.insert("nan", vec![1], vec![f32::NAN]);
        let message = |result: Result<Vec<f32>>| result.unwrap_err().to_string();
        assert_eq!(message(tensors.clone().take("v", &[1])), "tensor `v`: is missing");
        assert_eq!(
            message(tensors.clone().take("w", &[3, 2])),
            "tensor `w`: has shape [2, 3] instead of [3, 2]"
        );
        assert!(message(tensors.clone().take("w", &[usize::MAX, 3])).contains("has shape"));
        assert_eq!(message(tensors.take("nan", &[1])), "tensor `nan`: holds NaN");
        tensors.insert("a.w", vec![1], vec![3.0]);
        let mut own = tensors.split_off("a.");
        assert_eq!((own.take("w", &[1]).unwrap(), own.names().count()), (vec![3.0], 0));
        assert_eq!(tensors.take("w", &[2, 3]).unwrap(), [1.0; 6]);
        assert_eq!(tensors.names().count(), 0);
    }
}
