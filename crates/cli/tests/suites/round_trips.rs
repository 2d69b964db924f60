//! Whole copies to the drive and back, by programs of others.

use super::served::{Served, has, write_pieces};

#[test]
fn nbdcopy_brings_back_what_it_took() {
    if !has("nbdcopy") {
        return;
    }
    let served = Served::start();
    let bytes = write_pieces(&served.path("source"), 1);
    served.prints("nbdcopy source URI");
    for how in ["", "--connections=4", "--allocated", "--synchronous"] {
        served.prints(&format!("nbdcopy {how} URI back"));
        let back = std::fs::read(served.path("back")).expect("a copy");
        assert!(back == bytes, "nbdcopy {how} brings something else back");
    }
    // Shorter requests, all four connections writing at once, over what is there.
    let bytes = write_pieces(&served.path("source"), 2);
    served.prints("nbdcopy --connections=4 --request-size=65536 --flush source URI");
    served.prints("nbdcopy TCP back");
    let back = std::fs::read(served.path("back")).expect("a copy");
    assert!(back == bytes, "something else is on the drive");
    served.stop();
}

#[test]
fn qemu_img_brings_back_what_it_took() {
    if !has("qemu-img") {
        return;
    }
    let served = Served::start();
    let identical = "Images are identical.\n";
    write_pieces(&served.path("source"), 3);
    served.prints("qemu-img convert -n -f raw -O raw source URI");
    let compare = "qemu-img compare -f raw -F raw source URI";
    assert_eq!(served.prints(compare), identical);
    served.prints("qemu-img convert -f raw -O qcow2 URI back.qcow2");
    let back = "qemu-img compare -f raw -F qcow2 source back.qcow2";
    assert_eq!(served.prints(back), identical);
    // Something else, from qcow2 and with several requests at once, out of order.
    write_pieces(&served.path("source"), 4);
    served.prints("qemu-img convert -f raw -O qcow2 source other.qcow2");
    assert_eq!(served.output(compare).status.code(), Some(1), "it differs");
    served.prints("qemu-img convert -n -W -m 16 -f qcow2 -O raw other.qcow2 URI");
    assert_eq!(served.prints(compare), identical);
    served.stop();
}

#[test]
fn qemu_img_sees_holes_where_nothing_was_written() {
    if !has("qemu-img") || !has("qemu-io") {
        return;
    }
    let served = Served::start();
    served.io(&["write -P 7 8M 1M"]);
    let map = served.prints("qemu-img map --output=json -f raw URI");
    let map: serde_json::Value = serde_json::from_str(&map).expect("JSON");
    let runs: Vec<(u64, bool)> = map
        .as_array()
        .expect("runs")
        .iter()
        .map(|run| {
            let start = run["start"].as_u64().expect("a number");
            (start, run["data"].as_bool().expect("a truth"))
        })
        .collect();
    assert_eq!(runs, [(0, false), (8 << 20, true), (9 << 20, false)]);
    served.stop();
}
