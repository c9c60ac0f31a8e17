//! What every report must be: self-contained, small, safe with any name, honest about what is missing.

use poul::evaluate::{Evaluation, Metric, Metrics, PolicyResult};
use serde_json::Value;

use super::{fixture, of_comparison, of_evaluation};

const SECTIONS: [&str; 12] = [
    "summary",
    "checks",
    "policies",
    "assigned",
    "ranking",
    "cost-section",
    "sizes",
    "who-gains",
    "map-section",
    "atoms-section",
    "training-section",
    "provenance",
];

/// The numbers that the page carries for its charts.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"report-data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

fn panel<'a>(data: &'a Value, id: &str) -> &'a Value {
    data["panels"].as_array().unwrap().iter().find(|panel| panel["id"] == id).unwrap()
}

/// The page without the chart library.
fn without_library(page: &str) -> String {
    let (before, rest) = page.split_once("plotly.js (cartesian").unwrap();
    let after = rest.split_once("</script>").unwrap().1;
    before.to_owned() + after
}

#[test]
fn a_full_page_has_every_section_once_and_stays_small() {
    let page = of_evaluation(&fixture::evaluation(20)).unwrap();
    for id in SECTIONS {
        assert_eq!(page.matches(&format!("<section id=\"{id}\">")).count(), 1, "{id}");
    }
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    assert_eq!(page.matches("plotly.js (cartesian").count(), 1);
    let own = without_library(&page);
    assert!(own.len() < 1_200_000, "{} bytes of our own", own.len());
    assert!(!own.contains("http:") && !own.contains("https:"), "nothing is fetched");
    // 20 policies and all together, on two outcomes: one figure, 42 variants.
    let data = data(&page);
    assert_eq!(panel(&data, "curves")["variants"].as_array().unwrap().len(), 42);
    assert_eq!(page.matches("id=\"curves-chart\"").count(), 1);
}

#[test]
fn numbers_in_the_page_are_those_of_the_evaluation() {
    let evaluation = fixture::evaluation(3);
    let data = data(&of_evaluation(&evaluation).unwrap());
    for variant in panel(&data, "curves")["variants"].as_array().unwrap() {
        let (outcome, policy) = (&variant["at"][0], &variant["at"][1]);
        let own = evaluation.results.iter().find(|own| *outcome == *own.outcome && *policy == *own.policy);
        let Some(own) = own else { continue };
        let gains: Vec<f64> = own.metrics.curve.iter().map(|point| point.gain).collect();
        assert_eq!(variant["traces"][2]["y"], serde_json::json!(gains));
    }
    let effects = &panel(&data, "effects")["variants"][0]["traces"][0];
    let averages: Vec<f64> = evaluation.averages.iter().take(3).filter_map(|own| own.effect).collect();
    assert_eq!(effects["x"], serde_json::json!(averages));
}

#[test]
fn any_name_is_only_text() {
    let evil = "</script><img src=x onerror=alert(1)>\"'&<b>";
    let mut evaluation = fixture::evaluation(3);
    let text = serde_json::to_string(&evaluation).unwrap();
    let name = serde_json::to_string(evil).unwrap();
    // Every policy, outcome, feature, file and sentence becomes the name.
    for word in ["T1", "gmv", "city", "airport", "upgrade", "control", "all rows", "below 1", "randomized"] {
        assert!(text.contains(&format!("\"{word}\"")), "{word}");
    }
    let mut renamed = text;
    for word in ["T1", "gmv", "city", "airport", "upgrade", "control", "all rows", "below 1", "randomized"] {
        renamed = renamed.replace(&format!("\"{word}\""), &name);
    }
    evaluation = serde_json::from_str(&renamed.replace(&format!("{name}:"), "\"control\":")).unwrap();
    let page = of_evaluation(&evaluation).unwrap();
    let own = without_library(&page);
    assert!(!own.contains("<img"), "a name became markup");
    assert_eq!(page.matches("</script>").count(), 3);
    assert!(own.contains("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;&lt;b&gt;"));
    let data = data(&page);
    let curves = panel(&data, "curves");
    assert!(curves["variants"].as_array().unwrap().iter().any(|variant| variant["at"][1] == evil));
    // Plotly understands tags in labels, so that they are escaped a second time there.
    let traces = serde_json::to_string(&curves["variants"][1]["traces"]).unwrap();
    assert!(!traces.contains("<img") && traces.contains("&lt;img"), "{traces:.200}");

    let mut comparison = fixture::comparison();
    comparison.learners[0].label = evil.to_owned();
    comparison.against = evil.to_owned();
    let page = of_comparison(&comparison, evil).unwrap();
    assert!(!without_library(&page).contains("<img"));
    assert_eq!(page.matches("</script>").count(), 3);
}

