//! Damaged files are errors, never panics: random bytes and random changes of valid files.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float32Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use poul::Silent;
use poul::data::{Budget, Dataset, Need, Roles, Source, ValidEncoderParams};
use proptest::prelude::*;

fn table() -> RecordBatch {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("policy", Arc::new((0..300).map(|row| Some(["a", "b", "c"][row % 3])).collect::<StringArray>())),
        (
            "gmv",
            Arc::new((0..300).map(|row| (row % 7 > 0).then_some(row as f32 * 1.7)).collect::<Float32Array>()),
        ),
        ("age", Arc::new((0..300).map(|row| Some(row * 31 % 90)).collect::<Int64Array>())),
        ("core", Arc::new((0..300).map(|row| Some(row % 2 == 0)).collect::<BooleanArray>())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn parquet(compression: Compression) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_max_row_group_row_count(Some(128))
        .build();
    let table = table();
    let mut writer = ArrowWriter::try_new(Vec::new(), table.schema(), Some(properties)).unwrap();
    writer.write(&table).unwrap();
    writer.into_inner().unwrap()
}

fn ipc_file() -> Vec<u8> {
    let table = table();
    let options = IpcWriteOptions::default();
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &table.schema(), options).unwrap();
    writer.write(&table).unwrap();
    writer.write(&table.slice(0, 10)).unwrap();
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

fn ipc_stream() -> Vec<u8> {
    let table = table();
    let mut writer = StreamWriter::try_new(Vec::new(), &table.schema()).unwrap();
    writer.write(&table).unwrap();
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

const CSV: &str =
    "policy,gmv,age,core\na,1.5,30,true\n\"b, c\",,41,false\n\"it is \"\"so\"\"\",-2e3,7,\nd,NA,null,true\n";

/// Reads everything that can be read, as a table and by role; an error is as good as a result.
fn read(path: &Path) -> bool {
    let Ok(source) = Source::open(path.to_str().unwrap()) else { return false };
    let _ = source.fingerprint();
    let roles =
        Roles { outcome: vec!["gmv".into()], population: Some("gmv is not null".into()), ..Roles::default() };
    if let Ok(columns) = roles.check(source.schema(), Need::FIT) {
        let params = ValidEncoderParams::default();
        let _ = Dataset::read_and_fit(&source, &columns, &params, &Budget::of(1 << 20), &Silent);
    }
    let names = source.column_names();
    match source.batches(&names, 100) {
        Ok(batches) => batches.take(100).all(|batch| batch.is_ok()),
        Err(_) => false,
    }
}

fn read_bytes(extension: &str, bytes: &[u8]) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("t.{extension}"));
    std::fs::write(&path, bytes).unwrap();
    read(&path)
}

/// Bytes flipped, a stretch removed, the end cut.
fn damaged(valid: &[u8], flips: &[(prop::sample::Index, u8)], cut: Option<prop::sample::Index>) -> Vec<u8> {
    let mut bytes = valid.to_vec();
    for (at, value) in flips {
        let at = at.index(bytes.len());
        bytes[at] = *value;
    }
    if let Some(cut) = cut {
        bytes.truncate(cut.index(bytes.len()));
    }
    bytes
}

fn flips() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)
}

fn rare_cut() -> impl Strategy<Value = Option<prop::sample::Index>> {
    prop_oneof![4 => Just(None), 1 => any::<prop::sample::Index>().prop_map(Some)]
}

#[test]
fn the_valid_files_are_read() {
    assert!(read_bytes("parquet", &parquet(Compression::UNCOMPRESSED)));
    assert!(read_bytes("parquet", &parquet(Compression::SNAPPY)));
    assert!(read_bytes("arrow", &ipc_file()));
    assert!(read_bytes("arrow", &ipc_stream()));
    assert!(read_bytes("csv", CSV.as_bytes()));
}

#[test]
fn a_cut_parquet_file_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let whole = parquet(Compression::SNAPPY);
    for length in [4, 8, 100, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..length]).unwrap();
        let error = Source::open(path.to_str().unwrap()).err().unwrap();
        assert!(error.to_string().contains("t.parquet: cannot be read as Parquet"), "{error}");
    }
    assert!(File::open(&path).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(400), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_parquet_does_not_panic(flips in flips(), cut in rare_cut(), compressed: bool) {
        let compression = if compressed { Compression::SNAPPY } else { Compression::UNCOMPRESSED };
        read_bytes("parquet", &damaged(&parquet(compression), &flips, cut));
    }

    #[test]
    fn damaged_ipc_does_not_panic(flips in flips(), cut in rare_cut(), stream: bool) {
        let valid = if stream { ipc_stream() } else { ipc_file() };
        read_bytes("arrow", &damaged(&valid, &flips, cut));
    }

    #[test]
    fn damaged_csv_does_not_panic(flips in flips(), cut in rare_cut()) {
        read_bytes("csv", &damaged(CSV.as_bytes(), &flips, cut));
    }

    #[test]
    fn random_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), kind in 0..5) {
        let (extension, magic): (&str, &[u8]) = [
            ("csv", b"".as_slice()),
            ("parquet", b"PAR1"),
            ("arrow", b"ARROW1\0\0"),
            ("arrow", &[0xff; 4]),
            ("csv.gz", &[0x1f, 0x8b, 8, 0]),
        ][kind as usize];
        let mut whole = magic.to_vec();
        whole.extend(bytes);
        whole.extend(magic);
        read_bytes(extension, &whole);
    }
}
