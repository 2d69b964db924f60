//! An adoption as text.

use std::fmt::Write as _;

use lab::adoption::Adoption;
use lab::adoption::facts::PathFacts;
use lab::adoption::forecast::Forecast;

use crate::output::grouped;
use crate::profile::known;

/// What is known of a path without timing.
pub fn facts(path: &str, facts: &PathFacts) -> String {
    let mut text = format!(
        "{path}: {} bytes, {}, blocks of {} bytes\n",
        grouped(facts.capacity_bytes),
        facts.sector_format(),
        facts.logical_block
    );
    let rotational = facts.rotational.map(|rotates| match rotates {
        true => "yes".to_owned(),
        false => "no".to_owned(),
    });
    for (what, value) in [
        ("model", facts.model.clone()),
        ("transport", facts.transport.clone()),
        ("rotational", rotational),
        (
            "queue",
            facts.queue_depth.map(|depth| format!("{depth} commands")),
        ),
        ("scheduler", facts.scheduler.clone()),
        ("write cache", facts.write_cache.clone()),
    ] {
        if let Some(value) = value {
            let _ = writeln!(text, "  {what:<12} {value}");
        }
    }
    for user in &facts.users {
        let _ = writeln!(
            text,
            "  in use       {user}: it is read only, beside its load"
        );
    }
    for note in &facts.notes {
        let _ = writeln!(text, "  note         {note}");
    }
    text
}

/// What was found out.
pub fn findings(adopted: &Adoption) -> String {
    let verdict = &adopted.verdict;
    let mut text = format!(
        "\na hard disk: random reads take {:.1} ms, far ones {:.1} ms more than near ones",
        verdict.median_us / 1e3,
        verdict.growth_us / 1e3
    );
    if let Some(period) = verdict.comb_ms {
        let _ = write!(text, ", a revolution {period:.3} ms");
    }
    text.push('\n');
    if let (Some(path), Some(jitter)) = (verdict.path_us, verdict.jitter_us) {
        let _ = writeln!(
            text,
            "the path: 4 KiB from the drive's buffer take {path:.0} us, 99 % of such reads at most {jitter:.0} us more"
        );
    }
    if let (true, Some(asleep), Some(awake)) = (
        adopted.wake_ups.matter(),
        adopted.wake_ups.asleep_us,
        adopted.wake_ups.awake_us,
    ) {
        let _ = writeln!(
            text,
            "the CPUs: one read in twenty is {asleep:.0} us late while they may sleep, {awake:.0} us while they are kept awake; the \
             configuration keeps them awake while gaps are filled, which costs power (cpu_latency_us)"
        );
    }
    if let Some(found) = &adopted.found {
        let _ = writeln!(
            text,
            "known: {} ({} reads in {:.0} s)",
            known(&found.device, &found.findings),
            grouped(found.probes),
            adopted.seconds
        );
    }
    if let Some(check) = adopted.check {
        let _ = writeln!(
            text,
            "check: {} of {} fresh probes ended as predicted ({} revolutions late, {} early, {} elsewhere)",
            check.as_predicted, check.pairs, check.late, check.early, check.elsewhere
        );
    }
    if let Some(forecast) = &adopted.forecast {
        text += &predicted(forecast);
    }
    if adopted.failed.failed > 0 {
        let _ = writeln!(
            text,
            "warning: {} of {} reads failed: save what is on the disk",
            adopted.failed.failed, adopted.failed.reads
        );
    }
    text.push_str("not found:\n");
    for missing in adopted.missing() {
        let _ = writeln!(text, "  - {missing}");
    }
    text
}

/// The prediction, as a simulation of the found profile has it.
fn predicted(forecast: &Forecast) -> String {
    let mut text = String::new();
    if let Some(free) = forecast.free_mb_s {
        let longer = forecast.loss_percent.map_or(String::new(), |loss| {
            format!(", whose requests take {loss:+.1} % longer")
        });
        let scrub = forecast
            .scrub_days
            .map_or(String::new(), |days| format!("; a scrub in {days:.1} days"));
        let _ = writeln!(
            text,
            "predicted: {free:.2} MB/s of background reads beside the load {}{longer}{scrub} (this profile \
             simulated, budget {} %)",
            forecast.load, forecast.budget_percent
        );
    }
    if let Some(streams) = forecast.streams {
        let _ = writeln!(
            text,
            "predicted: {streams} guaranteed streams of 1 MB/s, 30 % of the head time left to other requests"
        );
    }
    text
}
