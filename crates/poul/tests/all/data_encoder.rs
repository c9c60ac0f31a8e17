//! Features as numbers: scale, tails, gaps, levels, and what does not change them.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float32Array, Float64Array,
    Int64Array, NullArray, StringArray, TimestampMillisecondArray,
};
use arrow_schema::{DataType, Field, Schema};
use poul::Seed;
use poul::data::{ColumnKind, Encoder, EncoderFit, EncoderParams, Feature, ValidEncoderParams};
use rand::RngExt;

fn features(columns: &[(&str, ArrayRef)]) -> Vec<Feature> {
    let feature = |(name, array): &(&str, ArrayRef)| Feature {
        name: (*name).to_owned(),
        kind: ColumnKind::of(array.data_type()).unwrap(),
    };
    columns.iter().map(feature).collect()
}

fn fit(columns: &[(&str, ArrayRef)]) -> Encoder {
    fit_with(columns, &ValidEncoderParams::default())
}

fn fit_with(columns: &[(&str, ArrayRef)], params: &ValidEncoderParams) -> Encoder {
    let mut fit = EncoderFit::new(&features(columns), params);
    let n_rows = columns[0].1.len();
    // In uneven pieces, as batches come.
    for start in (0..n_rows).step_by(777) {
        let length = 777.min(n_rows - start);
        let rows: Vec<u64> = (start as u64..(start + length) as u64).collect();
        let arrays: Vec<ArrayRef> = columns.iter().map(|(_, array)| array.slice(start, length)).collect();
        fit.add(&rows, &arrays).unwrap();
    }
    fit.finish().unwrap()
}

/// Encoded columns by name.
fn encode(encoder: &Encoder, columns: &[ArrayRef]) -> Vec<(String, Vec<f32>)> {
    let n_rows = columns[0].len();
    let width = encoder.width();
    let mut out = vec![f32::NAN; n_rows * width];
    encoder.encode(columns, &mut out).unwrap();
    let column = |idx: usize| (0..n_rows).map(|row| out[row * width + idx]).collect();
    encoder.names().into_iter().enumerate().map(|(idx, name)| (name, column(idx))).collect()
}

fn column(encoded: &[(String, Vec<f32>)], name: &str) -> Vec<f32> {
    encoded.iter().find(|(other, _)| other == name).unwrap_or_else(|| panic!("no column {name}")).1.clone()
}

fn moments(values: &[f32]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().map(|value| f64::from(*value)).sum::<f64>() / n;
    let variance = values.iter().map(|value| (f64::from(*value) - mean).powi(2)).sum::<f64>() / n;
    (mean, variance.sqrt())
}

fn normals(n: usize) -> Vec<f64> {
    let mut rng = Seed::new(7).rng();
    (0..n).map(|_| (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0).collect()
}

#[test]
fn numbers_are_standardised_in_any_width_and_unit() {
    let base = normals(5000);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("f64", Arc::new(Float64Array::from_iter_values(base.iter().map(|value| value * 1e12 + 5e13)))),
        (
            "f32",
            Arc::new(Float32Array::from_iter_values(base.iter().map(|value| (value * 100.0 + 1e6) as f32))),
        ),
        ("i64", Arc::new(Int64Array::from_iter_values(base.iter().map(|value| (value * 1e6) as i64)))),
        (
            "day",
            Arc::new(Date32Array::from_iter_values(base.iter().map(|value| 19_000 + (value * 100.0) as i32))),
        ),
        (
            "ms",
            Arc::new(TimestampMillisecondArray::from_iter_values(
                base.iter().map(|value| 1_700_000_000_000 + (value * 1e9) as i64),
            )),
        ),
        (
            "money",
            Arc::new(
                Decimal128Array::from_iter_values(base.iter().map(|value| (value * 1e4) as i128))
                    .with_precision_and_scale(20, 2)
                    .unwrap(),
            ),
        ),
    ];
    let encoder = fit(&columns);
    assert_eq!(encoder.names(), ["f64", "f32", "i64", "day", "ms", "money"]);
    assert!(encoder.notes().is_empty());
    let arrays: Vec<ArrayRef> = columns.iter().map(|(_, array)| Arc::clone(array)).collect();
    let encoded = encode(&encoder, &arrays);
    let reference = column(&encoded, "f64");
    for (name, values) in &encoded {
        let (mean, sd) = moments(values);
        assert!(mean.abs() < 1e-5 && (sd - 1.0).abs() < 1e-5, "{name}: {mean} {sd}");
        assert!(values.iter().zip(&reference).all(|(a, b)| (a - b).abs() < 0.02), "{name}");
    }
}

