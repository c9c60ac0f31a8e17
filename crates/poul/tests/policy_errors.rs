//! Everything that can be wrong with a policy file: the message names the file, the place and the fix.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use poul::policy::{ContextWeights, PolicySet, exposure_weights};
use poul::{Error, Kind};

/// Checks kind, message and hint.
#[track_caller]
fn assert_error(error: &Error, message: &str, hint: &str) {
    assert_eq!(error.to_string(), message);
    assert_eq!(error.kind(), Kind::Input);
    let given = error.hint_text().unwrap_or_default();
    assert!(!hint.is_empty() && given.contains(hint), "hint is `{given}`, not `{hint}`");
}

#[track_caller]
fn toml(text: &str, message: &str, hint: &str) {
    assert_error(&PolicySet::from_toml(text, Path::new("p.toml")).unwrap_err(), message, hint);
}

#[track_caller]
fn json(text: &str, message: &str, hint: &str) {
    assert_error(&PolicySet::from_json(text, Path::new("p.json")).unwrap_err(), message, hint);
}

#[track_caller]
fn csv(text: &[u8], message: &str, hint: &str) {
    assert_error(&PolicySet::from_csv(text, Path::new("p.csv"), None).unwrap_err(), message, hint);
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
        assert_eq!(error.to_string().replace(&root, ""), message);
        assert_eq!(error.kind(), Kind::Input);
        let given = error.hint_text().unwrap_or_default();
        assert!(!hint.is_empty() && given.contains(hint), "hint is `{given}`, not `{hint}`");
    }
}

