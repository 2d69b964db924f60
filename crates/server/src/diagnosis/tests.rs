//! Each state of a service is told with its reason and its remedy, and a healthy one has no finding.

use std::io;
use std::path::Path;

use super::Severity::{self, Notice, Wrong};
use super::{of_learning, of_silence, of_status};
use crate::status::{
    Cache, DriveStatus, HeadComparison, Impact, Lateness, LearningReport, Leg, Mirror, Mode,
    ScrubStatus, ServiceState, SlowHead, Status, Task,
};

/// A service that serves a drive as it should.
fn healthy() -> Status {
    let drive = DriveStatus {
        name: "disk".to_owned(),
        model: Some("Quantum Atlas 10K".to_owned()),
        mode: Mode::Following,
        mode_reason: "97 % of recent commands ended as the belief predicts".to_owned(),
        impact: Impact {
            measured_percent: Some(1.0),
            budget_percent: 2.0,
        },
        lateness: Some(Lateness {
            p99_us: 80.0,
            ..Lateness::default()
        }),
        ..DriveStatus::default()
    };
    Status {
        state: ServiceState::Serving,
        drives: vec![drive],
        ..Status::default()
    }
}

#[test]
fn a_healthy_service_has_no_finding() {
    assert_eq!(of_status(&healthy()), []);
}

/// Changes a healthy service, and looks for one finding of this kind with these words.
fn found(id: &str, severity: Severity, what: &str, change: impl Fn(&mut Status)) {
    let mut status = healthy();
    change(&mut status);
    let findings = of_status(&status);
    assert_eq!(findings.len(), 1, "{id}: {findings:?}");
    let finding = &findings[0];
    assert_eq!(
        (finding.id, finding.severity),
        (id, severity),
        "{finding:?}"
    );
    assert!(finding.what.contains(what), "{what}: {finding:?}");
    assert!(
        !finding.why.is_empty() && !finding.action.is_empty(),
        "{finding:?}"
    );
}

#[test]
fn a_service_that_does_not_serve_or_refuses_clients_is_found() {
    found("not-serving", Notice, "draining", |s| {
        s.state = ServiceState::Draining
    });
    found("not-serving", Notice, "starting", |s| {
        s.state = ServiceState::Starting
    });
    found("connections-refused", Notice, "3 connections", |s| {
        s.connections_refused_total = 3
    });
}

#[test]
fn slow_heads_are_found_with_their_place_and_their_past() {
    let slow = |change: fn(&mut SlowHead)| {
        move |s: &mut Status| {
            let mut slow = SlowHead {
                head: 3,
                slower_percent: 21.3,
                ..SlowHead::default()
            };
            change(&mut slow);
            s.drives[0].heads = Some(HeadComparison {
                slow: vec![slow],
                ..HeadComparison::default()
            });
        }
    };
    let longer = "reads by head 3 take 21 % longer than those of its other heads";
    found("slow-head", Wrong, longer, slow(|_| ()));
    let past = format!("{longer} on cylinders 100 to 199 only; 0.5 % before");
    found(
        "slow-head",
        Wrong,
        &past,
        slow(|slow| {
            slow.before_percent = Some(0.5);
            (slow.first_cylinder, slow.last_cylinder) = (Some(100), Some(199));
        }),
    );
    let second = "reads by head 3 of the second actuator take";
    found("slow-head", Wrong, second, slow(|slow| slow.arm = 1));
}

/// The status of drives whose last reads and whose past lost so much, in percent.
fn drives(s: &mut Status, figures: &[(f64, f64)]) {
    let one = s.drives[0].clone();
    let drive = |(place, &(recent, past)): (usize, &(f64, f64))| DriveStatus {
        name: format!("disk{place}"),
        heads: Some(HeadComparison {
            recent_percent: Some(recent),
            past_percent: Some(past),
            ..HeadComparison::default()
        }),
        ..one.clone()
    };
    s.drives = figures.iter().enumerate().map(drive).collect();
}

#[test]
fn a_drive_is_slow_if_neither_its_past_nor_its_peers_are() {
    let what = "its last reads lost 24 % of their time to revolutions that were not foreseen: 1.5 % before, and at most \
                2.0 % on the other drives";
    let slow = [(2.0, 1.0), (24.0, 1.5), (0.5, 0.4)];
    found("slow-drive", Notice, what, |s| drives(s, &slow));
    for healthy in [
        // It always was; the host makes all late; too little; no peers.
        &[(2.0, 1.0), (24.0, 20.0), (0.5, 0.4)][..],
        &[(22.0, 1.0), (24.0, 1.5), (19.0, 0.4)],
        &[(1.0, 1.0), (9.0, 0.5), (0.5, 0.4)],
        &[(2.0, 1.0), (24.0, 1.5)],
    ] {
        let mut status = self::healthy();
        drives(&mut status, healthy);
        assert_eq!(of_status(&status), [], "{healthy:?}");
    }
}

#[test]
fn each_use_of_a_belief_but_following_is_found() {
    found("safe-mode", Wrong, "safe mode: 97 %", |s| {
        s.drives[0].mode = Mode::Safe
    });
    found("learning", Notice, "still learning", |s| {
        s.drives[0].mode = Mode::Learning
    });
    found("not-followed", Notice, "not followed", |s| {
        s.drives[0].mode = Mode::Plain
    });
    found("no-profile", Notice, "no profile", |s| {
        s.drives[0].mode = Mode::Plain;
        s.drives[0].model = None;
    });
}

