//! Rows read by role: what is told when they are wrong, and what never changes a result.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float32Array, Float64Array, Int32Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use poul::data::{
    Budget, Dataset, Encoder, EncoderParams, Need, Roles, RowReader, Source, ValidEncoderParams,
};
use poul::{Error, Progress, Result, Silent};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn roles() -> Roles {
    Roles { outcome: names(&["gmv"]), ..Roles::default() }
}

fn csv(folder: &Path, text: &str) -> Source {
    let path = folder.join("t.csv");
    std::fs::write(&path, text).unwrap();
    Source::open(path.to_str().unwrap()).unwrap()
}

fn read_all(source: &Source, roles: &Roles) -> Result<RowReader> {
    let columns = roles.check(source.schema(), Need::FIT)?;
    let mut reader = RowReader::new(source, &columns)?;
    while reader.next_batch()?.is_some() {}
    Ok(reader)
}

fn error(text: &str, change: impl FnOnce(&mut Roles)) -> Error {
    let folder = tempfile::tempdir().unwrap();
    let mut roles = roles();
    change(&mut roles);
    read_all(&csv(folder.path(), text), &roles).err().expect("an error")
}

#[test]
fn batches_hold_vectors_by_role() {
    let folder = tempfile::tempdir().unwrap();
    let source = csv(
        folder.path(),
        "policy,gmv,x,w,c,s,p_a,p_b,m,day,keep\nb,1.5,1,2,7,true,.2,.8,0,1,yes\na,2,2,1,7,false,.3,.7,1,2,no\na,3,,0,8,true,.4,.6,2,3,yes\n",
    );
    let mut roles = roles();
    roles.weight = Some("w".into());
    roles.cluster = Some("c".into());
    roles.stratum = Some("s".into());
    roles.propensity = Some("p_*".into());
    roles.prediction.insert("gmv".into(), "m".into());
    roles.time = Some("day".into());
    roles.id = names(&["c"]);
    roles.population = Some("keep = \"yes\"".into());
    let columns = roles.check(source.schema(), Need::FIT).unwrap();
    let mut reader = RowReader::new(&source, &columns).unwrap();
    let batch = reader.next_batch().unwrap().unwrap();
    assert_eq!(columns.feature_names(), ["x", "keep"]);
    assert_eq!(batch.rows, [0, 2]);
    assert_eq!(batch.treatment, [[0, 1]]);
    assert_eq!(batch.outcomes, [[1.5, 3.0]]);
    assert_eq!(batch.weight, Some(vec![2.0, 0.0]));
    assert_eq!(batch.cluster, Some(vec![0, 1]));
    assert_eq!(batch.stratum, Some(vec![0, 0]));
    assert_eq!(batch.propensity, [[0.2, 0.4], [0.8, 0.6]]);
    assert_eq!(batch.predictions, [(0, vec![0.0, 2.0])]);
    assert_eq!(batch.features[0].len(), 2);
    assert_eq!(batch.ids[0].len(), 2);
    assert_eq!(batch.time.unwrap().len(), 2);
    assert!(reader.next_batch().unwrap().is_none());
    assert_eq!(reader.n_read(), 3);
    assert_eq!(reader.labels(0).name(0), Some("b"));
    assert_eq!(reader.cluster_labels().name(1), Some("8"));
    assert_eq!(reader.stratum_labels().name(0), Some("true"));
}

