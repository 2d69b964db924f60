//! Streams at the limit of what is granted on a simulated 20 TB drive, in its innermost zone, inside
//! the engine: under every policy, beside a greedy load and a scan of the whole disk.

use std::sync::Arc;

use block::{Duration, Instant};
use drive::{Profile, Spindle, catalog};
use scheduler::Preemption;
use scheduler::policy::{ALL, NamedPolicy, find};
use simulator::streaming::trial::{
    DriveTruth, FileLayout, Scanning, Trial, TrialResult, TrialStreams,
};

const MB: u64 = 1_000_000;

fn the_drive() -> Arc<Profile> {
    let entry = catalog::find("modern-20tb").expect("a shipped drive");
    Arc::new(entry.profile().expect("a valid profile"))
}

/// As many readers as are granted, with so much memory each, for two minutes.
fn trial(policy: &str, memory: u64) -> Trial {
    let drive = the_drive();
    Trial {
        belief: Arc::clone(&drive),
        drive,
        truth: DriveTruth::noisy(),
        laid: FileLayout::Anywhere,
        policy: find(policy).expect("a policy of the table"),
        preemption: None,
        streams: Some(readers(memory)),
        tasks: 8,
        read_fraction: 1.0,
        bytes: 128 * 1024,
        scan: Scanning::Whole,
        from: Instant::ZERO,
        until: Instant::ZERO + Duration::from_secs(120),
        seed: 1,
    }
}

fn readers(memory: u64) -> TrialStreams {
    TrialStreams {
        rate: MB,
        memory,
        readers: None,
        recorders: 0,
        missing: 0,
        foreground_permille: 0,
    }
}

fn play(trial: &Trial) -> TrialResult {
    let tried = trial.play().expect("it can be run");
    let kept = &tried.kept;
    assert!(kept.since.is_some(), "all are served some time");
    assert!(kept.accesses > 100 && kept.batches > 10, "{kept:?}");
    assert_eq!(kept.failed, 0);
    tried
}

/// Plays it, and nothing may be late.
fn keeps(trial: &Trial) -> TrialResult {
    let tried = play(trial);
    let kept = tried.kept;
    let broken = (kept.late, kept.waited, kept.elsewhere, kept.lapsed);
    assert_eq!(broken, (0, 0, 0, 0), "{}: {kept:?}", trial.policy.name());
    assert_eq!(kept.refused, 0);
    assert!(tried.played.ran.requests > 10, "others are served, too");
    tried
}

#[test]
fn at_the_limit_nothing_is_late_under_any_policy() {
    for policy in ALL.iter().map(NamedPolicy::from) {
        let tried = keeps(&Trial {
            policy,
            ..trial("sptf", 4 * MB)
        });
        let scan = tried.played.scan.expect("there is one");
        assert!(scan.progress.account.blocks().0 > 0, "{}", policy.name());
    }
}

#[test]
fn the_smallest_and_the_largest_buffers_keep_it_as_well() {
    for memory in [2 * MB, 8 * MB] {
        for policy in ["sptf", "fcfs", "drive"] {
            keeps(&trial(policy, memory));
        }
    }
}

#[test]
fn recorders_always_find_room() {
    for policy in ["sptf", "sstf"] {
        let streams = TrialStreams {
            recorders: 40,
            ..readers(4 * MB)
        };
        keeps(&Trial {
            streams: Some(streams),
            read_fraction: 0.5,
            ..trial(policy, 4 * MB)
        });
    }
}

#[test]
fn cameras_and_readers_leave_most_of_the_head_to_others() {
    let streams = TrialStreams {
        rate: MB / 2,
        readers: Some(8),
        recorders: 64,
        foreground_permille: 300,
        ..readers(2 * MB)
    };
    let tried = keeps(&Trial {
        truth: DriveTruth::quiet(),
        streams: Some(streams),
        ..trial("sptf", 2 * MB)
    });
    let share = tried.kept.head_share();
    assert!(share <= 0.4, "{share:.3} of the head");
}