#[test]
fn costs_lateness_and_failures_of_a_drive_are_found() {
    found(
        "over-budget",
        Wrong,
        "by 2.51 %: the budget is 2.00 %",
        |s| {
            s.drives[0].impact.measured_percent = Some(2.51);
        },
    );
    let mut near = healthy();
    near.drives[0].impact.measured_percent = Some(2.49);
    assert_eq!(
        of_status(&near),
        [],
        "what is measured lies about the budget"
    );
    let late = |p99_us| {
        Some(Lateness {
            p99_us,
            ..Lateness::default()
        })
    };
    found("emulation-late", Wrong, "0.3 ms late", |s| {
        s.drives[0].lateness = late(301.0)
    });
    // The lateness is of real time, and a slower drive bears more of it.
    let mut slow = healthy();
    slow.drives[0].lateness = late(1000.0);
    slow.drives[0].time_scale = Some(4.0);
    assert_eq!(of_status(&slow), []);
    found("failed-commands", Wrong, "0 reads, 1 writes", |s| {
        s.drives[0].errors.writes_total = 1
    });
    found("late-streams", Wrong, "4 batches were late", |s| {
        s.drives[0].streams.late_total = 4
    });
    found("late-streams", Wrong, "refuses others", |s| {
        s.drives[0].streams.strained = true
    });
    found("lost-writes", Wrong, "4096 bytes", |s| {
        s.drives[0].caches.push(Cache {
            lost_bytes_total: 4096,
            ..Cache::default()
        });
    });
    found("leg-not-in-sync", Wrong, "leg b is out", |s| {
        s.drives[0].mirror = Some(legs("out"))
    });
    found("leg-not-in-sync", Notice, "leg b is being filled", |s| {
        s.drives[0].mirror = Some(legs("being filled"));
    });
}

#[test]
fn tasks_and_scrubs_that_fail_or_do_not_get_on_are_found() {
    let with = |task: Task| move |s: &mut Status| s.drives[0].tasks.push(task.clone());
    let unreadable = Task {
        failed_bytes: 512,
        ..task()
    };
    found("unreadable", Wrong, "512 bytes", with(unreadable));
    let failed = Task {
        problem: Some("no space".to_owned()),
        ..task()
    };
    found("task-failed", Wrong, "no space", with(failed));
    let stuck = Task {
        mb_per_s: 0.0,
        ..task()
    };
    found(
        "no-progress",
        Wrong,
        "0.00 MB/s: no gap is expected to reach",
        with(stuck.clone()),
    );
    found("no-progress", Wrong, "the impact budget is used up", |s| {
        s.drives[0].impact.measured_percent = Some(s.drives[0].impact.budget_percent);
        s.drives[0].tasks.push(stuck.clone());
    });
    let scrub = |scrub: ScrubStatus| move |s: &mut Status| s.scrubs.push(scrub.clone());
    let damaged = ScrubStatus {
        changed: 2,
        ..ScrubStatus::default()
    };
    found("damaged", Wrong, "2 places differ", scrub(damaged));
    let given_up = ScrubStatus {
        problem: Some("gone".to_owned()),
        ..ScrubStatus::default()
    };
    found("scrub-failed", Wrong, "given up: gone", scrub(given_up));
    for why in [
        "its task was given up",
        "the volume was resized, or another scrub took its place",
    ] {
        let ended = ScrubStatus {
            problem: Some(why.to_owned()),
            ..ScrubStatus::default()
        };
        found("scrub-ended", Notice, "ended before its end", scrub(ended));
    }
    let late = ScrubStatus {
        late_by_s: 60,
        ..ScrubStatus::default()
    };
    found("scrub-late", Notice, "60 s behind", scrub(late));
}

/// A mirror whose second leg is in this state.
fn legs(state: &str) -> Mirror {
    let leg = |path: &str, state: &str| Leg {
        path: path.to_owned(),
        state: state.to_owned(),
    };
    Mirror {
        legs: vec![leg("a", "in sync"), leg("b", state)],
        ..Mirror::default()
    }
}

/// A task that gets on.
fn task() -> Task {
    Task {
        id: 3,
        name: "scan db".to_owned(),
        mb_per_s: 2.0,
        elapsed_s: 60.0,
        ..Task::default()
    }
}

#[test]
fn a_task_that_has_just_begun_is_not_stuck() {
    let mut status = healthy();
    status.drives[0].tasks.push(Task {
        mb_per_s: 0.0,
        elapsed_s: 1.0,
        ..task()
    });
    assert_eq!(of_status(&status), []);
}

#[test]
fn a_silent_socket_is_told_apart_by_its_cause() {
    let socket = Path::new("/run/x.sock");
    for (kind, what) in [
        (io::ErrorKind::NotFound, "there is no such socket"),
        (io::ErrorKind::ConnectionRefused, "that was killed"),
        (io::ErrorKind::PermissionDenied, "cannot be asked"),
        (io::ErrorKind::TimedOut, "does not answer"),
    ] {
        let finding = of_silence(socket, &kind.into());
        assert_eq!(finding.id, "no-service");
        assert!(finding.what.contains(what), "{finding:?}");
    }
}

#[test]
fn a_profile_that_was_learned_in_vain_is_told_with_the_reason() {
    let mut report = LearningReport {
        drive: "disk".to_owned(),
        active: false,
        seconds: 60.0,
        stage: "period".to_owned(),
        known: 0.0,
        period_ms: None,
        probes: 10,
        probing: 0.5,
        failed: vec!["period: too few reads".to_owned()],
        doubt: None,
        profile: None,
    };
    assert_eq!(of_learning(&report), None);
    report.doubt = Some("no period was found".to_owned());
    let finding = of_learning(&report).expect("a finding");
    assert!(
        finding
            .what
            .ends_with("no period was found; period: too few reads"),
        "{finding:?}"
    );
}
