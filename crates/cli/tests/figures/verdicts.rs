//! The last lines of `headtime simulate` as a whole binary: what dominated, what is unusual, and what to try.

use std::fmt::Write as _;

use crate::scene::Scene;

/// A trace of requests at these milliseconds, each of 4 KiB at a place of its own.
fn trace(millis: impl IntoIterator<Item = u64>) -> String {
    let mut text = String::from("time_ms,op,offset,size\n");
    for (number, at) in millis.into_iter().enumerate() {
        // A step that visits the 9 GB of the drive all over: 2^21 pages, and a prime.
        let place = number as u64 * 1_299_709 % (1 << 21) * 4096;
        let _ = writeln!(text, "{at},R,{place},4096");
    }
    text
}

/// The last two lines, and the verdict of `--json`, which must be the same.
fn verdict(trace: &str, flags: &str) -> (String, String, String) {
    let scene = Scene::with(&[("load.csv", trace)]);
    let command = format!("simulate --drive quantum-atlas-10k --trace load.csv {flags}");
    let text = scene.prints(&command);
    let lines: Vec<&str> = text.lines().collect();
    let [.., gap, first, second] = lines[..] else {
        panic!("{text}");
    };
    assert_eq!(gap, "", "{text}");
    let json = scene.json(&command);
    let said = &json["verdict"];
    assert_eq!(said["sentences"], serde_json::json!([first, second]));
    let finding = said["finding"].as_str().expect("a word");
    (finding.to_owned(), first.to_owned(), second.to_owned())
}

#[test]
fn bursts_are_called_bursts_and_closed_is_named() {
    // 200 requests at once, every 100 seconds: the disk is idle nearly always.
    let bursts = trace((0..1000).map(|number| number / 200 * 100_000));
    let (finding, first, second) = verdict(&bursts, "");
    assert_eq!(finding, "bursts", "{second}");
    assert!(
        first.starts_with("Waiting for other requests is 9"),
        "{first}"
    );
    assert!(
        second.contains("bursts: the disk is idle 99") && second.contains("--closed"),
        "{second}"
    );
    let (finding, ..) = verdict(&bursts, "--closed");
    assert_eq!(finding, "closed-queue");
}

#[test]
fn a_steady_trace_has_another_sentence() {
    // One every 20 ms, each of which takes about 8 ms.
    let steady = trace((0..1000).map(|number| number * 20));
    let (finding, first, second) = verdict(&steady, "");
    assert_eq!(finding, "nothing", "{second}");
    assert!(first.contains("of the mean response of"), "{first}");
    assert!(
        second.starts_with("Nothing is unusual: the disk is busy "),
        "{second}"
    );
    assert!(!second.contains("bursts"), "{second}");
}

#[test]
fn a_slow_bus_is_named_and_another_one_helps() {
    // 32 KiB, which take 6.3 ms on the bus of 5.2 MB/s and 0.4 ms on one of 80.
    let large = trace((0..500).map(|number| number * 40)).replace(",4096\n", ",32768\n");
    let scene = Scene::with(&[("load.csv", &large)]);
    let command = "simulate --drive quantum-atlas-10k --trace load.csv --fit wrap";
    let text = scene.prints(command);
    assert!(
        text.contains("\n  bus     5.2 (reads) and 4.5 (writes) MB/s, as the drive was measured;"),
        "{text}"
    );
    let (finding, _, second) = verdict(&large, "--fit wrap");
    assert_eq!(finding, "bus", "{second}");
    assert!(second.contains("try --bus-mb-s 80"), "{second}");
    let (finding, ..) = verdict(&large, "--fit wrap --bus-mb-s 80");
    assert_ne!(finding, "bus");
    let text = scene.prints(&format!("{command} --bus-mb-s 80"));
    assert!(!text.contains("\n  bus "), "{text}");
}

#[test]
fn an_overload_says_by_how_much_and_how_to_slow_the_trace_down() {
    // One every 4 ms: twice as many as the drive serves in order.
    let fast = trace((0..1000).map(|number| number * 4));
    let (finding, _, second) = verdict(&fast, "--policy fcfs");
    assert_eq!(finding, "overload", "{second}");
    assert!(second.starts_with("Requests arrive 2."), "{second}");
    assert!(second.contains("--scale-time "), "{second}");
    let scale: f64 = second
        .trim_end_matches('.')
        .rsplit(' ')
        .next()
        .and_then(|word| word.parse().ok())
        .expect("a factor");
    let (finding, ..) = verdict(&fast, &format!("--policy fcfs --scale-time {scale}"));
    assert_ne!(finding, "overload", "the hint helps");
}

#[test]
fn the_best_of_several_policies_is_named_with_its_lead() {
    let queue = trace((0..2000).map(|number| number * 4));
    let (finding, first, second) = verdict(&queue, "--policy fcfs,sptf");
    assert!(
        first.starts_with("sptf has the shortest mean response, "),
        "{first}"
    );
    assert!(first.contains("% below fcfs (noise "), "{first}");
    assert_eq!(finding, "others-overloaded", "{second}");
    assert!(second.contains("as fast as fcfs serves them"), "{second}");
}
