//! The valid inputs that mutation starts from, made by code: a small experiment as text, Parquet and Arrow, and its policies.

use std::io::Write;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, DictionaryArray, Float32Array, Float64Array, Int32Array, Int64Array,
    RecordBatch, StringArray, TimestampMicrosecondArray, UInt8Array,
};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use flate2::Compression as GzipLevel;
use flate2::write::GzEncoder;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use crate::random::Random;

/// Policies of the tables, in the human form.
pub(crate) const POLICIES: &str = r#"[contexts]
peak = 3
off_peak = { weight = 1 }

[policies.control]
"*" = "none"

[policies.T1]
"*" = "none"
peak = "upgrade"

[policies.T2]
peak = { upgrade = 0.5, none = 0.5 }
off_peak = "taxi"

[attributes.actions.upgrade]
price = 12.5
kind = "ride"
free = false

[attributes.actions.taxi]
price = 3
kind = "ride"
free = true

[attributes.actions.none]
price = 0
kind = "nothing"
free = true
"#;

/// The same in the long form, with an exposure of contexts that the human form has too.
pub(crate) const LONG_POLICIES: &str = "policy,context,action,probability\ncontrol,peak,none,1\ncontrol,off_peak,none,1\n\
    T1,peak,upgrade,1\nT1,off_peak,none,1\nT2,peak,upgrade,0.5\nT2,peak,none,0.5\nT2,off_peak,taxi,1\n";

/// A configuration with something in every table.
pub(crate) const CONFIG: &str = r#"[data]
policies = "policies.toml"
outcome = ["y"]
auxiliary = ["cost"]
treatment = "policy"
control = "control"
features = ["age", "c*", "trips"]
exclude = "day"
weight = "w"
time = "seen"
stratum = "city"
id = ["user"]
design = "stratified"
population = "core = 1 and age is not null"
exposure-scale = "share"
exposure = { peak = "trips", off_peak = "age" }
shares = { control = 0.5, T1 = 0.25, T2 = 0.25 }
prediction = { y = "home" }
baseline_data = ["before.csv"]

[data.encoder]
max_levels = 8
min_level_rows = 2
heavy_tail = 6.0
clip = 10.0

[model]
learner = "poul"
members = 2
hidden = [8, 4]
outcome_model = "mlp"

[training]
epochs = 3
folds = 2
learning_rate = 1e-3
phases = [{ epochs = 2 }, { population = "core = 1", epochs = 1 }]

[learners.ridge.model]

[learners.s-learner.training]
epochs = 2

[compare]
seeds = 2

[tune]
"model.hidden" = [[8], [16, 8]]
"training.learning_rate" = { min = 1e-4, max = 1e-2, log = true }
"#;

/// A small experiment: policies, two outcomes, features of every kind, some cells missing.
pub(crate) fn table(n_rows: usize, seed: u64) -> RecordBatch {
    let mut random = Random::new(seed);
    let policies = ["control", "T1", "T2"];
    // Every policy is there, however few rows there are.
    let policy: Vec<usize> = (0..n_rows).map(|row| if row < 6 { row % 3 } else { random.below(3) }).collect();
    let age: Vec<f64> = (0..n_rows).map(|_| 18.0 + 50.0 * random.unit()).collect();
    let y = policy
        .iter()
        .zip(&age)
        .map(|(policy, age)| age / 20.0 + *policy as f64 * (age / 40.0 - 0.5) + random.normal());
    let y: Float64Array = y.collect::<Vec<f64>>().into();
    let cost: Float32Array = policy.iter().map(|policy| *policy as f32 * 0.5).collect::<Vec<f32>>().into();
    let cities = ["Rome", "Oslo", "Lima"];
    let city: DictionaryArray<Int32Type> =
        (0..n_rows).map(|row| (row % 7 != 3).then(|| cities[random.below(3)])).collect();
    let trips: Vec<Option<i64>> =
        (0..n_rows).map(|row| (row % 5 != 1).then(|| random.below(40) as i64)).collect();
    let core: Vec<Option<bool>> = (0..n_rows).map(|row| (row % 11 != 2).then(|| random.once_in(2))).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("user", Arc::new(StringArray::from((0..n_rows).map(|row| format!("u{row}")).collect::<Vec<_>>()))),
        (
            "policy",
            Arc::new(StringArray::from(policy.iter().map(|policy| policies[*policy]).collect::<Vec<_>>())),
        ),
        ("y", Arc::new(y)),
        ("cost", Arc::new(cost)),
        ("age", Arc::new(Float64Array::from(age))),
        ("city", Arc::new(city)),
        ("trips", Arc::new(Int64Array::from(trips))),
        ("core", Arc::new(BooleanArray::from(core))),
        ("home", Arc::new(Int32Array::from((0..n_rows as i32).map(|row| row / 2).collect::<Vec<_>>()))),
        ("w", Arc::new(UInt8Array::from((0..n_rows).map(|_| 1 + random.below(3) as u8).collect::<Vec<_>>()))),
        (
            "day",
            Arc::new(Date32Array::from((0..n_rows as i32).map(|row| 19_000 + row % 9).collect::<Vec<_>>())),
        ),
        (
            "seen",
            Arc::new(TimestampMicrosecondArray::from(
                (0..n_rows as i64).map(|row| row * 86_400_000_000).collect::<Vec<_>>(),
            )),
        ),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)))
        .expect("columns of one length")
}

