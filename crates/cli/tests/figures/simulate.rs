//! `headtime simulate` and `headtime demo --simulated` as a whole binary: the same seed gives the same bytes,
//! and what is wrong is said in one line, with exit code 2.

use std::path::PathBuf;
use std::process::Output;

use assert_cmd::Command;
use tempfile::TempDir;

/// A directory with files in it, and the binary run in it.
struct Scene {
    directory: TempDir,
}

impl Scene {
    fn with(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        for (name, text) in files {
            std::fs::write(directory.path().join(name), text).expect("written");
        }
        Scene { directory }
    }

    fn run(&self, arguments: &str) -> Output {
        Command::new(assert_cmd::cargo::cargo_bin!("headtime"))
            .current_dir(self.directory.path())
            .env_remove("HEADTIME_SHARED")
            .args(arguments.split_whitespace())
            .output()
            .expect("it ran")
    }

    /// What it prints on standard output when it succeeds.
    fn prints(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    fn json(&self, arguments: &str) -> serde_json::Value {
        serde_json::from_str(&self.prints(&format!("{arguments} --json"))).expect("JSON")
    }

    /// The one line that it says on standard error when it refuses, with exit code 2.
    fn refuses(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(output.stdout.is_empty(), "nothing on standard output");
        assert_eq!(said.lines().count(), 1, "one line: {said}");
        let said = said.trim_end().strip_prefix("error: ").expect("an error");
        said.into()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a text")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

const ON_CHEETAH: &str = "simulate --drive seagate-cheetah-9lp";

/// The drive has 17,783,240 blocks, about 9.1 GB: the second request is past its end.
const TOO_FAR: &str = "0,0,R,0,4096\n0.01,0,R,9105018880,4096\n0.02,0,W,512,100\n";

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let scene = Scene::with(&[]);
    let load = format!("{ON_CHEETAH} --workload oltp --policy fcfs,sptf --requests 2000");
    for form in ["", "--json"] {
        let run = |seed| scene.prints(&format!("{load} --seed {seed} {form}"));
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }
}

#[test]
fn json_says_what_was_run_and_how() {
    let scene = Scene::with(&[]);
    let load = "--workload oltp --tasks 20 --think-ms 0 --seed 3 --requests 3000";
    let json = scene.json(&format!(
        "{ON_CHEETAH} {load} --policy fcfs --policy c-look,sptf"
    ));
    assert_eq!(json["mode"], "in-firmware");
    assert_eq!(json["drive"]["name"], "seagate-cheetah-9lp");
    assert_eq!(json["load"]["source"], "workload");
    assert_eq!(json["load"]["arrivals"]["tasks"], 20);
    assert_eq!(json["seed"], 3);
    assert_eq!(json["phases"], "mixed");
    let results = json["results"].as_array().expect("results");
    let policies: Vec<_> = results.iter().map(|r| r["policy"].as_str()).collect();
    assert_eq!(policies, [Some("fcfs"), Some("c-look"), Some("sptf")]);
    for result in results {
        assert_eq!(result["all"]["requests"], 3000);
        let head = &result["head"];
        let shares =
            ["seek", "rotation", "transfer", "other", "idle"].map(|part| head[part].as_f64());
        let sum: f64 = shares.into_iter().flatten().sum();
        assert!((sum - 1.0).abs() < 1e-5, "{head}");
    }
    let rate = |at: usize| results[at]["requests_per_second"].as_f64().expect("a rate");
    assert!(
        rate(2) > 1.2 * rate(0),
        "sptf serves a backlog faster than fcfs"
    );
}

#[test]
fn turns_of_reads_and_writes_are_stated() {
    let scene = Scene::with(&[]);
    let load = format!("{ON_CHEETAH} --workload random --requests 500 --phases alternate");
    let report = scene.prints(&load);
    assert!(
        report.contains("phases  reads for 2000 ms, writes for 30 ms"),
        "{report}"
    );
    assert_eq!(scene.json(&load)["phases"], "alternate");
}

#[test]
fn the_report_has_a_table_a_bar_and_a_histogram() {
    let scene = Scene::with(&[]);
    let report = scene.prints(&format!("{ON_CHEETAH} --workload random --requests 2000"));
    for part in [
        "random on seagate-cheetah-9lp",
        "belief = truth (in-firmware)",
        "p99.9",
        "writes  sptf",
        "█ seek",
        "response times",
        "╵0.00",
    ] {
        assert!(report.contains(part), "{part} is not in\n{report}");
    }
    assert!(!report.contains("external"));
}

#[test]
fn every_request_s_account_and_the_plot_are_written() {
    let scene = Scene::with(&[]);
    let load = format!("{ON_CHEETAH} --workload zipf --requests 500");
    let plain = scene.prints(&load);
    let with_files = format!("{load} --requests-out all.csv --svg plots/all.svg");
    assert_eq!(scene.prints(&with_files), plain);
    let lines = scene.read("all.csv");
    assert_eq!(lines.lines().count(), 501);
    assert!(lines.starts_with("request,direction,lbn,blocks,arrived_ns,"));
    assert!(scene.read("plots/all.svg").trim_end().ends_with("</svg>"));
    scene.prints(&format!("{load} --requests-out all.jsonl"));
    assert!(scene.read("all.jsonl").starts_with("{\"request\":"));
    scene.prints(&format!("{load} --trace-events run.json"));
    let events: serde_json::Value = serde_json::from_str(&scene.read("run.json")).expect("JSON");
    assert!(events["traceEvents"].as_array().map(Vec::len) > Some(1500));
    let said = scene.refuses(&format!("{load} --policy fcfs,sptf --requests-out all.csv"));
    assert_eq!(said, "--requests-out writes one file: expected one policy");
}

#[test]
fn results_are_tables_with_the_same_bytes_each_time() {
    let scene = Scene::with(&[]);
    let load = format!("{ON_CHEETAH} --workload zipf --requests 300");
    for ending in ["parquet", "arrow"] {
        let files = |number: u8| {
            let (runs, all) = (
                format!("runs{number}.{ending}"),
                format!("all{number}.{ending}"),
            );
            scene.prints(&format!("{load} --out {runs} --requests-out {all}"));
            [runs, all].map(|name| std::fs::read(scene.path(&name)).expect("a file"))
        };
        let [runs, all] = files(0);
        assert_eq!([runs.clone(), all.clone()], files(1));
        let magic = match ending {
            "arrow" => "ARROW1",
            _ => "PAR1",
        };
        assert!(runs.starts_with(magic.as_bytes()));
        assert!(all.len() > 300);
    }
    let said = scene.refuses(&format!("{load} --out runs.csv"));
    assert_eq!(
        said,
        "--out runs.csv: expected a name that ends in .parquet or .arrow"
    );
    for command in [
        format!("{ON_CHEETAH} --trace all0.parquet"),
        "cache --trace all0.parquet".into(),
    ] {
        let said = scene.refuses(&command);
        assert!(
            said.contains("a Parquet file") && said.contains("canonical"),
            "{said}"
        );
    }
    let said = scene.refuses("cache --trace all0.parquet --format oracle-general");
    assert!(said.contains("a Parquet file"), "{said}");
}

#[test]
fn unknown_names_are_answered_with_near_ones() {
    let scene = Scene::with(&[]);
    assert_eq!(
        scene.refuses("simulate --drive seagate-chetah-9lp --workload oltp"),
        "no drive is called \"seagate-chetah-9lp\": did you mean \"seagate-cheetah-9lp\"?"
    );
    assert_eq!(
        scene.refuses(&format!("{ON_CHEETAH} --workload oltp --policy fcfs,c-lok")),
        "no policy is called \"c-lok\": expected one of fcfs, look, c-look, sstf, sptf, \
         sptf-sw[N], aged-sptf[N], deadline, anticipatory[N], cfq-like[N], drive; \
         did you mean \"c-look\"?"
    );
    assert_eq!(
        scene.refuses(&format!("{ON_CHEETAH} --workload olpt")),
        "no built-in load is called \"olpt\": expected one of oltp, random, uniform-4k, zipf, \
         sequential, streams, mixed, modern, small-files, random-256k, local-small, \
         urgent-beside-bulk; did you mean \"oltp\"?"
    );
    let said = scene.refuses(&format!("{ON_CHEETAH} --trace nowhere.csv"));
    assert!(said.starts_with("nowhere.csv"), "{said}");
}

#[test]
fn a_mixture_s_parts_have_figures_of_their_own() {
    let scene = Scene::with(&[]);
    let load = "simulate --drive modern-20tb --workload urgent-beside-bulk --seconds 20";
    let json = scene.json(&format!("{load} --policy fcfs,sptf"));
    assert_eq!(json["load"]["source"], "mixture");
    assert_eq!(json["load"]["parts"][0]["class"], "foreground");
    for result in json["results"].as_array().expect("two policies") {
        let parts = result["parts"].as_array().expect("two parts");
        let names: Vec<&serde_json::Value> = parts.iter().map(|part| &part["name"]).collect();
        assert_eq!(names, ["urgent", "bulk"]);
        let number = |part: usize, key: &str| parts[part][key].as_u64().expect("a count");
        assert_eq!(number(0, "requests"), 200, "ten a second");
        assert_eq!(number(1, "bytes"), number(1, "requests") << 20);
        // The urgent ones pass all of the bulk that is not at the drive yet.
        let mean = |part: usize| parts[part]["response"]["mean_ms"].as_f64().expect("a time");
        assert!(mean(0) * 1.5 < mean(1), "{result}");
    }
    let text = scene.prints(load);
    for said in [
        "urgent: 10 a second, evenly",
        "; foreground\n",
        "  bulk    sptf",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let said = scene.refuses(&format!("{load} --tasks 3"));
    assert!(
        said.contains("--tasks: urgent-beside-bulk has several parts"),
        "{said}"
    );
}

#[test]
fn a_broken_load_file_is_refused_with_its_line() {
    let broken = "name = \"mine\"\n[arrivals]\nmodel = \"closed\"\ntasks = 4\nthink = 30\n";
    let scene = Scene::with(&[("mine.toml", broken)]);
    assert_eq!(
        scene.refuses(&format!("{ON_CHEETAH} --workload mine.toml")),
        "mine.toml:5: arrivals.think: 30: expected \"constant\" or \"exponential\""
    );
    assert_eq!(
        scene.refuses(&format!("{ON_CHEETAH} --workload oltp --size-kib 0.3")),
        "command line: --size-kib: 0.3 KiB: expected a whole number of bytes, at least 1, \
         at most 1073741824 KiB"
    );
    let said = scene.refuses(&format!("{ON_CHEETAH} --workload oltp --depth 1000"));
    assert!(
        said.starts_with("--depth 1000: expected at most "),
        "{said}"
    );
}

#[test]
fn a_mirror_of_two_such_drives_reads_faster_and_says_so() {
    let scene = Scene::with(&[]);
    let load = "--workload uniform-4k --tasks 16 --requests 2000";
    let of = |flag: &str| scene.json(&format!("{ON_CHEETAH} {load}{flag}"));
    let [one, nearest, in_turn] = ["", " --mirror", " --mirror=round-robin"].map(of);
    let a_second = |json: &serde_json::Value| json["results"][0]["requests_per_second"].as_f64();
    assert_eq!(one["mirror"], serde_json::Value::Null);
    assert_eq!(nearest["mirror"], "nearest");
    assert_eq!(in_turn["mirror"], "round-robin");
    assert!(a_second(&nearest) > a_second(&in_turn));
    assert!(a_second(&in_turn) > a_second(&one));
    let text = scene.prints(&format!("{ON_CHEETAH} {load} --mirror"));
    let said = "mirror  of two such drives, reads from the drive whose head is nearer";
    assert!(text.contains(said), "{text}");
    assert_eq!(
        scene.refuses("simulate --drive modern-18tb-dual --workload oltp --mirror"),
        "--mirror: modern-18tb-dual has 2 actuators: expected a drive of one"
    );
}

#[test]
fn a_load_file_is_run() {
    let mine = "name = \"mine\"\n[arrivals]\nmodel = \"open\"\nper_second = 20\n\
                [size]\nkind = \"fixed\"\nkib = 4\n[placement]\nkind = \"uniform\"\n";
    let scene = Scene::with(&[("mine.toml", mine)]);
    let json = scene.json(&format!("{ON_CHEETAH} --workload ./mine.toml --seconds 50"));
    // Every 50 ms from the first on, the one at 50 s included or not.
    let requests = json["results"][0]["all"]["requests"].as_u64();
    assert!(matches!(requests, Some(999..=1000)), "{requests:?}");
}

#[test]
fn a_trace_past_the_end_is_refused_fitted_or_skipped() {
    let scene = Scene::with(&[("far.csv", TOO_FAR)]);
    let replay = format!("{ON_CHEETAH} --trace far.csv");
    assert_eq!(
        scene.refuses(&replay),
        "far.csv:2: blocks 17783240..17783248 end past the last block of the drive, which has \
         17783240 blocks; --fit wrap or --fit scale bring such requests onto the drive, \
         --skip-bad leaves them out"
    );
    let first = |flags: &str| scene.json(&format!("{replay} {flags}"))["results"][0].clone();
    let skipped = first("--skip-bad");
    assert_eq!(
        (&skipped["skipped"], &skipped["all"]["requests"]),
        (&1.into(), &2.into())
    );
    for (flags, moved) in [("--fit wrap", 1), ("--fit scale", 2)] {
        let fitted = first(flags);
        assert_eq!(fitted["all"]["requests"], 3, "{flags}");
        assert_eq!(fitted["trace"]["moved"], moved, "{flags}");
        assert_eq!(fitted["trace"]["rounded"], 1, "{flags}");
    }
    let closed = first("--fit wrap --closed=2");
    assert_eq!(closed["all"]["requests"], 3);
}

#[test]
fn a_bad_line_is_refused_or_counted() {
    let scene = Scene::with(&[(
        "bad.csv",
        "0,0,R,0,4096\n1,0,R,0,4096\nzero,0,R,0,512\n2,0,R,0,512\n",
    )]);
    let replay = format!("{ON_CHEETAH} --trace bad.csv");
    let said = scene.refuses(&replay);
    assert!(said.starts_with("bad.csv:3: "), "{said}");
    let json = scene.json(&format!("{replay} --skip-bad"));
    assert_eq!(json["results"][0]["trace"]["bad_lines"], 1);
    assert_eq!(json["results"][0]["all"]["requests"], 3);
}

#[test]
fn flags_that_mean_nothing_together_are_refused() {
    let scene = Scene::with(&[("far.csv", TOO_FAR)]);
    for flags in [
        "",
        "--workload oltp --trace far.csv",
        "--workload oltp --fit wrap",
        "--trace far.csv --tasks 3",
        "--trace far.csv --closed=0",
        "--workload oltp --requests 0",
    ] {
        let output = scene.run(&format!("{ON_CHEETAH} {flags}"));
        assert_eq!(output.status.code(), Some(2), "{flags}");
    }
    let said = scene.refuses(&format!("{ON_CHEETAH} --workload oltp --seconds nan"));
    assert!(said.starts_with("--seconds NaN: expected"), "{said}");
    let said = scene.refuses(&format!("{ON_CHEETAH} --trace far.csv --scale-time -1"));
    assert!(said.starts_with("--scale-time -1: expected"), "{said}");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let scene = Scene::with(&[]);
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("headtime"))
        .current_dir(scene.directory.path())
        .args([
            "simulate",
            "--drive",
            "seagate-cheetah-9lp",
            "--workload",
            "oltp",
        ])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("it runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ended");
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn the_simulated_demo_runs_from_a_bare_clone_and_says_what_it_skipped() {
    let scene = Scene::with(&[]);
    let report = scene.prints("demo --simulated");
    assert!(report.contains("The part with a real trace was skipped: there is no"));
    assert!(report.contains("oltp on seagate-cheetah-9lp"));
    assert!(
        report.contains("in the background of sptf-sw60"),
        "{report}"
    );
    assert!(report.contains("blocks read (5.0 %)"), "{report}");
    assert!(scene.read("out/demo.svg").contains("sptf"));
}

#[test]
fn the_simulated_demo_replays_a_real_trace_where_there_is_one() {
    let shared = match std::env::var_os("HEADTIME_SHARED") {
        Some(shared) => PathBuf::from(shared),
        None => PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
    };
    if !shared.join("traces").is_dir() {
        assert_ne!(
            std::env::var("CI").as_deref(),
            Ok("true"),
            "CI has {shared:?}"
        );
        println!("skipped: the demo with a real trace (no shared data)");
        return;
    }
    let scene = Scene::with(&[]);
    let output = Command::new(assert_cmd::cargo::cargo_bin!("headtime"))
        .current_dir(scene.directory.path())
        .env("HEADTIME_SHARED", shared)
        .args(["demo", "--simulated"])
        .output()
        .expect("it ran");
    let report = String::from_utf8(output.stdout).expect("text");
    assert!(report.contains("websearch1_first24783.csv.zst on seagate-cheetah-15k5"));
    assert!(report.contains("8,340"), "{report}");
}