#[test]
fn heavy_tails_are_bent_and_absurd_values_held() {
    let base = normals(20_000);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("spend", Arc::new(Float64Array::from_iter_values(base.iter().map(|value| (2.0 * value).exp())))),
        (
            "sparse",
            Arc::new(Float64Array::from_iter_values(
                base.iter().map(|value| if *value < 1.0 { 0.0 } else { (3.0 * value).exp() }),
            )),
        ),
        (
            "absurd",
            Arc::new(Float64Array::from_iter_values(
                base.iter().enumerate().map(|(row, value)| if row == 3 { 1e30 } else { *value }),
            )),
        ),
    ];
    let arrays: Vec<ArrayRef> = columns.iter().map(|(_, array)| Arc::clone(array)).collect();
    let encoder = fit(&columns);
    let encoded = encode(&encoder, &arrays);
    for (name, values) in &encoded {
        let (mean, sd) = moments(values);
        assert!(mean.abs() < 0.1 && (sd - 1.0).abs() < 0.15, "{name}: {mean} {sd}");
        assert!(values.iter().all(|value| value.abs() <= 10.0), "{name}");
    }
    // Order is kept: bending is monotone.
    let spend = column(&encoded, "spend");
    let mut order: Vec<usize> = (0..base.len()).collect();
    order.sort_by(|a, b| base[*a].total_cmp(&base[*b]));
    assert!(order.windows(2).all(|pair| spend[pair[0]] <= spend[pair[1]]));
    let wild: ArrayRef = Arc::new(Float64Array::from(vec![1e300, -1e300, f64::MAX, f64::MIN]));
    for (_, values) in encode(&encoder, &[Arc::clone(&wild), Arc::clone(&wild), wild]) {
        assert!(values.iter().all(|value| value.abs() <= 10.0), "{values:?}");
    }
    let straight = EncoderParams { heavy_tail: f64::INFINITY, clip: 1e6, ..EncoderParams::default() };
    let plain = encode(&fit_with(&columns[..1], &straight.check().unwrap()), &arrays[..1]);
    assert!(column(&plain, "spend").iter().fold(0.0_f32, |max, value| max.max(*value)) > 20.0);
}

