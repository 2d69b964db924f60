//! The runs of an experiment, all checked before the first one starts.

use std::sync::Arc;

use document::DocumentError;
use drive::Profile;
use scheduler::freeblock::SameTrackRule;
use scheduler::ordering::Phases;
use simulator::replay::AddressFit;

use super::measure::MEASURES;
use super::{Experiment, ExperimentSetting, SETTINGS, Value};
use crate::comparison::host_delays::HostDelays;
use crate::comparison::truth::{OnOff, TruthSettings, held_ahead, late_seeks, own_scan};
use crate::comparison::{ComparisonSettings, ComparisonSetup};
use crate::{Failure, Label, named, system};

/// All runs of an experiment.
pub struct ExperimentPlan {
    /// The experiment.
    pub experiment: Experiment,
    /// The combinations: a value for each axis.
    pub points: Vec<Vec<Value>>,
    /// The label of each combination.
    pub modes: Vec<Label>,
    /// The runs: for each combination as many as there are seeds.
    pub runs: Vec<ExperimentRun>,
    /// The shown measures, as indices of [`MEASURES`].
    pub shown: Vec<usize>,
}

/// One run.
pub struct ExperimentRun {
    /// The index of the combination.
    pub point: usize,
    /// The seed.
    pub seed: u64,
    /// The setup.
    pub setup: ComparisonSetup,
}

impl ExperimentPlan {
    /// Plans the runs of an experiment.
    ///
    /// # Errors
    /// If a setting has an unknown name or an invalid value, with its line.
    pub fn new(experiment: Experiment) -> Result<ExperimentPlan, Failure> {
        let shown = shown(&experiment)?;
        let points = experiment.points();
        let (mut modes, mut runs) = (Vec::new(), Vec::new());
        let mut drives = Drives::default();
        for (place, point) in points.iter().enumerate() {
            let mut settings = settings(&experiment, point)?;
            let mut first = setup(&experiment, &settings)?;
            drives.share(&settings, &mut first);
            modes.push(first.truth.mode());
            let seed = settings.load.seed_of(&first.source);
            for further in 0..experiment.repeat {
                let seed = seed.wrapping_add(further.into());
                let mut setup = match further {
                    0 => first.clone(),
                    _ => {
                        settings.load.seed = Some(seed);
                        setup(&experiment, &settings)?
                    }
                };
                setup.drive = Arc::clone(&first.drive);
                runs.push(ExperimentRun {
                    point: place,
                    seed,
                    setup,
                });
            }
        }
        Ok(ExperimentPlan {
            experiment,
            points,
            modes,
            runs,
            shown,
        })
    }

    /// The failure of a run, with the line or the combination that it concerns.
    pub fn complain(&self, run: &ExperimentRun, failure: Failure) -> Failure {
        let axes = self.experiment.axes.iter();
        let values = axes.zip(&self.points[run.point]);
        let said: Vec<String> = values
            .map(|(axis, value)| format!("{} {value}", axis.setting.name))
            .collect();
        match failure {
            Failure::Input(problem) => {
                let problem = format!("at {}: {problem}", said.join(", "));
                Failure::input(self.experiment.complain("sweep", problem))
            }
            other => other,
        }
    }
}

/// The drives of all runs, each in memory once.
#[derive(Default)]
struct Drives(Vec<(String, TruthSettings, Arc<Profile>)>);

impl Drives {
    /// Replaces a setup's drive by an equal one of an earlier setup.
    fn share(&mut self, settings: &ComparisonSettings, setup: &mut ComparisonSetup) {
        if settings.system.is_some() {
            return;
        }
        let (name, truth) = (&settings.drive, settings.truth);
        let known = self.0.iter().find(|(n, t, _)| n == name && *t == truth);
        match known {
            Some((_, _, drive)) => setup.drive = Arc::clone(drive),
            None => self.0.push((name.clone(), truth, Arc::clone(&setup.drive))),
        }
    }
}

