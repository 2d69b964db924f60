//! What can be asked of streams, and what is nothing of the kind.

use headtime_client::wire;
use serde_json::json;
use server::control::protocol::{self, Ask};
use server::control::{Scan, Sink, TaskLifetime};

use crate::plane::{answer, ask, open, scene};

/// What is asked of a stream gets there as it was said; what is nothing of the kind is refused in one
/// line, and the client goes on.
#[test]
fn every_verb_of_streams_has_its_answer() {
    let scene = scene(open());
    let mut client = scene.client();
    let places = wire::Places {
        length: 8192,
        pieces: vec![wire::FilePiece(0, 4096, 8192)],
    };
    let refresh = protocol::request(&Ask::Refresh(wire::Refresh {
        stream: 7,
        places: places.clone(),
    }));
    let error = ask(&mut client, &refresh)["error"].to_string();
    assert!(
        error.contains("no stream 7 is of this connection"),
        "{error}"
    );
    let whole = protocol::request(&Ask::Attach(wire::Attach {
        terms: wire::Terms {
            mode: wire::StreamMode::RecordSync,
            rate: 5,
            buffer: 64,
            memory: Some(512),
            priority: Some(2),
            start: 4096,
            ..wire::Terms::default()
        },
        places,
    }));
    assert_eq!(ask(&mut client, &whole)["ok"]["stream"], 7);
    assert_eq!(answer(&mut client)["told"]["event"], "serving");
    assert_eq!(
        ask(&mut client, &refresh)["ok"],
        json!({ "moved": 4096 }),
        "and what has changed is said"
    );
    assert!(scene.fake.told().contains(&String::from("refresh 7")));
    for (line, expected) in [
        (r#"{"version":1,"ask":"attach"}"#, "missing field"),
        (
            r#"{"version":1,"ask":"attach","export":"db","rate":-1,"buffer":1,"places":{"length":0,"pieces":[]}}"#,
            "-1",
        ),
        (
            r#"{"version":1,"ask":"attach","export":"db","rate":1,"buffer":1,"places":{"length":0,"pieces":[]},"more":1}"#,
            "unknown field `more`",
        ),
        (
            r#"{"version":1,"ask":"attach","export":"db","rate":1,"buffer":1,"priority":300,"places":{"length":0,"pieces":[]}}"#,
            "300",
        ),
        (
            r#"{"version":1,"ask":"attach","export":"db","rate":1,"buffer":1,"mode":"film","places":{"length":0,"pieces":[]}}"#,
            "film",
        ),
        (r#"{"version":1,"ask":"position","stream":7}"#, "offset"),
        (
            r#"{"version":1,"ask":"refresh","stream":7,"places":{"length":1,"pieces":[[0,1]]}}"#,
            "3",
        ),
        (r#"{"version":1,"ask":"close","stream":"film"}"#, "film"),
        (r#"{"version":2,"ask":"streams"}"#, "version"),
    ] {
        let error = ask(&mut client, &format!("{line}\n"))["error"].to_string();
        assert!(error.contains(expected), "{line}: {error}");
    }
    let close = protocol::request(&Ask::Close(wire::Close { stream: 7 }));
    assert_eq!(ask(&mut client, &close)["ok"], true);
    assert!(scene.fake.told().contains(&String::from("close 7")));
}

/// A scan that is to end with its client does; another one does not.
#[test]
fn a_scan_ends_with_its_connection_if_it_was_asked_to() {
    for (lifetime, ends) in [
        (TaskLifetime::Connection, true),
        (TaskLifetime::Detached, false),
    ] {
        let scene = scene(open());
        let mut client = scene.client();
        let scan = protocol::request(&Ask::Scan(Scan {
            volume: String::from("db"),
            set: None,
            priority: 0,
            deadline_s: None,
            pace_bytes_s: None,
            sink: Sink::Checksum,
            state: None,
            lifetime,
        }));
        assert_eq!(ask(&mut client, &scan)["ok"], json!({ "task": 9 }));
        let attach = protocol::request(&Ask::Attach(wire::Attach {
            terms: wire::Terms {
                rate: 5,
                ..wire::Terms::default()
            },
            ..wire::Attach::default()
        }));
        assert_eq!(ask(&mut client, &attach)["ok"]["stream"], 7);
        drop(client);
        // Tasks go after the streams of a connection.
        while !scene.fake.told().contains(&String::from("close 7")) {
            std::thread::yield_now();
        }
        let aborted = || scene.fake.told().contains(&String::from("steer 9 Abort"));
        while ends && !aborted() {
            std::thread::yield_now();
        }
        drop(scene.ask(&protocol::request(&Ask::Status)));
        assert_eq!(aborted(), ends);
    }
}