#[test]
fn what_is_missing_is_central_and_marked_if_it_was_seen() {
    let cells = |row: usize| match row % 10 {
        0 => None,
        1 => Some(f64::NAN),
        2 => Some(f64::INFINITY),
        _ => Some((row % 17) as f64),
    };
    let whole = |row: usize| (row % 17) as f64;
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("gaps", Arc::new((0..1000).map(cells).collect::<Float64Array>())),
        (
            "gaps32",
            Arc::new((0..1000).map(|row| cells(row).map(|value| value as f32)).collect::<Float32Array>()),
        ),
        ("whole", Arc::new((0..1000).map(|row| Some(whole(row))).collect::<Float64Array>())),
        (
            "flag",
            Arc::new((0..1000).map(|row| (row % 4 > 0).then_some(row % 8 < 4)).collect::<BooleanArray>()),
        ),
        ("only", Arc::new((0..1000).map(|row| (row % 2 == 0).then_some(5)).collect::<Int64Array>())),
    ];
    let encoder = fit(&columns);
    let expected = [
        "gaps",
        "gaps (missing)",
        "gaps32",
        "gaps32 (missing)",
        "whole",
        "flag",
        "flag (missing)",
        "only (missing)",
    ];
    assert_eq!(encoder.names(), expected);
    assert_eq!(encoder.origins(), [0, 0, 1, 1, 2, 3, 3, 4]);
    let arrays: Vec<ArrayRef> = columns.iter().map(|(_, array)| Arc::clone(array)).collect();
    let encoded = encode(&encoder, &arrays);
    for name in ["gaps", "gaps32"] {
        let (values, marks) = (column(&encoded, name), column(&encoded, &format!("{name} (missing)")));
        for row in 0..1000 {
            assert_eq!(marks[row], if row % 10 < 3 { 1.0 } else { 0.0 });
            assert!(row % 10 >= 3 || values[row] == 0.0);
        }
    }
    let (mean, _) = moments(&column(&encoded, "flag"));
    assert!(mean.abs() < 1e-6);
    // A gap that fitting did not see is put at the centre without a mark.
    let nulls: ArrayRef = Arc::new(NullArray::new(2));
    let scored = encode(&encoder, &vec![nulls; 5]);
    assert_eq!(column(&scored, "whole"), [0.0, 0.0]);
    assert_eq!(column(&scored, "only (missing)"), [1.0, 1.0]);
}

#[test]
fn levels_go_by_frequency_then_name() {
    let level = |row: usize| match row % 100 {
        0..50 => Some("Rome"),
        50..70 => Some("Bern"),
        70..90 => Some("Aarau"),
        90..95 => None,
        other => Some(if row == 95 + 100 * 7 { "once" } else { ["x", "y", "z", "u", "v"][other - 95] }),
    };
    let plain: ArrayRef = Arc::new((0..3000).map(level).collect::<StringArray>());
    let dictionary: ArrayRef = Arc::new((0..3000).map(level).collect::<DictionaryArray<Int32Type>>());
    let few = EncoderParams { max_levels: 3, ..EncoderParams::default() }.check().unwrap();
    for array in [plain, dictionary] {
        let encoder = fit_with(&[("city", Arc::clone(&array))], &few);
        assert_eq!(
            encoder.names(),
            ["city=Rome", "city=Aarau", "city=Bern", "city (other)", "city (missing)"]
        );
        let scored: ArrayRef = Arc::new(StringArray::from(vec![Some("Bern"), Some("new"), None, Some("x")]));
        let encoded = encode(&encoder, &[scored]);
        assert_eq!(column(&encoded, "city=Bern"), [1.0, 0.0, 0.0, 0.0]);
        assert_eq!(column(&encoded, "city (other)"), [0.0, 1.0, 0.0, 1.0]);
        assert_eq!(column(&encoded, "city (missing)"), [0.0, 0.0, 1.0, 0.0]);
        let all = encode(&encoder, &[array]);
        for row in 0..3000 {
            assert_eq!(all.iter().map(|(_, values)| values[row]).sum::<f32>(), 1.0);
        }
    }
}

#[test]
fn very_many_levels_stay_bounded_and_the_frequent_are_found() {
    let level = |row: usize| if row.is_multiple_of(3) { "common".to_owned() } else { format!("user {row}") };
    let columns: Vec<(&str, ArrayRef)> =
        vec![("id", Arc::new((0..600_000).map(|row| Some(level(row))).collect::<StringArray>()))];
    let encoder = fit(&columns);
    assert_eq!(encoder.names(), ["id=common", "id (other)"]);
    assert!(encoder.notes()[0].contains("more than 65536 levels"), "{:?}", encoder.notes());
}

