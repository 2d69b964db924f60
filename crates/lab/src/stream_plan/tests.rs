//! Plans agree with what an engine grants.

use engine::streams::NotGranted;
use engine::{Engine, Limits};
use proptest::prelude::*;

use super::*;

fn set(groups: Vec<StreamGroup>) -> StreamSet {
    StreamSet {
        drive: "quantum-atlas-10k".to_owned(),
        time_scale: TimeScale::REAL,
        promise: StreamsConfig::default(),
        groups,
    }
}

fn players(count: u32, rate: u64) -> StreamGroup {
    StreamGroup {
        name: "film".to_owned(),
        mode: StreamMode::Play,
        count,
        rate,
        buffer: 64 * 1024,
        memory: None,
        blocks: None,
    }
}

/// The streams of each group that an engine grants until the first refusal, with the memory rule of the server.
fn granted_by_the_engine(set: &StreamSet) -> Vec<u32> {
    let belief = Arc::new(named::drive(&set.drive).expect("a drive"));
    let policy = named::policy("sptf").expect("a policy");
    let (promise, rule) = promise_to_streams(&set.promise, TimeScale::REAL, belief.block_bytes);
    let limits = Limits::suited_to(policy, &belief);
    let engine = Engine::new(Arc::clone(&belief), &|| policy.make(), limits);
    let mut engine = engine.with_guarantees(promise).expect("a seek curve");
    let mut left = rule.total;
    let mut counts = vec![0; set.groups.len()];
    for (place, group) in set.groups.iter().enumerate() {
        let blocks = group
            .blocks
            .clone()
            .unwrap_or(0..belief.geometry.sectors().0);
        let length = Sectors(blocks.end - blocks.start);
        let extent = Extent::new(Lba(blocks.start), length).expect("some blocks");
        let bytes = u64::from(belief.block_bytes);
        let pieces = vec![Piece { offset: 0, extent }];
        let map = LocationMap::new(pieces, bytes, length.0 * bytes).expect("a map");
        for _ in 0..group.count {
            let least = |refused: &NotGranted| match refused {
                NotGranted::Refused(refusal) => refusal.least_memory,
                _ => None,
            };
            let attached = rule.attach(&group.terms(), left, least, |memory| {
                let terms = Terms {
                    memory: Some(memory),
                    ..group.terms()
                };
                let map = map.clone();
                engine.attach(
                    Instant::ZERO,
                    Attach {
                        user: 0,
                        terms,
                        map,
                    },
                )
            });
            match attached {
                Ok((memory, _)) => left -= memory,
                Err(_) => return counts,
            }
            counts[place] += 1;
        }
    }
    counts
}

fn any_group() -> impl Strategy<Value = StreamGroup> {
    let modes = prop::sample::select(vec![
        StreamMode::Play,
        StreamMode::Record,
        StreamMode::RecordSync,
    ]);
    let memory = prop::option::of(100_000..8_000_000u64);
    let blocks = prop::option::of((0..10_000_000u64, 1..7_000_000u64));
    let sizes = (10_000..3_000_000u64, 4_096..500_000u64, memory);
    (modes, 1..12u32, sizes, blocks).prop_map(|(mode, count, (rate, buffer, memory), blocks)| {
        StreamGroup {
            name: mode.name().to_owned(),
            mode,
            count,
            rate,
            buffer,
            memory,
            blocks: blocks.map(|(first, length)| first..first + length),
        }
    })
}

proptest! {
    // 200 sets, as issue 23 asks.
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn a_plan_grants_what_an_engine_grants(
        groups in prop::collection::vec(any_group(), 1..4),
        promised in 0..600u32,
        memory in 1_000_000..100_000_000u64,
    ) {
        let mut set = set(groups);
        set.promise.foreground_permille = promised;
        set.promise.memory = memory;
        let plan = set.plan().expect("blocks of the drive");
        let counts: Vec<u32> = plan.groups.iter().map(|group| group.granted).collect();
        prop_assert_eq!(&counts, &granted_by_the_engine(&set));
        let asked: u32 = set.groups.iter().map(|group| group.count).sum();
        prop_assert_eq!(plan.fits, counts.iter().sum::<u32>() == asked);
        let Some(nearest) = plan.nearest else { return Ok(()) };
        let mut slower = set.clone();
        if let Some(found) = nearest.slower {
            let found = found.rates.into_iter().zip(found.memory);
            for (group, (rate, memory)) in slower.groups.iter_mut().zip(found) {
                (group.rate, group.memory) = (rate, Some(memory));
            }
            prop_assert!(slower.plan().expect("blocks of the drive").fits);
        }
        if let Some(found) = nearest.larger_buffers {
            let mut larger = set.clone();
            larger.promise.memory = found.total;
            for (group, memory) in larger.groups.iter_mut().zip(found.memory) {
                group.memory = Some(memory);
            }
            prop_assert!(larger.plan().expect("blocks of the drive").fits);
        }
        let mut fewer = set.clone();
        for (group, found) in fewer.groups.iter_mut().zip(nearest.fewer) {
            group.count = found.count;
        }
        fewer.groups.retain(|group| group.count > 0);
        prop_assert!(fewer.plan().expect("blocks of the drive").fits);
    }

    #[test]
    fn any_text_is_refused_in_one_line_or_a_set(text in "[ -~\n]{0,80}") {
        if let Err(error) = StreamSet::parse("set.toml", &text) {
            prop_assert!(!error.problem.contains('\n'));
        }
        let _ = group("film", StreamMode::Play, &text);
    }
}