fn shown(experiment: &Experiment) -> Result<Vec<usize>, Failure> {
    let mut shown = Vec::new();
    for name in &experiment.figure.y {
        let place = MEASURES.iter().position(|measure| measure.name == *name);
        let place = place.ok_or_else(|| {
            let names: Vec<&str> = MEASURES.iter().map(|measure| measure.name).collect();
            at(
                experiment,
                "figure.y",
                Failure::unknown("measure", name, &names),
            )
        })?;
        shown.push(place);
    }
    Ok(shown)
}

/// The flags of `headtime simulate` for a combination.
fn settings(experiment: &Experiment, point: &[Value]) -> Result<ComparisonSettings, Failure> {
    let mut settings = ComparisonSettings::default();
    for (setting, value) in experiment.values(point) {
        set(&mut settings, setting, value)
            .map_err(|problem| Failure::input(experiment.complain(setting.name, problem)))?;
    }
    Ok(settings)
}

/// Sets one setting. The parser has checked the kind of the value.
fn set(
    to: &mut ComparisonSettings,
    setting: &ExperimentSetting,
    value: &Value,
) -> Result<(), String> {
    let text = || value.to_string();
    let number = || value.number();
    let wrong = |why: String| format!("\"{value}\": {why}");
    let whole = || match value {
        Value::Whole(whole) => Some(*whole),
        _ => None,
    };
    let count = || whole().and_then(|whole| u32::try_from(whole).ok());
    match setting.name {
        "system" => to.system = Some(text().into()),
        "drive" => to.drive = text(),
        "policy" => to.policies = vec![text()],
        "workload" => to.load.workload = Some(text()),
        "trace" => to.load.trace = Some(text().into()),
        "depth" => to.depth = count(),
        "requests" => to.requests = whole(),
        "seconds" => to.seconds = number(),
        "seed" => to.load.seed = whole(),
        "tasks" => to.load.tasks = count(),
        "think_ms" => to.load.think_ms = number(),
        "size_kib" => to.load.size_kib = number(),
        "rate" => to.load.rate = number(),
        "read_fraction" => to.load.read_fraction = number(),
        "device" => to.load.device = Some(text()),
        "format" => to.load.format = Some(text()),
        "closed" => to.load.closed = count(),
        "scale_time" => to.load.scale_time = number(),
        "fit" => to.load.fit = Some(word(value, &FITS)?),
        "seek_noise_us" => to.truth.seek_noise_us = number(),
        "late_seeks" => to.truth.late_seeks = Some(late_seeks(&text()).map_err(wrong)?),
        "held_ahead" => to.truth.held_ahead = Some(held_ahead(&text()).map_err(wrong)?),
        "own_scan" => to.truth.own_scan = Some(own_scan(&text()).map_err(wrong)?),
        "read_first" => to.truth.read_first = Some(word(value, &SWITCHES)?),
        "host_jitter" => {
            to.truth.host_jitter = Some(HostDelays::parse(&text()).map_err(wrong)?);
        }
        "look_ahead" => to.truth.look_ahead = Some(word(value, &SWITCHES)?),
        "write_cache" => to.truth.write_cache = Some(word(value, &SWITCHES)?),
        "bus_mb_s" => to.truth.bus_mb_s = number(),
        "phases" => to.phases = Some(word(value, &PHASES)?),
        "blocks" => to.scan.scan = Some(text()),
        "until_percent" => to.scan.scan_until = count(),
        "guard" => to.scan.guard = Some(text()),
        "near_miss_us" => to.scan.near_miss_us = number(),
        "impact_percent" => to.scan.impact_percent = number(),
        "same_track" => to.scan.same_track = Some(word(value, &SameTrackRule::ALL)?),
        "stops" => to.scan.stops = whole().and_then(|whole| u8::try_from(whole).ok()),
        "paid_percent" => to.scan.paid_percent = number(),
        "idle_ms" => to.scan.idle_ms = Some(text()),
        other => return Err(format!("{other} is not wired to anything")),
    }
    Ok(())
}

