//! `headtime drives` as a whole binary: the list, a drawing, a map, and what it refuses.

use crate::scene::{Scene, keys};

#[test]
fn json_lists_every_drive_with_the_promised_keys() {
    let json = Scene::with(&[]).json("drives");
    let drives = json.as_array().expect("an array");
    assert_eq!(drives.len(), drive::catalog::ALL.len());
    for one in drives {
        for key in [
            "name",
            "capacity_bytes",
            "rpm",
            "provenance",
            "surfaces",
            "tracks",
            "seek",
        ] {
            assert!(keys(one).contains(&key), "{key} of {one}");
        }
        assert!(one["capacity_bytes"].is_u64() && one["rpm"].is_number());
    }
    let names: Vec<_> = drives
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    // Those that the issue names.
    for name in [
        "quantum-atlas-10k",
        "seagate-cheetah-9lp",
        "seagate-cheetah-18lp",
        "seagate-st318437lw",
        "hitachi-travelstar-80gn",
        "toshiba-x300-5tb",
        "modern-20tb",
        "modern-18tb-dual",
    ] {
        assert!(names.contains(&name), "{name}");
    }
}

#[test]
fn a_drive_is_drawn_as_text_and_svg() {
    let scene = Scene::with(&[]);
    let text = scene.prints("drives show quantum-atlas-10k");
    for part in ["Quantum Atlas 10K", "seek", "zones", "tracks"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(scene.prints("drives show quantum-atlas-10k"), text);
    // The smallest, the largest, and the one with two actuators, too.
    for name in [
        "quantum-atlas-10k",
        "dec-rz26",
        "modern-20tb",
        "modern-18tb-dual",
    ] {
        scene.prints(&format!("drives show {name} --svg drive.svg"));
        assert!(scene.read("drive.svg").starts_with("<svg"), "{name}");
    }
}

#[test]
fn blocks_are_mapped_from_the_command_line_and_from_a_file() {
    let scene = Scene::with(&[("blocks.csv", "lbn,remark\n0,first\n\n2050859,last\n")]);
    let map = scene.prints("drives map dec-rz26 --lbn 0 2050859");
    assert_eq!(map.lines().next(), Some("lbn,cylinder,head,sector,angle"));
    assert_eq!(map.lines().count(), 3);
    assert_eq!(scene.prints("drives map dec-rz26 --csv blocks.csv"), map);
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    let bad = "name = \"x\"\nyear = = 1\n";
    let scene = Scene::with(&[("bad.toml", bad), ("bad.csv", "lbn\n7\nseven\n")]);
    for (arguments, words) in [
        (
            "drives show quantum-atlas-10",
            "did you mean \"quantum-atlas-10k\"?",
        ),
        ("drives show none.toml", "none.toml: "),
        ("drives show bad.toml", "bad.toml:2: "),
        (
            "drives map dec-rz26 --lbn 2050860",
            "expected below 2050860",
        ),
        ("drives map dec-rz26 --csv bad.csv", "bad.csv:3: "),
        ("drives map dec-rz26 --csv none.csv", "none.csv: "),
    ] {
        let said = scene.refuses(arguments);
        assert!(said.contains(words), "{said}: expected {words}");
    }
}
