//! Summaries as bytes, for the way from who made them to who merges them. Both have the same version: this is no file format.

use crate::{Error, Result};

/// What travels.
pub(crate) trait Wire: Sized {
    fn write(&self, bytes: &mut Vec<u8>);
    fn read(reader: &mut Reader<'_>) -> Result<Self>;
}

/// The bytes of a summary, headed by what it is.
pub(crate) fn to_bytes(kind: &str, content: &impl Wire) -> Vec<u8> {
    let mut bytes = header(kind);
    content.write(&mut bytes);
    bytes
}

/// The summary of that kind in these bytes, all of them.
pub(crate) fn from_bytes<T: Wire>(kind: &str, bytes: &[u8]) -> Result<T> {
    let Some(rest) = bytes.strip_prefix(header(kind).as_slice()) else {
        return Err(Error::input(format!("these bytes are no {kind} of this version"))
            .hint("merge what the same version of poul summed up"));
    };
    let mut reader = Reader { rest };
    let content = T::read(&mut reader)?;
    if reader.rest.is_empty() { Ok(content) } else { Err(broken()) }
}

fn header(kind: &str) -> Vec<u8> {
    format!("poul {} {kind}\n", env!("CARGO_PKG_VERSION")).into_bytes()
}

fn broken() -> Error {
    Error::input("the bytes of a summary are cut short, or changed")
}

/// What is left to read.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or_else(broken)?;
        self.rest = rest;
        Ok(*taken)
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Wire for $number {
            fn write(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn read(reader: &mut Reader<'_>) -> Result<Self> {
                Ok(Self::from_le_bytes(reader.take()?))
            }
        }
    )*};
}

numbers!(u32, u64, f64);

impl Wire for bool {
    fn write(&self, bytes: &mut Vec<u8>) {
        u32::from(*self).write(bytes);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(u32::read(reader)? != 0)
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn write(&self, bytes: &mut Vec<u8>) {
        (self.len() as u64).write(bytes);
        self.iter().for_each(|own| own.write(bytes));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let n = u64::read(reader)?;
        // Everything takes a byte at the least: no length that the bytes do not bear out is believed.
        if n > reader.rest.len() as u64 {
            return Err(broken());
        }
        (0..n).map(|_| T::read(reader)).collect()
    }
}

impl<T: Wire, const N: usize> Wire for [T; N] {
    fn write(&self, bytes: &mut Vec<u8>) {
        self.iter().for_each(|own| own.write(bytes));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let all: Vec<T> = (0..N).map(|_| T::read(reader)).collect::<Result<_>>()?;
        all.try_into().map_err(|_| broken())
    }
}

/// [`Wire`] of a struct: its fields, in their order.
macro_rules! wire {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl $crate::wire::Wire for $name {
            fn write(&self, bytes: &mut Vec<u8>) {
                $($crate::wire::Wire::write(&self.$field, bytes);)*
            }

            fn read(reader: &mut $crate::wire::Reader<'_>) -> $crate::Result<Self> {
                Ok(Self { $($field: $crate::wire::Wire::read(reader)?,)* })
            }
        }
    };
}

pub(crate) use wire;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_nothing_else_is() {
        let content = vec![[1.5_f64, f64::NEG_INFINITY], [0.1, -0.0]];
        let bytes = to_bytes("test", &content);
        assert_eq!(from_bytes::<Vec<[f64; 2]>>("test", &bytes).unwrap(), content);
        assert!(from_bytes::<Vec<[f64; 2]>>("outline", &bytes).is_err());
        for n in 0..bytes.len() {
            assert!(from_bytes::<Vec<[f64; 2]>>("test", &bytes[..n]).is_err(), "{n}");
        }
        let longer = [bytes.as_slice(), &[0]].concat();
        assert!(from_bytes::<Vec<[f64; 2]>>("test", &longer).is_err());
        let mut huge = header("test");
        u64::MAX.write(&mut huge);
        assert!(from_bytes::<Vec<f64>>("test", &huge).is_err());
    }
}
