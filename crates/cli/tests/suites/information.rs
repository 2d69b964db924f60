//! What `nbdinfo` says of the server.

use serde_json::Value;

use super::served::{SIZE, Served, has};

#[test]
fn what_nbdinfo_asks_for_is_answered_as_configured() {
    if !has("nbdinfo") {
        return;
    }
    let served = Served::start();
    for can in [
        "cache",
        "connect",
        "df",
        "fast-zero",
        "flush",
        "fua",
        "multi-conn",
        "read",
        "trim",
        "write",
        "zero",
    ] {
        assert_eq!(served.prints(&format!("nbdinfo --can {can} URI")), "");
    }
    served.prints("nbdinfo --can structured-reply URI");
    served.prints("nbdinfo --is rotational URI");
    for is_not in ["read-only", "tls"] {
        let output = served.output(&format!("nbdinfo --is {is_not} URI"));
        assert_eq!(output.status.code(), Some(2), "{is_not}: {output:?}");
    }
    assert_eq!(served.prints("nbdinfo --size URI"), format!("{SIZE}\n"));
    let unknown = served.uri().replace("///", "///nothing");
    let output = served.output(&format!("nbdinfo --size {unknown}"));
    assert_eq!(output.status.code(), Some(1), "no such export: {output:?}");
    served.stop();
}

#[test]
fn info_go_and_list_tell_the_same() {
    if !has("nbdinfo") {
        return;
    }
    let served = Served::start();
    // The one asks with NBD_OPT_GO, the other with NBD_OPT_LIST and NBD_OPT_INFO.
    let mut told = ["--json", "--json --list"].map(|how| -> Value {
        let text = served.prints(&format!("nbdinfo {how} URI"));
        serde_json::from_str(&text).expect("JSON")
    });
    // Only the first one reads the export, to say what it holds.
    let content = told[0]["exports"][0]
        .as_object_mut()
        .expect("an export")
        .remove("content");
    assert!(content.is_some());
    assert_eq!(told[0], told[1]);
    let export = &told[0]["exports"][0];
    assert_eq!(export["export-size"], SIZE);
    assert_eq!(export["description"], "an emulated Small drive for suites");
    assert_eq!(export["contexts"][0], "base:allocation");
    assert_eq!(export["block_size_minimum"], 512);
    assert_eq!(export["block_size_preferred"], 4096);
    assert_eq!(export["block_size_maximum"], 32 << 20);
    served.stop();
}

#[test]
fn the_map_is_what_was_written() {
    if !has("nbdinfo") || !has("qemu-io") {
        return;
    }
    let served = Served::start();
    let empty = served.prints("nbdinfo --map URI");
    let fields: Vec<&str> = empty.split_whitespace().collect();
    assert_eq!(fields, ["0", &SIZE.to_string(), "3", "hole,zero"]);
    served.io(&["write 1M 64k", "write -z 2M 64k"]);
    let map = served.prints("nbdinfo --map --json URI");
    let map: Value = serde_json::from_str(&map).expect("JSON");
    let runs: Vec<(u64, u64, u64)> = map
        .as_array()
        .expect("runs")
        .iter()
        .map(|run| {
            let number = |key: &str| run[key].as_u64().expect("a number");
            (number("offset"), number("length"), number("type"))
        })
        .collect();
    let (mib, piece) = (1 << 20, 64 << 10);
    assert_eq!(runs[0], (0, mib, 3));
    assert_eq!(runs[1], (mib, piece, 0));
    assert_eq!(runs[2].0, mib + piece);
    assert_eq!(runs[2].2, 3, "a hole behind it");
    served.stop();
}
