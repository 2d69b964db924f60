//! A described system runs as the same one by flags, and neither reader passes over a mistake.

use proptest::prelude::*;

use super::*;
use crate::comparison::truth::TruthSettings;

const DRIVE: &str = "[[drive]]\nname = \"d\"\npolicy = \"sptf\"\n\
     back_end = { kind = \"emulated\", drive = \"seagate-cheetah-15k5\", image = \"d.img\", seek_noise_us = 60, seed = 3 }\n\
     volume = [{ name = \"v\" }]\nexport = [{ name = \"e\", volume = \"v\" }]\n";

const TWO_VOLUMES: &str = "[[drive]]\nname = \"d\"\n\
     back_end = { kind = \"emulated\", drive = \"quantum-atlas-10k\", image = \"d.img\" }\n\
     volume = [{ name = \"a\", size = \"1 GiB\" }, { name = \"b\", offset = \"4 GiB\", size = \"1 GiB\" }]\n\
     export = [{ name = \"a\", volume = \"a\" }, { name = \"b\", volume = \"b\", class = \"best-effort-3\" }]\n";

fn places() -> Places {
    Places {
        data: "/data".into(),
        runtime: "/run".into(),
        base: "/etc".into(),
    }
}

fn parsed(text: &str) -> Result<SystemFile, DocumentError> {
    SystemFile::parse("s.toml", text, &places())
}

fn setup_of(text: &str, flags: &ComparisonSettings) -> Result<ComparisonSetup, Failure> {
    parsed(text).map_err(Failure::input)?.setup(flags)
}

#[test]
fn a_system_runs_as_the_same_one_by_flags() {
    let flags = ComparisonSettings {
        requests: Some(800),
        ..ComparisonSettings::default()
    };
    let text =
        format!("{DRIVE}[[load]]\nexport = \"e\"\nworkload = \"oltp\"\nseed = 3\ntasks = 7\n");
    let described = setup_of(&text, &flags).expect("a system");
    let flagged = ComparisonSettings {
        drive: "seagate-cheetah-15k5".to_owned(),
        truth: TruthSettings {
            seek_noise_us: Some(60.0),
            ..TruthSettings::default()
        },
        load: LoadSettings {
            workload: Some("oltp".to_owned()),
            seed: Some(3),
            tasks: Some(7),
            ..LoadSettings::default()
        },
        policies: vec!["sptf".to_owned()],
        ..flags
    };
    let flagged = flagged.setup().expect("flags");
    let runs = [&described, &flagged].map(|setup| {
        let run = setup.run(setup.policies[0], &mut ());
        let run = run.expect("it runs");
        (run.report.all, run.distribution, setup.truth.mode())
    });
    assert_eq!(runs[0], runs[1]);
}

#[test]
fn clients_stay_on_their_volumes_in_their_classes() {
    use std::io;

    use block::{Class, Finished};
    use simulator::run::Watch;

    #[derive(Default)]
    struct Seen(Vec<(u64, u64, Class)>);
    impl Watch for Seen {
        fn finished(&mut self, finished: &Finished) -> io::Result<()> {
            let extent = finished.request.extent;
            self.0
                .push((extent.start().0, extent.end().0, finished.request.class));
            Ok(())
        }
    }
    let text = format!(
        "{TWO_VOLUMES}[[load]]\nexport = \"a\"\nworkload = \"oltp\"\n\
         [[load]]\nexport = \"b\"\nworkload = \"random\"\n"
    );
    let flags = ComparisonSettings {
        requests: Some(2_000),
        ..ComparisonSettings::default()
    };
    let setup = setup_of(&text, &flags).expect("a system");
    let mut seen = Seen::default();
    let run = setup.run(setup.policies[0], &mut seen).expect("it runs");
    assert_eq!(run.report.all.requests, 2_000);
    let (gib, other) = (2_097_152, Class::BestEffort(3));
    let mut counts = [0; 2];
    for (start, end, class) in seen.0 {
        let place = match class == other {
            true => 4 * gib..5 * gib,
            false => 0..gib,
        };
        assert!(
            place.contains(&start) && end <= place.end,
            "{start}..{end} {class:?}"
        );
        counts[usize::from(class == other)] += 1;
    }
    assert!(counts[0] > 100 && counts[1] > 10, "{counts:?}");
}

#[test]
fn streams_and_a_task_run_beside_a_load() {
    let text = format!(
        "{}[drive.streams]\nforeground_percent = 20\n[[load]]\nexport = \"a\"\nworkload = \"oltp\"\ntasks = 2\n\
         [[stream]]\nexport = \"b\"\nname = \"film\"\nmode = \"play\"\ncount = 3\nrate = \"500 kB\"\n\
         [[stream]]\nexport = \"b\"\nname = \"camera\"\nmode = \"record\"\ncount = 2\nrate = \"250 kB\"\n\
         [[stream]]\nexport = \"b\"\nname = \"greedy\"\nmode = \"play\"\nrate = \"900 MB\"\n\
         [[task]]\nvolume = \"a\"\n",
        TWO_VOLUMES
    );
    let flags = ComparisonSettings {
        seconds: Some(30.0),
        ..ComparisonSettings::default()
    };
    let setup = setup_of(&text, &flags).expect("a system");
    let run = setup.run(setup.policies[0], &mut ()).expect("it runs");
    let streams = run.streams.expect("streams");
    assert_eq!((streams.asked, streams.granted), (6, 5));
    assert!(streams.refused.expect("one is").starts_with("greedy 1: "));
    assert_eq!((streams.waited, streams.late, streams.lapsed), (0, 0, 0));
    assert!(streams.accesses > 500 && streams.head_percent > 1.0);
    assert!(run.scan.is_some() && run.report.all.requests > 500);
    let without = setup_error(&text, &ComparisonSettings::default());
    assert!(without.contains("expected --seconds"), "{without}");
}

