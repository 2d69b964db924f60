//! Output on terminals of other widths as a whole binary: no line is longer than the terminal, and no figure is lost.

use std::process::Command;

use crate::scene::Scene;

/// What the program prints on a terminal of so many columns, made by script of bsdutils.
fn on_terminal(scene: &Scene, columns: usize, arguments: &str) -> String {
    let program = assert_cmd::cargo::cargo_bin!("headtime");
    let command = format!(
        "stty cols {columns}; {} --quiet {arguments}",
        program.display()
    );
    let output = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .current_dir(scene.path("."))
        .env_remove("HEADTIME_SHARED")
        .output()
        .expect("script of bsdutils");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{arguments}: {text}");
    text.replace('\r', "")
}

/// Three policies, a scan, an experiment and a trace.
const COMMANDS: [&str; 5] = [
    "simulate --drive quantum-atlas-10k --workload oltp --policy fcfs,c-look,sptf-sw60 --requests 500 --why 1",
    "simulate --drive quantum-atlas-10k --workload oltp --policy sptf --scan --seek-noise-us 60 --requests 500",
    "experiment try.toml",
    "trace stat load.csv",
    "simulate --trace load.csv --cache 64MiB,arc,linux-6 --cache 256MiB,lru,ra,pfc",
];

/// Five columns of two seeds each.
const EXPERIMENT: &str = "name = \"try\"\nsummary = \"throughput over the clients\"\n\
                          drive = \"quantum-atlas-10k\"\nworkload = \"oltp\"\nrequests = 100\nrepeat = 2\n[sweep]\n\
                          tasks = [4, 8]\npolicy = [\"fcfs\", \"look\", \"c-look\", \"sstf\", \"sptf\"]\n[figure]\n\
                          x = \"tasks\"\ny = [\"requests_per_second\", \"mean_ms\"]\n";

fn scene() -> Scene {
    let trace = "time_ms,op,offset,size\n0,R,0,4096\n5,W,8192,65536\n25,R,4096000,4096\n";
    Scene::with(&[("try.toml", EXPERIMENT), ("load.csv", trace)])
}

#[test]
fn no_line_is_longer_than_the_terminal_and_no_word_is_lost() {
    let scene = scene();
    for command in COMMANDS {
        let plain = scene.prints(command);
        for columns in [60, 80, 160] {
            let fitted = on_terminal(&scene, columns, command);
            for line in fitted.lines() {
                let length = line.chars().count();
                assert!(
                    length <= columns,
                    "{command}: {length} of {columns}: {line}\n{fitted}"
                );
            }
            // Every number of the plain output is there; the axis of a histogram may have others.
            for word in plain
                .lines()
                .filter(|line| !line.contains('╵'))
                .flat_map(str::split_whitespace)
            {
                let is_drawn = word
                    .chars()
                    .any(|letter| ('▁'..='▓').contains(&letter) || letter == '·');
                assert!(
                    is_drawn || fitted.contains(word),
                    "{command}: {word} is not in\n{fitted}"
                );
            }
        }
    }
}

#[test]
fn a_narrow_terminal_has_tables_below_each_other_and_a_wide_one_a_wider_histogram() {
    let scene = scene();
    let command = COMMANDS[0];
    let titles = |text: &str| {
        let lines = text
            .lines()
            .filter(|line| line.contains("p50") || line.contains("p99.9"));
        lines.count()
    };
    assert_eq!(titles(&scene.prints(command)), 1);
    assert_eq!(titles(&on_terminal(&scene, 160, command)), 1);
    assert_eq!(titles(&on_terminal(&scene, 60, command)), 2);
    let axis = |text: &str| {
        let line = text
            .lines()
            .find(|line| line.contains('╵'))
            .expect("an axis");
        line.chars().count()
    };
    let plain = axis(&scene.prints(command));
    assert!(axis(&on_terminal(&scene, 60, command)) < plain);
    assert!(axis(&on_terminal(&scene, 160, command)) > plain);
}