#[test]
fn wrong_cells_are_told_with_file_row_and_column() {
    let keep = |_: &mut Roles| {};
    let weight = |roles: &mut Roles| roles.weight = Some("w".into());
    let cases = [
        (
            error("policy,gmv,x\na,1,1\n,2,2\n", keep),
            "t.csv: row 1 (counted from 0): column `policy`: the treatment is null",
            "policy is not null",
        ),
        (
            error("policy,gmv,x\na,1,1\nb,,2\n", keep),
            "row 1 (counted from 0): column `gmv`: the outcome is null",
            "gmv is not null",
        ),
        (
            error("policy,gmv,x\na,,1\nb,2,2\n", keep),
            "row 0 (counted from 0): column `gmv`: the outcome is null",
            "gmv is not null",
        ),
        (
            error("policy,gmv,x\na,inf,1\nb,2,2\n", keep),
            "row 0 (counted from 0): column `gmv`: the outcome is infinite",
            "gmv < 1e30",
        ),
        (
            error("policy,gmv,x\na,,1\nb,,2\n", keep),
            "column `gmv`: the outcome is null in every row",
            "right column",
        ),
        (
            error("policy,gmv,x,w\na,1,1,-1\n", weight),
            "row 0 (counted from 0): column `w`: the weight is negative: -1",
            "from 0 on",
        ),
        (
            error("policy,gmv,x,w\na,1,1,\nb,1,1,1\n", weight),
            "row 0 (counted from 0): column `w`: the weight is null",
            "",
        ),
        (
            error("policy,gmv,x,w\na,1,1,inf\n", weight),
            "row 0 (counted from 0): column `w`: the weight is infinite",
            "",
        ),
        (error("policy,gmv,x,w\na,1,1,0\nb,1,1,0\n", weight), "column `w`: all weights are zero", ""),
        (
            error("policy,gmv,x,c\na,1,1,1\nb,1,1,\n", |roles| roles.cluster = Some("c".into())),
            "row 1 (counted from 0): column `c`: the cluster is null",
            "",
        ),
        (
            error("policy,gmv,x\na,1,1\n", |roles| roles.population = Some("x > 5".into())),
            "the population `x > 5` holds for none of the 1 rows",
            "",
        ),
        (
            error("policy,gmv,x,p\na,1,1,1.5\n", |roles| roles.propensity = Some("p".into())),
            "row 0 (counted from 0): column `p`: the propensity is 1.5",
            "between 0 and 1",
        ),
        (
            error("policy,gmv,x,m\na,1,1,inf\n", |roles| {
                roles.prediction.insert("gmv".into(), "m".into());
            }),
            "row 0 (counted from 0): column `m`: the prediction is infinite",
            "",
        ),
    ];
    for (error, what, hint) in cases {
        assert!(error.to_string().contains(what), "{error}: {what}");
        assert!(error.hint_text().unwrap_or_default().contains(hint), "{error}: {:?}", error.hint_text());
    }
}

#[test]
fn a_hint_for_an_unusual_name_can_be_used() {
    let error = error("policy,gross value,x\na,1,1\nb,,2\n", |roles| roles.outcome = names(&["gross value"]));
    assert!(error.hint_text().unwrap().contains("population = `gross value` is not null"));
}

/// A table of mixed types whose rows depend on their number alone.
fn batch(rows: std::ops::Range<u32>) -> RecordBatch {
    let number = |row: u32, salt: u32| (row.wrapping_mul(2_654_435_761).wrapping_add(salt * 977) >> 8) % 1000;
    let rows: Vec<u32> = rows.collect();
    let texts = |salt: u32, n: u32| -> ArrayRef {
        Arc::new(rows.iter().map(|row| Some(format!("v{}", number(*row, salt) % n))).collect::<StringArray>())
    };
    let mut columns: Vec<(String, ArrayRef)> = vec![
        ("policy".into(), texts(1, 4)),
        ("gmv".into(), Arc::new(rows.iter().map(|row| f64::from(number(*row, 2))).collect::<Float64Array>())),
        ("city".into(), texts(3, 50)),
        (
            "core".into(),
            Arc::new(rows.iter().map(|row| Some(number(*row, 4) < 300)).collect::<BooleanArray>()),
        ),
        ("user".into(), Arc::new(rows.iter().map(|row| (*row / 3) as i32).collect::<Int32Array>())),
    ];
    for salt in 5..25 {
        let cell =
            |row: &u32| (number(*row, salt + 50) > 20).then(|| (number(*row, salt) as f32 / 100.0).exp());
        columns.push((format!("f{salt}"), Arc::new(rows.iter().map(cell).collect::<Float32Array>())));
    }
    RecordBatch::try_from_iter(columns).unwrap()
}