/// The value of a setting in the flags of `headtime simulate`, if it is a number or a name.
pub(super) fn stated(settings: &ComparisonSettings, name: &str) -> Option<Value> {
    let text = |text: &Option<String>| text.clone().map(Value::Text);
    let whole = |count: Option<u32>| count.map(|count| Value::Whole(count.into()));
    let number = |number: Option<f64>| number.map(Value::Number);
    let (load, truth, scan) = (&settings.load, &settings.truth, &settings.scan);
    match name {
        "system" => {
            let system = settings.system.as_ref();
            system.map(|path| Value::Text(path.display().to_string()))
        }
        "drive" if settings.system.is_some() => None,
        "drive" => Some(Value::Text(settings.drive.clone())),
        "workload" => text(&load.workload),
        "trace" => load
            .trace
            .as_ref()
            .map(|path| Value::Text(path.display().to_string())),
        "depth" => whole(settings.depth),
        "seconds" => number(settings.seconds),
        "tasks" => whole(load.tasks),
        "think_ms" => number(load.think_ms),
        "size_kib" => number(load.size_kib),
        "rate" => number(load.rate),
        "read_fraction" => number(load.read_fraction),
        "device" => text(&load.device),
        "format" => text(&load.format),
        "closed" => whole(load.closed),
        "scale_time" => number(load.scale_time),
        "fit" => word_of(load.fit, &FITS),
        "phases" => word_of(settings.phases, &PHASES),
        "seek_noise_us" => number(truth.seek_noise_us),
        "look_ahead" => word_of(truth.look_ahead, &SWITCHES),
        "write_cache" => word_of(truth.write_cache, &SWITCHES),
        "bus_mb_s" => number(truth.bus_mb_s),
        "blocks" => text(&scan.scan),
        "until_percent" => whole(scan.scan_until),
        "guard" => text(&scan.guard),
        "near_miss_us" => number(scan.near_miss_us),
        "impact_percent" => number(scan.impact_percent),
        "same_track" => word_of(scan.same_track, &SameTrackRule::ALL),
        "stops" => whole(scan.stops.map(u32::from)),
        "paid_percent" => number(scan.paid_percent),
        "idle_ms" => text(&scan.idle_ms),
        _ => None,
    }
}

/// The word of a meaning.
fn word_of<T: Copy + PartialEq>(meaning: Option<T>, words: &[(&str, T)]) -> Option<Value> {
    let (word, _) = words.iter().find(|(_, other)| Some(*other) == meaning)?;
    Some(Value::Text((*word).to_owned()))
}

fn word<T: Copy>(value: &Value, words: &[(&str, T)]) -> Result<T, String> {
    let text = value.to_string();
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let words: Vec<String> = words
            .iter()
            .map(|(word, _)| format!("\"{word}\""))
            .collect();
        let expected = match &words[..] {
            [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            _ => words.concat(),
        };
        format!("\"{text}\": expected {expected}")
    })
}

const FITS: [(&str, AddressFit); 2] = [("wrap", AddressFit::Wrap), ("scale", AddressFit::Scale)];

const PHASES: [(&str, Phases); 2] = [("mixed", Phases::Mixed), ("alternate", Phases::ABISS)];

const SWITCHES: [(&str, OnOff); 2] = [("on", OnOff::On), ("off", OnOff::Off)];

fn setup(
    experiment: &Experiment,
    settings: &ComparisonSettings,
) -> Result<ComparisonSetup, Failure> {
    let load = ["workload", "trace", "system"]
        .into_iter()
        .find(|name| experiment.sets(name));
    let load = load.unwrap_or("workload");
    check_load(experiment, load)?;
    check_scan(experiment)?;
    if settings.system.is_none() {
        named::drive(&settings.drive).map_err(|failure| at(experiment, "drive", failure))?;
    }
    for name in &settings.policies {
        named::policy(name).map_err(|failure| at(experiment, "policy", failure))?;
    }
    let setup = system::setup(settings).map_err(|failure| at(experiment, load, failure))?;
    let begun = setup
        .source
        .begin(setup.drive.block_bytes, setup.drive.geometry.sectors().0);
    begun.map_err(|failure| at(experiment, load, failure))?;
    Ok(setup)
}

