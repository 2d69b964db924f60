//! `headtime fit` as a whole binary: what it finds it keeps, and what it keeps it finds again.

use crate::scene::Scene;

/// Requests of a DEC RZ26 that answers as no drive would: there is something to fit.
fn trace() -> String {
    let line = |i: u64| {
        let (way, block) = (["R", "W"][(i % 3 / 2) as usize], i * 7_919_993 % 2_000_000);
        format!("{way} Hit {block} 8 {} 5000\n", 12_000 + i * 911 % 9_000)
    };
    (0..60).map(line).collect()
}

const RZ26: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../drives/dec-rz26.toml");

#[test]
fn a_fit_is_kept_in_the_profile_and_found_again() {
    let shipped = std::fs::read_to_string(RZ26).expect("a shipped profile");
    let scene = Scene::with(&[("a.trace", &trace())]);
    std::fs::create_dir(scene.path("drives")).expect("a folder");
    let profile = scene.path("drives/dec-rz26.toml");
    std::fs::write(&profile, &shipped).expect("written");

    let fit = "fit --drive drives/dec-rz26.toml --trace a.trace";
    let text = scene.prints(&format!("{fit} --into drives"));
    assert!(
        text.contains("published  on the second half: demerit"),
        "{text}"
    );
    assert!(
        text.contains("origin = \"fitted to the first 30 requests of a.trace"),
        "{text}"
    );
    let kept = scene.read("drives/dec-rz26.toml");
    let table = kept.find("\n[fitted]").expect("a fitted table");
    assert_ne!(kept, shipped);
    assert_eq!(
        kept[..table].trim_end(),
        shipped[..shipped.find("\n[fitted]").expect("one")].trim_end()
    );
    assert!(text.contains(kept[table..].trim()), "{text}");

    // Again, from the profile that has a fit already.
    assert_eq!(scene.prints(fit), text);
    let checked = scene.prints(&format!("{fit} --check"));
    assert!(checked.ends_with("every fit is the one in its profile\n"));

    let other = kept.replace("read_miss_after_read_ms = ", "read_miss_after_read_ms = 1");
    assert_ne!(other, kept);
    std::fs::write(&profile, other).expect("written");
    let output = scene.run(&format!("{fit} --check"));
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.starts_with("error: the fit is not the one in the profile: dec-rz26"),
        "{said}"
    );
}

#[test]
fn what_cannot_be_fitted_is_said() {
    let scene = Scene::with(&[("a.trace", &trace())]);
    std::fs::create_dir_all(scene.path("lent/drives")).expect("a folder");
    let said = scene.borrowed("lent").refuses("fit --drive hp-c2249a");
    assert!(
        said.starts_with("hp-c2249a has no measured trace in "),
        "{said}"
    );
    let both = scene.run("fit --drive dec-rz26 --trace a.trace --into . --check");
    assert_eq!(both.status.code(), Some(2), "either keep or compare");
}
