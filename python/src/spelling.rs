//! Settings of messages as keyword arguments.

/// A text of the library with its settings as arguments.
pub(crate) fn with_arguments(text: &str) -> String {
    poul::spelled(text, argument)
}

/// A setting as it is written in a call: `stratum="COL"`.
pub(crate) fn argument(name: &str, value: Option<&str>) -> String {
    let name = match name {
        "outcome" => "outcomes",
        // A word of the language itself.
        "from" => "from_",
        "learner" if value == Some("NAME") => "learners",
        name => name,
    };
    match value {
        Some(value) => format!("{name}={}", literal(name, value)),
        None => format!("`{name}`"),
    }
}

/// A value as Python writes it.
fn literal(name: &str, value: &str) -> String {
    let quoted = |text: &str| format!("{:?}", text.trim());
    let is_mapping = matches!(name, "shares" | "exposure" | "price" | "budget") && value.contains('=');
    if is_mapping {
        let pairs = value.split(',').map(|pair| match pair.split_once('=') {
            Some((key, share)) if name != "exposure" => format!("{}: {share}", quoted(key)),
            Some((key, column)) => format!("{}: {}", quoted(key), quoted(column)),
            None => "...".to_owned(),
        });
        return format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "));
    }
    if value.parse::<f64>().is_ok() {
        return value.to_owned();
    }
    // An expression may hold commas, and is one text.
    let is_list =
        matches!(name, "exclude" | "features" | "outcomes" | "treatment_columns" | "of" | "learners");
    match is_list && (value.contains(',') || name == "learners") {
        true => format!("[{}]", value.split(',').map(quoted).collect::<Vec<_>>().join(", ")),
        false => quoted(value),
    }
}