#[test]
fn few_rows_are_grey_and_have_no_interval() {
    let page = of_evaluation(&fixture::evaluation(3)).unwrap();
    let row = page.lines().find(|line| line.starts_with("<tr class=\"thin\"><th scope=\"row\">T3")).unwrap();
    assert!(!row.contains('…'), "{row}");
    assert!(page.contains("fewer than 30 rows in an arm: in grey"));
    assert!(page.contains("1 policy has too few rows to say."));
    let data = data(&page);
    let curves = panel(&data, "curves")["variants"].as_array().unwrap();
    let thin = curves.iter().find(|variant| variant["at"][1] == "T3").unwrap();
    assert!(thin["traces"][1]["y"].as_array().unwrap().iter().all(Value::is_null));
    assert_eq!(thin["traces"][2]["role"], "faint");
    let effects = &panel(&data, "effects")["variants"][0]["traces"][0];
    assert!(effects["lower"][2].is_null() && effects["lower"][0].is_f64());
}

#[test]
fn what_is_absent_is_left_out() {
    let page = of_evaluation(&Evaluation::default()).unwrap();
    for id in
        ["ranking", "cost-section", "sizes", "who-gains", "map-section", "atoms-section", "training-section"]
    {
        assert!(!page.contains(&format!("<section id=\"{id}\">")), "{id}");
    }
    assert!(page.contains("The evaluation carries no checks of the design."));

    // A test set without control rows: every number is missing.
    let result = PolicyResult {
        outcome: "gmv".to_owned(),
        policy: "T1".to_owned(),
        against: "control".to_owned(),
        metrics: Metrics { n_treated: 500, notes: vec!["no control rows".to_owned()], ..Metrics::default() },
    };
    let evaluation = Evaluation { rows: 500, level: 0.9, results: vec![result], ..Evaluation::default() };
    let page = of_evaluation(&evaluation).unwrap();
    assert!(page.contains("On gmv no policy has an interval for its average effect."));
    assert!(page.contains("<tr class=\"thin\"><th scope=\"row\">T1</th>"));
    assert!(data(&page)["panels"].as_array().unwrap().is_empty());
}