fn strings(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

#[test]
fn toml_syntax_and_shape() {
    let shape = "see the form of a policy file";
    toml("[policies\n", "p.toml: line 1: not valid TOML: unclosed table, expected `]`", "quotes");
    toml("a = 1\n[x]\ny = 1\ny = 2", "p.toml: line 4: not valid TOML: duplicate key", "once");
    toml("[contexts]\na = 1\n[policy.T]\na = 'x'", "p.toml: line 3: unknown key `policy`", "`policies`");
    toml(
        "[wild]\n",
        "p.toml: line 1: unknown key `wild`",
        "the keys are `contexts`, `policies`, `attributes`",
    );
    toml("", "p.toml: there are no policies", "define at least one policy");
    toml("[policies]\n", "p.toml: there are no policies", "define at least one policy");
    toml("policies = 3", "p.toml: line 1: `policies` is a number, not a table", shape);
    toml("[policies]\nT = 'x'", "p.toml: line 2: policy `T` is a string, not a table", shape);
    toml("contexts = ['a']", "p.toml: line 1: `contexts` is an array, not a table", shape);
    toml(
        "[contexts]\n[policies.T]\n'*' = 'x'",
        "p.toml: line 1: `contexts` lists no context",
        "leave `contexts` out",
    );
    toml("[policies.T]\n'*' = 'x'", "p.toml: no context is named", "weights");
    toml("[attributes.action.x]\na = 1", "p.toml: line 1: unknown key `action`", "did you mean `actions`?");
    toml(
        "[attributes.actions.x]\na = [1]",
        "p.toml: line 2: action `x`: attribute `a` is an array",
        "an attribute is a finite number",
    );
    toml(
        "[attributes.contexts.x]\na = nan",
        "p.toml: line 2: context `x`: attribute `a` is NaN",
        "an attribute is a finite number",
    );
    toml("[attributes.actions]\n'' = {a = 1}", "p.toml: line 2: the name of the action is empty", "a name");
}

#[test]
fn toml_policies() {
    let sum = "sum to 1";
    toml(
        "[contexts]\na = 1\nb = 1\nc = 1\n\n[policies.T]\na = 'x'",
        "p.toml: line 6: policy `T`: the policy leaves out context `b` and 1 more",
        "the context `*` for every context it does not name",
    );
    toml(
        "[policies.T]\na = 'x'\n[policies.U]\nb = 'x'\na = 'x'",
        "p.toml: line 1: policy `T`: the policy leaves out context `b`",
        "say what it does in `b`",
    );
    toml(
        "[contexts]\npeak = 1\n[policies.T]\npeek = 'x'",
        "p.toml: line 4: policy `T`: unknown context `peek`",
        "did you mean `peak`?; otherwise give `peek` a weight",
    );
    toml(
        "[policies.T]\na = { x = 0.5,\n y = 0.4 }",
        "p.toml: line 2: policy `T`: context `a`: the probabilities sum to 0.9, not 1",
        sum,
    );
    toml(
        "[policies.T]\na = { x = 0 }",
        "p.toml: line 2: policy `T`: context `a`: the probabilities sum to 0, not 1",
        sum,
    );
    toml(
        "[contexts]\na = 1\n[policies.T]\n'*' = { x = 0.9 }",
        "p.toml: line 4: policy `T`: context `*`: the probabilities sum to 0.9, not 1",
        sum,
    );
    for (number, what) in [("-0.5", "negative (-0.5)"), ("nan", "not a number (NaN)"), ("inf", "not finite")]
    {
        let text = format!("[policies.T]\na = {{ y = 1, x = {number} }}");
        let message =
            format!("p.toml: line 2: policy `T`: context `a`: the probability of action `x` is {what}");
        // A place comes before the names, which come before what is wrong.
        let error = PolicySet::from_toml(&text, Path::new("p.toml")).unwrap_err();
        assert_error(&error, &message, "from 0 to 1");
    }
    toml(
        "[policies.T]\na = { x = '1' }",
        "p.toml: line 2: policy `T`: context `a`: the probability of action `x` is a string, not a number",
        "from 0 to 1",
    );
    toml(
        "[policies.T]\na = 1",
        "p.toml: line 2: policy `T`: context `a`: a number is neither an action nor a table of actions",
        "write \"action\"",
    );
    toml(
        "[policies.T]\na = {}",
        "p.toml: line 2: policy `T`: context `a`: no action is given",
        "write \"action\"",
    );
    toml("[policies.' ']\na = 'x'", "p.toml: line 1: the name of the policy is empty", "a name");
    toml("[policies.T]\n'' = 'x'", "p.toml: line 2: policy `T`: the name of the context is empty", "a name");
    toml("[policies.T]\na = ''", "p.toml: line 2: policy `T`: the name of the action is empty", "a name");
}

#[test]
fn toml_weights() {
    let hint = "0 or more";
    let with = |weights: &str| format!("[contexts]\n{weights}\n[policies.T]\n'*' = 'x'");
    toml(&with("a = -1"), "p.toml: line 2: the weight of context `a` is negative (-1)", hint);
    toml(&with("a = nan"), "p.toml: line 2: the weight of context `a` is not a number (NaN)", hint);
    toml(&with("b = 1\na = inf"), "p.toml: line 3: the weight of context `a` is not finite", hint);
    toml(
        &with("a = '1'"),
        "p.toml: line 2: the weight of context `a` is a string, not a number",
        "write `a = 1`",
    );
    toml(&with("a = 0\nb = 0.0"), "p.toml: every context has weight 0", "a positive weight");
    toml(&with("'' = 1"), "p.toml: line 2: the name of the context is empty", "a name");
    toml(&with("'*' = 1"), "p.toml: line 2: `*` cannot have a weight", "its own weight");
}

#[test]
fn json_forms() {
    let twice = "each key once";
    json(
        "{\n\"policies\": {\"T\": {\"a\": \"x\",\n\"a\": \"y\"}}}",
        "p.json: line 3: not valid JSON: key `a` is given twice",
        twice,
    );
    json("{\"policies\": {\n}", "p.json: line 2: not valid JSON: `,` or `}` is expected", twice);
    json("", "p.json: line 1: not valid JSON: the text ends where a value is expected", twice);
    json("{} {}", "p.json: line 1: not valid JSON: there is more after the end", twice);
    json("[]", "p.json: line 1: the file is an array, not a table", "see the form");
    json("{}", "p.json: there are no policies", "define");
    json("{\n\"polices\": {}}", "p.json: line 2: unknown key `polices`", "did you mean `policies`?");
    json(
        "{\"policies\": {\n\"T\": {\n\"a\": {\"x\": 0.25,\n\"y\": -1}}}}",
        "p.json: line 4: policy `T`: context `a`: the probability of action `y` is negative (-1)",
        "from 0 to 1",
    );
    json(
        "{\"policies\": {\"T\": {\"a\": {\"x\": 1e999}}}}",
        "p.json: line 1: policy `T`: context `a`: the probability of action `x` is not finite",
        "from 0 to 1",
    );
    json(
        "{\"policies\": {\"T\": {\n\"a\": null}}}",
        "p.json: line 2: policy `T`: context `a`: null is neither an action nor a table of actions",
        "write \"action\"",
    );
    json(
        "{\"policies\": {\"T\": {\"a\": \"x\"},\n\"U\": {\"b\": \"x\", \"a\": \"x\"}}}",
        "p.json: line 1: policy `T`: the policy leaves out context `b`",
        "`*`",
    );
}

#[test]
fn csv_forms() {
    let number = "a probability is a number from 0 to 1";
    csv(b"", "p.csv: the file is empty", "name the columns");
    csv(b"policy,context,action\n", "p.csv: there are no policies", "define");
    csv(b"policy,contex,action\nT,a,x\n", "p.csv: there is no column `context`", "did you mean `contex`?");
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
    check(replaced(1, null), "p.parquet: row 2: policy `T`: the name of the context is empty", "a name");
    let null = Arc::new(Float64Array::from(vec![Some(1.0), None]));
    check(
        replaced(3, null),
        "p.parquet: row 2: policy `T`: context `b`: the probability is missing",
        "from 0 to 1",
    );
    let nan = Arc::new(Float64Array::from(vec![1.0, f64::NAN]));
    check(
        replaced(3, nan),
        "p.parquet: row 2: policy `T`: context `b`: the probability of action `x` is not a number (NaN)",
        "from 0 to 1",
    );
    let half = Arc::new(Float64Array::from(vec![1.0, 0.5]));
    check(
        replaced(3, half),
        "p.parquet: row 2: policy `T`: context `b`: the probabilities sum to 0.5, not 1",
        "sum to 1",
    );
    check(
        replaced(1, strings(&[Some("a"), Some("a")])),
        "p.parquet: row 2: policy `T`: context `a`: action `x` is given twice (first on row 1)",
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
    check(b"contexts,weight\nb,1\n", "w.csv: there is no column `context`", "did you mean `contexts`?");
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

#[test]
fn builder_without_a_file() {
    let mut builder = PolicySet::builder();
    builder.add("T", "a", "x", 0.5).add("T", "a", "x", 0.5);
    assert_error(
        &builder.build().unwrap_err(),
        "policy `T`: context `a`: action `x` is given twice",
        "keep one",
    );
    let mut builder = PolicySet::builder();
    builder.add("T", "a", "x", f64::INFINITY).add("", "a", "x", 1.0);
    let message = "policy `T`: context `a`: the probability of action `x` is not finite";
    assert_error(&builder.build().unwrap_err(), message, "from 0 to 1");
    let mut builder = PolicySet::builder();
    builder.weight("a", 1.0).weight("a", 1.0).add("T", "a", "x", 1.0);
    assert_error(&builder.build().unwrap_err(), "context `a` has two weights", "keep one");
}
