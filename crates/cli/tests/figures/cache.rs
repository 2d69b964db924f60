//! `headtime cache`, and `headtime simulate --cache`, as a whole binary.

use std::fmt::Write as _;

use crate::scene::Scene;

/// Reads of single blocks of 4 KiB in a loop of twenty, 10 ms apart.
fn looped() -> String {
    let mut text = String::new();
    for at in 0..200u64 {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{},sda,R,{},4096", at as f64 / 100.0, at % 20 * 4096);
    }
    text
}

#[test]
fn curves_are_an_array_with_the_promised_keys() {
    let scene = Scene::with(&[("loop.csv", &looped())]);
    let curves = scene.json("cache --trace loop.csv --replacement lru,lirs --size 40KiB,80KiB");
    let curves = curves.as_array().expect("an array");
    let of = |replacement: &str, blocks: u64| {
        let mut lines = curves.iter();
        let line =
            lines.find(|line| line["replacement"] == replacement && line["blocks"] == blocks);
        line.expect("a line for each size")["miss_ratio"]
            .as_f64()
            .expect("a number")
    };
    assert_eq!(curves.len(), 4);
    assert_eq!((of("lru", 10), of("lru", 20)), (1.0, 0.1));
    assert_eq!(of("lirs", 20), 0.1);
    assert!(of("lirs", 10) < 1.0);
}

#[test]
fn prefetchers_have_lines_of_their_own() {
    let scene = Scene::with(&[("loop.csv", &looped())]);
    let line =
        "cache --trace loop.csv --replacement lru --size 40KiB --prefetch ra(p=4) --prefetch none";
    let curves = scene.json(line);
    assert_eq!(curves.as_array().map(Vec::len), Some(3));
    scene.prints(&format!("{line} --out curves.parquet"));
    assert!(scene.path("curves.parquet").is_file());
    assert_eq!(curves[1]["prefetcher"], "ra(p=4)");
    assert!(curves[1]["prefetched"].as_u64() > Some(0) && curves[1]["unused"].is_u64());
    assert_eq!(curves[2]["miss_ratio"], 1.0);
    assert!(scene.prints(line).contains("in vain"));
}

#[test]
fn curves_end_with_what_memory_is_worth_and_can_be_drawn() {
    let scene = Scene::with(&[("loop.csv", &looped())]);
    let said = scene.prints("cache --trace loop.csv --svg curves.svg");
    assert!(
        said.contains("200 demands for 20 blocks (80 KiB). 10.0 % are the first"),
        "{said}"
    );
    assert!(said.contains("80 KiB for 50 %"), "{said}");
    assert!(scene.read("curves.svg").contains("</svg>"));
}

#[test]
fn objects_are_blocks() {
    let scene = Scene::with(&[("objects.csv", "time;id\n1;a\n2;b\n3;a\n4;7\n5;a\n")]);
    let columns = "obj-id-col=2,delimiter=;,has-header=true";
    let line =
        format!("cache --trace objects.csv --columns {columns} --replacement lru --size 8KiB");
    let curves = scene.json(&line);
    assert_eq!(curves[0]["blocks"], 2);
    assert_eq!(curves[0]["miss_ratio"], 0.6);
}

#[test]
fn caches_over_a_drive_have_the_promised_keys() {
    let scene = Scene::with(&[("loop.csv", &looped())]);
    let line = "simulate --cache 40KiB,lru,ra(p=4) --cache 1MiB,arc,none,pfc --trace loop.csv";
    let run = scene.json(line);
    assert_eq!(run["drive"], "modern-20tb");
    assert_eq!(run["mode"], "in-firmware");
    let levels = run["levels"].as_array().expect("an array");
    assert_eq!(levels.len(), 2);
    for level in levels {
        for key in ["hits", "misses", "prefetched", "unused"] {
            assert!(level[key].is_u64(), "{key}: {level}");
        }
        assert!(level["hit_ratio"].is_f64(), "{level}");
    }
    let [hits, misses] = ["hits", "misses"].map(|key| levels[0][key].as_u64().expect("a number"));
    assert_eq!(hits + misses, 200);
    assert!(run["mean_ms"].as_f64() <= run["p99_ms"].as_f64());
    let text = scene.prints(line);
    assert!(
        text.contains("200 requests, modern-20tb under sptf (in-firmware)"),
        "{text}"
    );
    let lines: Vec<&str> = text.lines().rev().take(2).collect();
    assert_eq!(run["verdict"], serde_json::json!([lines[1], lines[0]]));
    assert!(lines[1].contains(" of the demanded blocks, "), "{text}");
}

#[test]
fn what_makes_no_sense_is_refused_in_one_line() {
    let scene = Scene::with(&[
        ("loop.csv", &looped()),
        ("torn.csv", "0,sda,R,0,4096\n0.1,sda,R,0\n"),
        ("a.parquet", "PAR1\u{0}\u{1}"),
    ]);
    for (line, problem) in [
        ("cache --trace torn.csv", "torn.csv:2"),
        ("cache --trace a.parquet", "a.parquet"),
        (
            "cache --trace loop.csv --replacement lro",
            "expected one of",
        ),
        ("cache --trace loop.csv --size 1KiB", "at least 4096"),
        ("cache --trace loop.csv --sample 2", "at most 1"),
        ("cache --trace loop.csv --columns obj-id-col=9", "field 9"),
        ("simulate --cache 1MiB --trace torn.csv", "torn.csv:2"),
        (
            "simulate --cache 1MiB,lru,none,pfc --trace loop.csv",
            "first cache",
        ),
        ("simulate --cache 1MiB --trace loop.csv --scan", "--scan"),
        ("simulate --cache 1MiB --workload oltp", "--trace"),
    ] {
        let said = scene.refuses(line);
        assert!(said.contains(problem), "{line}: {said}");
    }
}
