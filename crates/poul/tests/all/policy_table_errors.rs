//! Everything that can be wrong with a table of policies or weights: the message names the file, the place and the fix.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use poul::policy::{ContextWeights, PolicySet, exposure_weights};
use poul::{Error, Kind};

/// Checks kind, message and hint.
#[track_caller]
fn assert_message(error: &Error, given: &str, message: &str, hint: &str) {
    assert_eq!(given, message);
    assert_eq!(error.kind(), Kind::Input);
    let given = error.hint_text().unwrap_or_default();
    assert!(!hint.is_empty() && given.contains(hint), "hint is `{given}`, not `{hint}`");
}

#[track_caller]
fn csv(text: &[u8], message: &str, hint: &str) {
    let error = PolicySet::from_csv(text, Path::new("p.csv"), None).unwrap_err();
    assert_message(&error, &error.to_string(), message, hint);
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn parquet(&self, name: &str, columns: Vec<(&str, ArrayRef)>) -> PathBuf {
        let path = self.0.path().join(name);
        // Nullable throughout, as most writers make it.
        let columns = columns.into_iter().map(|(name, array)| (name, array, true));
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        path
    }

    /// Checks an error whose message begins with a path in this folder.
    #[track_caller]
    fn assert(&self, error: &Error, message: &str, hint: &str) {
        let root = format!("{}/", self.0.path().display());
        assert!(error.to_string().starts_with(&root), "no file in `{error}`");
        assert_message(error, &error.to_string().replace(&root, ""), message, hint);
    }
}