#[test]
fn more_streams_are_granted_until_one_is_refused() {
    let one = set(vec![players(1, 500_000)]).plan().expect("a plan");
    let more = one.groups[0].more.expect("it fits");
    let all = set(vec![players(1 + more, 500_000)])
        .plan()
        .expect("a plan");
    assert!(all.fits && all.groups[0].more == Some(0) && all.head_percent < 70.0);
    let over = set(vec![players(2 + more, 500_000)])
        .plan()
        .expect("a plan");
    let refusal = over.refusal.expect("too many");
    assert_eq!((refusal.name.as_str(), refusal.number), ("film", 2 + more));
    assert_eq!(over.nearest.expect("sets").fewer[0].count, 1 + more);
}

#[test]
fn a_file_and_a_flag_say_the_same() {
    let text = "drive = \"quantum-atlas-10k\"\n[[stream]]\nname = \"camera\"\nmode = \"record\"\n\
                count = 6\nrate = \"500 kB\"\nbuffer = \"128 KiB\"\nmemory = \"2 MB\"\nblocks = \"0..9000\"\n";
    let parsed = StreamSet::parse("set.toml", text).expect("a set");
    let flag = "6x500k,buffer=128KiB,memory=2M,blocks=0..9000";
    let flag = group("camera", StreamMode::Record, flag).expect("a group");
    assert_eq!(parsed, set(vec![flag]));
}

#[test]
fn what_is_wrong_is_said_with_what_was_expected() {
    let head = "drive = \"quantum-atlas-10k\"\n";
    for (lines, said) in [
        (
            "",
            "set.toml:1: stream: missing: expected tables [[stream]]",
        ),
        ("[[stream]]\nname = \"a\"\nmode = \"play\"\n", "rate"),
        (
            "[[stream]]\nname = \"a\"\nmode = \"pley\"\nrate = 1\n",
            "play",
        ),
        (
            "[[stream]]\nname = \"a\"\nmode = \"play\"\nrate = 0\n",
            "at least one byte",
        ),
        (
            "[[stream]]\nname = \"a\"\nmode = \"play\"\nrate = 1\nblocks = \"9..3\"\n",
            "0..1000000",
        ),
        ("[streams]\nmemroy = 1\n", "memory"),
    ] {
        let text = format!("{head}{lines}");
        let error = StreamSet::parse("set.toml", &text).expect_err(lines);
        assert!(error.to_string().contains(said), "{error}");
    }
    for (text, said) in [
        ("0x1M", "expected 1 to 10000"),
        ("2x", "expected bytes"),
        ("2x0", "at least one byte"),
        ("1M,buffre=3", "expected buffer=SIZE"),
    ] {
        let error = group("film", StreamMode::Play, text).expect_err(text);
        assert!(error.contains(said), "{error}");
    }
    let far = StreamGroup {
        blocks: Some(0..u64::MAX),
        ..players(1, 1)
    };
    let refused = set(vec![far]).plan().expect_err("past the end");
    assert!(refused.to_string().contains("expected some of 0.."));
}

#[test]
fn memory_beyond_all_machines_is_refused_and_counted() {
    let greedy = StreamGroup {
        memory: Some(u64::MAX),
        ..players(64, 500_000)
    };
    let plan = set(vec![greedy]).plan().expect("a drive");
    assert!(!plan.fits);
    let nearest = plan.nearest.expect("it is refused");
    assert_eq!(nearest.larger_buffers, None);
    assert_eq!(nearest.slower, None);
}