fn write_parquet(path: &Path, batch: &RecordBatch) {
    let mut writer =
        ArrowWriter::try_new(std::fs::File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn dataset(location: &Path, budget: &Budget) -> (Dataset, Encoder, String) {
    let source = Source::open(location.to_str().unwrap()).unwrap();
    let roles =
        Roles { cluster: Some("user".into()), population: Some("core or city != 'v1'".into()), ..roles() };
    let columns = roles.check(source.schema(), Need::FIT).unwrap();
    let params = ValidEncoderParams::default();
    let (dataset, encoder) = Dataset::read_and_fit(&source, &columns, &params, budget, &Silent).unwrap();
    (dataset, encoder, source.fingerprint().unwrap())
}

fn assert_same(a: &(Dataset, Encoder, String), b: &(Dataset, Encoder, String)) {
    assert_eq!(a.0.x.values(), b.0.x.values());
    assert_eq!(a.0.rows, b.0.rows);
    assert_eq!(a.0.treatment, b.0.treatment);
    assert_eq!(a.0.treatment_labels[0].names(), b.0.treatment_labels[0].names());
    assert_eq!(a.0.outcomes, b.0.outcomes);
    assert_eq!(a.0.cluster, b.0.cluster);
    assert_eq!(a.1, b.1);
    assert_eq!(a.2, b.2);
}

#[test]
fn neither_listing_order_nor_threads_nor_memory_change_a_result() {
    let pieces = [("a.parquet", 0..30_000), ("b.parquet", 30_000..50_000), ("c.parquet", 50_000..100_000)];
    let folders: Vec<tempfile::TempDir> = (0..2).map(|_| tempfile::tempdir().unwrap()).collect();
    for (name, rows) in &pieces {
        write_parquet(&folders[0].path().join(name), &batch(rows.clone()));
    }
    // Written in the other order, with columns in another order: the names decide.
    for (name, rows) in pieces.iter().rev() {
        let batch = batch(rows.clone());
        let n_columns = batch.num_columns();
        let order: Vec<usize> =
            if *name == "a.parquet" { (0..n_columns).collect() } else { (0..n_columns).rev().collect() };
        write_parquet(&folders[1].path().join(name), &batch.project(&order).unwrap());
    }
    let budget = Budget::of(1 << 30);
    let pool = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
    let reference = pool(1).install(|| dataset(folders[0].path(), &budget));
    assert!(reference.0.n_rows() > 90_000 && reference.0.n_rows() < 100_000);
    let threaded = pool(4).install(|| dataset(folders[0].path(), &budget));
    assert_same(&reference, &threaded);
    let mut relisted = dataset(folders[1].path(), &budget);
    relisted.2.clone_from(&reference.2);
    assert_same(&reference, &relisted);
    let on_disk = dataset(folders[0].path(), &Budget::of(1000));
    assert!(on_disk.0.x.is_on_disk() && !reference.0.x.is_on_disk());
    assert_same(&reference, &on_disk);
}

#[test]
fn csv_and_parquet_give_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let table = batch(0..2000);
    write_parquet(&folder.path().join("t.parquet"), &table);
    let mut text =
        table.schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>().join(",");
    for row in 0..table.num_rows() {
        let cell = |column: &ArrayRef| {
            if let Some(texts) = column.as_any().downcast_ref::<StringArray>() {
                return texts.value(row).to_owned();
            }
            if let Some(bools) = column.as_any().downcast_ref::<BooleanArray>() {
                return bools.value(row).to_string();
            }
            let value = poul::data::numbers(&column.slice(row, 1)).unwrap()[0];
            if value.is_nan() { String::new() } else { value.to_string() }
        };
        let cells: Vec<String> = table.columns().iter().map(cell).collect();
        text.push('\n');
        text.push_str(&cells.join(","));
    }
    std::fs::write(folder.path().join("t.csv"), text).unwrap();
    let budget = Budget::of(1 << 30);
    let from_parquet = dataset(&folder.path().join("t.parquet"), &budget);
    let from_csv = dataset(&folder.path().join("t.csv"), &budget);
    assert_eq!(from_parquet.0.treatment, from_csv.0.treatment);
    assert_eq!(from_parquet.0.outcomes, from_csv.0.outcomes);
    assert_eq!(from_parquet.1.names(), from_csv.1.names());
    for (a, b) in from_parquet.0.x.values().iter().zip(from_csv.0.x.values()) {
        assert!((a - b).abs() < 1e-5, "{a} {b}");
    }
}

/// A public experiment, if the shared folder is there.
fn public(name: &str) -> Option<Source> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data").join(name);
    if !path.exists() {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    }
    Some(Source::open(path.to_str().unwrap()).unwrap())
}