fn strings(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

#[test]
fn csv_forms() {
    let number = "a probability is a number from 0 to 1";
    csv(b"", "p.csv: the file is empty", "name the columns");
    csv(b"policy,context,action\n", "p.csv: there are no policies", "define");
    csv(
        b"policy,contex,action\nT,a,x\n",
        "p.csv: there is no column `context`",
        "rename `contex` to `context`",
    );
    csv(
        b"policy,context\nT,a\n",
        "p.csv: there is no column `action`",
        "the columns are `policy`, `context`",
    );
    csv(b"policy,policy,action\n", "p.csv: column `policy` appears twice", "keep one");
    csv(
        b"policy,context,action,prob\nT,a,x,1\n",
        "p.csv: column `prob` is not one of a policy file without `probability`",
        "call it `probability`",
    );
    csv(
        b"policy,context,action\nT,a,x\nT,b\n",
        "p.csv: line 3: the line has 2 fields where the header has 3",
        "quote",
    );
    csv(b"policy,context,action\nT,a,x\nT,\xff,x\n", "p.csv: line 3: the text is not UTF-8", "UTF-8");
    csv(b"policy,context,acti\xffon\nT,a,x\n", "p.csv: line 1: the text is not UTF-8", "UTF-8");
    csv(
        b"policy,context,action,probability\nT,a,x,\n",
        "p.csv: line 2: policy `T`: context `a`: the probability is empty",
        number,
    );
    csv(
        b"policy,context,action,probability\n\n\"T\nU\",a,x,1\nT,a,x,one\n",
        "p.csv: line 5: policy `T`: context `a`: the probability `one` is not a number",
        number,
    );
    csv(
        b"policy,context,action,probability\nT,a,x,-1\n",
        "p.csv: line 2: policy `T`: context `a`: the probability of action `x` is negative (-1)",
        number,
    );
    csv(
        b"policy,context,action,probability\nT,a,x,NaN\n",
        "p.csv: line 2: policy `T`: context `a`: the probability of action `x` is not a number (NaN)",
        number,
    );
    csv(
        b"policy,context,action,probability\nT,b,x,1\nT,a,x,0.5\nT,a,y,0.25\n",
        "p.csv: line 3: policy `T`: context `a`: the probabilities sum to 0.75, not 1",
        "sum to 1",
    );
    csv(
        b"policy,context,action,probability\nT,a,x,0.5\nU,a,x,1\nT,a,x,0.5\n",
        "p.csv: line 4: policy `T`: context `a`: action `x` is given twice (first on line 2)",
        "keep one",
    );
    csv(
        b"policy,context,action\nT,a,x\nU,b,x\nT,b,x\n",
        "p.csv: line 3: policy `U`: the policy leaves out context `a`",
        "`*`",
    );
    csv(
        b"policy,context,action\nT,,x\n",
        "p.csv: line 2: policy `T`: the name of the context is empty",
        "a name",
    );
    csv(b"policy,context,action\n ,a,x\n", "p.csv: line 2: the name of the policy is empty", "a name");
}

#[test]
fn parquet_forms() {
    let folder = Folder::new();
    let good = || {
        vec![
            ("policy", strings(&[Some("T"), Some("T")])),
            ("context", strings(&[Some("a"), Some("b")])),
            ("action", strings(&[Some("x"), Some("x")])),
            ("probability", Arc::new(Float64Array::from(vec![1.0, 1.0])) as ArrayRef),
        ]
    };
    let check = |columns: Vec<(&str, ArrayRef)>, message: &str, hint: &str| {
        let path = folder.parquet("p.parquet", columns);
        folder.assert(&PolicySet::read(&path, None).unwrap_err(), message, hint);
    };
    let replaced = |column: usize, array: ArrayRef| {
        let mut columns = good();
        columns[column].1 = array;
        columns
    };
    check(good()[1..].to_vec(), "p.parquet: there is no column `policy`", "the columns are");
    let floats = Arc::new(Float64Array::from(vec![1.0, 2.0]));
    check(
        replaced(0, floats),
        "p.parquet: column `policy` holds Float64, not strings",
        "write the column as strings",
    );
    let flags = Arc::new(BooleanArray::from(vec![true, false]));
    check(
        replaced(3, flags),
        "p.parquet: column `probability` holds Boolean, not numbers",
        "write the column as numbers",
    );
    let text = strings(&[Some("1"), Some("1")]);
    check(
        replaced(3, text),
        "p.parquet: column `probability` holds Utf8, not numbers",
        "write the column as numbers",
    );
    let null = strings(&[Some("a"), None]);
    check(
        replaced(1, null),
        "p.parquet: row 1 (counted from 0): policy `T`: the name of the context is empty",
        "a name",
    );
    let null = Arc::new(Float64Array::from(vec![Some(1.0), None]));
    check(
        replaced(3, null),
        "p.parquet: row 1 (counted from 0): policy `T`: context `b`: the probability is missing",
        "from 0 to 1",
    );
    let nan = Arc::new(Float64Array::from(vec![1.0, f64::NAN]));
    check(
        replaced(3, nan),
        "p.parquet: row 1 (counted from 0): policy `T`: context `b`: the probability of action `x` is not a number (NaN)",
        "from 0 to 1",
    );
    let half = Arc::new(Float64Array::from(vec![1.0, 0.5]));
    check(
        replaced(3, half),
        "p.parquet: row 1 (counted from 0): policy `T`: context `b`: the probabilities sum to 0.5, not 1",
        "sum to 1",
    );
    check(
        replaced(1, strings(&[Some("a"), Some("a")])),
        "p.parquet: row 1 (counted from 0): policy `T`: context `a`: action `x` is given twice (first on row 0 (counted from 0))",
        "keep one",
    );
    let empty = good().into_iter().map(|(name, array)| (name, array.slice(0, 0))).collect();
    check(empty, "p.parquet: there are no policies", "define");

    let whole = std::fs::read(folder.parquet("p.parquet", good())).unwrap();
    for length in [0, 3, 8, whole.len() / 2, whole.len() - 1] {
        let path = folder.write("cut.parquet", &whole[..length]);
        let error = PolicySet::read(&path, None).unwrap_err();
        assert!(error.to_string().contains("cut.parquet: cannot read the Parquet file"), "{error}");
        assert!(error.hint_text().unwrap().contains("damaged or incomplete"));
    }
}

#[test]
fn weight_files() {
    let folder = Folder::new();
    let policies = folder.write("p.csv", "policy,context,action\nT,peak,x\nT,b,x\n");
    let check = |text: &[u8], message: &str, hint: &str| {
        let path = folder.write("w.csv", text);
        folder.assert(&PolicySet::read(&policies, Some(&path)).unwrap_err(), message, hint);
    };
    check(
        b"context,weight\nb,1\npeek,1\npeak,1\n",
        "w.csv: line 3: unknown context `peek`",
        "did you mean `peak`?",
    );
    check(
        b"context,weight\nb,1\n",
        "p.csv: line 2: policy `T`: context `peak` has no weight",
        "a weight in ",
    );
    check(
        b"context,weight\nb,1\nb,2\n",
        "w.csv: line 3: context `b` has two weights (first on line 2)",
        "keep one",
    );
    check(
        b"context,weight\nb,-1\n",
        "w.csv: line 2: the weight of context `b` is negative (-1)",
        "0 or more",
    );
    check(
        b"context,weight\nb,NaN\n",
        "w.csv: line 2: the weight of context `b` is not a number (NaN)",
        "0 or more",
    );
    check(b"context,count\nb,inf\n", "w.csv: line 2: the count of context `b` is not finite", "0 or more");
    check(
        b"context,weight\nb,heavy\n",
        "w.csv: line 2: the weight of context `b` `heavy` is not a number",
        "0 or more",
    );
    check(b"context,weight\n,1\n", "w.csv: line 2: the name of the context is empty", "fill it in");
    check(b"context,weight\nb,0\npeak,0\n", "w.csv: every context has weight 0", "a positive weight");
    check(b"context,weight\n*,1\n", "w.csv: line 2: `*` cannot have a weight", "its own weight");
    check(b"context,weight\n", "w.csv: there are no contexts", "at least one row");
    check(b"", "w.csv: the file is empty", "name the columns");
    check(b"contexts,weight\nb,1\n", "w.csv: there is no column `context`", "rename `contexts` to `context`");
    check(
        b"context,weight,count\nb,1,1\n",
        "w.csv: the file has both a column `weight` and a column `count`",
        "keep",
    );

    let human = folder.write("p.toml", "contexts.a = 1\npolicies.T.a = 'x'");
    let weights = folder.write("w.csv", "context,weight\na,1\n");
    let error = PolicySet::read(&human, Some(&weights)).unwrap_err();
    assert_eq!(error.kind(), Kind::Usage);
    assert!(error.to_string().contains("context weights are given twice"), "{error}");
    let log = folder.write("log.csv", "city\na\n \n");
    folder.assert(
        &exposure_weights(&log, Some("city")).unwrap_err(),
        "log.csv: line 3: the name of the context is empty",
        "leave the row out",
    );
}

#[test]
fn files() {
    let folder = Folder::new();
    let missing = folder.0.path().join("none.toml");
    let error = PolicySet::read(&missing, None).unwrap_err();
    assert!(error.to_string().contains("none.toml: cannot read"), "{error}");
    let text = folder.write("p.txt", "");
    folder.assert(
        &PolicySet::read(&text, None).unwrap_err(),
        "p.txt: not a policy file by its name",
        ".toml",
    );
    folder.assert(
        &ContextWeights::read(&text).unwrap_err(),
        "p.txt: the file's type is not known from its name",
        ".csv.gz",
    );
    let latin = folder.write("p.toml", b"[contexts]\ncaf\xe9 = 1\n");
    folder.assert(
        &PolicySet::read(&latin, None).unwrap_err(),
        "p.toml: line 2: the text is not UTF-8",
        "UTF-8",
    );
    let gz = folder.write("p.csv.gz", b"not gzip at all");
    let error = PolicySet::read(&gz, None).unwrap_err();
    assert!(error.to_string().contains("p.csv.gz: cannot read: "), "{error}");
}
