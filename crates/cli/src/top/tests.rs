//! The drawing of known pictures at two sizes (golden text), and what keys do.
//!
//! `HEADTIME_BLESS=1` writes the golden files anew.

use std::path::Path;

use headtime_client::{Listed, StreamMode, StreamStatus, Terms};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use server::status::{
    ByKind, Cache, Connection, DriveStatus, HeadKind, HeadTime, Impact, Latency, Mode, Queue,
    ServiceState, Status, Task, TaskState, Traffic,
};
use server::tasks::Steer;
use server::why::{How, InDrive, Others};

use super::keys::{Order, Selection};
use super::*;

/// The head time of a second: mostly foreground, with gaps that are used.
fn head_time() -> HeadTime {
    let pattern = [
        HeadKind::Foreground,
        HeadKind::Foreground,
        HeadKind::Free,
        HeadKind::Foreground,
        HeadKind::Unused,
        HeadKind::Idle,
        HeadKind::RealTime,
        HeadKind::Lost,
    ];
    HeadTime {
        timeline: (0..200).map(|at| pattern[at / 5 % pattern.len()]).collect(),
        slice_us: 5000,
        second_us: ByKind {
            foreground: 610_000,
            real_time: 45_000,
            free: 190_000,
            idle: 50_000,
            calibration: 5_000,
            lost: 50_000,
            unused: 50_000,
        },
        ..HeadTime::default()
    }
}

fn drive(name: &str, mode: Mode) -> DriveStatus {
    let latency = Latency {
        p50_us: 7_400.0,
        p99_us: 41_700.0,
        ..Latency::default()
    };
    let mut traffic = Traffic {
        latency: Some(latency),
        ..Traffic::default()
    };
    traffic.read.mb_per_s = 1.3;
    traffic.write.mb_per_s = 0.6;
    DriveStatus {
        name: name.to_owned(),
        model: Some("Atlas 10K".to_owned()),
        policy: "sptf-sw60".to_owned(),
        mode,
        mode_reason: "41 % of recent commands ended as the belief predicts".to_owned(),
        queue: Queue {
            waiting: 14,
            at_drive: 1,
        },
        traffic: vec![traffic],
        head_time: head_time(),
        impact: Impact {
            measured_percent: Some(1.37),
            budget_percent: 2.0,
        },
        ..DriveStatus::default()
    }
}

fn task(id: u64, name: &str, state: TaskState) -> Task {
    Task {
        id,
        name: name.to_owned(),
        state,
        asked_bytes: 8_000_000_000,
        done_bytes: 3_408_000_000,
        free_bytes: 2_900_000_000,
        idle_bytes: 408_000_000,
        paid_bytes: 100_000_000,
        elapsed_s: 956.0,
        mb_per_s: 2.31,
        eta_s: (state == TaskState::Active).then_some(1988.0),
        ..Task::default()
    }
}

fn client(id: u64, export: &str) -> Connection {
    Connection {
        id,
        front: "nbd".to_owned(),
        peer: format!("127.0.0.1:5{id:04}"),
        export: export.to_owned(),
        connected_s: 754.0,
        in_flight: id,
        requests_total: 1_234_567,
        bytes_total: 5_056_786_432,
        ..Connection::default()
    }
}

fn stream() -> Listed {
    Listed {
        stream: 9,
        drive: "disk".to_owned(),
        user: 1000,
        terms: Terms {
            name: "camera".to_owned(),
            mode: StreamMode::Record,
            rate: 1_000_000,
            memory: Some(4 << 20),
            ..Terms::play(1_000_000, 128 << 10)
        },
        standing: StreamStatus::Serving,
        from: 0,
        to: 0,
        from_memory_total: 977,
        waited_total: 3,
        late_total: 0,
        lapsed_total: 0,
    }
}

fn slow(request: u64, response_us: f64) -> Slow {
    Slow {
        request,
        drive: "disk".to_owned(),
        export: "db".to_owned(),
        class: "foreground".to_owned(),
        direction: "read".to_owned(),
        block: 4711,
        blocks: 8,
        block_bytes: 512,
        good: true,
        at_s: 10.0,
        ended_s_ago: Some(3.0),
        response_us,
        outside_us: 0.0,
        order_us: 0.0,
        others: vec![Others {
            how: How::AsUrgent,
            commands: 11,
            us: response_us * 0.8,
        }],
        held_back_us: 0.0,
        forgotten_us: 0.0,
        in_drive: InDrive::default(),
        before: Vec::new(),
    }
}