/// Checks that the settings of `[load]` fit the kind of load.
fn check_load(experiment: &Experiment, load: &str) -> Result<(), Failure> {
    let (foreign, kind): (&[&str], _) = match load {
        "trace" => (
            &["tasks", "think_ms", "size_kib", "rate", "read_fraction"],
            "a trace",
        ),
        _ => (
            &["device", "format", "closed", "scale_time", "fit"],
            "a synthetic load",
        ),
    };
    match foreign.iter().find(|name| experiment.sets(name)) {
        Some(name) => {
            let problem = format!("means nothing to {kind}: expected none");
            Err(Failure::input(experiment.complain(name, problem)))
        }
        None => Ok(()),
    }
}

/// Checks that there is a scan if it has settings.
fn check_scan(experiment: &Experiment) -> Result<(), Failure> {
    let mut settings = SETTINGS.iter().filter(|setting| setting.table == "scan");
    let given = settings.find(|setting| experiment.sets(setting.name));
    match given {
        Some(setting) if !experiment.sets("blocks") => {
            let problem = "nothing is scanned: expected scan.blocks, too";
            Err(Failure::input(experiment.complain(setting.name, problem)))
        }
        _ => Ok(()),
    }
}

/// An error of input with its line: that of the flag's setting, or of the setting `otherwise`.
fn at(experiment: &Experiment, otherwise: &str, failure: Failure) -> Failure {
    let Failure::Input(problem) = failure else {
        return failure;
    };
    let named = problem.strip_prefix("command line: ").unwrap_or(&problem);
    let flag = named.strip_prefix("--").map(|rest| {
        let end = rest.find([' ', ':']).unwrap_or(rest.len());
        let name = match &rest[..end] {
            "scan" => "blocks".to_owned(),
            "scan-until" => "until_percent".to_owned(),
            flag => flag.replace('-', "_"),
        };
        (name, &rest[end..])
    });
    let complaint: DocumentError = match flag {
        Some((name, rest)) if SETTINGS.iter().any(|setting| setting.name == name) => {
            // Without `seed`, the seeds are those of `repeat`.
            let name = match name.as_str() {
                "seed" if !experiment.sets("seed") => "repeat",
                name => name,
            };
            experiment.complain(name, rest.trim_start_matches([':', ' ']))
        }
        _ => experiment.complain(otherwise, problem.as_str()),
    };
    Failure::input(complaint)
}

#[cfg(test)]
mod tests {
    use crate::experiment::Kind;

    use super::*;

    /// Settings that are neither numbers nor names once they are parsed, and those that a run's row takes from
    /// elsewhere.
    const UNSTATED: [&str; 8] = [
        "policy",
        "requests",
        "seed",
        "late_seeks",
        "held_ahead",
        "own_scan",
        "read_first",
        "host_jitter",
    ];

    #[test]
    fn every_setting_is_wired() {
        for setting in SETTINGS {
            let value = match (setting.name, setting.kind) {
                ("fit", _) => Value::Text("wrap".to_owned()),
                ("late_seeks", _) => Value::Text("10:1.5".to_owned()),
                ("held_ahead", _) => Value::Text("64:every".to_owned()),
                ("own_scan", _) => Value::Text("400:20".to_owned()),
                ("host_jitter", _) => Value::Text("30".to_owned()),
                ("read_first", _) => Value::Text("on".to_owned()),
                ("look_ahead" | "write_cache", _) => Value::Text("off".to_owned()),
                ("same_track", _) => Value::Text("allowed".to_owned()),
                ("phases", _) => Value::Text("alternate".to_owned()),
                (_, Kind::NumberOr(word)) => Value::Text(word.to_owned()),
                (_, Kind::Whole(low, _)) => Value::Whole(low),
                (_, Kind::Number) => Value::Number(7.0),
                (_, Kind::Text) => Value::Text("word".to_owned()),
            };
            let before = format!("{:?}", ComparisonSettings::default());
            let mut settings = ComparisonSettings::default();
            set(&mut settings, setting, &value).expect(setting.name);
            assert_ne!(format!("{settings:?}"), before, "{}", setting.name);
            match stated(&settings, setting.name) {
                Some(said) => assert_eq!(said.to_string(), value.to_string(), "{}", setting.name),
                None => assert!(UNSTATED.contains(&setting.name), "{}", setting.name),
            }
        }
    }
}
