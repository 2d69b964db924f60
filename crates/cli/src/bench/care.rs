//! `headtime bench care`: background tasks beside a load that is never idle.

use std::fmt::Write as _;

use clap::Args;
use document::quantity::Unit;
use lab::bench::busy::BeliefSource;
use lab::bench::care::{
    BackupFigures, CareBench, CareFigures, CareLength, RebuildFigures, ScrubFigures,
    SharingFigures, WholeScrub,
};

use super::observed;
use crate::output::{Exit, json, print};
use crate::settings::units::in_unit;

/// The arguments of `headtime bench care`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CareBenchArgs {
    /// The cases, by name [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    case: Vec<String>,
    /// The drive: a name from `headtime drives`, or a profile file
    #[arg(long, value_name = "NAME", default_value = "quantum-atlas-10k")]
    drive: String,
    /// The policy
    #[arg(long, default_value = "sptf-sw60")]
    policy: String,
    /// Believe the truth without its noise, and do not profile the drive first: figures are `noisy`
    /// instead of `external`
    #[arg(long)]
    unprofiled: bool,
    /// The seed of load, drive and sets
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Impact budget of the tasks: the permitted increase of foreground response times
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = in_unit(Unit::Percent))]
    impact_percent: f64,
    /// Use the sizes of published figures
    #[arg(long)]
    long: bool,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  headtime bench care
  headtime bench care --case scrub
  headtime bench care --case tasks --long --json
  headtime bench care --case rebuild --json

`rebuild`: a leg of an emulated mirror misses writes of a verify load, comes back, and is rebuilt
under it with a SIGKILL in between; then both legs are compared. `injected` counts these legs,
`found` those that were known to lack data, `repaired` those that had the same data at the end, and
`wrong` also the bytes in which legs differ. Then the rate of a rebuild beside OLTP, live, and of a
scan of the survivor. --long has 200 kills.

`backup`: images of a volume under a verify load, with SIGKILLs of the service in the middle of some.
`injected` counts images, `found` those that are the volume at one moment, `repaired` those of them
that came after a kill. What incremental ones read is compared with what was written. --long has 200
images. Its reads are not in gaps, so that free rates are 0.

`scrub`: flips and unreadable sectors in data of a verify load on an emulated drive, SIGKILLs of the
service in between, a scrub, repair and another scrub. Then the free rates of a scan and a scrub
beside OLTP, live. --long adds 200 kills, 2,000 errors, 4 GiB and a scrub of 20 TB in virtual time,
and takes about an hour.

`tasks`, beside OLTP that is never idle in virtual time: three tasks whose sets overlap
against one task over their union, any half of a set's pieces against all of them, and a hastened
task against a client that reads the same blocks.";

/// Runs the command.
///
/// # Errors
/// If a name is unknown or a run fails, or the output cannot be written.
pub fn run(arguments: &CareBenchArgs) -> Result<(), Exit> {
    let figures = observed("bench care", |bar| arguments.settings().run(bar))?;
    print(&match arguments.json {
        true => json(&figures)?,
        false => table(&figures),
    })
}

impl CareBenchArgs {
    fn settings(&self) -> CareBench {
        CareBench {
            cases: self.case.clone(),
            drive: self.drive.clone(),
            policy: self.policy.clone(),
            belief: match self.unprofiled {
                true => BeliefSource::Truth,
                false => BeliefSource::Profiled,
            },
            seed: self.seed,
            impact_ppm: (self.impact_percent * 1e4) as u32,
            length: match self.long {
                true => CareLength::Long,
                false => CareLength::Short,
            },
        }
    }
}

fn table(figures: &[CareFigures]) -> String {
    let mut text = format!(
        "{:<8} {:<11} {:>8} {:>8} {:>8} {:>6} {:>6} {:>9} {:>9} {:>7} {:>7}\n",
        "case",
        "mode",
        "injected",
        "found",
        "repaired",
        "false",
        "wrong",
        "free MB/s",
        "scan MB/s",
        "lost",
        "budget"
    );
    for line in figures {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:<8} {:<11} {:>8} {:>8} {:>8} {:>6} {:>6} {:>9.3} {:>9.3} {:>6.2}% {:>6.2}%",
            line.case,
            line.mode,
            line.injected,
            line.found,
            line.repaired,
            line.false_alarms,
            line.wrong_bytes,
            line.free_mb_s,
            line.free_mb_s_scan,
            line.foreground_loss_percent,
            line.budget_percent
        );
        text += &line.sharing.as_ref().map_or_else(String::new, described);
        text += &line.scrub.as_ref().map_or_else(String::new, scrubbed);
        text += &line.rebuild.as_ref().map_or_else(String::new, rebuilt);
        text += &line.backup.as_ref().map_or_else(String::new, backed_up);
    }
    text
}

