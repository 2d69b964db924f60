//! The control plane over a fake service: the socket, HTTP, and clients that misbehave.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::fake::{self, Fake};
use headtime_client::wire;
use proptest::prelude::*;
use serde_json::{Value, json};
use server::config::Actions;
use server::config::SocketRights;
use server::control::protocol::{self, Ask, LONGEST_LINE};
use server::control::{
    Bounds, Learn, Listeners, Plane, Scan, ScanState, Sink, TaskLifetime, listen,
};
use server::status::Status;
use server::tasks::Steer;

pub struct Scene {
    pub fake: Fake,
    socket: PathBuf,
    http: SocketAddr,
    pub plane: Plane,
    _folder: tempfile::TempDir,
}

pub fn scene(bounds: Bounds) -> Scene {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("deep/control.sock");
    let fake = Fake::new(fake::status());
    let http = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = http.local_addr().unwrap();
    let listeners = Listeners {
        sockets: vec![listen(&socket, SocketRights::default()).unwrap()],
        http: vec![http],
    };
    let plane = Plane::begin(Arc::new(fake.clone()), listeners, bounds).unwrap();
    Scene {
        fake,
        socket,
        http: address,
        plane,
        _folder: folder,
    }
}

/// With actions, and patience that a test can wait for.
pub fn open() -> Bounds {
    Bounds {
        http_actions: Actions::Allowed,
        ..Bounds::default()
    }
}

fn hasty() -> Bounds {
    Bounds {
        patience: Duration::from_millis(50),
        ..open()
    }
}

impl Scene {
    pub fn client(&self) -> BufReader<UnixStream> {
        BufReader::new(UnixStream::connect(&self.socket).unwrap())
    }

    pub fn ask(&self, text: &str) -> Value {
        ask(&mut self.client(), text)
    }

