//! `headtime paper pfc` and `pfc-beyond`.

use super::{prints, rows_of};

#[test]
fn pfc_stands_beside_its_paper_with_tables_and_figures() {
    let folder = tempfile::tempdir().expect("a folder");
    let svg = folder.path().display();
    let text = prints(&format!("paper pfc --requests 300 --svg-dir {svg}"));
    // Nine claims, Table 1 with 48 cells, 96 cases and the readings.
    for said in [
        "synthetic loads, seed 2; pfc()",
        "of 9 hold",
        "| oltp, target | | 11 | 529 |",
        "| oltp by volume, target | | 11 | 529 |",
        "| oltp in a loop, target | | 11 | 529 |",
        "| multi in 32 KiB, target | | 25 | 792 | 12514 |",
        "| websearch, 5 %, L | 5.76 / ",
        "Mean deviation ",
        "| multi, amp, L, 5 % |",
        "| A18, L1's own prefetches pass |",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let is_case = |line: &&str| {
        NAMES
            .iter()
            .any(|name| line.starts_with(&format!("| {name}, ")))
    };
    let is_gain = |line: &&str| is_case(line) && line.matches('|').count() == 16;
    assert_eq!(text.lines().filter(is_gain).count(), 96 + 6);
    for figure in ["4", "5", "6", "7"] {
        let file = folder.path().join(format!("pfc-figure-{figure}.svg"));
        let drawn = std::fs::read_to_string(&file).expect("a drawing");
        assert!(drawn.contains("oltp, ra"), "{figure}");
    }
}

#[test]
fn pfc_read_in_another_way_is_another_pfc_and_the_same_again_is_the_same() {
    let usual = rows_of("pfc", "--requests 300");
    assert_eq!(usual.len(), 9);
    assert_eq!(usual, rows_of("pfc", "--requests 300"));
    let other = rows_of("pfc", "--requests 300 --readings a1=n,a4=veto");
    assert_ne!(usual[1]["ours"], other[1]["ours"]);
    let note = other[1]["note"].as_str().expect("a text");
    assert!(note.contains("pfc(a1=n,a4=veto)"), "{note}");
}

#[test]
fn pfc_with_another_seed_has_other_loads_and_says_which() {
    let usual = rows_of("pfc-beyond", "--requests 100");
    let other = rows_of("pfc-beyond", "--requests 100 --seed 6");
    assert_eq!(usual.len(), other.len());
    for (usual, other) in usual.iter().zip(&other) {
        assert_ne!(usual["note"], other["note"]);
        let note = other["note"].as_str().expect("a text");
        assert!(
            note.contains("synthetic loads, seed 6") || note.contains("genuine"),
            "{note}"
        );
    }
}

#[test]
fn beyond_pfc_every_kind_of_caches_is_judged() {
    let rows = rows_of("pfc-beyond", "--requests 300");
    let of = |id: &str| {
        let found = rows.iter().find(|row| row["id"] == id);
        found.unwrap_or_else(|| panic!("no {id}"))
    };
    let worse = of("pfc-beyond.never-worse");
    let note = worse["note"].as_str().expect("a text");
    assert!(note.contains("of 96, 48, 24 and 12 cases"), "{note}");
    for kind in ["homogeneous", "heterogeneous", "clients", "three_levels"] {
        assert!(worse["ours"][kind].is_number(), "{kind}: {worse}");
    }
    let tails = of("pfc-beyond.tails")["note"].as_str().expect("a text");
    assert!(
        tails.contains("not used") && tails.contains("disk busy"),
        "{tails}"
    );
    for (id, mode) in [("", "in-firmware"), ("-external", "external")] {
        let free = of(&format!("pfc-beyond.free-blocks{id}"));
        assert_eq!(free["mode"], mode);
        for figure in ["pfc_worse", "adaptive_worse", "loss_percent"] {
            assert!(free["ours"][figure].is_number(), "{figure}: {free}");
        }
    }
}

#[test]
fn readmore_on_free_blocks_is_judged_by_itself_and_printed_case_by_case() {
    for (id, mode) in [("", "in-firmware"), ("-external", "external")] {
        let asked = format!("paper pfc-beyond pfc-beyond.free-blocks{id} --requests 300");
        let text = prints(&asked);
        let titles = text.matches("Readmore on free blocks (").count();
        assert_eq!(titles, 1, "{text}");
        let title = format!("Readmore on free blocks ({mode})");
        assert!(text.contains(&title), "{text}");
        assert!(!text.contains("pfc-beyond.gain"), "{text}");
        let rows = text
            .lines()
            .filter(|line| line.starts_with("| websearch, "));
        assert_eq!(
            rows.count(),
            16,
            "four prefetchers, two sizes, two coordinators"
        );
    }
}

/// PFC's traces.
const NAMES: [&str; 3] = ["oltp", "websearch", "multi"];