fn backed_up(backup: &BackupFigures) -> String {
    format!(
        "  {} images of {} MiB under a verify load, {} of them incremental; {} kills in the middle of a backup\n  \
         incremental ones read {:.1} % of what was written since the image before, at most {:.1} %\n",
        backup.images,
        backup.volume_bytes >> 20,
        backup.incremental,
        backup.kills,
        backup.read_of_changed_percent,
        backup.highest_read_of_changed_percent,
    )
}

fn rebuilt(rebuild: &RebuildFigures) -> String {
    format!(
        "  {} kills in the middle of a rebuild under a verify load; of {} MB on each leg {} bytes differ afterwards\n  \
         the survivor alone: mean {:.2} ms; beside the scan {:+.2} %; past the engine {:.3} MB/s in {:.2} % of the \
         time\n",
        rebuild.kills,
        rebuild.compared_bytes / 1_000_000,
        rebuild.differing_bytes,
        rebuild.alone_mean_ms,
        rebuild.scan_loss_percent,
        rebuild.paid_mb_s,
        rebuild.paid_percent,
    )
}

fn scrubbed(scrub: &ScrubFigures) -> String {
    let mut text = format!(
        "  {} MiB, {} kills under a verify load; {} reads failed without damage\n  flips in units that were \
         being written at a kill: {} of {} found\n  checksums: {:.2} % of a core at 200 MB/s\n",
        scrub.volume_bytes >> 20,
        scrub.kills,
        scrub.failed_reads,
        scrub.in_doubt_found,
        scrub.in_doubt_injected,
        scrub.checksum_cpu_percent
    );
    text += &scrub.whole.as_ref().map_or_else(String::new, whole);
    text
}

fn whole(whole: &WholeScrub) -> String {
    let days = whole
        .days
        .iter()
        .map(|(percent, days)| format!("{percent} % {days:.2}"));
    format!(
        "  {} ({}): days to {}; free MB/s {:.1} at the start, {:.1} over the whole; the foreground's mean {:+.2} %, \
         p99 {:+.2} %\n",
        whole.drive,
        whole.mode,
        days.collect::<Vec<_>>().join(", "),
        whole.free_mb_s_start,
        whole.free_mb_s_whole,
        whole.foreground_loss_percent,
        whole.foreground_p99_loss_percent
    )
}

fn described(sharing: &SharingFigures) -> String {
    let mut text = format!(
        "  three overlapping tasks / their union: head time {:.3}, blocks read {:.3}, time {:.3}; \
         with three priorities head time {:.3}\n",
        sharing.union_head_time_ratio,
        sharing.union_read_ratio,
        sharing.union_time_ratio,
        sharing.by_priority_head_time_ratio,
    );
    for any in &sharing.any_half {
        text += &format!(
            "  all pieces of {} KiB / any half of them: time {:.2}\n",
            any.piece_kib, any.speedup
        );
    }
    text += &format!(
        "  hastened at half of its blocks: the foreground loses {:.1} % over the run\n",
        sharing.hastened_loss_percent
    );
    for client in &sharing.hastened {
        text += &format!(
            "  hastened / read by a client with {} in flight: time {:.2}; the foreground loses {:.1} % \
             beside the client\n",
            client.depth, client.time_ratio, client.client_loss_percent
        );
    }
    for writes in &sharing.free_writes {
        text += &format!(
            "  writes of {} KiB in gaps: {:.2} MB/s, the foreground loses {:.2} %; as its own requests {:.2} MB/s, \
             {:.0} %\n",
            writes.piece_kib,
            writes.mb_s,
            writes.foreground_loss_percent,
            writes.urgent_mb_s,
            writes.urgent_loss_percent
        );
    }
    text
}
