//! The status page in headless Chromium, over a fake service: what it shows is what the service says.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;

use crate::fake::{self, Fake};
use server::control::{Bounds, Listeners, Plane};
use server::status::{Mode, Status};

/// What Chromium has of the page after its scripts, or nothing where there is no Chromium; with
/// `CI=true` there has to be one.
fn page(status: Status, flags: &[&str]) -> Option<String> {
    page_after(&Fake::new(status), flags, |_| ())
}

/// The same of a service that something was done to before the page is opened.
fn page_after(fake: &Fake, flags: &[&str], before: impl FnOnce(SocketAddr)) -> Option<String> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = |name: &&&str| Command::new(name).arg("--version").output().is_ok();
    let Some(chromium) = names.iter().find(found) else {
        assert!(
            std::env::var_os("CI").is_none_or(|ci| ci != "true"),
            "no Chromium"
        );
        return None;
    };
    let http = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = http.local_addr().unwrap();
    let listeners = Listeners {
        http: vec![http],
        ..Listeners::default()
    };
    let service = Arc::new(fake.clone());
    let _plane = Plane::begin(service, listeners, Bounds::default()).unwrap();
    before(address);
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(chromium)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
        ])
        .args(["--disable-background-networking", "--disable-dev-shm-usage"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--virtual-time-budget=5000", "--window-size=1280,1180"])
        .args(flags)
        .args(["--dump-dom", &format!("http://{address}/?still")])
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(dom.contains("</html>"), "{errors}");
    assert!(fake.told().is_empty(), "looking changes nothing");
    Some(dom)
}

/// What is said where there is no Chromium.
const SKIPPED: &str = "skipped: the page in a browser (no Chromium; `apt-get install chromium`)";

/// The text of the first element that begins with `mark`, up to `end`, without tags.
fn text(dom: &str, mark: &str, end: &str) -> String {
    let from = dom
        .find(mark)
        .unwrap_or_else(|| panic!("no {mark} in {dom}"));
    let part = &dom[from..];
    let part = &part[part.find('>').unwrap() + 1..part.find(end).unwrap_or(part.len())];
    let mut text = String::new();
    let mut inside = false;
    for letter in part.chars() {
        match letter {
            '<' => inside = true,
            '>' => {
                inside = false;
                text.push(' ');
            }
            _ if !inside => text.push(letter),
            _ => {}
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Where on the page what is shown; the templates, whose fields are empty, come after the drives.
const SHOWN: &[(&str, &str, &str)] = &[
    ("id=\"state\"", "</span>", "serving"),
    (
        "id=\"service\"",
        "</dl>",
        "version 0.1.0 up 1 d 2 h connections 1",
    ),
    ("data-field=\"name\"", "</h2>", "disk"),
    ("data-field=\"mode\"", "</span>", "following"),
    (
        "data-field=\"facts\"",
        "</dl>",
        "back end emulated, quantum-atlas-10k time scale × 4 capacity 9.2 GB policy sptf-sw60 \
             queue 14 waiting, 1 at the drive late p50 12 µs, p99 74 µs, at most 312 µs errors 24 \
             heads 2,003 of 91,009 compared reads late · head 3 reads 21 % slower \
             leg 0 \
             in sync: /dev/sdb leg 1 being filled: /dev/sdc to copy 3.2 GB of 9.7 GB rebuild in gaps, \
             3.0 MB/s · 5.4 GB from gaps · 1.1 GB in 2.5 % of the time · 17 min 54 s left · deadline in \
             1 h 0 min",
    ),
    (
        "data-field=\"head\"",
        "</figcaption>",
        "cylinder 4,321 of 10,042",
    ),
    ("class=\"word\"", "</p>", "✕ 6 things are wrong; 3 notices"),
    (
        "data-field=\"history\"",
        "</figure>",
        "latency of the foreground (p99) 142 ms 10 min ago at most 142 ms",
    ),
    // 200 slices of half a percent: ten patterns, of which half a one was unused and one slice
    // was a calibration.
    ("data-kind=\"foreground\"", "</li>", "foreground 61.0 %"),
    ("data-kind=\"real-time\"", "</li>", "real-time 4.5 %"),
    ("data-kind=\"free\"", "</li>", "free 19.0 %"),
    ("data-kind=\"idle\"", "</li>", "idle 5.0 %"),
    ("data-kind=\"calibration\"", "</li>", "calibration 0.5 %"),
    ("data-kind=\"lost\"", "</li>", "lost 5.0 %"),
    ("data-kind=\"unused\"", "</li>", "unused 5.0 %"),
    (
        "data-field=\"impact\"",
        "</p>",
        "Impact of the background 1.37 %, of 2.00 % that are granted",
    ),
    (
        "data-field=\"confidence\"",
        "</p>",
        "As believed 97.3 % of commands end when they should",
    ),
    (
        "data-class=\"foreground\"",
        "</tr>",
        "foreground 1.3 155 0.6 74 31.4 ms 96.1 ms 142 ms 389 ms",
    ),
    (
        "data-class=\"best-effort\"",
        "</tr>",
        "best-effort 0.3 39 0.2 19 7.9 ms 24.0 ms 35.4 ms 97.2 ms",
    ),
    (
        "data-task=\"3\"",
        "</li>",
        "scan db active 42.6 % 3.4 GB of 8.0 GB · 2.9 GB free, 408 MB idle, 100 MB paid · \
             2.3 MB/s · 33 min 8 s left · 1.2 GB before it was gone on with · 4.1 kB could not be \
             read Foreground beside it: mean 35.5 ms, p99 142 ms, 198,765 requests · before it: mean \
             35.1 ms, p99 139 ms, 60,123 requests · 1.21 % of its time owed to it",
    ),
    (
        "data-task=\"4\"",
        "</li>",
        "scan &lt;b&gt;log&lt;/b&gt; suspended 12.0 % 120 MB of 1.0 GB · 120 MB free, 0 B idle, \
             0 B paid · 0.0 MB/s the program ended with exit status: 3",
    ),
    (
        "data-cache=\"db\"",
        "</tr>",
        "db 50.3 MB of 67.1 MB 1.0 MB 70.0 % 5.0 % – arc, linux-6, adaptive",
    ),
    (
        "aria-label=\"Guaranteed streams\"",
        "</tbody>",
        "now memory granted refused batches late lapsed new ones 2 5.2 MB 7 3 1 4 as admission allows",
    ),
    (
        "data-connection=\"41\"",
        "</tr>",
        "db foreground nbd with TLS 127.0.0.1:50123 27 1,234,567 5.1 GB 12 min 34 s",
    ),
];

#[test]
fn the_page_shows_what_the_service_says() {
    let Some(dom) = page(fake::status(), &[]) else {
        println!("{SKIPPED}");
        return;
    };
    for (mark, end, shown) in SHOWN {
        assert_eq!(text(&dom, mark, end), *shown, "{mark}");
    }
    let timeline = &dom[dom.find("class=\"timeline\"").unwrap()..];
    let timeline = &timeline[..timeline.find("</svg>").unwrap()];
    // 5 ms are 5 of 1000 units: the calibration at slice 60 is alone.
    assert!(
        timeline.contains("<rect class=\"calibration\" x=\"300.00\" y=\"0\" width=\"5.00\""),
        "{timeline}"
    );
    assert!(!timeline.contains("unused"), "what is unused is the ground");
}

#[test]
fn the_page_works_without_anything_to_show() {
    let Some(dom) = page(Status::default(), &[]) else {
        println!("{SKIPPED}");
        return;
    };
    assert_eq!(text(&dom, "id=\"state\"", "</span>"), "starting");
    assert_eq!(
        text(&dom, "id=\"notice\"", "</p>"),
        "The service has no drives yet."
    );
    let mut status = fake::status();
    let drive = &mut status.drives[0];
    *drive = server::status::DriveStatus {
        name: drive.name.clone(),
        mode: Mode::Plain,
        ..Default::default()
    };
    let Some(dom) = page(status, &[]) else {
        println!("{SKIPPED}");
        return;
    };
    for (mark, end, shown) in [
        ("data-field=\"mode\"", "</span>", "plain"),
        (
            "data-field=\"head\"",
            "</figcaption>",
            "where the head is: unknown",
        ),
        ("class=\"traffic\"", "</table>", "no requests yet"),
        ("data-kind=\"free\"", "</li>", "free –"),
    ] {
        let found = text(&dom, mark, end);
        assert!(found.ends_with(shown), "{mark}: {found}");
    }
}

/// What the service answers to a GET.
fn get(address: SocketAddr, path: &str) -> String {
    let mut client = TcpStream::connect(address).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    client.write_all(head.as_bytes()).unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    text.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[test]
fn a_page_that_is_opened_late_has_what_came_before() {
    let fake = Fake::new(fake::status());
    // When the page comes, nothing is measured any more: what it shows is what the service has kept.
    let becomes_quiet = |address| {
        let kept = (0..10_000).any(|_| get(address, "/api/history") != "[]");
        assert!(kept, "no sample");
        let mut status = fake.status.lock().unwrap();
        status.drives[0] = server::status::DriveStatus {
            name: status.drives[0].name.clone(),
            ..Default::default()
        };
    };
    let Some(dom) = page_after(&fake, &[], becomes_quiet) else {
        println!("{SKIPPED}");
        return;
    };
    for (line, most) in [
        ("latency of the foreground (p99)", "142 ms"),
        ("impact of the background", "1.37 %"),
        ("background reads", "2.3 MB/s"),
    ] {
        let line = format!("aria-label=\"{line}, ten minutes\"");
        let shown = text(&dom, &line, "</figure>");
        let expected = format!("10 min ago at most {most}");
        assert!(shown.ends_with(&expected), "{line}: {shown}");
    }
}

/// A service whose drive does nothing.
fn idle() -> Status {
    let mut status = fake::status();
    let drive = &mut status.drives[0];
    *drive = server::status::DriveStatus {
        name: drive.name.clone(),
        model: drive.model.clone(),
        back_end: drive.back_end.clone(),
        policy: drive.policy.clone(),
        capacity_bytes: drive.capacity_bytes,
        mode: Mode::Following,
        confidence: Some(1.0),
        head: drive.head,
        impact: drive.impact,
        ..Default::default()
    };
    status.connections.clear();
    status.connections_refused_total = 0;
    status.scrubs.clear();
    status
}

/// A service whose drive does not behave as its profile says.
fn in_safe_mode() -> Status {
    let mut status = idle();
    status.drives[0].mode = Mode::Safe;
    status.drives[0].confidence = Some(0.12);
    status.drives[0].mode_reason =
        "12 % of recent commands ended as the belief predicts".to_owned();
    status
}

/// A service that has refused a stream, and nothing else is wrong.
fn with_a_refusal() -> Status {
    let mut status = idle();
    status.drives[0].streams = server::status::StreamTotals {
        now: 12,
        memory_bytes: 64 << 20,
        granted_total: 12,
        refused_total: 1,
        ..Default::default()
    };
    status
}

/// The width and height of a PNG: the first two fields of its first chunk, IHDR.
fn size(png: &[u8]) -> (u32, u32) {
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
    let field = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    (field(16), field(20))
}

/// `make screenshots` keeps the pictures in the book: one for each state, width and scheme of colours.
#[test]
fn pictures_of_the_page_can_be_taken() {
    let folder = tempfile::tempdir().unwrap();
    let kept = std::env::var_os("HEADTIME_SCREENSHOTS");
    let kept = kept.as_ref().map_or(folder.path(), std::path::Path::new);
    for (state, status, [high_if_wide, high_if_narrow]) in [
        ("busy", fake::status(), [1500, 3600]),
        ("idle", idle(), [900, 1500]),
        ("safe-mode", in_safe_mode(), [900, 1500]),
        ("stream-refused", with_a_refusal(), [1100, 1750]),
    ] {
        for (width, height) in [(1400, high_if_wide), (400, high_if_narrow)] {
            for (scheme, number) in [("light", 1), ("dark", 0)] {
                let file = kept.join(format!("page-{state}-{width}-{scheme}.png"));
                let shot = format!("--screenshot={}", file.display());
                let window = format!("--window-size={width},{height}");
                let scheme = format!("--blink-settings=preferredColorScheme={number}");
                if page(status.clone(), &[&shot, &window, &scheme]).is_none() {
                    println!("{SKIPPED}");
                    return;
                }
                assert_eq!(size(&std::fs::read(&file).unwrap()), (width, height));
            }
        }
    }
}

/// The book has each picture that can be taken, and no other of the page.
#[test]
fn the_book_has_a_picture_of_each_state_width_and_scheme() {
    let how_to = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/how-to");
    let book = std::fs::read_to_string(format!("{how_to}/status-page.md")).unwrap();
    let mut shown: Vec<&str> = book
        .split("(images/page-")
        .skip(1)
        .map(|rest| rest.split(".png").next().unwrap())
        .collect();
    shown.sort_unstable();
    let mut expected = Vec::new();
    for state in ["busy", "idle", "safe-mode", "stream-refused"] {
        for (width, scheme) in [
            (1400, "light"),
            (1400, "dark"),
            (400, "light"),
            (400, "dark"),
        ] {
            expected.push(format!("{state}-{width}-{scheme}"));
        }
    }
    expected.sort_unstable();
    assert_eq!(shown, expected);
    for name in expected {
        let png = std::fs::read(format!("{how_to}/images/page-{name}.png")).unwrap();
        let width = size(&png).0;
        assert!(name.contains(&format!("-{width}-")), "{name}: {width}");
    }
}

/// What the audit of the page found; see `audit/audit.js`.
#[derive(Debug, serde::Deserialize)]
struct Audit {
    /// Each visible text, with its contrast to the ground.
    texts: Vec<Shown>,
    /// Words with an explanation, and how many of them show it with an outline when they have the focus.
    explained: usize,
    outlined: usize,
    /// What has an explanation or scrolls, and cannot have the focus.
    unreachable: Vec<String>,
    /// Elements that the focus reaches in another order than they stand.
    reordered: usize,
    /// Whether the page is wider than its window.
    wide: bool,
    /// What was asked of other machines, and all that was asked.
    elsewhere: Vec<String>,
    asked: usize,
}

#[derive(Debug, serde::Deserialize)]
struct Shown {
    text: String,
    ratio: f64,
}

/// The least contrast of a text: WCAG 2.2, success criterion 1.4.3 (level AA).
const CONTRAST: f64 = 4.5;

#[test]
fn the_page_can_be_read_by_weak_eyes_and_without_a_mouse() {
    let audit = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/control/audit");
    let load = format!("--load-extension={audit}");
    for (status, size) in [
        (fake::status(), "1400,1500"),
        (in_safe_mode(), "1400,1500"),
        (with_a_refusal(), "400,1500"),
    ] {
        for scheme in ["0", "1"] {
            let size = format!("--window-size={size}");
            let scheme = format!("--blink-settings=preferredColorScheme={scheme}");
            let Some(dom) = page(status.clone(), &[&load, &size, &scheme]) else {
                println!("{SKIPPED}");
                return;
            };
            let found = dom.split("data-audit=\"").nth(1);
            let found = found.unwrap_or_else(|| panic!("no audit: {dom}"));
            let found = found.split('"').next().unwrap().replace("&quot;", "\"");
            let audit: Audit =
                serde_json::from_str(&found).unwrap_or_else(|problem| panic!("{problem}: {found}"));
            assert!(audit.texts.len() > 50 && audit.explained > 8, "{audit:?}");
            let pale = audit.texts.iter().filter(|shown| shown.ratio < CONTRAST);
            assert_eq!(
                pale.map(|shown| &shown.text).collect::<Vec<_>>(),
                Vec::<&String>::new(),
                "{scheme} {found}"
            );
            assert_eq!(audit.outlined, audit.explained, "{found}");
            assert_eq!(audit.unreachable, Vec::<String>::new());
            assert_eq!(audit.reordered, 0);
            assert!(!audit.wide, "{size}");
            assert!(audit.asked >= 5, "{}", audit.asked);
            assert_eq!(audit.elsewhere, Vec::<String>::new());
        }
    }
}

#[test]
fn the_page_begins_with_what_is_wrong_and_what_to_do() {
    let (Some(good), Some(bad)) = (page(idle(), &[]), page(in_safe_mode(), &[])) else {
        println!("{SKIPPED}");
        return;
    };
    assert_eq!(
        text(&good, "class=\"word\"", "</p>"),
        "✓ OK: nothing is wrong"
    );
    let finding = text(&bad, "data-finding=\"safe-mode\"", "</li>");
    assert!(
        finding.contains("12 % of recent commands") && finding.contains("To do: "),
        "{finding}"
    );
    let place = |mark: &str| bad.find(mark).unwrap();
    assert!(
        place("data-finding") < place("class=\"drive card\""),
        "first of all"
    );
}