fn setup_error(text: &str, flags: &ComparisonSettings) -> String {
    setup_of(text, flags).expect_err("a refusal").to_string()
}

#[test]
fn a_volume_s_cache_is_a_level_below_those_of_the_client() {
    let drive = TWO_VOLUMES.replace(
        "size = \"1 GiB\" },",
        "size = \"1 GiB\", cache = { size = \"64 MiB\", coordinator = \"pfc\" } },",
    );
    let load = "[[load]]\nexport = \"a\"\ntrace = \"mine.csv\"\ncache = [\"8 MiB,lru,linux-6\"]\nlink = \"lan\"\n";
    let system = parsed(&format!("{drive}{load}")).expect("a system");
    assert_eq!(system.has_caches(), Ok(true));
    let cached = system.cached(Some(7)).expect("one client");
    assert_eq!(
        cached.caches,
        ["8 MiB,lru,linux-6", "67108864,arc,linux-6,pfc"]
    );
    assert_eq!(
        cached.load.trace.as_deref(),
        Some(Path::new("/etc/mine.csv"))
    );
    assert_eq!((cached.link.as_str(), cached.requests), ("lan", Some(7)));
    let workload = load.replace("trace = \"mine.csv\"", "workload = \"oltp\"");
    let refused = parsed(&format!("{drive}{workload}"))
        .expect("a system")
        .cached(None)
        .expect_err("no trace");
    assert!(
        refused.to_string().contains("a workload beside caches"),
        "{refused}"
    );
}

#[test]
fn what_is_wrong_says_where_and_what_was_expected() {
    for (tables, said) in [
        ("", "no client: expected a table [[load]]"),
        ("[[load]]\nworkload = \"oltp\"\n", "export"),
        ("[[load]]\nexport = \"f\"\nworkload = \"oltp\"\n", "\"e\""),
        (
            "[[load]]\nexport = \"e\"\n",
            "expected a workload or a trace",
        ),
        (
            "[[load]]\nexport = \"e\"\nworkload = \"oltp\"\nclosed = 3\n",
            "closed: a key of a trace",
        ),
        (
            "[[load]]\nexport = \"e\"\nworkload = \"oltp\"\ntask = 3\n",
            "did you mean",
        ),
        ("[[load]]\nexport = \"e\"\nworkload = \"oltq\"\n", "oltq"),
        (
            "[[load]]\nexport = \"e\"\nworkload = \"oltp\"\n[[load]]\nexport = \"e\"\nworkload = \"oltp\"\n",
            "there twice",
        ),
        (
            "[[load]]\nexport = \"e\"\nworkload = \"oltp\"\n[[task]]\nvolume = \"w\"\n",
            "\"v\"",
        ),
        (
            "[[stream]]\nexport = \"e\"\nname = \"f\"\nmode = \"play\"\nrate = 1000\n",
            "expected a table [drive.streams]",
        ),
        ("[[stream]]\nexport = \"e\"\nblocks = \"0..5\"\n", "blocks"),
    ] {
        let text = format!("{DRIVE}{tables}");
        let problem = setup_error(&text, &ComparisonSettings::default());
        assert!(problem.contains(said), "{tables}: {problem}");
    }
    let memory = DRIVE.replace(
        "kind = \"emulated\", drive = \"seagate-cheetah-15k5\", image = \"d.img\", seek_noise_us = 60, seed = 3",
        "kind = \"memory\", size = \"1 GiB\"",
    );
    let memory = memory.replace("policy = \"sptf\"\n", "");
    let load = "[[load]]\nexport = \"e\"\nworkload = \"oltp\"\n";
    let problem = setup_error(&format!("{memory}{load}"), &ComparisonSettings::default());
    assert!(problem.contains("nothing says how long"), "{problem}");
}

#[test]
fn tables_of_the_service_are_named() {
    let text = format!(
        "{}[[nbd]]\nunix = \"n.sock\"\n[log]\nlevel = \"warn\"\n[[load]]\nexport = \"e\"\nworkload = \"oltp\"\n",
        DRIVE.replace("{ name = \"v\" }", "{ name = \"v\", bitmaps = \"maps\" }")
    );
    let system = parsed(&text).expect("a system");
    assert_eq!(
        system.served_only,
        ["[[nbd]]", "[log]", "drive.volume.bitmaps"]
    );
    assert_eq!(system.simulated_only(), ["[[load]]"]);
}

proptest! {
    #[test]
    fn any_text_is_a_system_or_refused_in_one_line(text in "[ -~\n]{0,120}") {
        for text in [text.clone(), format!("{DRIVE}[[load]]\n{text}"), format!("{DRIVE}[[stream]]\n{text}")] {
            if let Err(error) = parsed(&text) {
                prop_assert!(!error.problem.contains('\n'));
            }
        }
    }
}
