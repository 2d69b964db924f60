//! Tasks whose blocks go into a file: a buffer that a client maps, or a copy.

use headtime_client::{Client, ListedTask, TaskOrder, TaskPieces, TaskSink};
use serde_json::Value;

use crate::scan_resumed::task_ended;
use crate::scanned::{BYTES, Service, config, contents};

/// Bytes of a block of the emulated drive.
const BLOCK: usize = 512;

/// Whether a block has come, by the bits behind `bytes` bytes of a file.
fn has_come(file: &[u8], bytes: usize, block: usize) -> bool {
    file[bytes.next_multiple_of(8) + block / 8] >> (block % 8) & 1 == 1
}

/// The task of an order, once its file is complete or was given up.
fn ended(service: &Service, order: &TaskOrder) -> ListedTask {
    let client = Client::connect(&service.path("control.sock")).expect("a client");
    let number = client.begin_task(order).expect("a task");
    task_ended(&client, number)
}

#[test]
fn pieces_come_into_a_buffer_in_the_order_of_their_order() {
    let service = Service::start(&contents(), "");
    let path = service.path("buffer");
    let pieces = vec![(1 << 20, 65_536), (0, 8192), (BYTES as u64 - 512, 512)];
    let bytes = 65_536 + 8192 + 512;
    // A buffer that was used before: what was in it does not count.
    std::fs::write(&path, vec![0xFF; bytes + bytes / BLOCK / 8 + 1]).expect("a buffer");
    let order = TaskOrder {
        volume: "small".to_owned(),
        set: TaskPieces {
            pieces: pieces.clone(),
            any: None,
        },
        sink: TaskSink::Buffer(path.clone()),
        ..TaskOrder::default()
    };
    let task = ended(&service, &order);
    assert_eq!(task.problem, None);
    let said = task.outcome.expect("its end");
    assert!(
        said.starts_with(&format!("{bytes} bytes are in ")),
        "{said}"
    );
    let (file, volume) = (std::fs::read(&path).expect("a buffer"), contents());
    let mut place = 0;
    for (first, length) in pieces {
        let (first, length) = (first as usize, length as usize);
        assert!(file[place..place + length] == volume[first..first + length]);
        place += length;
    }
    assert!((0..bytes / BLOCK).all(|block| has_come(&file, bytes, block)));
    assert!(!has_come(&file, bytes, bytes / BLOCK), "a bit of no block");
    // Any of them: bits say which.
    let any = TaskOrder {
        set: TaskPieces {
            pieces: (0..100).map(|piece| (piece * 8192, 4096)).collect(),
            any: Some(10),
        },
        sink: TaskSink::Buffer(service.path("any")),
        ..order
    };
    let task = ended(&service, &any);
    let file = std::fs::read(service.path("any")).expect("a buffer");
    let complete = (0..100_usize).filter(|piece| {
        let mut blocks = piece * 8..piece * 8 + 8;
        let is_complete = blocks.all(|block| has_come(&file, 409_600, block));
        let bytes = &file[piece * 4096..(piece + 1) * 4096];
        assert!(!is_complete || *bytes == volume[piece * 8192..piece * 8192 + 4096]);
        is_complete
    });
    let complete = complete.count() as u64;
    assert!(
        complete >= 10 && complete == task.pieces_done,
        "{complete}: {task:?}"
    );
    service.end();
}

#[test]
fn a_copy_goes_on_after_a_kill_and_is_the_volume() {
    let slow = config("").replace("time_scale = 0.01", "time_scale = 1");
    let service = Service::start_with(&contents(), &slow);
    let words = [
        "scan",
        "small",
        "--into",
        "copy",
        "--state",
        "s",
        "--save-every",
        "0",
        "--json",
    ];
    let (is_good, text) = service.run(&[&words[..], &["--detach"]].concat());
    assert!(is_good, "{text}");
    loop {
        let tasks = service.json(&["ctl", "--json", "tasks"]);
        let done = tasks[0]["tasks"][0]["done_bytes"]
            .as_u64()
            .expect("a number");
        assert!(done < BYTES as u64, "it was too fast to be killed");
        if done > 2 << 20 {
            break;
        }
    }
    let folder = service.kill();
    let service = Service::start_in(folder, &config(""));
    // Its file is gone, and with it what was read.
    let (copy, hidden) = (service.path("copy"), service.path("hidden"));
    std::fs::rename(&copy, &hidden).expect("a copy");
    let refused = service.refuses(&words);
    assert!(refused.contains("copy: "), "{refused}");
    std::fs::rename(&hidden, &copy).expect("a copy");
    let task: Value = service.json(&words);
    assert_eq!(
        (&task["state"], &task["done_bytes"]),
        (&"finished".into(), &BYTES.into())
    );
    assert!(task["resumed_bytes"].as_u64() >= Some(1 << 20), "{task}");
    let file = std::fs::read(&copy).expect("a copy");
    assert_eq!(file.len(), BYTES + BYTES / BLOCK / 8);
    assert!(file[..BYTES] == contents());
    assert!(file[BYTES..].iter().all(|bits| *bits == 0xFF));
    assert!(!service.path("s").exists());
    service.end();
}

#[test]
fn files_that_cannot_take_a_task_are_refused_and_stay_as_they_are() {
    let service = Service::start(&contents(), "");
    std::fs::write(service.path("mine"), "a letter").expect("a file");
    let folder = service.path("");
    for (file, problem) in [
        ("mine", "8 bytes: expected an empty file, or one of"),
        ("no/such/folder", "No such file"),
        (folder.to_str().expect("a path"), "directory"),
        ("", "a value is required"),
    ] {
        let refused = service.refuses(&["scan", "small", "--into", file]);
        assert!(refused.contains(problem), "{file}: {refused}");
    }
    let both = service.refuses(&["scan", "small", "--into", "b", "--command", "cat"]);
    assert!(both.contains("cannot be used with"), "{both}");
    assert_eq!(
        std::fs::read(service.path("mine")).expect("a file"),
        b"a letter"
    );
    service.end();
}