/// A service in which something is wrong.
fn picture() -> Picture {
    let mut first = drive("disk", Mode::Following);
    first.tasks = vec![
        task(3, "scan db", TaskState::Active),
        task(4, "scan log", TaskState::Suspended),
        task(
            5,
            "40 pieces of a volume with a long name",
            TaskState::Finished,
        ),
    ];
    first.caches = vec![Cache {
        volume: "db".to_owned(),
        size_bytes: 64 << 20,
        used_bytes: 48 << 20,
        replacement: "arc".to_owned(),
        prefetch: "linux-6".to_owned(),
        coordinator: "none".to_owned(),
        asked_bytes_total: 1_000_000,
        hit_bytes_total: 700_000,
        late_bytes_total: 50_000,
        ..Cache::default()
    }];
    let status = Status {
        version: "0.1.0".to_owned(),
        uptime_s: 93_784.0,
        state: ServiceState::Serving,
        drives: vec![first, drive("archive", Mode::Safe)],
        connections: (1..=6)
            .map(|id| client(id, if id % 2 == 0 { "db" } else { "archive" }))
            .collect(),
        ..Status::default()
    };
    Picture {
        status,
        streams: vec![stream()],
        slow: (0..4)
            .map(|at| slow(1841 + at, 389_000.0 / (at + 1) as f64))
            .collect(),
    }
}

/// One picture as text.
fn text(picture: &Picture, size: (u16, u16)) -> Result<String, Exit> {
    Ok(as_text(&drawing(picture, size)?))
}

/// Compares a drawing with its golden file, or writes that.
fn golden(name: &str, drawn: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if std::env::var_os("HEADTIME_BLESS").is_some_and(|bless| bless == "1") {
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(&file, drawn).expect("the file can be written");
    }
    let wanted = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(drawn, wanted, "{name}: HEADTIME_BLESS=1 if this is right");
}

#[test]
fn golden_drawings_of_a_busy_service() {
    let picture = picture();
    for size in [(80, 24), (140, 50)] {
        let drawn = text(&picture, size).expect("a drawing");
        let (columns, lines) = size;
        assert_eq!(drawn.lines().count(), usize::from(lines));
        let widest = drawn.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(usize::from(columns)), "{drawn}");
        golden(&format!("src/top/golden/{columns}x{lines}.txt"), &drawn);
    }
}

/// The pictures of the book: `make screenshots` writes them.
#[test]
fn pictures_of_the_terminal_have_all_letters_and_their_colours() {
    let mut healthy = picture();
    healthy.status.drives.truncate(1);
    for (name, picture) in [("top-safe-mode", picture()), ("top-busy", healthy)] {
        let cells = drawing(&picture, (110, 34)).expect("a drawing");
        let drawn = svg::svg(&cells);
        golden(&format!("../../docs/how-to/images/{name}.svg"), &drawn);
        let texts = drawn
            .split("</text>")
            .filter_map(|part| part.rsplit_once('>'));
        let letters: String = texts.map(|(_, text)| text).collect();
        let letters = letters.replace("&lt;", "<").replace("&amp;", "&");
        let count = |text: &str| text.chars().filter(|letter| *letter != ' ').count();
        assert_eq!(count(&letters), count(&as_text(&cells).replace('\n', "")));
        // Each kind of head time of the strip has its colour.
        for ink in ["#5b93f5", "#34c284", "#4cc9de", "#ab7df0", "#f06060"] {
            assert!(drawn.contains(ink), "{name}: {ink}");
        }
    }
}

#[test]
fn a_healthy_service_is_ok_and_the_smallest_terminal_is_no_problem() {
    let mut picture = picture();
    picture.status.drives.truncate(1);
    let drawn = text(&picture, (80, 24)).expect("a drawing");
    assert_eq!(drawn.lines().nth(1), Some("OK"), "{drawn}");
    for size in [(1, 1), (1, 50), (200, 2), (20, 5)] {
        text(&picture, size).expect("a drawing");
        text(&Picture::default(), size).expect("a drawing");
    }
}

