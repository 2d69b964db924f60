//! `headtime streams plan` answers what a running service answers: 200 random sets on emulated drives of five models,
//! one of them with two actuators.
//!
//! A service refines its belief from the second second of its drive's time on, and admits by what it has found: times
//! that differ by a few millionths from the profile. Each set has a drive of its own, which nobody has used before, and
//! figures that follow from times may differ by a hundredth: a little time decides about much buffer where rounds are tight.

use std::fmt::Write as _;
use std::process::{Child, Command, Stdio};

use assert_cmd::cargo::cargo_bin;
use headtime_client::{
    Client, Error, FilePiece, Granted, Places, StreamMode, StreamRefused, Terms,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::begun::{SERVES, begin};

/// The sets of issue 23.
const SETS: u64 = 200;

/// The models, with their blocks, bytes of a block, and the rate of their fastest zone in bytes a second.
const MODELS: [(&str, u64, u64, u64); 5] = [
    ("dec-rz26", 2_050_860, 512, 3_500_000),
    ("quantum-atlas-10k", 17_938_986, 512, 26_000_000),
    // An Atlas 10K with two actuators: streams have the blocks of the first one.
    ("dual.toml", 8_969_000, 512, 26_000_000),
    ("seagate-cheetah-15k5", 286_749_488, 512, 125_000_000),
    ("toshiba-x300-5tb", 9_767_541_168, 512, 200_000_000),
];

/// Drives of one service.
const DRIVES_A_SERVICE: u64 = 20;

/// Numbers by chance from a seed (Lehmer's generator).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0 * 48_271 % 0x7FFF_FFFF;
        let high = self.0;
        self.0 = self.0 * 48_271 % 0x7FFF_FFFF;
        (high << 31 | self.0) % limit
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// A number whose every doubling is as likely.
    fn of_any_size(&mut self, low: u64, high: u64) -> u64 {
        let doublings = u64::from((high / low).ilog2());
        let least = low << self.below(doublings.max(1));
        self.between(least, (2 * least).min(high))
    }
}

/// A stream of a set.
struct Asked {
    terms: Terms,
    first: u64,
    blocks: u64,
}

/// The keys of `[drive.streams]`.
fn promise(dice: &mut Dice) -> String {
    let mut text = format!(
        "foreground_percent = {}\nlongest_round_s = {}\nlatency_ms = {}\nstreams = {}\nmemory = \"{} MiB\"\nseek_margin_us = {}\n",
        dice.below(70),
        dice.between(1, 5),
        dice.between(1, 30),
        dice.between(3, 40),
        dice.between(4, 64),
        dice.below(1000),
    );
    if dice.below(3) == 0 {
        let _ = writeln!(text, "stall_ms = {}", dice.below(200));
    }
    text
}

/// Rules of users as `table`: what the service of a test, whose user is known, allows to some names.
fn rules(dice: &mut Dice, table: &str) -> String {
    match dice.below(4) {
        0 => format!(
            "[[{table}.rule]]\nname = \"film\"\nstreams = {}\nhead_percent = {}\n[[{table}.rule]]\nrate = \"{} kB\"\n",
            dice.between(1, 6),
            dice.between(5, 60),
            dice.between(100, 50_000)
        ),
        _ => String::new(),
    }
}

/// Streams on blocks of their own, because two recordings of the same blocks are refused for another reason.
fn set(dice: &mut Dice, (_, blocks, bytes, fastest): (&str, u64, u64, u64)) -> Vec<Asked> {
    let count = dice.between(1, 14);
    let page = 4096 / bytes;
    let share = blocks / count / page * page;
    let modes = [StreamMode::Play, StreamMode::Record, StreamMode::RecordSync];
    let asked = (0..count).map(|number| {
        let length = dice.between(1, share / page) * page;
        let mode = modes[dice.below(3) as usize];
        let name = ["film", "camera"][dice.below(2) as usize];
        Asked {
            terms: Terms {
                name: format!("{name}-{number}"),
                mode,
                memory: (dice.below(3) == 0).then(|| dice.of_any_size(60_000, 16_000_000)),
                ..Terms::play(
                    dice.of_any_size(10_000, fastest / 3),
                    dice.of_any_size(4096, 600_000),
                )
            },
            first: number * share + dice.below((share - length) / page + 1) * page,
            blocks: length,
        }
    });
    asked.collect()
}

