//! What `nbdinfo`, `nbdcopy` and `qemu-img` make of the export of a checkpoint.

use serde_json::Value;

use super::served::{SIZE, has};
use super::service::{DOORS, Service, emulated};

/// A volume that is the whole drive, with a folder for dirty bitmaps.
const MARKED: &str = "[[drive.volume]]\nname = \"all\"\noffset = 0\nbitmaps = \"bitmaps\"\n\
     [[drive.export]]\nname = \"disk\"\nvolume = \"all\"\nclass = \"foreground\"\n";

fn headtime(service: &Service, words: &str) -> String {
    let program = assert_cmd::cargo::cargo_bin!("headtime").display();
    service.prints(&format!("{program} {words} --socket control.sock"))
}

fn write(service: &Service, fill: u8, at: &str) {
    let uri = service.uri("disk");
    let output = std::process::Command::new("qemu-io")
        .args(["-f", "raw", "-t", "none", "-c"])
        .arg(format!("write -P {fill} {at}"))
        .arg(uri)
        .output();
    assert!(output.expect("it runs").status.success());
}

/// The runs of a map in which the type is this one.
fn runs(service: &Service, context: &str, kind: u64) -> Vec<(u64, u64)> {
    let uri = service.uri("all@checkpoint");
    let map = service.prints(&format!("nbdinfo --map={context} --json {uri}"));
    let map: Value = serde_json::from_str(&map).expect("JSON");
    let runs = map.as_array().expect("runs").iter();
    let runs = runs.filter(|run| run["type"] == kind);
    let number = |run: &Value, key: &str| run[key].as_u64().expect("a number");
    runs.map(|run| (number(run, "offset"), number(run, "length")))
        .collect()
}

#[test]
fn tools_see_the_moment_its_holes_and_what_was_changed_before_it() {
    if !["nbdinfo", "nbdcopy", "qemu-img", "qemu-io"]
        .into_iter()
        .all(has)
    {
        return;
    }
    const MIB: u64 = 1 << 20;
    let service = Service::start(&format!("{}{DOORS}", emulated(MARKED)));
    headtime(&service, "ctl bitmap add all daily");
    write(&service, 1, "8M 1M");
    headtime(&service, "ctl checkpoint create all --bitmap daily");
    headtime(&service, "ctl checkpoint release all --done");
    write(&service, 2, "20M 100k");
    write(&service, 3, "40M 64k");
    headtime(&service, "ctl checkpoint create all --bitmap daily");
    // None of these are in the moment: into a hole, over data, and a trim.
    write(&service, 9, "50M 1M");
    write(&service, 9, "8M 64k");
    let listed = service.prints(&format!("nbdinfo --list --json {}", service.uri("")));
    assert!(listed.contains("qemu:dirty-bitmap:daily"), "{listed}");
    let dirty = runs(&service, "qemu:dirty-bitmap:daily", 1);
    assert_eq!(dirty, [(20 * MIB, 2 * 65_536), (40 * MIB, 65_536)]);
    // Data are told of in whole chunks where old bytes are kept, which may have been a hole.
    let data = runs(&service, "base:allocation", 0);
    let has_data = |at: u64| {
        data.iter()
            .any(|(start, length)| (*start..start + length).contains(&at))
    };
    assert!(
        [8 * MIB, 9 * MIB - 1, 20 * MIB, 40 * MIB]
            .into_iter()
            .all(has_data),
        "{data:?}"
    );
    assert!(!has_data(30 * MIB) && !has_data(0), "{data:?}");
    let mut expected = vec![0; SIZE];
    expected[8 << 20..9 << 20].fill(1);
    expected[20 << 20..(20 << 20) + 102_400].fill(2);
    expected[40 << 20..(40 << 20) + 65_536].fill(3);
    copies_have(&service, &expected);
    headtime(&service, "ctl checkpoint release all");
    let gone = format!("nbdinfo --size {}", service.uri("all@checkpoint"));
    assert_eq!(service.output(&gone).status.code(), Some(1));
    // What the abandoned checkpoint had is changed still.
    let bitmaps: Value =
        serde_json::from_str(&headtime(&service, "ctl bitmap list --json")).expect("JSON");
    assert_eq!(
        bitmaps[0]["dirty_bytes"],
        (3 + 16 + 1) * 65_536,
        "{bitmaps}"
    );
    service.stop();
}

/// Copies the moment by each tool.
fn copies_have(service: &Service, expected: &[u8]) {
    let uri = service.uri("all@checkpoint");
    for copy in [
        format!("nbdcopy {uri} copy"),
        format!("nbdcopy --connections=4 --allocated {uri} copy"),
        format!("qemu-img convert -f raw -O raw {uri} copy"),
    ] {
        let _ = std::fs::remove_file(service.path("copy"));
        service.prints(&copy);
        let copy_bytes = std::fs::read(service.path("copy")).expect("a copy");
        assert!(copy_bytes == expected, "{copy} has something else");
    }
    service.prints(&format!(
        "qemu-img convert -f raw -O qcow2 {uri} copy.qcow2"
    ));
    let same = "qemu-img compare -f raw -F qcow2 copy copy.qcow2";
    assert_eq!(service.prints(same), "Images are identical.\n");
    service.prints(&format!("nbdinfo --is read-only {uri}"));
}