#[test]
fn features_that_say_nothing_are_dropped_with_a_note() {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("x", Arc::new((0..100).map(|row| Some(f64::from(row))).collect::<Float64Array>())),
        ("same", Arc::new(Int64Array::from(vec![3; 100]))),
        ("word", Arc::new(StringArray::from(vec!["w"; 100]))),
        ("empty", Arc::new(Float64Array::from(vec![None; 100]))),
        ("never", Arc::new(BooleanArray::from(vec![false; 100]))),
    ];
    let encoder = fit(&columns);
    assert_eq!(encoder.names(), ["x"]);
    assert_eq!(encoder.notes().len(), 4);
    assert_eq!(encoder.notes()[0], "feature `same` is constant: dropped");
    assert_eq!(encoder.notes()[2], "feature `empty` is missing in every row: dropped");
    assert_eq!(encoder.features().count(), 5);
    let mut fit = EncoderFit::new(&features(&columns[1..2]), &ValidEncoderParams::default());
    fit.add(&[0], &[columns[1].1.slice(0, 1)]).unwrap();
    assert!(fit.finish().err().unwrap().to_string().contains("no feature varies"));
}

#[test]
fn a_stored_encoder_encodes_the_same_on_any_number_of_threads() {
    let base = normals(3000);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("a", Arc::new(Float32Array::from_iter_values(base.iter().map(|value| *value as f32)))),
        ("b", Arc::new(Float64Array::from_iter_values(base.iter().map(|value| (3.0 * value).exp())))),
        ("c", Arc::new((0..3000).map(|row| Some(format!("l{}", row % 40))).collect::<StringArray>())),
    ];
    let arrays: Vec<ArrayRef> = columns.iter().map(|(_, array)| Arc::clone(array)).collect();
    let pool = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
    let one = pool(1).install(|| fit(&columns));
    let four = pool(4).install(|| fit(&columns));
    assert_eq!(one, four);
    let encoded = pool(1).install(|| encode(&one, &arrays));
    assert_eq!(encoded, pool(4).install(|| encode(&four, &arrays)));
    let stored: Encoder = serde_json::from_str(&serde_json::to_string(&one).unwrap()).unwrap();
    assert_eq!(stored.names(), one.names());
    for ((_, a), (_, b)) in encoded.iter().zip(encode(&stored, &arrays)) {
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-6));
    }
    // Row by row or all at once: a row's numbers depend on the row alone.
    for row in [0, 255, 256, 2999] {
        let alone: Vec<ArrayRef> = arrays.iter().map(|array| array.slice(row, 1)).collect();
        for ((_, whole), (_, single)) in encoded.iter().zip(encode(&one, &alone)) {
            assert_eq!(whole[row], single[0]);
        }
    }
}

#[test]
fn scoring_checks_the_schema() {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("age", Arc::new((0..100).map(|row| Some(f64::from(row))).collect::<Float64Array>())),
        ("city", Arc::new((0..100).map(|row| Some(["a", "b"][row % 2])).collect::<StringArray>())),
    ];
    let encoder = fit(&columns);
    let schema = |age: &str, age_type, city_type| {
        Schema::new(vec![
            Field::new("new", DataType::Utf8, true),
            Field::new(age, age_type, true),
            Field::new("city", city_type, true),
        ])
    };
    let dictionary = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    encoder.check_schema(&schema("age", DataType::Int32, dictionary)).unwrap();
    encoder.check_schema(&schema("age", DataType::Null, DataType::Utf8)).unwrap();
    let missing = encoder.check_schema(&schema("agee", DataType::Int32, DataType::Utf8)).err().unwrap();
    assert!(missing.to_string().contains("there is no column `age`"));
    assert_eq!(missing.hint_text(), Some("did you mean `agee`?"));
    let changed = encoder.check_schema(&schema("age", DataType::Utf8, DataType::Utf8)).err().unwrap();
    assert!(changed.to_string().contains("column `age`: is text, but was a number"), "{changed}");
    let mut out = vec![0.0; encoder.width()];
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    assert!(encoder.encode(&[Arc::clone(&texts), texts], &mut out).is_err());
}