#[test]
fn hillstrom_reads_whole() {
    let Some(source) = public("hillstrom.csv.gz") else { return };
    let roles = Roles {
        treatment: Some("segment".into()),
        outcome: names(&["visit", "spend"]),
        exclude: names(&["conversion"]),
        ..Roles::default()
    };
    let columns = roles.check(source.schema(), Need::FIT).unwrap();
    let (dataset, encoder) =
        Dataset::read_and_fit(&source, &columns, &ValidEncoderParams::default(), &Budget::default(), &Silent)
            .unwrap();
    assert_eq!(dataset.n_rows(), 64_000);
    assert_eq!(dataset.treatment_labels[0].len(), 3);
    assert!((dataset.outcomes[0].iter().sum::<f64>() / 64_000.0 - 0.1468).abs() < 1e-3);
    assert!(encoder.names().contains(&"zip_code=Rural".to_owned()));
    let width = encoder.width();
    let recency = encoder.names().iter().position(|name| name == "recency").unwrap();
    let mean: f64 = (0..64_000).map(|row| f64::from(dataset.x.row(row)[recency])).sum::<f64>() / 64_000.0;
    assert!(mean.abs() < 1e-4 && dataset.x.width() == width);
}

#[test]
fn a_factorial_experiment_has_a_label_set_per_context() {
    let Some(source) = public("conjoint_immigration_hh2015.csv.gz") else { return };
    let roles = Roles {
        treatment_columns: names(&["Education", "Gender", "Country of Origin"]),
        outcome: names(&["Chosen_Immigrant"]),
        features: names(&["ethnocentrism"]),
        cluster: Some("CaseID".into()),
        population: Some("`Country of Origin` != 'Iraq' and ethnocentrism is not null".into()),
        ..Roles::default()
    };
    let reader = read_all(&source, &roles).unwrap();
    assert_eq!(reader.labels(1).len(), 2);
    assert_eq!(reader.labels(2).code("Iraq"), None);
    assert!(reader.labels(2).code("France").is_some());
    assert!(reader.cluster_labels().len() <= 1396);
}

#[test]
fn a_clustered_experiment_keeps_its_households() {
    let Some(source) = public("gotv_social_pressure2008.csv.gz") else { return };
    let text_outcome =
        Roles { treatment: Some("treatment".into()), outcome: names(&["voted"]), ..Roles::default() };
    let error = text_outcome.check(source.schema(), Need::FIT).err().unwrap();
    assert!(error.to_string().contains("column `voted`: is text"), "{error}");
    let roles = Roles { outcome: names(&["hh_size"]), cluster: Some("hh_id".into()), ..text_outcome };
    let reader = read_all(&source, &roles).unwrap();
    assert_eq!(reader.n_read(), 344_084);
    assert_eq!(reader.cluster_labels().len(), 180_002);
    assert_eq!(reader.cluster_labels().name(0), Some("1"));
    assert_eq!(reader.labels(0).name(0), Some(" Civic Duty"));
}

