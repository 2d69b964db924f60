//! Each state of a service is told with its reason and its remedy, and a healthy one has no finding.

use std::io;
use std::path::Path;

use super::Severity::{self, Notice, Wrong};
use super::{of_learning, of_silence, of_status};
use crate::status::{
    Cache, DriveStatus, Impact, Lateness, LearningReport, Leg, Mirror, Mode, ScrubStatus,
    ServiceState, Status, Task,
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
        "0.00 MB/s: the foreground leaves neither",
        with(stuck),
    );
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
