//! `--report`: pages of real runs, odd data, and what they say of themselves.

use serde_json::Value;

use crate::harness::{Folder, POLICIES, experiment};

/// The numbers that a page carries for its charts.
fn panels(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"report-data\">").expect("numbers");
    serde_json::from_str(rest.split_once("</script>").expect("an end").0).expect("JSON")
}

fn page(folder: &Folder, name: &str) -> String {
    String::from_utf8(folder.read(name)).expect("UTF-8")
}

#[test]
fn a_page_of_columns_has_the_numbers_of_the_json() {
    let folder = Folder::new();
    folder.write("data.csv", experiment(600));
    let words =
        ["evaluate", "data.csv", "--effects", "tau", "--outcome", "gmv,cost", "--cost-curve", "gmv,cost"];
    let args = [&words[..], &["--draws", "20", "--json", "m.json", "--report", "r.html"]].concat();
    folder.succeeds(&args);
    let metrics: Value = serde_json::from_slice(&folder.read("m.json")).expect("JSON");
    let page = page(&folder, "r.html");
    let panels = panels(&page);
    let panels = panels["panels"].as_array().expect("panels");
    let curves = panels.iter().find(|panel| panel["id"] == "curves").expect("curves");
    let mut n_compared = 0;
    for result in metrics["results"].as_array().expect("results") {
        let same =
            |variant: &&Value| variant["at"][0] == result["outcome"] && variant["at"][1] == result["policy"];
        let variant = curves["variants"].as_array().expect("variants").iter().find(same).expect("a curve");
        let gains: Vec<&Value> =
            result["curve"].as_array().expect("a curve").iter().map(|own| &own["gain"]).collect();
        let drawn: Vec<&Value> = variant["traces"][2]["y"].as_array().expect("a line").iter().collect();
        assert_eq!(drawn, gains);
        n_compared += 1;
    }
    assert_eq!(n_compared, 4);
    assert!(panels.iter().any(|panel| panel["id"] == "cost"));
    // The command is told without where it wrote to, and so is the same wherever that is.
    assert_eq!(metrics["provenance"]["command"], format!("poul {} --draws 20", words.join(" ")));
    assert!(page.contains("data.csv (test)"));
    // The seed gives the same page on any number of threads.
    folder.succeeds(&[&args[..args.len() - 1], &["again.html", "--threads", "1"]].concat());
    assert!(folder.read("again.html") == folder.read("r.html"));
}

#[test]
fn a_page_of_a_model_says_where_it_comes_from() {
    let folder = Folder::new();
    folder.write("data.csv", experiment(400)).write("policies.toml", POLICIES);
    let columns = ["--features", "age,city", "--outcome", "gmv"];
    let fit = ["fit", "data.csv", "--policies", "policies.toml", "--learner", "t-learner", "--out", "m.poul"];
    folder.succeeds(&[&fit[..], &columns].concat());
    folder.succeeds(&["evaluate", "m.poul", "data.csv", "--draws", "20", "--report", "r.html"]);
    let page = page(&folder, "r.html");
    for text in [
        "poul fit data.csv --policies policies.toml --learner t-learner",
        "poul evaluate m.poul data.csv --draws 20",
        "data.csv (training)",
        "<section id=\"training-section\">",
        "seed of the fit",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn few_rows_and_odd_names_are_shown() {
    let folder = Folder::new();
    let mut data = experiment(300).replace("T2", "<b>T2</b></script>");
    data.push_str("u900,rare,12,1,30,Rome,h9,1,1.5,1,1\nu901,rare,13,1,40,Rome,h9,1,1.7,1,1\n");
    folder.write("data.csv", data);
    folder.succeeds(&["evaluate", "data.csv", "--effects", "tau", "--outcome", "gmv", "--report", "r.html"]);
    let page = page(&folder, "r.html");
    assert!(page.contains("<tr class=\"thin\"><th scope=\"row\">rare</th>"));
    assert!(page.contains("&lt;b&gt;T2&lt;/b&gt;&lt;/script&gt;") && !page.contains("<b>T2"));
    assert_eq!(page.matches("</script>").count(), 3);
}

#[test]
fn what_cannot_be_evaluated_leaves_no_page() {
    let folder = Folder::new();
    let treated: String = experiment(90)
        .lines()
        .filter(|line| !line.contains(",control,"))
        .map(|line| format!("{line}\n"))
        .collect();
    let mut infinite = experiment(90);
    infinite.push_str("u900,T1,inf,1,30,Rome,h9,1,1.5,1,1\n");
    folder.write("treated.csv", treated).write("infinite.csv", infinite);
    let evaluate = |data| ["evaluate", data, "--effects", "tau", "--outcome", "gmv", "--report", "r.html"];
    folder.fails("report_without_control", 3, &evaluate("treated.csv"));
    folder.fails("report_infinite_outcome", 3, &evaluate("infinite.csv"));
}

#[test]
fn a_page_of_a_comparison() {
    let folder = Folder::new();
    folder.write("data.csv", experiment(500)).write("policies.toml", POLICIES);
    let data =
        ["compare", "data.csv", "--policies", "policies.toml", "--outcome", "gmv", "--features", "age,city"];
    let rest = ["--learner", "ridge,random", "--reference", "ridge", "--draws", "20", "--report", "r.html"];
    folder.succeeds(&[&data[..], &rest].concat());
    let page = page(&folder, "r.html");
    for text in
        ["2 learners on", "has the largest AUUC", "poul compare data.csv --policies", "id=\"auuc-chart\""]
    {
        assert!(page.contains(text), "{text}");
    }
}