#[test]
fn a_file_that_changes_under_the_reader_is_told() {
    struct Meddler(std::path::PathBuf, std::sync::atomic::AtomicBool);
    impl Progress for Meddler {
        fn finish(&self) {
            // After the first pass.
            if !self.1.swap(true, std::sync::atomic::Ordering::Relaxed) {
                let text = std::fs::read_to_string(&self.0).unwrap();
                std::fs::write(&self.0, text.replace("t,2,2.5", "t,2,9.5")).unwrap();
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    std::fs::write(&path, "policy,y,x\nc,1,0.5\nt,2,2.5\nc,3,1.5\nt,4,0.0\n").unwrap();
    let source = Source::open(&path.to_string_lossy()).unwrap();
    let roles = Roles { outcome: vec!["y".to_owned()], ..Roles::default() };
    let columns = roles.check(source.schema(), Need::FIT).unwrap();
    let params = EncoderParams::default().check().unwrap();
    let meddler = Meddler(path, false.into());
    let error =
        Dataset::read_and_fit(&source, &columns, &params, &Budget::default(), &meddler).err().unwrap();
    assert!(error.to_string().contains("changed while they were read"), "{error}");
}

#[test]
fn a_table_that_is_replaced_overwritten_cut_or_deleted_while_it_is_read_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let text = |first: usize| {
        let row = |row: usize| format!("{},{row},{}\n", ["c", "t"][row % 2], row * 3 % 7);
        "policy,y,x\n".to_owned() + &(first..first + 5000).map(row).collect::<String>()
    };
    let path = folder.path().join("a.csv");
    let overwritten = |path: &Path| std::fs::write(path, text(1)).unwrap();
    let replaced = |path: &Path| {
        let other = path.with_extension("new");
        std::fs::write(&other, text(0)).unwrap();
        std::fs::rename(other, path).unwrap();
    };
    let cut = |path: &Path| {
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_len(1000).unwrap();
    };
    let longer = |path: &Path| std::fs::write(path, text(0) + "c,1,1\n").unwrap();
    let deleted = |path: &Path| std::fs::remove_file(path).unwrap();
    let changes: [&dyn Fn(&Path); 5] = [&overwritten, &replaced, &cut, &longer, &deleted];
    for (change, n_before) in
        changes.iter().enumerate().flat_map(|(place, change)| [0, 1].map(|n| ((place, change), n)))
    {
        let (place, change) = change;
        std::fs::write(&path, text(0)).unwrap();
        let source = Source::open(path.to_str().unwrap()).unwrap();
        let mut batches = source.batches(&["y", "x"], 1000).unwrap();
        // Before the first batch, and between two.
        (0..n_before).for_each(|_| drop(batches.next().unwrap().unwrap()));
        // Times of files are as coarse as a tick of the system.
        std::thread::sleep(std::time::Duration::from_millis(20));
        change(&path);
        let error = batches.find_map(Result::err);
        let said = error.unwrap_or_else(|| panic!("change {place} after {n_before} batches")).to_string();
        let wanted = if place == 4 { "cannot read" } else { "the data changed while they were read" };
        assert!(said.contains(wanted) && said.contains("a.csv"), "{place} {n_before}: {said}");
        assert!(source.fingerprint().is_err());
    }
}

#[test]
fn wide_tables_are_opened_in_time_that_grows_with_their_width() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wide.csv");
    let width = 100_000;
    let line = |of: &dyn Fn(usize) -> String| (0..width).map(of).collect::<Vec<_>>().join(",");
    let names = line(&|column| format!("a_column_with_a_long_name_{column}"));
    std::fs::write(&path, format!("{names}\n{}\n", line(&|column| (column % 7).to_string()))).unwrap();
    let start = std::time::Instant::now();
    let source = Source::open(path.to_str().unwrap()).unwrap();
    let batch = source.batches(&source.column_names(), 10).unwrap().next().unwrap().unwrap();
    assert_eq!((batch.num_columns(), batch.num_rows()), (width, 1));
    // The square of the width is minutes in a build for tests.
    assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", start.elapsed());
}

#[cfg(target_os = "linux")]
#[test]
fn a_reader_that_is_dropped_leaves_nobody_who_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dropped.csv");
    let rows: String = (0..200_000).map(|row| format!("c,{row},{}\n", row % 7)).collect();
    std::fs::write(&path, format!("policy,y,x\n{rows}")).unwrap();
    let roles = Roles { outcome: vec!["y".to_owned()], ..Roles::default() };
    for _ in 0..20 {
        let source = Source::open(&path.to_string_lossy()).unwrap();
        let columns = roles.check(source.schema(), Need::FIT).unwrap();
        let mut reader = poul::data::RowReader::new(&source, &columns).unwrap();
        assert!(reader.next_batch().unwrap().is_some());
        drop(reader);
        let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let open =
            open.filter_map(|entry| std::fs::read_link(entry.path()).ok()).filter(|file| *file == path);
        assert_eq!(open.count(), 0);
    }
}
