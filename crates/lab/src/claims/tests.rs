//! What a claims file may say, what is said of bad ones, and how ours is judged.

use proptest::prelude::*;

use super::*;

const HEAD: &str = "paper = \"p\"\ntitle = \"t\"\nauthors = \"a\"\nvenue = \"v\"\norigin = \"o\"\n";

fn parse(claims: &str) -> Result<Paper, DocumentError> {
    Paper::parse("p.toml", &format!("{HEAD}{claims}"))
}

/// A claim with these figures; its figures stand in line 9.
fn claim(figures: &str) -> String {
    format!("[[claim]]\nid = \"p.a\"\nwhere = \"1\"\nfigures = {figures}\ntext = \"x\"\n")
}

fn theirs(figure: &str) -> Theirs {
    let paper = parse(&claim(&format!("[{{ {figure}, unit = \"%\" }}]"))).expect("a good claim");
    paper.claims[0].figures[0].theirs
}

#[test]
fn every_built_in_paper_is_read_under_its_name() {
    for built_in in ALL {
        let paper = built_in.paper().expect("a good file");
        assert_eq!(paper.name, built_in.name);
        assert!(
            paper
                .claims
                .iter()
                .all(|claim| paper.claim(&claim.id) == Some(claim))
        );
    }
}

#[test]
fn every_kind_is_read_and_judged_on_its_side() {
    // What is expected; what agrees just so; what just does not.
    for (figure, good, bad) in [
        ("value = 20", vec![20.0, 17.001, 22.999], vec![16.9, 23.1]),
        ("value = -20", vec![-20.0, -17.1], vec![-16.9, -23.1, 20.0]),
        (
            "low = 2, high = 4",
            vec![1.701, 3.0, 4.599],
            vec![1.69, 4.61],
        ),
        (
            "value = 0.27, within = 1",
            vec![0.0, 0.27, 1.269],
            vec![-0.74, 1.28],
        ),
        ("at_least = 3.1", vec![3.1, 99.0], vec![3.09]),
        ("at_most = 2", vec![2.0, -5.0], vec![2.01]),
    ] {
        let theirs = theirs(figure);
        for ours in good {
            assert!(theirs.agrees(ours), "{figure}: {ours}");
        }
        for ours in bad {
            assert!(!theirs.agrees(ours), "{figure}: {ours}");
        }
        assert!(
            !theirs.agrees(f64::NAN),
            "{figure}: what is no number agrees with nothing"
        );
    }
}

#[test]
fn units_are_told_once_each() {
    let figures = "[{ name = \"a\", value = 1, unit = \"%\" }, { name = \"b\", value = 2, unit = \"x\" }, \
                   { name = \"c\", value = 3, unit = \"%\" }]";
    let paper = parse(&claim(figures)).expect("a good claim");
    assert_eq!(paper.claims[0].unit(), "%, x");
    assert_eq!(
        paper.claims[0].figure(Some("b")).map(|f| f.theirs),
        Some(Theirs::Exact(2.0))
    );
    assert_eq!(paper.claims[0].figure(None), None);
}

#[test]
fn what_is_wrong_is_told_with_file_line_key_and_what_was_expected() {
    let shape = "[[claim]]\nid = \"p.a\"\nwhere = \"1\"\ntext = \"x\"\nshape = \"s\"\n";
    let second = |rest: &str| format!("{shape}[[claim]]\nid = \"p.b\"\n{rest}");
    let cases = [
        (
            String::new(),
            "p.toml:1: claim: missing key: expected tables [[claim]]",
        ),
        (
            "claim = 3\n".into(),
            "p.toml:6: claim: 3: expected tables [[claim]]",
        ),
        (
            second("text = \"x\"\n"),
            "p.toml:11: claim[1].where: missing key: expected the place in the paper",
        ),
        (
            shape.repeat(2),
            "p.toml:12: claim[1].id: \"p.a\" is there twice: expected each once",
        ),
        (
            shape.replace("p.a", "P a"),
            "p.toml:7: claim[0].id: \"P a\": expected lower-case letters, digits, hyphens and dots",
        ),
        (
            claim("[{ value = 1, unit = \"%\" }]") + "shap = \"s\"\n",
            "p.toml:11: claim[0].shap: unknown key: did you mean `shape`?",
        ),
        (shape.replace("where = ", "where "), "p.toml:8: not TOML: "),
    ];
    refused(&cases);
}

