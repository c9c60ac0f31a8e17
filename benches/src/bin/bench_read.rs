//! How quickly a Parquet table becomes an encoded matrix: `cargo run --release -p benches --bin bench_read [ROWS] [COLUMNS]`.

use std::fs::File;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, Float32Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use poul::data::{Budget, Dataset, Encoder, Need, Roles, RowReader, Source, ValidEncoderParams};
use poul::{Result, Seed, Silent};
use rand::Rng;

fn main() -> Result<()> {
    let argument = |idx: usize, default: usize| {
        std::env::args().nth(idx).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (n_rows, n_columns) = (argument(1, 1_000_000), argument(2, 100));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("table.parquet");
    write(&path, n_rows, n_columns);
    let megabytes = (n_rows * n_columns * 4) as f64 / 1e6;
    let n_threads = rayon::current_num_threads();
    println!("{n_rows} rows x {n_columns} f32 columns: {megabytes:.0} MB decoded, {n_threads} threads");

    let source = Source::open(&path.to_string_lossy())?;
    let roles = Roles { outcome: vec!["y".into()], ..Roles::default() };
    let columns = roles.check(source.schema(), Need::FIT)?;
    let timed = |what: &str, start: Instant| {
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{what:<12} {seconds:6.2} s {:8.0} MB/s {:8.0} MB/s/thread",
            megabytes / seconds,
            megabytes / seconds / n_threads as f64
        );
    };
    let whole = Instant::now();
    let start = Instant::now();
    let mut reader = RowReader::new(&source, &columns)?;
    while reader.next_batch()?.is_some() {}
    timed("decode only", start);
    let start = Instant::now();
    let encoder = Encoder::fit(&source, &columns, &ValidEncoderParams::default(), &Silent)?;
    timed("fit", start);
    let start = Instant::now();
    let dataset = Dataset::read(&source, &columns, &encoder, &Budget::default(), &Silent)?;
    timed("encode", start);
    let start = Instant::now();
    let on_disk = Dataset::read(&source, &columns, &encoder, &Budget::of(1), &Silent)?;
    timed("to disk", start);
    assert_eq!(on_disk.x.row(n_rows - 1), dataset.x.row(n_rows - 1));
    println!("in all       {:6.2} s", whole.elapsed().as_secs_f64());
    csv(n_rows.min(200_000), folder.path())
}

/// A CSV of numbers and text, opened (types) and read.
fn csv(n_rows: usize, folder: &std::path::Path) -> Result<()> {
    let mut rng = Seed::new(2).rng();
    let mut text = String::from("id,name,a,b,c,d,e,f\n");
    for row in 0..n_rows {
        text.push_str(&format!("{row},\"name, {}\"", rng.next_u64() % 1000));
        for _ in 0..6 {
            text.push_str(&format!(",{:.4}", (rng.next_u64() % 1_000_000) as f64 / 997.0));
        }
        text.push('\n');
    }
    let path = folder.join("table.csv");
    std::fs::write(&path, &text).expect("a CSV file");
    let megabytes = text.len() as f64 / 1e6;
    let start = Instant::now();
    let source = Source::open(&path.to_string_lossy())?;
    println!(
        "csv types    {:6.2} s {:8.0} MB/s",
        start.elapsed().as_secs_f64(),
        megabytes / start.elapsed().as_secs_f64()
    );
    let start = Instant::now();
    let n_read: usize = source
        .batches(&source.column_names(), 1 << 16)?
        .map(|batch| batch.map(|batch| batch.num_rows()))
        .sum::<Result<usize>>()?;
    assert_eq!(n_read, n_rows);
    println!(
        "csv read     {:6.2} s {:8.0} MB/s",
        start.elapsed().as_secs_f64(),
        megabytes / start.elapsed().as_secs_f64()
    );
    Ok(())
}

fn write(path: &std::path::Path, n_rows: usize, n_columns: usize) {
    const BLOCK: usize = 1 << 16;
    let mut rng = Seed::new(1).rng();
    let mut writer: Option<ArrowWriter<File>> = None;
    for start in (0..n_rows).step_by(BLOCK) {
        let length = BLOCK.min(n_rows - start);
        let numbers = |rng: &mut poul::Rng| -> ArrayRef {
            let cell = |bits: u64| (bits >> 40) as f32 / 1e6 + (bits & 0xffff) as f32 / 3e3;
            Arc::new((0..length).map(|_| cell(rng.next_u64())).collect::<Float32Array>())
        };
        let mut columns: Vec<(String, ArrayRef)> = vec![
            (
                "policy".into(),
                Arc::new((0..length).map(|row| Some(["a", "b"][row % 2])).collect::<StringArray>()),
            ),
            ("y".into(), numbers(&mut rng)),
        ];
        columns.extend((0..n_columns).map(|idx| (format!("f{idx:03}"), numbers(&mut rng))));
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        let writer = writer.get_or_insert_with(|| {
            let properties = WriterProperties::builder()
                .set_compression(Compression::SNAPPY)
                .set_dictionary_enabled(false)
                .set_max_row_group_row_count(Some(1 << 17))
                .build();
            ArrowWriter::try_new(File::create(path).expect("a file"), batch.schema(), Some(properties))
                .expect("a writer")
        });
        writer.write(&batch).expect("a written batch");
    }
    writer.expect("at least one row").close().expect("a whole file");
}
