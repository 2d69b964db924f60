//! Published traces by the names of their formats, and headers of other tools: small files as they are published, and
//! their exact bytes.

use serde_json::{Value, json};

use crate::scene::Scene;

/// The same three requests in each format, as the canonical one has them.
const CANONICAL: &str = "0.000000,3,R,8192,4096\n0.001000,3,W,16384,8192\n0.002000,4,R,0,4096\n";

const ALIBABA: &str = "\
3,R,8192,4096,1577808000000005
3,W,16384,8192,1577808000001005
4,R,0,4096,1577808000002005
";

/// Seconds, and sectors of 512 bytes.
const TENCENT: &str = "\
1538323200,16,8,0,3
1538323201,32,16,1,3
1538323202,0,8,0,4
";

/// Sectors of 512 bytes, and bytes. It has one device.
const CLOUDPHYSICS: &str = "\
1000000,16,r,4096
1001000,32,w,8192
1002000,0,r,4096
";

/// Seconds, and bytes within blocks of 8 MiB. It has one device.
const BALEEN: &str = "\
block_id io_offset io_size op_time op_name user_namespace user_name rs_shard_id op_count host_name
0 8192 4096 1631059214.25 2 4 7 0 1 12
2 16384 8192 1631059214.251 4 4 7 0 1 12
0 0 4096 1631059214.252 5 4 7 0 1 12
";

/// Units of 100 ns since 1601, and bytes.
const MSR: &str = "\
128166372003061629,usr,3,Read,8192,4096,120
128166372003071629,usr,3,Write,16384,8192,220
128166372003081629,usr,4,Read,0,4096,80
";

#[test]
fn each_published_format_is_read_by_its_name() {
    let second = |text: &str| CANONICAL.replace("0.001", "1.000").replace("0.002", text);
    let alone = CANONICAL.replace(",4,R", ",3,R").replace(",3,", ",0,");
    // Byte 16384 of block 2.
    let baleen = alone.replace(",16384,", &format!(",{},", (2 << 23) + 16_384));
    for (format, file, text, expected) in [
        ("alibaba", "a.csv", ALIBABA, CANONICAL.to_owned()),
        ("tencent", "t.csv", TENCENT, second("2.000")),
        ("cloudphysics", "c.csv", CLOUDPHYSICS, alone.clone()),
        ("baleen", "b.trace", BALEEN, baleen),
        (
            "msr",
            "m.csv",
            MSR,
            CANONICAL
                .replace(",3,", ",usr_3,")
                .replace(",4,", ",usr_4,"),
        ),
    ] {
        let scene = Scene::with(&[(file, text)]);
        let said = scene.prints(&format!("trace stat --format {format} --json {file}"));
        let report: Value = serde_json::from_str(&said).expect("JSON");
        let devices = expected.contains("4,R") as usize + 1;
        for (key, value) in [
            ("format", json!(format)),
            ("requests", json!(3)),
            ("reads", json!(2)),
            ("bytes", json!(16_384)),
            ("read_bytes", json!(8_192)),
            ("footprint_bytes", json!(16_384)),
            ("skipped", json!(0)),
        ] {
            assert_eq!(report[key], value, "{format}, {key}: {said}");
        }
        assert_eq!(
            report["devices"].as_array().map(Vec::len),
            Some(devices),
            "{said}"
        );
        scene.prints(&format!(
            "trace convert --from {format} {file} out.csv --to canonical"
        ));
        let written = std::fs::read_to_string(scene.path("out.csv")).expect("written");
        assert_eq!(written, expected, "{format}");
    }
}

#[test]
fn a_data_frame_of_pandas_is_read_without_its_index() {
    let scene = Scene::with(&[(
        "frame.csv",
        ",time,offset,size\n0,0.5,8192,4096\n1,0.75,16384,8192\n",
    )]);
    scene.prints("trace convert frame.csv out.csv --to canonical");
    let written = std::fs::read_to_string(scene.path("out.csv")).expect("written");
    assert_eq!(written, "0.000000,0,R,8192,4096\n0.250000,0,R,16384,8192\n");
}

#[test]
fn units_of_sizes_and_times_may_be_named() {
    let scene = Scene::with(&[("t.csv", "0,R,8192,8\n1000,W,16384,16\n")]);
    for (flags, bytes, seconds) in [
        ("--size-unit sectors --time-unit us", 12_288, 0.001),
        ("--size-unit kib --time-unit ms", 24_576, 1.0),
        ("--size-unit blocks --block-bytes 4096", 98_304, 1000.0),
    ] {
        let columns = "--columns time,op,offset,size";
        let said = scene.prints(&format!("trace stat t.csv --json {columns} {flags}"));
        let report: Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!(report["bytes"], json!(bytes), "{flags}: {said}");
        assert_eq!(report["span_seconds"], json!(seconds), "{flags}: {said}");
    }
}

/// The lines on standard error of a command that is refused with code 2.
fn refusal(scene: &Scene, arguments: &str) -> String {
    let output = scene.run(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments}: {output:?}");
    assert!(output.stdout.is_empty(), "{arguments}: {output:?}");
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn refusals_suggest_only_what_is_near() {
    let scene = Scene::with(&[]);
    let oltp = "simulate --drive quantum-atlas-10k --workload oltp --policy";
    let said = refusal(&scene, &format!("{oltp} foo"));
    assert!(
        said.contains("no policy is called \"foo\": expected one of fcfs, look"),
        "{said}"
    );
    assert!(!said.contains("did you mean"), "{said}");
    let said = refusal(&scene, &format!("{oltp} c-lok"));
    assert!(said.contains("did you mean \"c-look\"?"), "{said}");

    let said = refusal(&scene, "scan disk --priority -1");
    assert!(said.contains("unexpected argument '-1'"), "{said}");
    assert!(!said.contains("tip"), "{said}");
}

#[test]
fn an_image_that_the_file_system_cannot_hold_is_refused_and_leaves_no_file() {
    let scene = Scene::with(&[]);
    // A limit of the shell stands for that of ext4, which has no files of 20 TB.
    let script = format!(
        "trap '' XFSZ; ulimit -f 1000; exec {} emulate --drive modern-20tb --image big.img --socket s",
        assert_cmd::cargo::cargo_bin!("headtime").display()
    );
    let output = std::process::Command::new("sh")
        .current_dir(scene.path(""))
        .args(["-c", &script])
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("big.img: the file system has no files of 20000588955648 bytes"),
        "{said}"
    );
    assert!(said.contains("such as XFS"), "{said}");
    let left = std::fs::read_dir(scene.path("")).expect("a folder").count();
    assert_eq!(left, 0, "{said}");
}