#[test]
fn the_summary_says_what_the_numbers_say() {
    let said = |change: &dyn Fn(&mut Evaluation)| {
        let mut evaluation = fixture::evaluation(3);
        change(&mut evaluation);
        let page = of_evaluation(&evaluation).unwrap();
        page.split_once("<section id=\"checks\">").unwrap().0.to_owned()
    };
    let plain = said(&|_| {});
    for sentence in [
        "<span class=\"mark\">mixed</span> On gmv users are ranked better than at random within 2 of 3 policies, but not within \
         T3 (too few rows to judge).",
        "On gmv the sizes of effects agree with what was observed within 2 of 3 policies, but not within T3",
        "On gmv, with 3 policies pooled, AUUC is 0.630 and the calibration slope 0.940: that ranks policies and users together",
        "none failed; to be looked at: Outcome model",
        "On gmv the simultaneous band separates the average effect of",
    ] {
        assert!(plain.contains(sentence), "{sentence}\n{plain}");
    }
    let last = plain.split_once("<p class=\"conclusion\">").unwrap().1;
    assert!(last.starts_with("Subject to a look at Outcome model, T"), "{last}");
    // Pooled figures are no verdict: whatever they are, it stays.
    let pooled = said(&|evaluation| evaluation.pooled[0].metrics[Metric::Auuc].interval = Some([0.49, 0.7]));
    assert!(pooled.contains("On gmv users are ranked better than at random within 2 of 3 policies"));
    let random = said(&|evaluation| {
        evaluation
            .results
            .iter_mut()
            .for_each(|own| own.metrics[Metric::RateQini].value = own.metrics[Metric::RateQini].se);
    });
    assert!(random.contains(
        "<span class=\"mark\">undecided</span> On gmv the ranking of users cannot be told from a random"
    ));
    let constant = said(&|evaluation| {
        let bins = evaluation.results.iter_mut().flat_map(|own| &mut own.metrics.calibration);
        bins.for_each(|bin| bin.predicted = 1.0);
    });
    assert!(constant.contains(
        "<span class=\"mark\">poor</span> On gmv users are not ranked better than at random: T1 (every"
    ));
    let large = said(&|evaluation| {
        evaluation.results[0].metrics[Metric::CalibrationSlope].interval = Some([0.3, 0.8]);
        evaluation.results[0].metrics[Metric::CalibrationSlope].value = Some(0.55);
    });
    assert!(
        large.contains("T1 (predicted differences between users are too large: slope 0.550 (0.300 … 0.800))"),
        "{large}"
    );
    let unseen = said(&|evaluation| evaluation.policies[1].unseen_share = 0.25);
    assert!(
        unseen.contains("One policy leans on atoms that training saw little or never: T2 (25.0 % unseen).")
    );
    let apart =
        said(&|evaluation| evaluation.averages.iter_mut().for_each(|own| own.band = Some([-1.0, 1.0])));
    assert!(apart.contains("On gmv the simultaneous band separates no policy"));
}

#[test]
fn averages_outside_the_band_and_tables_that_differ_are_told() {
    let mut evaluation = fixture::evaluation(3);
    let plain = of_evaluation(&evaluation).unwrap();
    assert!(!plain.contains("(outside the observed band)"));
    assert!(!plain.contains("the difference in means of"));
    evaluation.averages[0].predicted = Some(9.0);
    evaluation.averages[0].outside_band = true;
    evaluation.results[1].metrics[Metric::Ate].value = Some(0.1);
    let page = of_evaluation(&evaluation).unwrap();
    assert!(page.contains("+9.000 (outside the observed band)"));
    assert!(page.contains("predicted average 9.00 is outside the observed band"));
    assert!(page.contains("On gmv the difference in means of T2 is +0.100 and the doubly robust average"));
}

#[test]
fn a_page_of_many_policies_stays_small() {
    let page = of_evaluation(&fixture::evaluation(400)).unwrap();
    assert!(page.len() < 6_000_000, "{} bytes", page.len());
    assert!(page.contains("Only the 100 policies with the most rows are shown"));
}

#[test]
fn a_comparison_names_the_best_and_the_separated() {
    let page = of_comparison(&fixture::comparison(), "poul compare a.parquet").unwrap();
    assert!(page.contains("On gmv, global population, poul has the largest AUUC: 0.6600"), "no best learner");
    assert!(page.contains("Worse than poul: random."));
    assert!(page.contains("poul compare a.parquet"));
    let data = data(&page);
    assert_eq!(panel(&data, "auuc")["variants"].as_array().unwrap().len(), 4);
    assert_eq!(panel(&data, "auuc")["variants"][0]["at"][2], "all policies");
}

#[test]
#[ignore = "writes the pages that the browser test opens, to the folder named by POUL_REPORT_PAGES"]
fn pages_for_the_browser() {
    let folder = std::path::PathBuf::from(std::env::var_os("POUL_REPORT_PAGES").unwrap());
    let evaluation = fixture::evaluation(20);
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
    write("full.html", of_evaluation(&evaluation).unwrap());
    write("full.json", serde_json::to_string(&evaluation).unwrap());
    let comparison = fixture::comparison();
    write("learners.html", of_comparison(&comparison, "poul compare a.parquet").unwrap());
    write("learners.json", serde_json::to_string(&comparison).unwrap());
}