/// The set as a file of `headtime streams plan`, with so many thousandths of the rates.
fn file(drive: &str, streams: &str, set: &[Asked], permille: u64) -> String {
    let mut text = format!("drive = \"{drive}\"\n{streams}");
    for Asked {
        terms,
        first,
        blocks,
    } in set
    {
        let (name, mode, end) = (&terms.name, terms.mode.name(), first + blocks);
        let (rate, buffer) = (terms.rate * permille / 1000, terms.buffer);
        let memory = terms.memory.map(|bytes| format!("memory = {bytes}\n"));
        let memory = memory.unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "[[stream]]\nname = \"{name}\"\nmode = \"{mode}\"\nrate = {rate}\nbuffer = {buffer}\n{memory}\
             blocks = \"{first}..{end}\"\n"
        );
    }
    text
}

/// A service with all drives, whose promises to streams are `promises`.
struct Service {
    child: Child,
    folder: TempDir,
}

impl Service {
    fn start(promises: &[(String, String)]) -> Service {
        let folder = tempfile::tempdir().expect("a folder");
        let atlas = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../drives/quantum-atlas-10k.toml"
        );
        let atlas = std::fs::read_to_string(atlas).expect("a profile");
        let dual = atlas.replace("actuators = 1", "actuators = 2");
        std::fs::write(folder.path().join("dual.toml"), dual).expect("a profile");
        let mut text = String::new();
        for (number, ((drive, ..), (keys, rules))) in
            MODELS.iter().cycle().zip(promises).enumerate()
        {
            let _ = write!(
                text,
                "[[drive]]\nname = \"d{number}\"\npolicy = \"sptf-sw60\"\nbelief = \"emulated\"\n\
                 back_end = {{ kind = \"emulated\", drive = \"{drive}\", image = \"d{number}.img\" }}\n\
                 volume = [{{ name = \"v{number}\" }}]\nexport = [{{ name = \"e{number}\", volume = \"v{number}\" }}]\n\
                 [drive.streams]\n{keys}{rules}"
            );
        }
        Service::begin(folder, &text)
    }

    /// A service with these drives.
    fn begin(folder: TempDir, drives: &str) -> Service {
        let text =
            format!("{drives}[[nbd]]\nunix = \"nbd.sock\"\n[control]\nsocket = \"control.sock\"\n");
        std::fs::write(folder.path().join("c.toml"), text).expect("a configuration");
        let words = ["serve", "c.toml"];
        let child = begin(folder.path(), &words, Stdio::inherit(), SERVES).expect("it serves");
        Service { child, folder }
    }

    fn client(&self) -> Client {
        Client::connect(&self.folder.path().join("control.sock")).expect("it listens")
    }

    fn plan(&self, set: &str) -> Value {
        std::fs::write(self.folder.path().join("set.toml"), set).expect("a set");
        let planned = self.plan_with(&["set.toml", "--json"]);
        let said = planned.unwrap_or_else(|(_, problem)| panic!("{problem}{set}"));
        serde_json::from_str(&said).expect("JSON")
    }

    /// What a plan says, or its exit code and its problem.
    fn plan_with(&self, words: &[&str]) -> Result<String, (Option<i32>, String)> {
        let output = Command::new(cargo_bin("headtime"))
            .current_dir(self.folder.path())
            .args(["streams", "plan"])
            .args(words)
            .output()
            .expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        match output.status.code() {
            Some(0 | 3) => Ok(text(output.stdout)),
            code => Err((code, text(output.stderr))),
        }
    }

    /// Attaches the streams in order until one is refused. All end with the connection.
    fn attach(
        &self,
        drive: usize,
        bytes: u64,
        set: &[Asked],
    ) -> (Vec<Granted>, Option<StreamRefused>) {
        let client = self.client();
        let (mut streams, mut granted, mut refused) = (Vec::new(), Vec::new(), None);
        for asked in set {
            let length = asked.blocks * bytes;
            let places = Places {
                length,
                pieces: vec![FilePiece(0, asked.first * bytes, length)],
            };
            match client.attach_places(&format!("e{drive}"), places, &asked.terms) {
                Ok(stream) => {
                    granted.push(stream.granted());
                    streams.push(stream);
                }
                Err(Error::Refused(why)) => {
                    refused = Some(why);
                    break;
                }
                Err(other) => panic!("{other}"),
            }
        }
        drop((streams, client));
        let client = self.client();
        while !client.streams().expect("a list").is_empty() {
            std::thread::yield_now();
        }
        (granted, refused)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_plan_grants_what_a_running_service_grants() {
    let (mut dice, mut fitting, mut at_the_border) = (Dice(23), 0, 0);
    for _ in 0..SETS / DRIVES_A_SERVICE {
        let promises: Vec<(String, String)> = (0..DRIVES_A_SERVICE)
            .map(|_| (promise(&mut dice), rules(&mut dice, "drive.streams")))
            .collect();
        let sets: Vec<Vec<Asked>> = MODELS
            .iter()
            .cycle()
            .take(promises.len())
            .map(|model| set(&mut dice, *model))
            .collect();
        let service = Service::start(&promises);
        let answers: Vec<_> = sets
            .iter()
            .zip(MODELS.iter().cycle())
            .enumerate()
            .map(|(place, (set, (_, _, bytes, _)))| service.attach(place, *bytes, set))
            .collect();
        for (place, (granted, refused)) in answers.iter().enumerate() {
            let (drive, ..) = MODELS[place % MODELS.len()];
            let (keys, rules) = &promises[place];
            let table = rules.replace("drive.streams", "streams");
            let streams = format!("[streams]\n{keys}{table}");
            let text = file(drive, &streams, &sets[place], 1000);
            let plan = service.plan(&text);
            fitting += usize::from(refused.is_none());
            if granted_by(&plan) == granted.len() {
                compare(&plan, granted, refused.as_ref(), &text);
                continue;
            }
            // The set is at the border: with rates that are a thousandth lower or higher, the plan has both answers.
            let near = [999, 1001].map(|permille| file(drive, &streams, &sets[place], permille));
            let [lower, higher] = near.map(|text| granted_by(&service.plan(&text)));
            assert!(
                (higher..=lower).contains(&granted.len()),
                "{plan:#}\n{text}"
            );
            at_the_border += 1;
        }
    }
    assert!(at_the_border <= 4, "{at_the_border} of {SETS} sets");
    // Both answers occur often, or the sets would show little.
    assert!((30..170).contains(&fitting), "{fitting} of {SETS} sets fit");
}

/// A service of two drives at a time scale of 4, the first of which promises something to streams.
fn stretched() -> Service {
    let drive = |name: &str, more: &str| {
        format!(
            "[[drive]]\nname = \"{name}\"\npolicy = \"sptf-sw60\"\nbelief = \"emulated\"\n\
             back_end = {{ kind = \"emulated\", drive = \"quantum-atlas-10k\", image = \"{name}.img\", time_scale = 4 }}\n\
             volume = [{{ name = \"v{name}\" }}]\nexport = [{{ name = \"e{name}\", volume = \"v{name}\" }}]\n{more}"
        )
    };
    let promise = "[drive.streams]\nforeground_percent = 40\nmemory = \"24 MiB\"\nlatency_ms = 5\n";
    let folder = tempfile::tempdir().expect("a folder");
    let drives = drive("0", promise) + &drive("1", "");
    Service::begin(folder, &drives)
}

/// 26 MB/s of the drive at most are 6.5 in a second of the clients.
const RATE: u64 = 100_000;

const BUFFER: u64 = 128 * 1024;

/// A file anywhere on the drive.
const ATLAS_BLOCKS: u64 = MODELS[1].1 / 8 * 8;

/// A stretched second of the drive has more bytes of each client, and the service's memory and promises count.
#[test]
fn a_plan_has_drive_time_scale_and_promises_from_the_configuration_of_a_service() {
    let service = stretched();
    let stream = format!("1x{RATE},buffer={BUFFER}");
    let words = ["--play", &stream].repeat(6);
    let words = [&["--service", "c.toml", "--json"][..], &words].concat();
    let plan: Value =
        serde_json::from_str(&service.plan_with(&words).expect("a plan")).expect("JSON");
    let asked = (0..6).map(|number| Asked {
        terms: Terms {
            name: format!("player-{number}"),
            ..Terms::play(RATE, BUFFER)
        },
        first: 0,
        blocks: ATLAS_BLOCKS,
    });
    let (granted, refused) = service.attach(0, 512, &asked.collect::<Vec<_>>());
    assert!((1..6).contains(&granted.len()), "{refused:?}");
    assert_eq!(granted_by(&plan), granted.len(), "{plan:#}");
    compare(&plan, &granted, refused.as_ref(), "");
    for (words, problem) in [
        (
            ["--drive", "1"],
            "c.toml: drive 1: promises nothing to streams: expected a table [drive.streams]",
        ),
        (["--drive", "2"], "c.toml: no drive 2: expected one of 0, 1"),
    ] {
        let words = [&["--service", "c.toml", "--play", "1x1M"][..], &words].concat();
        let (code, said) = service.plan_with(&words).expect_err("refused");
        assert!(code == Some(2) && said.contains(problem), "{said}");
    }
}

#[test]
fn the_status_has_the_head_time_of_streams_and_what_is_left_for_more() {
    let service = stretched();
    let stream = format!("1x{RATE},buffer={BUFFER}");
    let one = ["--service", "c.toml", "--json", "--play", &stream];
    let plan: Value =
        serde_json::from_str(&service.plan_with(&one).expect("a plan")).expect("JSON");
    let client = service.client();
    let length = ATLAS_BLOCKS * 512;
    let places = Places {
        length,
        pieces: vec![FilePiece(0, 0, length)],
    };
    let open = client.attach_places("e0", places, &Terms::play(RATE, BUFFER));
    let open = open.expect("it is granted");
    let status = Command::new(cargo_bin("headtime"))
        .current_dir(service.folder.path())
        .args(["ctl", "status", "--json", "--socket", "control.sock"])
        .output()
        .expect("it runs");
    let status: Value = serde_json::from_slice(&status.stdout).expect("JSON");
    let [head, left] = ["head_ppm", "left_ppm"].map(|key| {
        status["drives"][0]["streams"][key]
            .as_u64()
            .expect("a share")
    });
    let planned = plan["head_percent"]
        .as_f64()
        .map(|percent| (percent * 1e4) as u64);
    assert!(is_near(planned, Some(head)), "{status:#}");
    assert_eq!(left, 1_000_000 - 400_000 - head);
    drop(open);
}

/// The number of streams that a plan grants before the first refusal.
fn granted_by(plan: &Value) -> usize {
    let groups = plan["groups"].as_array().expect("groups");
    let counts = groups
        .iter()
        .map(|group| group["granted"].as_u64().expect("a count"));
    counts.sum::<u64>() as usize
}

/// Whether two figures are equal but for a hundredth.
fn is_near(planned: Option<u64>, served: Option<u64>) -> bool {
    match (planned, served) {
        (Some(planned), Some(served)) => planned.abs_diff(served) <= served / 100 + 1,
        (planned, served) => planned == served,
    }
}

/// The words of a reason without their numbers.
fn words(reason: &str) -> String {
    reason
        .chars()
        .filter(|letter| !letter.is_ascii_digit() && *letter != '.')
        .collect()
}

/// Compares memory, the last batch, and the refusal's reason and offers. The counts are equal.
fn compare(plan: &Value, granted: &[Granted], refused: Option<&StreamRefused>, set: &str) {
    let groups = plan["groups"].as_array().expect("groups");
    let said = refused.map(ToString::to_string).unwrap_or_default();
    let context = || format!("the service: {said}\nthe plan: {plan:#}\n{set}");
    for (group, granted) in groups.iter().zip(granted) {
        let memory = group["memory"].as_u64();
        assert!(is_near(memory, Some(granted.memory)), "{}", context());
    }
    match (&plan["refusal"], refused) {
        (Value::Null, None) => {
            let last = granted.last().expect("a stream");
            let batch = groups.last().expect("a group")["batch"].as_u64();
            assert!(is_near(batch, Some(last.batch)), "{}", context());
            let round_us = plan["round_ms"]
                .as_f64()
                .map(|millis| (millis * 1e3) as u64);
            assert!(is_near(round_us, Some(last.round_us)), "{}", context());
        }
        (refusal, Some(refused)) => {
            let reason = words(refusal["reason"].as_str().expect("a reason"));
            assert!(words(&refused.reason).starts_with(&reason), "{}", context());
            let [rate, memory] = ["largest_rate", "least_memory"].map(|key| refusal[key].as_u64());
            assert!(is_near(rate, refused.largest_rate), "{}", context());
            assert!(is_near(memory, refused.least_memory), "{}", context());
        }
        (_, None) => panic!("only the plan refuses: {}", context()),
    }
}
