//! Metrics: each is described, told, and follows what it is made of.

use std::collections::BTreeMap;

use crate::fake::{self, Fake};
use server::control::Service as _;
use server::control::metrics::{self, Kind};
use server::status::{RESPONSE_BOUNDS_US, Status};

/// The metric of a sample: those of a histogram have endings of their own.
fn metric_of(sample: &str) -> &str {
    let name = sample.split('{').next().unwrap();
    let is_histogram = |family: &&str| {
        let mut known = metrics::ALL.iter();
        known.any(|metric| metric.kind == Kind::Histogram && metric.full_name() == **family)
    };
    let mut families = ["_bucket", "_sum", "_count"]
        .iter()
        .filter_map(|ending| name.strip_suffix(ending));
    families.find(|family| is_histogram(family)).unwrap_or(name)
}

/// The samples of a text of metrics, by name and labels.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.map(|line| line.rsplit_once(' ').unwrap());
    pairs
        .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
        .collect()
}

#[test]
fn every_metric_is_described_and_told() {
    let service = Fake::new(fake::status());
    let text = metrics::text(&service.status()).unwrap();
    assert!(service.told().is_empty());
    let told = samples(&text);
    for metric in metrics::ALL {
        let name = metric.full_name();
        let family = name.trim_end_matches("_total");
        assert!(
            text.contains(&format!("# HELP {family} {}", metric.help)),
            "{family}: {text}"
        );
        let mut mine = told.iter().filter(|(key, _)| metric_of(key) == name);
        assert!(mine.clone().count() > 0, "{name} in {text}");
        assert!(mine.any(|(_, value)| *value != 0.0), "{name}: {text}");
    }
    let names: Vec<String> = metrics::ALL
        .iter()
        .map(|metric| metric.full_name())
        .collect();
    for sample in told.keys() {
        let name = metric_of(sample);
        assert!(
            names.iter().any(|known| known == name),
            "{name} is in no table"
        );
    }
    let families = text.lines().filter(|line| line.starts_with("# TYPE"));
    let families: Vec<&str> = families.filter_map(|line| line.split(' ').nth(2)).collect();
    let mut once = families.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), families.len(), "each family once: {families:?}");
    assert!(text.ends_with("# EOF\n"));
}

/// The values of the fake service, in Prometheus' units.
#[test]
fn metrics_have_the_values_of_the_status() {
    let text = metrics::text(&fake::status()).unwrap();
    let told = samples(&text);
    for (sample, value) in [
        (
            "headtime_requests_total{drive=\"disk\",class=\"foreground\",direction=\"read\"}",
            640_000.0,
        ),
        (
            "headtime_request_bytes_total{drive=\"disk\",class=\"best-effort\",direction=\"write\"}",
            80_000.0 * 8192.0,
        ),
        (
            "headtime_response_time_seconds_sum{drive=\"disk\",class=\"best-effort\"}",
            2.07,
        ),
        (
            "headtime_response_time_seconds_bucket{le=\"0.001\",drive=\"disk\",class=\"foreground\"}",
            1.0 + 2.0 + 3.0,
        ),
        (
            "headtime_response_time_seconds_bucket{le=\"+Inf\",drive=\"disk\",class=\"foreground\"}",
            23.0 * 24.0 / 2.0,
        ),
        (
            "headtime_response_time_seconds_count{drive=\"disk\",class=\"foreground\"}",
            276.0,
        ),
        (
            "headtime_head_time_seconds_total{drive=\"disk\",kind=\"lost\"}",
            9.0,
        ),
        (
            "headtime_task_done_bytes{drive=\"disk\",task=\"3\",name=\"scan db\"}",
            3_408_000_000.0,
        ),
        (
            "headtime_errors_total{drive=\"disk\",operation=\"flush\"}",
            11.0,
        ),
        (
            "headtime_cache_bytes_total{drive=\"disk\",volume=\"db\",kind=\"missed\"}",
            250_000.0,
        ),
        (
            "headtime_cache_held_bytes{drive=\"disk\",volume=\"db\",kind=\"used\"}",
            50_331_648.0,
        ),
        ("headtime_impact_ratio{drive=\"disk\"}", 0.0137),
        ("headtime_scrub_progress_ratio{volume=\"data\"}", 0.35),
        ("headtime_scrub_late_seconds{volume=\"data\"}", 108_000.0),
        ("headtime_connections", 1.0),
        ("headtime_connections_accepted_total", 57.0),
    ] {
        let found = told
            .get(sample)
            .copied()
            .unwrap_or_else(|| panic!("{sample} in {text}"));
        assert!((found - value).abs() < 1e-9, "{sample} {found}");
    }
}

