//! Every policy under loads that tell them apart: a golden table, so that a change of a policy
//! is a change of numbers.

use std::fmt::Write;
use std::sync::Arc;

use drive::{Profile, VirtualDrive, catalog};
use engine::{Engine, Limits};
use scheduler::policy::{ALL, NamedPolicy};
use simulator::driver::Driver;
use simulator::ledger::{Ledger, RunReport};
use simulator::run::{Options, run};
use simulator::workload::{BuiltInWorkload, Overrides, Synthetic};

/// Which load on which drive, with how many tasks if not its own number: random requests and local
/// ones on the drive of the free-block papers, random ones and sequential readers on a large one.
const RUNS: [(&str, &str, Option<u32>); 4] = [
    ("quantum-atlas-10k", "oltp", Some(32)),
    ("quantum-atlas-10k", "mixed", None),
    ("modern-20tb", "uniform-4k", Some(32)),
    ("modern-20tb", "streams", None),
];

/// Requests of a run: enough that the means tell the policies apart.
const REQUESTS: u64 = 2_000;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/policies.csv");

fn report(
    policy: NamedPolicy,
    load: &str,
    tasks: Option<u32>,
    profile: &Arc<Profile>,
) -> RunReport {
    let load = BuiltInWorkload::find(load).expect("a built-in load");
    let busy = Overrides {
        tasks,
        ..Overrides::default()
    };
    let load = load.workload().and_then(|load| load.with(&busy));
    let blocks = profile.geometry.sectors().0;
    let mut load = load
        .and_then(|load| Synthetic::new(&load, profile.block_bytes, blocks))
        .expect("it fits on the drive");
    let limits = Limits::suited_to(policy, profile);
    let engine = Engine::new(Arc::clone(profile), &|| policy.make(), limits);
    let drive = VirtualDrive::new(Arc::clone(profile));
    let mut ledger = Ledger::new(profile.block_bytes, profile.actuators);
    let options = Options {
        requests: Some(REQUESTS),
        ..Options::default()
    };
    let ran = run(
        &mut Driver::new(engine, drive),
        &mut load,
        &options,
        &mut ledger,
        &mut (),
    );
    ledger.report(&ran.expect("a good load"))
}

#[test]
fn golden_figures_of_every_policy() {
    let mut rows =
        String::from("drive,load,policy,requests_per_second,mean_ms,p99_ms,seek_share\n");
    for (drive, load, tasks) in RUNS {
        let entry = catalog::find(drive).expect("a shipped drive");
        let profile = Arc::new(entry.profile().expect("a valid profile"));
        for policy in ALL.iter().map(NamedPolicy::from) {
            let report = report(policy, load, tasks, &profile);
            assert_eq!(report.overruled, 0, "{}", policy.name());
            let response = report.all.response.as_ref().expect("requests were served");
            let _ = writeln!(
                rows,
                "{drive},{load},{},{:.2},{:.3},{:.3},{:.4}",
                policy.name(),
                REQUESTS as f64 / report.span_ms * 1e3,
                response.mean_ms,
                response.p99_ms,
                report.head.seek,
            );
        }
    }
    if std::env::var_os("HEADTIME_BLESS").is_some_and(|bless| bless == "1") {
        std::fs::write(GOLDEN, &rows).expect("the golden table can be written");
    }
    let golden = std::fs::read_to_string(GOLDEN).expect("the golden table");
    for (golden, ours) in golden.lines().zip(rows.lines()) {
        assert_eq!(golden, ours, "`cargo xtask bless` if this is right");
    }
    assert_eq!(golden, rows);
}