#[test]
fn greedy_tasks_make_nothing_late_however_many_they_are() {
    for tasks in [1, 2, 16, 64] {
        for read_fraction in [1.0, 0.0] {
            for bytes in [4 * 1024, 4096 * 1024] {
                keeps(&Trial {
                    tasks,
                    read_fraction,
                    bytes,
                    scan: Scanning::No,
                    from: Instant::ZERO + Duration::from_secs(20),
                    until: Instant::ZERO + Duration::from_secs(50),
                    ..trial("sptf", 4 * MB)
                });
            }
        }
    }
}

#[test]
fn transfers_that_step_aside_make_nothing_late() {
    let drive = the_drive();
    for rules in [
        Preemption::suited_to(&drive),
        Preemption::as_in_paper(&drive),
    ] {
        keeps(&Trial {
            preemption: Some(rules),
            bytes: 1024 * 1024,
            ..trial("sptf", 4 * MB)
        });
    }
}

/// Files that lie where an adversary would put them, who knows the drive: equal seeks over the whole
/// zone, sectors that have just passed, all of them played at once, so that all are due in the same
/// rounds.
#[test]
fn files_where_an_adversary_would_put_them_make_nothing_late() {
    for memory in [2 * MB, 4 * MB, 8 * MB] {
        for (policy, truth) in [
            ("sptf", DriveTruth::quiet()),
            ("fcfs", DriveTruth::noisy()),
            ("drive", DriveTruth::noisy()),
        ] {
            keeps(&Trial {
                truth,
                laid: FileLayout::Hostile,
                ..trial(policy, memory)
            });
        }
    }
}

/// The same test can fail: with four fifths of the buffer of 2 and 8 MB. With 4 MB the head is what there is no more
/// of: as many are granted as keep it busy, and seven tenths of the buffer are not enough for them.
#[test]
fn less_of_the_buffer_is_not_enough() {
    for (policy, memory, tenths) in [
        ("fcfs", 2 * MB, 2),
        ("sptf", 4 * MB, 3),
        ("sptf", 8 * MB, 2),
    ] {
        let streams = TrialStreams {
            missing: memory * tenths / 10,
            ..readers(memory)
        };
        let tried = play(&Trial {
            truth: DriveTruth::quiet(),
            laid: FileLayout::Hostile,
            streams: Some(streams),
            ..trial(policy, memory)
        });
        assert!(tried.kept.waited > 0, "{memory}: {:?}", tried.kept);
    }
}

/// And with more streams than are granted: a drive is believed to turn faster than it does, by so much
/// that a tenth more are; with 2 MB a fifth.
#[test]
fn more_streams_are_too_many() {
    for (memory, percent) in [(2, 120), (4, 110), (8, 110)] {
        let honest = Trial {
            truth: DriveTruth::quiet(),
            laid: FileLayout::Hostile,
            from: Instant::ZERO + Duration::from_secs(20),
            ..trial("sptf", memory * MB)
        };
        let enough = honest.granted().expect("some are");
        let believed = (1..).map(|faster| Trial {
            belief: turning_faster(&honest.drive, faster),
            ..honest.clone()
        });
        let grants = |believed: &Trial| believed.granted().expect("some are") * 100;
        let mut believed = believed.skip_while(|trial| grants(trial) < enough * percent);
        let believed = believed.next().expect("it turns ever faster");
        assert!(grants(&believed) < enough * (percent + 2));
        keeps(&honest);
        let kept = play(&believed).kept;
        assert!(kept.late > 0, "{memory} MB, {enough} are granted: {kept:?}");
    }
}

/// The drive, if it turned by so many percent faster.
fn turning_faster(drive: &Profile, percent: u64) -> Arc<Profile> {
    let mut faster = Profile::clone(drive);
    let period = faster.spindle.period_ps();
    faster.spindle = Spindle::from_period_ps(period - period * percent / 100);
    Arc::new(faster)
}

/// The specification's figures with nothing promised to the foreground; where batches of whole tracks
/// fit, there are more than it says.
#[test]
fn as_many_are_granted_as_the_specification_says() {
    for (memory, least) in [(2, 49), (4, 73), (8, 94)] {
        let limit = Trial {
            truth: DriveTruth::quiet(),
            ..trial("sptf", memory * MB)
        };
        let granted = limit.granted().expect("some are");
        assert!(granted >= least, "{granted} with {memory} MB");
    }
}
