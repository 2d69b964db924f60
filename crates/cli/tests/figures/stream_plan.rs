//! `headtime streams plan`, as a whole binary.

use crate::scene::Scene;

const SET: &str = "drive = \"modern-20tb\"\n[streams]\nforeground_percent = 30\n[[stream]]\nname = \"camera\"\n\
                   mode = \"record\"\ncount = 64\nrate = \"500 kB\"\nmemory = \"3 MB\"\n";

#[test]
fn a_set_that_fits_says_what_is_left() {
    let scene = Scene::with(&[("cameras.toml", SET)]);
    let plan = scene.json("streams plan cameras.toml");
    assert_eq!(
        (
            plan["fits"].as_bool(),
            plan["groups"][0]["granted"].as_u64()
        ),
        (Some(true), Some(64))
    );
    assert!(plan["left_percent"].as_f64() > Some(30.0) && plan["groups"][0]["more"].is_u64());
    assert_eq!(plan["nearest"], serde_json::Value::Null);
    let flags = "streams plan --drive modern-20tb --record 64x500k,memory=3M";
    assert_eq!(scene.json(flags)["memory"], plan["memory"]);
    let said = scene.prints(flags);
    assert!(
        said.contains("all 64 streams are granted") && said.contains("head time: "),
        "{said}"
    );
}

#[test]
fn a_set_that_does_not_fit_has_a_reason_and_neighbours() {
    let scene = Scene::with(&[]);
    let refused = scene.run("streams plan --drive modern-20tb --record 64x500k --play 2x1M");
    assert_eq!(refused.status.code(), Some(3));
    let said = String::from_utf8(refused.stderr).expect("text");
    assert!(
        said.starts_with("error: recorder ") && said.contains("is refused: "),
        "{said}"
    );
    let report = String::from_utf8(refused.stdout).expect("text");
    for part in [
        "of 66 streams are granted",
        "fewer streams",
        "named memory",
        "lower rates",
    ] {
        assert!(report.contains(part), "{part}: {report}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_in_one_line() {
    let scene = Scene::with(&[(
        "bad.toml",
        "drive = \"modern-20tb\"\n[[stream]]\nname = 3\nmode = \"play\"\nrate = 1\n",
    )]);
    for (words, said) in [
        ("streams plan bad.toml", "bad.toml:3"),
        (
            "streams plan --drive modern-20tb",
            "no streams: expected --play or --record",
        ),
        (
            "streams plan --drive modern-20tb --play 2y1M",
            "expected bytes",
        ),
        ("streams plan --drive modern-20t --play 1M", "did you mean"),
        (
            "streams plan --drive modern-20tb --play 1M --foreground 120",
            "expected 0 to 99",
        ),
        ("streams plan", "required"),
    ] {
        let refused = scene.refuses(words);
        assert!(refused.contains(said), "{words}: {refused}");
    }
}
