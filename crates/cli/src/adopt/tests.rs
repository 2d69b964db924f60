//! What an adopted disk leaves: a profile, and a configuration that names it.

use drive::{HostJitter, Profile};
use lab::adoption::cpus::WakeUps;
use lab::adoption::facts::PathFacts;
use lab::adoption::forecast::Forecast;
use lab::adoption::fresh_pairs::PairCheck;
use lab::adoption::link::FailedReads;
use lab::adoption::sampling::PathSamples;
use lab::adoption::verdict::judge;
use lab::profiling::rehearsal::{RehearsalNoise, RehearsalPath, profiles};
use profiler::Offers;
use server::config::{Belief, Config, DriveModel, Places};

use super::*;

/// A small drive, profiled in virtual time, as if it had been a disk behind a path.
fn adopted(path: &Path) -> Adoption {
    let noise = RehearsalNoise {
        seek: Duration::from_micros(60),
        electronics: Duration::from_micros(20),
        seed: 1,
    };
    let way = RehearsalPath {
        offers: Offers::CacheControl,
        jitter: HostJitter::default(),
    };
    let names = ["hp-c2247a".to_owned()];
    let budget = Duration::from_secs(600);
    let founds = profiles(&names, noise, way, budget, &Findings::default(), &());
    let found = founds.expect("a profile").remove(0);
    let profile = Arc::new(found.profile().expect("a profile"));
    let samples = PathSamples::default();
    let mut verdict = judge(&samples);
    verdict.no_disk = None;
    Adoption {
        facts: PathFacts::of_file(path, profile.capacity_bytes()),
        target: path.display().to_string(),
        samples,
        verdict,
        found: Some(found),
        check: Some(PairCheck {
            pairs: 150,
            as_predicted: 140,
            late: 10,
            ..PairCheck::default()
        }),
        forecast: Some(Forecast::of(&profile)),
        unusable: None,
        failed: FailedReads::default(),
        wake_ups: WakeUps::default(),
        seconds: 300.0,
    }
}

#[test]
fn an_adopted_disk_has_a_profile_a_configuration_and_a_report_without_its_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let arguments = AdoptArgs {
        path: at("secret-place").display().to_string(),
        minutes: 10.0,
        output: Some(at("sdb.toml")),
        report: Some(at("report.json")),
        json: false,
    };
    let files = OutputFiles::of(&arguments, "unused").expect("new names");
    let adopted = adopted(Path::new(&arguments.path));
    arguments.finish(&adopted, &files).expect("it is usable");
    let read = |name: &str| std::fs::read_to_string(at(name)).expect("it is written");
    let profile = Profile::parse(&read("sdb.toml"), "sdb.toml").expect("a profile");
    let confidence = profile.confidence.expect("a profiled one states it");
    assert_eq!(confidence.doubt(), None);
    let places = Places::of_this_user(folder.path());
    let config = Config::parse("it", &read("sdb-serve.toml"), &places).expect("a configuration");
    let belief = &config.drives[0].belief;
    assert!(matches!(belief, Belief::Profile(DriveModel::File(path)) if *path == at("sdb.toml")));
    // The state is of no use any more.
    assert!(!at("sdb.adopting").exists());
    let report = read("report.json");
    assert!(
        !report.contains("secret") && !report.contains("hp-c2247a"),
        "{report}"
    );
    let figures = adopted.figures(&arguments.path);
    assert!(
        figures.usable && figures.confidence.seek > 0.5,
        "{figures:?}"
    );
    assert!(
        figures.free_mb_s_predicted.is_some_and(|free| free > 0.01),
        "{figures:?}"
    );
    // What is there is never overwritten.
    assert!(OutputFiles::of(&arguments, "unused").is_err());
}

#[test]
fn a_disk_that_is_not_usable_yet_leaves_its_tracks_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let arguments = AdoptArgs {
        path: at("disk").display().to_string(),
        minutes: 10.0,
        output: Some(at("sdb.toml")),
        report: None,
        json: true,
    };
    let files = OutputFiles::of(&arguments, "unused").expect("new names");
    let adopted = Adoption {
        unusable: Some("only 3 of 150 fresh probes".to_owned()),
        ..adopted(Path::new(&arguments.path))
    };
    let ended = arguments.finish(&adopted, &files);
    assert!(
        matches!(&ended, Err(Exit::Verdict { code: NOT_YET, answer }) if answer.contains("sdb.adopting")),
        "{ended:?}"
    );
    assert!(!at("sdb.toml").exists() && !at("sdb-serve.toml").exists());
    // The tracks that were kept are those that the next run continues from.
    let found = adopted.found.expect("a drive");
    let resumed = SavedTracks::of(&found.device).read(&files.state);
    let resumed = resumed.expect("its own state");
    assert_eq!(resumed.map.known(), found.findings.map.known());
    assert!(resumed.map.known() > 0);
}
