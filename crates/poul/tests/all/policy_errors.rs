//! Everything that can be wrong with a policy file in the human form: the message names the file, the place and the fix.

use std::path::Path;

use poul::policy::PolicySet;
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
    toml(
        "[attributes.actions]\nx = {size = 1}\ny = {size = 'big'}",
        "p.toml: line 3: action `y`: attribute `size` is a text, and a number for action `x`",
        "one kind",
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
        "did you mean `peak`? Otherwise give `peek` a weight",
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
