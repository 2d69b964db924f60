//! The sample trace `examples/sample.csv`: made here, without doubts for `headtime trace stat`, and told apart by policies.
//! The tutorial uses it.
//!
//! ```text
//!   mail    bursts of 8 to 48 small reads and writes at once, four of five of them in 64 hot places
//!   files   programs that read 64 KiB after 64 KiB, each when it has got the last one: 2 to 5 ms apart
//!   journal every half second two or three small writes, one after the other
//! ```
//!
//! It stands for an hour of a file server of an office, shortened. No number of it is measured: all are choices. Its
//! header is that of a data frame written by a script, with times in microseconds and addresses in sectors.

use std::path::Path;

use crate::scene::Scene;

/// Requests, about.
const REQUESTS: usize = 2_000;

/// Microseconds from the first to the last request, about: so few requests a second are far below what the disk can do, so
/// that only bursts queue.
const LENGTH_US: u64 = 100_000_000;

/// Sectors of the disk of the trace: those of a 9.1 GB disk, rounded down.
const SECTORS: u64 = 17_000_000;

/// Numbers without a pattern: the linear congruential generator of Knuth's MMIX, of which the upper half is used.
struct Dice(u64);

impl Dice {
    /// A number below `limit`.
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 32) * limit) >> 32
    }
}

/// Time, operation, first sector, sectors.
type Line = (u64, char, u64, u64);

/// Bursts of a mail server: most of them near to each other.
fn mail(dice: &mut Dice, lines: &mut Vec<Line>) {
    let hot: Vec<u64> = (0..64).map(|_| dice.below(SECTORS / 8) * 8).collect();
    let mut at = 0;
    while at < LENGTH_US {
        at += 500_000 + dice.below(3_500_000);
        for _ in 0..8 + dice.below(41) {
            at += dice.below(1_500);
            let nearest = dice.below(64) + 1;
            let place = match dice.below(5) {
                0 => dice.below(SECTORS / 8 - 256) * 8,
                _ => hot[dice.below(nearest) as usize] + dice.below(4) * 8,
            };
            let op = if dice.below(3) == 0 { 'W' } else { 'R' };
            lines.push((
                at,
                op,
                place.min(SECTORS - 64),
                [8, 8, 16, 32][dice.below(4) as usize],
            ));
        }
    }
}

/// Files that are read from their begin to their end.
fn files(dice: &mut Dice, lines: &mut Vec<Line>) {
    let mut at = 1_000_000;
    while at < LENGTH_US {
        let first = dice.below(SECTORS / 8 - 100_000) * 8;
        let mut now = at;
        for part in 0..4 + dice.below(28) {
            lines.push((now, 'R', first + part * 128, 128));
            now += 2_000 + dice.below(3_000);
        }
        at = now + 1_000_000 + dice.below(9_000_000);
    }
}

/// A journal that is written in a circle.
fn journal(dice: &mut Dice, lines: &mut Vec<Line>) {
    let (first, length) = (8_000_000, 65_536);
    let mut next = 0;
    let mut at = 250_000;
    while at < LENGTH_US {
        for part in 0..2 + dice.below(2) {
            lines.push((at + part * 300, 'W', first + next, 8));
            next = (next + 8) % length;
        }
        at += 400_000 + dice.below(200_000);
    }
}

/// The trace.
fn sample() -> String {
    let mut dice = Dice(25);
    let mut lines = Vec::new();
    mail(&mut dice, &mut lines);
    files(&mut dice, &mut lines);
    journal(&mut dice, &mut lines);
    lines.sort_unstable();
    let mut text = String::from("time_us,op,lba,sectors\n");
    for (time, op, lba, sectors) in lines {
        text.push_str(&format!("{time},{op},{lba},{sectors}\n"));
    }
    text
}

fn docs() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_sample_trace_is_golden() {
    let path = docs().join("examples/sample.csv");
    let made = sample();
    let requests = made.lines().count() - 1;
    assert!(requests.abs_diff(REQUESTS) < REQUESTS / 10, "{requests}");
    if std::env::var_os("HEADTIME_BLESS").is_some_and(|bless| bless == "1") {
        std::fs::write(&path, &made).expect("written");
    }
    let kept = std::fs::read_to_string(&path).expect("HEADTIME_BLESS=1 writes it");
    assert!(
        kept == made,
        "examples/sample.csv is another one: `cargo xtask bless golden`"
    );
}

/// The commands of the tutorial that name the sample trace, with its own copy of it.
fn commands() -> Vec<String> {
    let page = std::fs::read_to_string(docs().join("docs/tutorial/first-hour.md"));
    let page = page.expect("the tutorial").replace("\\\n  ", "");
    let lines = page
        .lines()
        .filter_map(|line| line.strip_prefix("headtime "));
    let lines = lines.filter(|line| line.contains("examples/sample.csv"));
    lines.map(str::to_owned).collect()
}

#[test]
fn the_tutorial_simulates_the_sample_trace() {
    let scene = Scene::with(&[]);
    std::fs::create_dir(scene.path("examples")).expect("a folder");
    std::fs::copy(
        docs().join("examples/sample.csv"),
        scene.path("examples/sample.csv"),
    )
    .expect("copied");
    let commands = commands();
    let [stat, simulate, cache] = commands.as_slice() else {
        panic!("three commands: {commands:?}");
    };
    let output = scene.run(stat);
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "no doubts: {output:?}");
    let said = String::from_utf8(output.stdout).expect("text");
    assert!(!said.contains("looks like"), "{said}");

    let said = scene.prints(&format!("{simulate} --json"));
    let report: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    let results = report["results"].as_array().expect("a list of policies");
    assert_eq!(results.len(), 4, "{said}");
    // Bursts queue: another order is at least a tenth faster than that of the arrival.
    let busy = |result: &serde_json::Value| result["head"]["idle"].as_f64().map(|idle| 1.0 - idle);
    let first = busy(&results[0]).expect("a share");
    for other in &results[1..] {
        assert!(busy(other).expect("a share") < 0.9 * first, "{said}");
    }
    assert!(scene.path("sample.svg").exists(), "{said}");

    scene.prints(cache);
}