/// Each number of the status that a metric is made of: changed, it changes a metric.
#[test]
fn metrics_follow_what_they_are_made_of() {
    let before = samples(&metrics::text(&fake::status()).unwrap());
    let grow: &[fn(&mut Status)] = &[
        |s| s.uptime_s += 1.0,
        |s| s.connections.clear(),
        |s| s.connections_total += 1,
        |s| s.connections_refused_total += 1,
        |s| s.reloads_total += 1,
        |s| s.scrubs[0].verified_chunks_total += 1,
        |s| s.scrubs[0].changed += 1,
        |s| s.scrubs[0].unreadable += 1,
        |s| s.scrubs[0].verified_bytes += 1,
        |s| s.scrubs[0].oldest_age_s = None,
        |s| s.scrubs[0].late_by_s += 1,
        |s| s.drives[0].queue.waiting += 1,
        |s| s.drives[0].queue.at_drive += 1,
        |s| s.drives[0].traffic[0].read.requests_total += 1,
        |s| s.drives[0].traffic[0].write.bytes_total += 1,
        |s| s.drives[0].traffic[1].responses.counts[3] += 1,
        |s| s.drives[0].traffic[1].responses.sum_us += 1.0,
        |s| s.drives[0].head_time.total_us.free += 1,
        |s| s.drives[0].head = None,
        |s| s.drives[0].mode = server::status::Mode::Safe,
        |s| s.drives[0].confidence = None,
        |s| s.drives[0].heads.as_mut().unwrap().compared_total += 1,
        |s| s.drives[0].heads.as_mut().unwrap().late_total += 1,
        |s| s.drives[0].heads.as_mut().unwrap().slow[0].slower_percent += 1.0,
        |s| s.drives[0].impact.measured_percent = None,
        |s| s.drives[0].impact.budget_percent = 3.0,
        |s| s.drives[0].tasks[0].done_bytes += 1,
        |s| s.drives[0].tasks[0].failed_bytes += 1,
        |s| s.drives[0].standing[0].wanted_bytes += 1,
        |s| s.drives[0].standing[0].free_bytes_total += 1,
        |s| s.drives[0].standing[0].idle_bytes_total += 1,
        |s| s.drives[0].standing[0].failed_bytes_total += 1,
        |s| s.drives[0].standing[0].satisfied_bytes_total += 1,
        |s| s.drives[0].standing[0].dropped_bytes_total += 1,
        |s| s.drives[0].caches[0].wished_bytes += 1,
        |s| s.drives[0].classified[0].requests_total += 1,
        |s| s.drives[0].classified[0].unmatched_total += 1,
        |s| s.drives[0].classified[0].lost_events_total += 1,
        |s| s.drives[0].caches[0].joined_bytes_total += 1,
        |s| s.drives[0].lateness = None,
        |s| s.drives[0].errors.writes_total += 1,
    ];
    for (index, change) in grow.iter().enumerate() {
        let mut status = fake::status();
        change(&mut status);
        let after = samples(&metrics::text(&status).unwrap());
        let pairs = before
            .iter()
            .filter(|(key, value)| after.get(*key) != Some(value));
        let changed = pairs.count()
            + after
                .keys()
                .filter(|key| !before.contains_key(*key))
                .count();
        assert!(changed > 0, "change {index}");
    }
}

/// The table of `docs/reference/metrics.md`: a line for each metric, with the labels that its values have.
fn table() -> String {
    let told = metrics::text(&fake::status()).unwrap();
    let told = samples(&told);
    let mut table = String::from("| Metric | | Labels | What it says |\n|---|---|---|---|\n");
    for metric in metrics::ALL {
        let name = metric.full_name();
        let mine = told.keys().filter(|key| metric_of(key) == name);
        let mut labels: Vec<(String, Vec<String>)> = Vec::new();
        for sample in mine {
            let Some((_, rest)) = sample.trim_end_matches('}').split_once('{') else {
                continue;
            };
            for pair in rest.split("\",") {
                let (label, value) = pair.split_once('=').unwrap();
                let value = value.trim_matches('"').to_owned();
                match labels.iter_mut().find(|(name, _)| name == label) {
                    Some((_, values)) if values.contains(&value) => {}
                    Some((_, values)) => values.push(value),
                    None => labels.push((label.to_owned(), vec![value])),
                }
            }
        }
        // The bounds of a histogram stand below the table.
        labels.retain(|(label, _)| label != "le");
        let shown = labels.into_iter().map(|(label, values)| match &*label {
            "kind" | "operation" | "direction" | "quantile" => {
                format!("`{label}`: {}", values.join(", "))
            }
            _ => format!("`{label}`"),
        });
        let shown: Vec<String> = shown.collect();
        let (kind, labels, help) = (metric.kind.name(), shown.join("; "), metric.help);
        table += &format!("| `{name}` | {kind} | {labels} | {help} |\n");
    }
    table
}