#[test]
fn controls_in_names_do_not_reach_the_terminal() {
    let mut picture = picture();
    picture.status.drives[0].name = "d\u{1b}[2Jx".to_owned();
    picture.status.connections[0].peer = "p\u{7}\u{9b}31m".to_owned();
    let drawn = text(&picture, (140, 50)).expect("a drawing");
    assert!(
        !drawn.contains(|c: char| c.is_control() && c != '\n'),
        "{drawn:?}"
    );
}

fn press(selection: &mut Selection, keys: &[KeyCode]) -> Option<Order> {
    let status = picture().status;
    let mut order = None;
    for &key in keys {
        order = selection.pressed(KeyEvent::new(key, KeyModifiers::NONE), &status);
    }
    order
}

#[test]
fn s_suspends_an_active_task_and_resumes_a_suspended_one() {
    let mut selection = Selection::default();
    let steer = |task, action, said: &str| {
        Some(Order::Ask {
            ask: Ask::Steer { task, action },
            said: said.to_owned(),
        })
    };
    let s = KeyCode::Char('s');
    assert_eq!(
        press(&mut selection, &[s]),
        steer(3, Steer::Suspend, "task 3 is suspended")
    );
    assert_eq!(
        press(&mut selection, &[KeyCode::Down, s]),
        steer(4, Steer::Resume, "task 4 is resumed")
    );
    // The last task has ended, and there is none behind it.
    assert_eq!(
        press(&mut selection, &[KeyCode::Down, KeyCode::Down, s]),
        None
    );
    assert_eq!(selection.message, "task 5 is finished");
    assert_eq!(selection.task, 2);
}

#[test]
fn b_sets_the_budget_of_the_chosen_drive() {
    let mut selection = Selection::default();
    let typed = [
        KeyCode::Tab,
        KeyCode::Char('b'),
        KeyCode::Char('0'),
        KeyCode::Char('x'),
        KeyCode::Char('.'),
        KeyCode::Char('7'),
        KeyCode::Backspace,
        KeyCode::Char('5'),
        KeyCode::Enter,
    ];
    let expected = Order::Ask {
        ask: Ask::Impact {
            drive: "archive".to_owned(),
            impact_ppm: 5000,
        },
        said: "the impact budget of archive is 0.5 %".to_owned(),
    };
    assert_eq!(press(&mut selection, &typed), Some(expected));
    assert_eq!(selection.budget, None);
    let b = KeyCode::Char('b');
    let nine = KeyCode::Char('9');
    assert_eq!(
        press(&mut selection, &[b, nine, nine, nine, KeyCode::Enter]),
        None
    );
    assert!(
        selection
            .message
            .contains("expected a number from 0 to 100")
    );
    // While a budget is typed, q is no command.
    assert_eq!(
        press(&mut selection, &[b, KeyCode::Char('q'), KeyCode::Esc]),
        None
    );
    assert_eq!(
        press(&mut selection, &[KeyCode::Char('q')]),
        Some(Order::Quit)
    );
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    let status = Status::default();
    assert_eq!(selection.pressed(interrupt, &status), Some(Order::Quit));
}

#[test]
fn a_choice_stays_on_what_is_there() {
    let mut selection = Selection {
        task: 9,
        drive: 9,
        ..Selection::default()
    };
    selection.stay_within(&picture().status);
    assert_eq!((selection.task, selection.drive), (2, 1));
    selection.stay_within(&Status::default());
    assert_eq!((selection.task, selection.drive), (0, 0));
}

#[test]
fn sizes_and_intervals_are_bounded() {
    assert_eq!(size("140x50"), Ok((140, 50)));
    for text in ["", "80", "80x", "9x24", "80x1001", "-80x24", "80×24"] {
        assert!(size(text).is_err(), "{text}");
    }
    assert_eq!(seconds("0.5"), Ok(0.5));
    for text in ["0", "nan", "-1", "3601", "x"] {
        assert!(seconds(text).is_err(), "{text}");
    }
}
