//! Loads by `fio`, clients that come and go, and clients that are killed.

use std::process::{Child, Stdio};

use super::served::{Served, has, succeeds};
use super::wire::Wire;

/// Random writes of random lengths on four connections, each with its own 8 MiB, and what they
/// wrote is read and compared.
const VERIFY: &str = "fio --name=verify --ioengine=nbd --uri=URI --rw=randrw --bsrange=512-64k \
     --iodepth=32 --numjobs=4 --size=8M --offset_increment=8M --verify=crc32c --verify_fatal=1 \
     --do_verify=1 --randseed=7 --fsync=64 --group_reporting --output-format=json";

#[test]
fn fio_reads_what_it_wrote_on_four_connections_at_depth_32() {
    if !has("fio") {
        return;
    }
    let served = Served::start();
    let printed = served.prints(VERIFY);
    let report: serde_json::Value =
        serde_json::from_str(&printed[printed.find('{').expect("JSON")..]).expect("JSON");
    let job = &report["jobs"][0];
    assert_eq!(job["error"], 0, "{printed}");
    assert!(job["write"]["total_ios"].as_u64() > Some(500), "{printed}");
    assert!(job["read"]["total_ios"].as_u64() > Some(500), "{printed}");
    served.stop();
}

#[test]
fn others_go_on_when_a_client_is_killed_in_mid_load() {
    if !has("fio") {
        return;
    }
    let served = Served::start();
    let verifying = background(&served, VERIFY);
    let mut watching = Wire::agree(&served.socket());
    for round in 0..3u64 {
        // Beyond what the others have.
        let offset = (32 + 8 * round) << 20;
        let mut victim = background(
            &served,
            &format!(
                "fio --name=victim --ioengine=nbd --uri=URI --rw=randwrite --bs=4k --iodepth=32 \
                 --offset={offset} --size=1M --time_based --runtime=3600 --thread"
            ),
        );
        // Under load once its writes arrive.
        while watching.read(offset, 1 << 20).iter().all(|&byte| byte == 0) {
            assert!(victim.try_wait().expect("a child").is_none(), "it works");
        }
        victim.kill().expect("a child");
        victim.wait().expect("a child");
    }
    let output = verifying.wait_with_output().expect("a child");
    succeeds("fio", &output);
    served.stop();
}

fn background(served: &Served, words: &str) -> Child {
    let mut command = served.command(words);
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    piped.spawn().expect("it runs")
}

#[test]
fn a_hundred_clients_come_and_go() {
    let served = Served::start();
    let mut staying = Wire::agree(&served.socket());
    for round in 0..100u8 {
        let mut client = Wire::agree(&served.socket());
        client.write(0, &[round; 512]);
        if round % 2 == 0 {
            // In the middle of an answer.
            client.ask(super::wire::READ, 0, 4 << 20);
        }
        drop(client);
        assert_eq!(staying.read(0, 512), [round; 512]);
    }
    if has("nbdinfo") {
        for _ in 0..10 {
            served.prints("nbdinfo --size URI");
        }
    }
    served.stop();
}

#[test]
fn urgent_reads_beside_bulk_are_told_with_and_without_preemption() {
    if !has("fio") {
        return;
    }
    let words = "bench preemption --only-ours --drive dec-rz26 --time-scale 0.05 --seconds 20 \
                 --rate 10 --json";
    let output = assert_cmd::Command::new(assert_cmd::cargo::cargo_bin!("headtime"))
        .args(words.split_whitespace())
        .output()
        .expect("it runs");
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{problem}");
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let measured = told[0]["measured"].as_array().expect("a list");
    let names: Vec<_> = measured.iter().map(|one| one["name"].as_str()).collect();
    let expected = [Some("headtime sptf, preemption"), Some("headtime sptf")];
    assert_eq!(names, expected);
    for one in measured {
        // How fast is a benchmark's business; here, that something was measured.
        let number = |key: &str| one[key].as_f64().expect(key);
        assert_eq!(number("due"), 200.0);
        assert!(number("requests") > 0.0 && number("bulk_mb_per_s") > 0.0);
        let order = ["p50_ms", "p99_ms", "p999_ms", "max_ms"].map(number);
        assert!(order.is_sorted() && order[0] > 0.0, "{one}");
    }
    let wrong = words.replace("0.05", "0");
    let output = assert_cmd::Command::new(assert_cmd::cargo::cargo_bin!("headtime"))
        .args(wrong.split_whitespace())
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(problem.contains("expected 0.001 to 1000"), "{problem}");
}