#[test]
fn the_documentation_has_all_metrics_and_no_others() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/metrics.md"
    );
    let mut page = std::fs::read_to_string(path).expect("the page");
    let table = table();
    // `cargo xtask book` writes the table.
    if std::env::var_os("HEADTIME_BLESS").is_some_and(|bless| bless == "1") {
        let lines = page.split_inclusive('\n');
        let (before, rest): (String, String) = {
            let before: Vec<&str> = lines
                .clone()
                .take_while(|line| !line.starts_with('|'))
                .collect();
            let rest = lines
                .skip(before.len())
                .skip_while(|line| line.starts_with('|'));
            (before.concat(), rest.collect())
        };
        page = format!("{before}{table}{rest}");
        std::fs::write(path, &page).expect("the page can be written");
    }
    assert!(
        page.contains(&table),
        "`cargo xtask book` if this is right: {path}: expected\n{table}"
    );
    let seconds = |us: &u64| (*us as f64 / 1e6).to_string();
    let bounds: Vec<String> = RESPONSE_BOUNDS_US.iter().map(seconds).collect();
    let (last, rest) = bounds.split_last().expect("bounds");
    let bounds = format!("{} and {last} seconds", rest.join(", "));
    assert!(page.replace('\n', " ").contains(&bounds), "{bounds}");
    // Names of functions begin like names of metrics.
    let header = include_str!("../../../client-c/include/headtime.h");
    let names: Vec<String> = metrics::ALL
        .iter()
        .map(metrics::Metric::full_name)
        .collect();
    let pages = [
        page.as_str(),
        include_str!("../../../../docs/how-to/cache-a-volume.md"),
        include_str!("../../../../docs/how-to/scan-a-volume.md"),
        include_str!("../../../../docs/how-to/guarantee-a-stream.md"),
        include_str!("../../../../README.md"),
        include_str!("../../../../ARCHITECTURE.md"),
        include_str!("../../src/config/default.toml"),
    ];
    for page in pages {
        let words = page.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        for word in words.filter(|word| word.starts_with("headtime_")) {
            let is_known =
                names.iter().any(|name| name == metric_of(word)) || header.contains(word);
            assert!(
                is_known,
                "{word}: expected a metric, or a function of the C library"
            );
        }
    }
}

/// The metrics in an expression, and in what other words.
fn asked(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':');
    // A recorded name has a colon.
    words
        .filter(|word| word.starts_with("headtime_") && !word.contains(':'))
        .collect()
}

/// Grafana's dashboards ask for metrics that exist.
#[test]
fn the_dashboards_of_grafana_have_metrics_of_the_service() {
    let names: Vec<String> = metrics::ALL
        .iter()
        .map(metrics::Metric::full_name)
        .collect();
    for (file, least) in [("grafana.json", 6), ("grafana-fleet.json", 20)] {
        let text = read(file);
        let dashboard: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let panels = dashboard["panels"].as_array().expect("panels");
        let targets = panels
            .iter()
            .flat_map(|panel| panel["targets"].as_array().expect("targets"));
        let mut count = 0;
        for target in targets {
            let expression = target["expr"].as_str().expect("an expression");
            for word in asked(expression) {
                assert!(
                    names.iter().any(|name| name == metric_of(word)),
                    "{word} in {expression}"
                );
                count += 1;
            }
        }
        assert!(count >= least, "{file}: {count} metrics");
    }
}

/// A file of the dashboard.
fn read(file: &str) -> String {
    let path = format!("{}/../../dashboard/{file}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|problem| panic!("{path}: {problem}"))
}

/// Prometheus' alerts and their tests are about metrics that exist, with labels that these have.
#[test]
fn the_alerts_of_prometheus_are_about_metrics_of_the_service() {
    let told = samples(&metrics::text(&fake::status()).unwrap());
    let labels = |name: &str| -> Vec<&str> {
        let of = |sample: &&String| metric_of(sample) == metric_of(name);
        let mine: Vec<&String> = told.keys().filter(of).collect();
        assert!(!mine.is_empty(), "{name}: expected a metric of the service");
        let pairs = mine.into_iter().flat_map(|sample| sample.split(['{', ',']));
        let named = pairs.filter_map(|pair| Some(pair.split_once('=')?.0));
        named.collect()
    };
    let rules = read("prometheus/rules.yml");
    let tests = read("prometheus/rules-test.yml");
    for text in [&rules, &tests] {
        for word in asked(text) {
            labels(word);
        }
    }
    // An alert's text has the labels of its metrics, and those that Prometheus adds.
    let alerts: Vec<&str> = rules.split("- alert: ").skip(1).collect();
    assert!(alerts.len() >= 10, "{} alerts", alerts.len());
    for alert in alerts {
        let of_metrics: Vec<&str> = asked(alert).into_iter().flat_map(labels).collect();
        let used = alert.split("$labels.").skip(1);
        for label in used.map(|rest| rest.split(' ').next().expect("a label")) {
            let is_known = label == "instance" || of_metrics.contains(&label);
            let is_recorded = alert.contains("headtime:") && label == "drive";
            assert!(is_known || is_recorded, "{label} in {alert}");
        }
        for wanted in ["expr: ", "severity: ", "summary: ", "action: "] {
            assert!(alert.contains(wanted), "{wanted} in {alert}");
        }
    }
}