/// The experiment as text.
pub(crate) fn csv(n_rows: usize, seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut text = String::from("user,policy,y,cost,age,city,trips,core,home,w,day\n");
    for row in 0..n_rows {
        let policy = if row < 6 { row % 3 } else { random.below(3) };
        let (age, city) = (18 + random.below(50), ["Rome", "Oslo", "Lima", ""][random.below(4)]);
        let y = age as f64 / 20.0 + policy as f64 + random.normal();
        let trips = if random.once_in(6) { String::new() } else { random.below(40).to_string() };
        text += &format!(
            "u{row},{},{y:.3},{:.2},{age},{city},{trips},{},{},{},2024-0{}-1{}\n",
            ["control", "T1", "T2"][policy],
            policy as f64 * 0.5,
            random.once_in(2),
            row / 2,
            1 + random.below(3),
            1 + row % 9,
            row % 10,
        );
    }
    text
}

/// As a gzip file.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), GzipLevel::fast());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("memory takes everything")
}

/// As Parquet, in every compression that is read, with small pages and row groups.
pub(crate) fn parquet(batch: &RecordBatch) -> Vec<Vec<u8>> {
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(Default::default()),
        Compression::GZIP(Default::default()),
        Compression::LZ4_RAW,
    ];
    let file = |(idx, codec): (usize, Compression)| {
        let properties = WriterProperties::builder()
            .set_compression(codec)
            .set_dictionary_enabled(idx % 2 == 0)
            .set_data_page_row_count_limit(16)
            .set_write_batch_size(8)
            .set_max_row_group_row_count(Some(if idx == 1 { 10 } else { 1000 }))
            .build();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties))
            .expect("a schema that Parquet has");
        writer.write(batch).expect("memory takes everything");
        writer.close().expect("memory takes everything");
        bytes
    };
    codecs.into_iter().enumerate().map(file).collect()
}

/// As Arrow IPC: files or streams, in every compression.
pub(crate) fn arrow(batch: &RecordBatch, is_file: bool) -> Vec<Vec<u8>> {
    let codecs = [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)];
    let written = |codec| {
        let options =
            IpcWriteOptions::default().try_with_compression(codec).expect("codecs that are built in");
        let (schema, mut bytes) = (batch.schema(), Vec::new());
        let half = batch.num_rows() / 2;
        let parts = [batch.slice(0, half), batch.slice(half, batch.num_rows() - half)];
        if is_file {
            let mut writer =
                FileWriter::try_new_with_options(&mut bytes, &schema, options).expect("a schema");
            parts
                .iter()
                .try_for_each(|part| writer.write(part))
                .and_then(|()| writer.finish())
                .expect("memory");
        } else {
            let mut writer =
                StreamWriter::try_new_with_options(&mut bytes, &schema, options).expect("a schema");
            parts
                .iter()
                .try_for_each(|part| writer.write(part))
                .and_then(|()| writer.finish())
                .expect("memory");
        }
        bytes
    };
    codecs.into_iter().map(written).collect()
}
