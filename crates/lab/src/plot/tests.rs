//! Plots are well-formed text, the same every time, whatever is plotted.

use super::*;

mod placed;

fn series(name: &str, scale: f64) -> Series {
    let square = |i: u32| f64::from(i * i) / 1e4 * scale;
    Series {
        name: name.to_owned(),
        values: (0..1000).map(square).collect(),
    }
}

fn bar(name: &str, seek: f64) -> Bar {
    let part = |name, value, ink| BarPart { name, value, ink };
    Bar {
        name: name.to_owned(),
        parts: vec![
            part("seek", seek, Ink::Colour(0)),
            part("rotation", 3.0, Ink::Colour(1)),
            part("idle", 1.0, Ink::Pale),
        ],
    }
}

#[test]
fn every_name_is_in_the_plot_and_text_is_escaped() {
    let svg = cdf(
        "A < B",
        "response time, ms",
        &[series("fcfs", 3.0), series("a&b", 1.0)],
    );
    assert!(svg.starts_with("<svg width=\"860\" height=\"448\""));
    assert!(svg.trim_end().ends_with("</svg>"));
    for text in ["A &lt; B", "response time, ms", "fcfs", "a&amp;b", "100 %"] {
        assert!(svg.contains(text), "{text}");
    }
    let svg = bars("Head time", "ms", &[bar("fcfs", 5.0), bar("sptf", 2.0)]);
    for text in ["seek", "rotation", "idle", "fcfs", "sptf", "8.00"] {
        assert!(svg.contains(text), "{text}");
    }
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let draw = || cdf("t", "x", &[series("a", 1.0)]);
    assert_eq!(draw(), draw());
}

#[test]
fn nothing_one_value_and_strange_values_are_drawn_too() {
    let values = |values: &[f64]| Series {
        name: "s".to_owned(),
        values: values.to_vec(),
    };
    for strange in [
        &[][..],
        &[0.0],
        &[5.0, 5.0],
        &[f64::NAN, f64::INFINITY, -1.0],
        &[1e-9, 1e12],
    ] {
        assert!(cdf("t", "x", &[values(strange)]).contains("</svg>"));
        assert!(tails("x", &[values(strange)]).contains("</svg>"));
        let curve = Curve {
            name: "c".to_owned(),
            points: strange.iter().map(|&v| (v, v)).collect(),
        };
        assert!(lines("t", "x", "y", &[curve]).contains("</svg>"));
    }
    assert!(cdf("t", "x", &[]).contains("</svg>"));
    assert!(tails("x", &[]).contains("</svg>"));
    assert!(bars("t", "x", &[]).contains("</svg>"));
    assert!(bars("t", "x", &[bar("zero", 0.0)]).contains("</svg>"));
}

#[test]
fn a_distribution_rises_from_nothing_to_all() {
    let curve = series("a", 1.0).distribution();
    assert_eq!(curve.points.first().map(|p| p.1), Some(0.0));
    assert_eq!(curve.points.last().map(|p| p.1), Some(1.0));
    assert!(curve.points.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1));
}

/// The tails of the series: at each value the share above it.
fn tails(x_label: &str, series: &[Series]) -> String {
    let above = |curve: Curve| Curve {
        points: curve
            .points
            .iter()
            .map(|&(x, upto)| (x, 1.0 - upto))
            .collect(),
        ..curve
    };
    page(&[Panel::Tail {
        title: "t".to_owned(),
        x_label: x_label.to_owned(),
        curves: series
            .iter()
            .map(|each| above(each.distribution()))
            .collect(),
    }])
}

#[test]
fn a_tail_has_a_line_for_each_decade_and_the_greatest_value() {
    let svg = tails(
        "response time, ms",
        &[series("fcfs", 3.0), series("sptf", 1.0)],
    );
    for text in [
        "100 %",
        "10 %",
        "1 %",
        "0.1 %",
        "fcfs",
        "most 299",
        "most 99.8",
    ] {
        assert!(svg.lines().any(|line| line == text), "{text}: {svg}");
    }
    assert!(!svg.lines().any(|line| line == "0.01 %"), "{svg}");
}

/// Two series over these values, with repeats, and a place without a figure.
fn measures(across: Across, around: f64) -> String {
    let figure = |mean| Some(Spread { mean, around });
    let chart = |y_label: &str| Chart {
        y_label: y_label.to_owned(),
        rows: vec![
            vec![figure(10.0), figure(20.0), figure(f64::NAN)],
            vec![figure(5.0), None, figure(40.0)],
        ],
    };
    page(&[Panel::Measures {
        title: "A sweep".to_owned(),
        x_label: "tasks; in-firmware".to_owned(),
        across,
        series: vec!["fcfs".to_owned(), "sptf".to_owned()],
        charts: vec![
            chart("mean response, ms"),
            chart("requests/s"),
            chart("99 %, ms"),
        ],
    }])
}

#[test]
fn small_multiples_name_their_series_once_and_each_measure_at_its_chart() {
    let svg = measures(Across::Numbers(vec![1.0, 4.0, 16.0]), 1.0);
    for text in ["fcfs", "sptf", "A sweep"] {
        assert_eq!(svg.matches(&format!("\n{text}\n")).count(), 1, "{text}");
    }
    for text in ["mean response, ms", "requests/s", "99 %, ms", "16"] {
        assert!(svg.contains(&format!("\n{text}\n")), "{text}");
    }
    assert_eq!(
        svg.matches("<polygon opacity=\"0.18\"").count(),
        6,
        "a band each"
    );
}

#[test]
fn names_along_the_axis_are_below_bars() {
    let names = ["one", "another", "third"].map(str::to_owned).to_vec();
    let bars = |svg: &str| svg.matches("<rect").count();
    let svg = measures(Across::Names(names.clone()), 1.0);
    for name in names {
        assert_eq!(svg.matches(&format!("\n{name}\n")).count(), 3, "{name}");
    }
    let none = measures(Across::Names(Vec::new()), 1.0);
    assert_eq!(
        bars(&svg) - bars(&none),
        3 * 4,
        "what is no number has no bar"
    );
}

#[test]
fn idle_time_is_written_and_squeezes_no_other_part() {
    let mut idle = bar("fcfs", 5.0);
    idle.parts[2].value = 92.0;
    let svg = bars("Head time", "ms", &[idle]);
    assert!(svg.contains("8.00  + idle 92 %"), "{svg}");
}