    /// The code and the body.
    fn http(&self, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.http).unwrap();
        let host = format!("Host: {}\r\nConnection: close\r\n", self.http);
        let request = request.replace("OURS\r\n", &host);
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), body.to_owned())
    }

    fn post(&self, body: &str) -> (u16, String) {
        let length = body.len();
        self.http(&format!(
            "POST /api HTTP/1.1\r\nOURS\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        ))
    }
}

pub fn ask(client: &mut BufReader<UnixStream>, text: &str) -> Value {
    client.get_mut().write_all(text.as_bytes()).unwrap();
    answer(client)
}

pub fn answer(client: &mut BufReader<UnixStream>) -> Value {
    let mut line = String::new();
    client.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}

pub fn is_closed(client: &mut BufReader<UnixStream>) -> bool {
    matches!(client.read(&mut [0; 1]), Ok(0) | Err(_))
}

fn attach(rate: u64) -> String {
    protocol::request(&Ask::Attach(wire::Attach {
        terms: wire::Terms {
            export: Some(String::from("db")),
            name: String::from("film"),
            rate,
            ..wire::Terms::default()
        },
        ..wire::Attach::default()
    }))
}

#[test]
fn streams_are_their_connections_and_end_with_it() {
    let scene = scene(open());
    let mut client = scene.client();
    let refused = ask(&mut client, &attach(0));
    assert_eq!(refused["error"], "a rate of 0");
    assert_eq!(refused["refused"]["largest_rate"], 1_000);
    assert_eq!(ask(&mut client, &attach(5))["ok"]["stream"], 7);
    // What it is told comes by itself.
    let told = answer(&mut client);
    assert_eq!(told["told"], json!({ "stream": 7, "event": "serving" }));
    let position = wire::Position {
        stream: 7,
        offset: 65_536,
    };
    let position = protocol::request(&Ask::Position(position));
    assert_eq!(ask(&mut client, &position)["ok"], true);
    let close = protocol::request(&Ask::Close(wire::Close { stream: 7 }));
    for line in [&position, &close] {
        let error = scene.ask(line)["error"].to_string();
        assert!(
            error.contains("no stream 7 is of this connection"),
            "{error}"
        );
    }
    let listed = scene.ask(&protocol::request(&Ask::Streams));
    assert_eq!(listed["ok"][0]["stream"], 7);
    let (code, body) = scene.post(
        &attach(5)
            .replace("\"version\":1,", "")
            .replace(",\"version\":1", ""),
    );
    assert!(
        body.contains("expected the control socket"),
        "{code}: {body}"
    );
    // Somebody who goes without a word closes it, too; another one's is left alone.
    drop(client);
    while !scene.fake.told().contains(&String::from("close 7")) {
        std::thread::yield_now();
    }
}

#[test]
fn one_request_a_line_one_answer_a_line() {
    let scene = scene(Bounds::default());
    let mut client = scene.client();
    let status = ask(&mut client, &protocol::request(&Ask::Status));
    assert_eq!(status["version"], 1);
    let read: Status = serde_json::from_value(status["ok"].clone()).unwrap();
    assert_eq!(read, fake::status());
    let tasks = ask(&mut client, &protocol::request(&Ask::Tasks));
    assert_eq!(tasks["ok"][0]["drive"], "disk");
    assert_eq!(tasks["ok"][0]["tasks"][0]["id"], 3);
    let promote = Steer::Promote { priority: 7 };
    let two = protocol::request(&Ask::Reload)
        + &protocol::request(&Ask::Steer {
            task: 3,
            action: promote,
        });
    let reload = ask(&mut client, &two);
    assert_eq!(reload["ok"]["applied"][0], "export db-idle is new");
    assert_eq!(answer(&mut client)["ok"], true, "and the second of two");
    let scan = Scan {
        volume: String::from("db"),
        set: None,
        priority: 2,
        deadline_s: Some(60),
        pace_bytes_s: Some(5_000_000),
        sink: Sink::Command(vec![String::from("wc"), String::from("-c")]),
        state: Some(ScanState {
            file: "/var/lib/db.scan".into(),
            every_s: 5,
        }),
        lifetime: TaskLifetime::Detached,
    };
    let begun = ask(&mut client, &protocol::request(&Ask::Scan(scan.clone())));
    assert_eq!(begun["ok"], json!({ "task": 9 }));
    let drained = scene.ask(&protocol::request(&Ask::Drain));
    assert_eq!(drained["ok"], json!({ "waits_for": [] }));
    assert_eq!(scene.ask(&protocol::request(&Ask::Stop))["ok"], true);
    let told = [
        String::from("reload"),
        String::from("steer 3 Promote { priority: 7 }"),
        format!("scan {scan:?}"),
        String::from("drain"),
        String::from("stop"),
    ];
    assert_eq!(scene.fake.told(), told);
}

#[test]
fn what_is_wrong_is_said_and_the_client_may_go_on() {
    let scene = scene(Bounds::default());
    let mut client = scene.client();
    for (line, part) in [
        ("hello\n", "not JSON"),
        ("\n", "not JSON"),
        ("[]\n", "not an object"),
        ("{\"ask\":\"status\"}\n", "no version"),
        (
            "{\"version\":1,\"ask\":\"status\",\"ask\":\"stop\"}\n",
            "the key \"ask\" twice: expected it once",
        ),
        (
            "{\"version\":2,\"ask\":\"status\"}\n",
            "version 2: expected 1",
        ),
        (
            "{\"version\":1,\"ask\":\"staus\"}\n",
            "unknown variant `staus`, expected one of `status`",
        ),
        (
            "{\"version\":1,\"ask\":\"steer\",\"task\":3}\n",
            "missing field `action`",
        ),
        (
            "{\"version\":1,\"ask\":\"steer\",\"task\":8,\"action\":\"abort\"}\n",
            "no task 8",
        ),
        (
            "{\"version\":1,\"ask\":\"scan\",\"volume\":\"x\"}\n",
            "no volume is called",
        ),
        (
            "{\"version\":1,\"ask\":\"scan\",\"volume\":\"db\",\"prio\":1}\n",
            "unknown field `prio`",
        ),
    ] {
        let answer = ask(&mut client, line);
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(error.contains(part), "{line} is {answer}");
        assert!(answer.get("ok").is_none());
    }
    assert!(ask(&mut client, &protocol::request(&Ask::Status))["ok"].is_object());
}

#[test]
fn slow_oversized_half_open_and_garbage_clients_disturb_nobody() {
    let scene = scene(hasty());
    let mut silent = scene.client();
    let mut half = scene.client();
    half.get_mut().write_all(b"{\"version\":1").unwrap();
    let mut long = scene.client();
    long.get_mut()
        .write_all(&vec![b' '; LONGEST_LINE + 1])
        .unwrap();
    let mut deaf = scene.client();
    // Asks until nobody takes its requests any more, because it takes no answers.
    let asks = protocol::request(&Ask::Status).repeat(100_000);
    let _ = deaf.get_mut().write_all(asks.as_bytes());
    let mut garbage = scene.client();
    let _ = garbage.get_mut().write_all(&[0xff; 4096]);
    assert!(scene.ask(&protocol::request(&Ask::Status))["ok"].is_object());
    let error = answer(&mut half)["error"].to_string();
    assert!(error.contains("half a line"), "{error}");
    assert!(is_closed(&mut half));
    let error = answer(&mut long)["error"].to_string();
    let longest = format!("more than {LONGEST_LINE} bytes");
    assert!(error.contains(&longest), "{error}");
    assert!(is_closed(&mut long));
    assert!(
        ask(&mut silent, &protocol::request(&Ask::Status))["ok"].is_object(),
        "no request, no hurry"
    );
}

#[test]
fn one_client_too_many_is_told_so_until_another_goes() {
    let scene = scene(Bounds {
        connections: 2,
        ..Bounds::default()
    });
    let mut first = scene.client();
    let mut second = scene.client();
    let status = protocol::request(&Ask::Status);
    ask(&mut first, &status);
    ask(&mut second, &status);
    let mut third = scene.client();
    let error = answer(&mut third)["error"].to_string();
    assert!(error.contains("2 clients are connected"), "{error}");
    assert!(is_closed(&mut third));
    assert!(ask(&mut second, &status)["ok"].is_object());
    drop(first);
    // The place is free as soon as the plane has seen the client go.
    let free = (0..10_000).any(|_| {
        let mut client = scene.client();
        let _ = client.get_mut().write_all(status.as_bytes());
        answer(&mut client).get("ok").is_some()
    });
    assert!(free);
}

#[test]
fn a_silent_client_is_sent_away() {
    let scene = scene(Bounds {
        idle: Duration::from_millis(20),
        ..Bounds::default()
    });
    assert!(is_closed(&mut scene.client()));
}

#[test]
fn http_says_the_same() {
    let scene = scene(open());
    let (code, body) = scene.http("GET /api/status HTTP/1.1\r\nOURS\r\n\r\n");
    assert_eq!(code, 200);
    let read: Status = serde_json::from_str(&body).unwrap();
    assert_eq!(read, fake::status());
    let (code, body) = scene.http("GET /api/findings HTTP/1.1\r\nOURS\r\n\r\n");
    let findings = server::diagnosis::of_status(&fake::status());
    let findings = serde_json::to_value(findings).unwrap();
    assert_eq!(
        (code, serde_json::from_str(&body).ok()),
        (200, Some(findings))
    );
    // The first sample comes as soon as the plane is there.
    let told = (0..10_000).find_map(|_| {
        let (code, body) = scene.http("GET /api/history HTTP/1.1\r\nOURS\r\n\r\n");
        assert_eq!(code, 200);
        (body != "[]").then_some(body)
    });
    let told: Value = serde_json::from_str(&told.unwrap()).unwrap();
    assert_eq!(told[0]["drives"][0]["impact_percent"], 1.37);
    // The page has no users, and lists no streams.
    assert_eq!(
        scene.http("GET /api/streams HTTP/1.1\r\nOURS\r\n\r\n").0,
        404
    );
    let (code, body) = scene.http("GET /api/tasks HTTP/1.1\r\nOURS\r\n\r\n");
    assert!(code == 200 && body.contains("scan db"), "{body}");
    assert_eq!(scene.post("{\"ask\":\"reload\"}").0, 200);
    let (code, body) = scene.post("{\"ask\":\"steer\",\"task\":4,\"action\":\"abort\"}");
    assert!(code == 422 && body.contains("no task 4"), "{code} {body}");
    assert_eq!(scene.post("{\"ask\":\"relaod\"}").0, 400);
    assert_eq!(scene.fake.told(), ["reload", "steer 4 Abort"]);
    for (path, part) in [
        ("/", "<!doctype html>"),
        ("/page.js", "EventSource"),
        ("/page.css", "--ground"),
    ] {
        let (code, body) = scene.http(&format!("GET {path} HTTP/1.1\r\nOURS\r\n\r\n"));
        assert!(code == 200 && body.contains(part), "{path}: {code}");
    }
    let (code, body) = scene.http("GET /metrics HTTP/1.1\r\nOURS\r\n\r\n");
    let metrics = server::control::metrics::text(&fake::status()).unwrap();
    // The body comes in chunks or whole, as the server likes; its first metric is in one piece.
    assert!(code == 200 && body.contains(metrics.lines().next().unwrap()));
    assert_eq!(scene.http("GET /nothing HTTP/1.1\r\nOURS\r\n\r\n").0, 404);
}

#[test]
fn http_changes_nothing_unless_that_is_allowed_and_never_runs_programs() {
    let shut = scene(Bounds::default());
    for body in [
        "{\"ask\":\"stop\"}",
        "{\"ask\":\"drain\"}",
        "{\"ask\":\"reload\"}",
        "{\"ask\":\"impact\",\"drive\":\"disk\",\"impact_ppm\":1}",
    ] {
        let (code, answer) = shut.post(body);
        assert!(
            code == 403 && answer.contains("http_actions"),
            "{body}: {code} {answer}"
        );
    }
    assert_eq!(shut.post("{\"ask\":\"status\"}").0, 200);
    assert!(shut.fake.told().is_empty());
    let open = scene(open());
    let program = "{\"ask\":\"scan\",\"volume\":\"db\",\"sink\":{\"command\":[\"sh\"]}}";
    let (code, answer) = open.post(program);
    assert!(
        code == 403 && answer.contains("programs"),
        "{code} {answer}"
    );
    let file = "{\"ask\":\"scan\",\"volume\":\"db\",\"state\":{\"file\":\"/x\",\"every_s\":1}}";
    let (code, answer) = open.post(file);
    assert!(code == 403 && answer.contains("files"), "{code} {answer}");
    assert!(open.fake.told().is_empty());
    assert_eq!(open.post("{\"ask\":\"scan\",\"volume\":\"db\"}").0, 200);
}

#[test]
fn other_hosts_and_other_origins_are_refused() {
    let scene = scene(open());
    let port = scene.http.port();
    let body = "Content-Length: 14\r\n\r\n{\"ask\":\"stop\"}";
    let close = "Connection: close\r\n";
    for (host, code) in [
        (format!("Host: evil.example:{port}\r\n"), 421),
        (format!("Host: 10.1.2.3:{port}\r\n"), 421),
        (String::new(), 421),
        (format!("Host: localhost:{port}\r\n"), 200),
    ] {
        let answer = scene.http(&format!("GET /api/status HTTP/1.1\r\n{host}{close}\r\n"));
        assert_eq!(answer.0, code, "{host}");
    }
    for (headers, code) in [
        (
            "Content-Type: application/json\r\nOrigin: http://evil.example\r\n",
            403,
        ),
        ("Content-Type: application/json\r\nOrigin: null\r\n", 403),
        // What a form of another page can send without asking.
        ("Content-Type: text/plain\r\n", 415),
        ("Content-Type: application/x-www-form-urlencoded\r\n", 415),
        ("", 415),
    ] {
        let answer = scene.http(&format!("POST /api HTTP/1.1\r\nOURS\r\n{headers}{body}"));
        assert_eq!(answer.0, code, "{headers}");
    }
    assert!(scene.fake.told().is_empty());
    let ours = format!("Content-Type: application/json\r\nOrigin: http://127.0.0.1:{port}\r\n");
    assert_eq!(
        scene
            .http(&format!("POST /api HTTP/1.1\r\nOURS\r\n{ours}{body}"))
            .0,
        200
    );
    assert_eq!(scene.fake.told(), ["stop"]);
}

#[test]
fn slow_and_oversized_http_clients_are_sent_away() {
    let scene = scene(hasty());
    let mut half = TcpStream::connect(scene.http).unwrap();
    half.write_all(b"GET / HTTP/1.1\r\nHo").unwrap();
    let mut rest = Vec::new();
    let _ = half.read_to_end(&mut rest);
    assert!(
        !rest.starts_with(b"HTTP/1.1 200"),
        "it ended without the page"
    );
    let long = "x".repeat(LONGEST_LINE + 1);
    let (code, _) = scene.post(&long);
    assert_eq!(code, 413);
    assert_eq!(scene.http("GET / HTTP/1.1\r\nOURS\r\n\r\n").0, 200);
}

#[test]
fn the_page_is_told_again_and_again() {
    let scene = scene(Bounds::default());
    let mut stream = TcpStream::connect(scene.http).unwrap();
    let request = format!("GET /api/events HTTP/1.1\r\nHost: {}\r\n\r\n", scene.http);
    stream.write_all(request.as_bytes()).unwrap();
    let lines = BufReader::new(stream).lines().map(Result::unwrap);
    let mut pictures = lines.filter(|line| line.starts_with("data:"));
    for _ in 0..2 {
        let picture = pictures.next().unwrap();
        let status: Status = serde_json::from_str(picture.trim_start_matches("data:")).unwrap();
        assert_eq!(status, fake::status());
    }
}

proptest! {
    /// Any bytes are a request or refused in one line.
    #[test]
    fn any_line_is_understood_or_refused(line in any::<Vec<u8>>()) {
        if let Err(problem) = protocol::parse(&line) {
            prop_assert!(!protocol::Answer::refusal(problem).line().trim_end().contains('\n'));
        }
    }

    /// What a client writes is what is read.
    #[test]
    fn requests_survive_the_way(volume in ".{0,20}", priority: u8, deadline_s: Option<u64>, task: u64, words in prop::collection::vec(".{0,9}", 0..4)) {
        let scan = Scan { volume, set: None, priority, deadline_s, pace_bytes_s: deadline_s, sink: Sink::Command(words.clone()), state: None, lifetime: TaskLifetime::Connection };
        let impact = Ask::Impact { drive: words.concat(), impact_ppm: task as u32 };
        let state = ScanState { file: words.concat().into(), every_s: task };
        let resumable = Scan { state: Some(state), ..scan.clone() };
        let learn = Ask::Learn(Learn { drive: words.concat(), seconds: task as u32, granted_ppm: u32::from(priority) });
        for ask in [impact, learn, Ask::Learned { drive: words.concat() }, Ask::Follow { drive: words.concat() }, Ask::Scan(resumable), Ask::Scan(scan), Ask::Steer { task, action: Steer::Promote { priority } }, Ask::Steer { task, action: Steer::Suspend }] {
            let line = protocol::request(&ask);
            prop_assert_eq!(line.matches('\n').count(), 1);
            prop_assert_eq!(protocol::parse(line.trim_end().as_bytes()), Ok(ask));
        }
    }
}
