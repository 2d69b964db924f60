//! What runs without the other program.

use super::*;

#[test]
fn our_part_counts_what_the_curve_counts() {
    let folder = tempfile::tempdir().expect("a folder");
    let demands = zipf::demands(30_000, 5_000);
    let trace = ObjectTrace::write("zipf".to_owned(), &demands, folder.path()).expect("room");
    let curves = CurveSettings {
        trace: trace.path.clone(),
        format: None,
        columns: None,
        skip_bad: false,
        replacement: SHARED.iter().map(|shared| shared.ours.to_owned()).collect(),
        prefetch: Vec::new(),
        sizes: vec![trace.capacity(10)],
        sampling: Sampling::WHOLE,
    };
    let curves = curves.run(&()).expect("a good trace");
    assert_eq!(
        (curves.demands, curves.distinct),
        (trace.demands, trace.blocks)
    );
    for point in &curves.ratios {
        let run = ours_once(&trace, point.blocks, &point.replacement).expect("a good trace");
        assert_eq!(point.miss_ratio, run.misses as f64 / 30_000.0, "{point:?}");
    }
}

#[test]
fn an_interpreter_without_the_package_is_refused() {
    let bench = |python: &str, policy: &str| {
        let bench = PeersBench {
            python: python.into(),
            traces: Vec::new(),
            policies: vec![policy.to_owned()],
            demands: 100,
            blocks: 10,
            curve_demands: 0,
            sample: 0.1,
            rounds: 1,
        };
        bench.run(&()).expect_err("it cannot run").to_string()
    };
    let none = bench("/nowhere/python", "lru");
    assert!(none.contains("expected a Python interpreter"), "{none}");
    let other = bench("/bin/false", "lru");
    assert!(other.contains("pip install libcachesim"), "{other}");
    let policy = bench("/bin/false", "lrx");
    assert!(policy.contains("lru"), "{policy}");
}
