//! Where things are: legends outside what they name, and a stroke at each bar that has a spread.

use super::*;

/// The number of an attribute of an SVG element.
fn attribute(element: &str, name: &str) -> f64 {
    let (_, rest) = element
        .split_once(&format!(" {name}=\""))
        .expect("the attribute");
    let value = rest.split('"').next().expect("an end");
    value.parse().expect("a number")
}

/// The points of a polyline or polygon.
fn points(element: &str) -> Vec<(f64, f64)> {
    let (_, rest) = element.split_once(" points=\"").expect("points");
    let list = rest.split('"').next().expect("an end");
    let pair = |pair: &str| {
        let (x, y) = pair.split_once(',').expect("a pair");
        (x.parse().expect("a number"), y.parse().expect("a number"))
    };
    list.split_whitespace().map(pair).collect()
}

/// The places of a text: where it begins, and its middle.
fn places(svg: &str, text: &str) -> Vec<(f64, f64)> {
    let lines: Vec<&str> = svg.lines().collect();
    let pairs = lines.windows(2).filter(|pair| pair[1] == text);
    pairs
        .map(|pair| (attribute(pair[0], "x"), attribute(pair[0], "y")))
        .collect()
}

/// The vertical places of a text, by its middle.
fn texts(svg: &str, text: &str) -> Vec<f64> {
    places(svg, text).iter().map(|place| place.1).collect()
}

/// The right end of all polylines, which the grid has.
fn right_end(svg: &str) -> f64 {
    let lines = svg.lines().filter(|line| line.starts_with("<polyline"));
    let ends = lines.flat_map(points).map(|point| point.0);
    ends.fold(0.0, f64::max)
}

/// The upper end of all that has data: grid, lines, bands and bars, but neither strokes of legends nor the page.
fn upper_end(svg: &str, names: &[&str]) -> f64 {
    let legend: Vec<f64> = names.iter().flat_map(|name| texts(svg, name)).collect();
    let mut upper = f64::INFINITY;
    for line in svg.lines() {
        if line.starts_with("<polyline") || line.starts_with("<polygon") {
            let points = points(line);
            let is_stroke =
                points.len() == 2 && points[0].1 == points[1].1 && legend.contains(&points[0].1);
            let highest = points.iter().map(|point| point.1).reduce(f64::min);
            if let Some(highest) = highest.filter(|_| !is_stroke) {
                upper = upper.min(highest);
            }
        } else if line.starts_with("<rect x=\"") && !line.contains("fill=\"#FFFFFF\"") {
            let (top, height) = (attribute(line, "y"), attribute(line, "height"));
            let is_sample = legend.contains(&(top + height / 2.0));
            if !is_sample {
                upper = upper.min(top);
            }
        }
    }
    upper
}

/// Half the height of a legend's letters: 12 pixels, of which the SVG has eight units each.
const HALF: f64 = 48.0;

fn assert_above(svg: &str, names: &[&str]) {
    let upper = upper_end(svg, names);
    assert!(upper.is_finite(), "{svg}");
    for name in names {
        let places = texts(svg, name);
        assert_eq!(places.len(), 1, "{name}: {svg}");
        assert!(
            places[0] + HALF <= upper,
            "{name} at {}: {upper}",
            places[0]
        );
    }
}

#[test]
fn legends_are_above_or_beside_what_they_name() {
    // So many that they need several rows.
    let names: Vec<String> = (0..12)
        .map(|number| format!("policy-{number}-long"))
        .collect();
    let told: Vec<&str> = names.iter().map(String::as_str).collect();
    let each: Vec<Series> = told.iter().map(|name| series(name, 1.0)).collect();
    assert_above(&cdf("t", "x, ms", &each), &told);
    assert_above(&tails("x, ms", &each), &told);
    let curves: Vec<Curve> = each.iter().map(Series::distribution).collect();
    // A line has its name at its end, beside the plot.
    let svg = lines("t", "x", "y", &curves);
    for name in &told {
        let places = places(&svg, name);
        assert_eq!(places.len(), 1, "{name}: {svg}");
        assert!(places[0].0 > right_end(&svg), "{name}: {svg}");
    }
    for across in [
        Across::Numbers(vec![1.0, 4.0, 16.0]),
        Across::Names(["a", "b", "c"].map(str::to_owned).to_vec()),
    ] {
        assert_above(&measures(across, 1.0), &["fcfs", "sptf"]);
    }
    let parts = ["seek", "rotation"];
    assert_above(
        &bars("t", "ms", &[bar("fcfs", 5.0), bar("sptf", 2.0)]),
        &parts,
    );
}

#[test]
fn each_bar_with_a_spread_has_a_stroke_over_it() {
    let names = || Across::Names(["one", "another", "third"].map(str::to_owned).to_vec());
    let strokes = |svg: &str| -> Vec<(f64, f64, f64)> {
        let lines = svg.lines().filter(|line| line.starts_with("<polyline"));
        let ends = lines
            .filter(|line| line.contains("stroke=\"#222222\""))
            .map(points);
        let upright = ends.filter(|ends| ends.len() == 2 && ends[0].0 == ends[1].0);
        upright
            .map(|ends| (ends[0].0, ends[0].1, ends[1].1))
            .collect()
    };
    assert_eq!(strokes(&measures(names(), 0.0)), []);
    let svg = measures(names(), 1.0);
    let strokes = strokes(&svg);
    // Three charts of four figures: of the others one is no number, and one is missing.
    assert_eq!(strokes.len(), 3 * 4, "{svg}");
    let boxes = svg.lines().filter(|line| line.starts_with("<rect"));
    for (x, low, high) in strokes {
        let over = boxes.clone().filter(|bar| {
            let [left, width, top] = ["x", "width", "y"].map(|name| attribute(bar, name));
            // The end of the bar is its mean, in the middle of the stroke.
            (left..=left + width).contains(&x) && (top - (low + high) / 2.0).abs() <= 1.0
        });
        assert_eq!(over.count(), 1, "{x}, {low}, {high}: {svg}");
    }
}