#[test]
fn a_wrong_figure_is_told_where_it_stands() {
    let cases = [
        (
            claim("[]"),
            "p.toml:9: claim[0].figures: empty: expected a list",
        ),
        (
            claim("[3]"),
            "p.toml:9: claim[0].figures[0]: 3: expected a list",
        ),
        (
            claim("[{ value = 1, at_most = 2, unit = \"%\" }]"),
            "p.toml:9: claim[0].figures[0]: more than one of value, low, at_least, at_most",
        ),
        (
            claim("[{ value = 1, better = \"faster\", unit = \"%\" }]"),
            "p.toml:9: claim[0].figures[0].better: \"faster\": expected \"lower\" or \"higher\"",
        ),
        (
            claim("[{ at_most = 1, better = \"lower\", unit = \"%\" }]"),
            "p.toml:9: claim[0].figures[0].better: unknown key",
        ),
        (
            claim("[{ value = 1, within = 0, unit = \"%\" }]"),
            "p.toml:9: claim[0].figures[0].within: 0: expected how far ours may be from the value",
        ),
        (
            claim("[{ value = 1 }]"),
            "p.toml:9: claim[0].figures[0].unit: missing key: expected a unit",
        ),
        (
            claim("[{ unit = \"%\" }]"),
            "p.toml:9: claim[0].figures[0].value: missing key: expected a number",
        ),
        (
            claim("[{ value = nan, unit = \"%\" }]"),
            "p.toml:9: claim[0].figures[0].value: nan: expected",
        ),
        (
            claim("[{ value = \"1\", unit = \"%\" }]"),
            "p.toml:9: claim[0].figures[0].value: \"1\": expected",
        ),
        (
            claim("[{ low = 2, high = 1, unit = \"%\" }]"),
            "p.toml:9: claim[0].figures[0].low: 2: expected at most high, 1",
        ),
        (
            claim("[{ value = 1, unit = \"%\" }, { value = 2, unit = \"%\" }]"),
            "p.toml:9: claim[0].figures[0].name: missing key",
        ),
        (
            claim(
                "[{ name = \"a\", value = 1, unit = \"%\" }, { name = \"a\", value = 2, unit = \"%\" }]",
            ),
            "p.toml:9: claim[0].figures[1].name: the name of another figure, too",
        ),
    ];
    refused(&cases);
}

/// Each of the texts is refused, with a complaint that begins so.
fn refused(cases: &[(String, &str)]) {
    for (claims, expected) in cases {
        let error = parse(claims).expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}\nexpected {expected}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn a_cell_of_a_table_may_be_a_fifth_worse_or_any_better() {
    let text = claim(
        "[{ name = \"a\", value = 10, better = \"lower\", unit = \"ms\" }, \
         { name = \"b\", value = 10, better = \"higher\", unit = \"MB/s\" }]",
    );
    let paper = parse(&text).expect("good claims");
    let agrees = |name, ours| {
        let figure = paper.claims[0].figure(Some(name)).expect("one of them");
        figure.theirs.agrees(ours)
    };
    assert!(agrees("a", 12.0) && agrees("a", 0.1) && !agrees("a", 12.1));
    assert!(agrees("b", 8.0) && agrees("b", 99.0) && !agrees("b", 7.9));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_in_one_line(text in "(\\[\\[claim\\]\\]|[a-z]{1,6} ?= ?|\"|\\[|\\]|\\{|\\}|[0-9.]+|,|\n| ){0,60}") {
        if let Err(error) = parse(&text) {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }

    #[test]
    fn what_they_found_agrees_with_itself(a in -1e6..1e6f64, b in 0.0..1e6f64) {
        prop_assert!(Theirs::Exact(a).agrees(a));
        prop_assert!(Theirs::AtLeast(a).agrees(a) && Theirs::AtMost(a).agrees(a));
        prop_assert!(Theirs::Range(a, a + b).agrees(a) && Theirs::Range(a, a + b).agrees(a + b));
    }
}
