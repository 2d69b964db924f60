//! The profile file of the findings.

use std::fmt::Write as _;

use block::{Duration, Switch};
use drive::firmware::{BufferRules, LookAhead, QueueOrder, WriteBack};
use drive::geometry::indexed::{Description, GroupDescription};
use drive::{Angle, ProfilePart};

use super::{defaults, known, tracks};
use crate::confidence::Confidence;
use crate::device::{DriveIdentity, WritePermission};
use crate::findings::{Findings, FirmwareConfidence, SeekPoint, whole_stroke};

/// The profile file (`name` is a file name without extension, in kebab case). Unknown parts are
/// assumed to be slow, and have confidence 0.
pub fn text(findings: &Findings, device: &DriveIdentity, name: &str) -> String {
    let fallback;
    let layout = match &findings.layout {
        Some(layout) => &layout.description,
        None => {
            fallback = tracks::description(&findings.map, device.blocks);
            &fallback
        }
    };
    let mut text = String::new();
    top(&mut text, device, name);
    spindle(&mut text, findings);
    seek(&mut text, findings, layout.cylinders);
    electronics(&mut text, findings, device);
    queue(&mut text, findings, device);
    commands(&mut text, findings);
    chunks(&mut text, findings);
    confidence(&mut text, findings, device);
    arrangement(&mut text, findings, layout);
    text
}

/// Adds formatted text; writing into a string cannot fail.
macro_rules! put {
    ($text:expr, $($arg:tt)*) => {
        let _ = writeln!($text, $($arg)*);
    };
}

/// Starts a table.
fn table(text: &mut String, name: &str, origin: &str) {
    put!(
        text,
        "\n[{name}]\norigin = \"profiled by Headtime: {origin}\""
    );
}

fn top(text: &mut String, device: &DriveIdentity, name: &str) {
    put!(text, "name = \"{name}\"\nmodel = \"{name}\"");
    put!(text, "provenance = \"profiled\"");
    put!(
        text,
        "origin = \"profiled by Headtime: sizes as the drive states them; the model is not \
         known from timings\""
    );
    put!(text, "block_bytes = {}", device.block_bytes);
    put!(
        text,
        "physical_block_bytes = {}",
        device.physical_block_bytes
    );
    put!(text, "blocks = {}\nactuators = 1", device.blocks);
}

/// The period of an unknown drive: 3,600 rpm, the slowest drives of 1990.
const UNKNOWN_PERIOD_PS: u64 = 16_666_666_667;

fn spindle(text: &mut String, findings: &Findings) {
    let (period, origin) = match (findings.spindle.period_ps, &findings.clock) {
        (0, None) => (UNKNOWN_PERIOD_PS, "not found, 3,600 rpm assumed"),
        (0, Some(clock)) => (
            clock.spindle().period_ps(),
            "times between reads of one block",
        ),
        (period, _) => (
            period,
            "times between reads of one block, over growing pauses",
        ),
    };
    table(text, "spindle", origin);
    put!(text, "rpm = {}", 60e12 / period as f64);
}

/// The origin of a seek table.
const BOTH: &str = "the least time at which a block of another track is still reached in the same \
                    revolution, means of both directions";

/// The origin of a seek table without measurements of writes.
const READS_ONLY: &str = "the least time at which a block of another track is still reached in the \
                          same revolution, means of both directions; writes were not measured and \
                          are assumed to settle 1 ms later";

fn seek(text: &mut String, findings: &Findings, cylinders: u32) {
    let slow;
    let (arm, origin) = match &findings.arm {
        Some(arm) if !arm.read.is_empty() => (
            arm,
            match arm.write.is_empty() {
                true => READS_ONLY,
                false => BOTH,
            },
        ),
        _ => {
            slow = defaults::arm(cylinders.max(2));
            (&slow, "not found, a slow arm assumed")
        }
    };
    table(text, "seek", origin);
    put!(text, "head_switch_ms = {}", millis(arm.head_switch));
    let settle = match arm.write.is_empty() {
        true => defaults::WRITE_SETTLE_NANOS,
        false => arm.write_settle_nanos,
    };
    put!(text, "write_settle_ms = {}", settle as f64 / 1e6);
    let stroke = cylinders.saturating_sub(1);
    let whole = |points: &[SeekPoint]| whole_stroke(points, stroke);
    points(text, "read_points", &whole(&arm.read), |point| point.mean);
    if !arm.write.is_empty() {
        points(text, "write_points", &whole(&arm.write_points()), |point| {
            point.mean
        });
    }
    if arm.read.iter().any(|point| !point.deviation.is_zero()) {
        let of = |point: &SeekPoint| point.deviation;
        points(text, "deviation_points", &whole(&arm.read), of);
    }
}

fn points(text: &mut String, key: &str, points: &[SeekPoint], of: fn(&SeekPoint) -> Duration) {
    put!(text, "{key} = [");
    for point in points {
        put!(text, "  [{}, {}],", point.distance, millis(of(point)));
    }
    put!(text, "]");
}

/// The origin of a part that was not found.
const SLOW: &str = "not found, slow ones assumed";

fn electronics(text: &mut String, findings: &Findings, device: &DriveIdentity) {
    let found = findings.firmware.as_ref();
    let mut overheads = found.map_or_else(defaults::overheads, |firmware| firmware.overheads);
    let writes = found.map_or(Confidence::NONE, |firmware| firmware.confidence.write_miss);
    let mut how = "times of reads and writes from the medium and from the buffer, less arm, \
                   rotation and bus";
    if found.is_some() && writes == Confidence::NONE {
        overheads = defaults::as_reads(overheads);
        how = "times of reads from the medium and from the buffer, less arm, rotation and bus; \
               those of writes were not measured and are assumed to be as long";
    }
    let origin = |how: &'static str| found.map_or(SLOW, |_| how);
    table(text, "overhead", origin(how));
    for (key, after) in [
        ("read_hit", overheads.read_hit),
        ("read_miss", overheads.read_miss),
        ("write_hit", overheads.write_hit),
        ("write_miss", overheads.write_miss),
    ] {
        put!(text, "{key}_after_read_ms = {}", millis(after.read));
        put!(text, "{key}_after_write_ms = {}", millis(after.write));
    }
    for (key, time) in [
        ("read_completion", overheads.read_completion),
        ("write_completion", overheads.write_completion),
        ("read_reselect", overheads.read_reselect),
        ("write_reselect", overheads.write_reselect),
    ] {
        put!(text, "{key}_ms = {}", millis(time));
    }
    let bus = found.map_or_else(
        || defaults::bus(device.block_bytes),
        |firmware| firmware.bus,
    );
    let how = "times of reads of different sizes that the buffer answers";
    table(text, "bus", origin(how));
    put!(text, "read_block_ms = {}", millis(bus.read_block));
    put!(text, "write_block_ms = {}", millis(bus.write_block));
    let rules = found.map_or_else(BufferRules::default, |firmware| firmware.buffer);
    let how = "which blocks are answered faster than the medium can, after which others";
    table(
        text,
        "buffer",
        found.map_or("not found, no buffer assumed", |_| how),
    );
    buffer(text, &rules);
}

fn buffer(text: &mut String, rules: &BufferRules) {
    let look_ahead = match rules.look_ahead {
        LookAhead::None => "none",
        LookAhead::Segment => "segment",
        LookAhead::Track => "track",
        LookAhead::Cylinder => "cylinder",
        LookAhead::TrackIfSequential => "track-if-sequential",
    };
    let write_back = match rules.write_back {
        WriteBack::None => "none",
        WriteBack::Append => "append",
        WriteBack::All => "all",
    };
    put!(text, "segments = {}", rules.segments);
    put!(text, "segment_blocks = {}", rules.segment_blocks);
    put!(text, "write_segments = {}", rules.write_segments);
    put!(text, "read_written = {}", rules.read_written);
    put!(text, "look_ahead = \"{look_ahead}\"");
    put!(text, "look_ahead_blocks = {}", rules.look_ahead_blocks);
    put!(text, "look_ahead_on_hit = {}", rules.look_ahead_on_hit);
    put!(text, "read_on_arrival = {}", rules.read_on_arrival);
    put!(text, "zero_latency_read = {}", rules.zero_latency_read);
    put!(text, "zero_latency_write = {}", rules.zero_latency_write);
    put!(text, "write_back = \"{write_back}\"");
    // The rarer rules, where they are found.
    let usual = BufferRules::default();
    if rules.segment_per_write != usual.segment_per_write {
        put!(text, "segment_per_write = {}", rules.segment_per_write);
    }
    if rules.destage_order != usual.destage_order {
        put!(text, "destage_order = \"{}\"", word(rules.destage_order));
    }
    if rules.destage_first != usual.destage_first {
        put!(text, "destage_first = {}", rules.destage_first);
    }
    if rules.writes_in_parts != usual.writes_in_parts {
        put!(text, "writes_in_parts = {}", rules.writes_in_parts);
    }
    put!(text, "read_watermark_permille = {}", rules.read_watermark);
    put!(text, "write_watermark_permille = {}", rules.write_watermark);
}

fn queue(text: &mut String, findings: &Findings, device: &DriveIdentity) {
    let found = findings.firmware.as_ref().map(|firmware| firmware.queue);
    let origin = match found {
        Some(_) => "depth as the drive states it, order by which of several reads ended first",
        None => "depth as the drive states it, order not found",
    };
    table(text, "queue", origin);
    let rules = found.unwrap_or_else(|| defaults::queue(device.depth));
    let order = word(rules.order);
    put!(text, "depth = {}\norder = \"{order}\"", rules.depth);
}

fn word(order: QueueOrder) -> &'static str {
    match order {
        QueueOrder::Fcfs => "fcfs",
        QueueOrder::Sptf => "sptf",
        QueueOrder::AgedSptf => "aged-sptf",
    }
}

/// Writes the tested commands; a profiled drive does not support any other.
fn commands(text: &mut String, findings: &Findings) {
    let found = findings.firmware.as_ref();
    let Some(seek) = found.and_then(|firmware| firmware.seek_command) else {
        return;
    };
    let how = "whether a seek without transfer takes longer to far blocks than to near ones";
    table(text, "commands", how);
    put!(text, "seek = {}", seek == Switch::On);
}

/// Writes the chunk sizes, unless they are unknown or most fresh reads contradicted them: readers
/// then derive them from the other parts.
fn chunks(text: &mut String, findings: &Findings) {
    let found = findings.firmware.as_ref();
    let sure = found.filter(|firmware| firmware.confidence.chunk.share() > 0.5);
    let Some(chunk) = sure.and_then(|firmware| firmware.chunk.as_ref()) else {
        return;
    };
    let how = "the rates of reads of different sizes that follow each other";
    table(text, "chunks", how);
    put!(text, "least_blocks = {}", chunk.least);
    if let Some(most) = chunk.most {
        put!(text, "most_blocks = {most}");
    }
}

/// The confidence of each part: 0 for parts that were not found, none for invisible ones (without
/// write permission, or behind a bus that is slower than the medium).
pub fn shares(findings: &Findings, device: &DriveIdentity) -> Vec<(ProfilePart, f64)> {
    let is_hidden = |part| match part {
        ProfilePart::WriteBack => device.writes == WritePermission::Forbidden,
        ProfilePart::ZeroLatency => {
            let firmware = findings.firmware.as_ref();
            firmware.is_some_and(|firmware| firmware.confidence.zero_latency_read.is_none())
        }
        _ => false,
    };
    let firmware = findings.firmware.as_ref();
    let parts = firmware.map_or_else(FirmwareConfidence::default, |firmware| firmware.confidence);
    let asked = ProfilePart::ALL
        .map(|(_, part)| part)
        .into_iter()
        .filter(|part| !is_hidden(*part));
    let share = |part| {
        let found = match part {
            ProfilePart::Spindle => findings.spindle.confidence,
            ProfilePart::Map => findings.map_confidence,
            ProfilePart::Layout => findings
                .layout
                .as_ref()
                .map_or(Confidence::NONE, |l| l.confidence),
            ProfilePart::Seek => findings
                .arm
                .as_ref()
                .map_or(Confidence::NONE, |arm| arm.confidence),
            ProfilePart::Overhead if parts.write_miss == Confidence::NONE => parts.read_miss,
            ProfilePart::Overhead => parts.read_miss.min(parts.write_miss),
            ProfilePart::Bus => parts.hits,
            ProfilePart::Buffer => parts.segments.min(parts.look_ahead),
            ProfilePart::WriteBack => parts.write_back,
            ProfilePart::Queue => parts.queue,
            ProfilePart::ZeroLatency => parts.zero_latency_read.unwrap_or(Confidence::NONE),
        };
        (part, found.share())
    };
    asked.map(share).collect()
}

fn confidence(text: &mut String, findings: &Findings, device: &DriveIdentity) {
    table(
        text,
        "confidence",
        "the share of fresh measurements that each part predicted, by the rule of succession",
    );
    for (part, share) in shares(findings, device) {
        put!(text, "{} = {share}", part.name());
    }
    put!(text, "known = [");
    for extent in known::extents(findings, device.blocks) {
        put!(text, "  [{}, {}],", extent.start().0, extent.length().0);
    }
    put!(text, "]");
}

fn arrangement(text: &mut String, findings: &Findings, layout: &Description) {
    let origin = match findings.layout {
        Some(_) => "angles of blocks, and how long the arm takes from track to track",
        None => {
            "angles of blocks; on which surface tracks are was not found, each is on a cylinder of \
             its own"
        }
    };
    table(text, "layout", origin);
    put!(text, "kind = \"indexed\"\nsurfaces = {}", layout.surfaces);
    put!(text, "cylinders = {}", layout.cylinders);
    if !layout.slips.is_empty() {
        put!(text, "slips = [");
        for (place, count) in &layout.slips {
            put!(text, "  [{place}, {count}],");
        }
        put!(text, "]");
    }
    if !layout.remaps.is_empty() {
        put!(text, "remaps = [");
        for moved in &layout.remaps {
            let (first, blocks) = (moved.first, moved.blocks);
            let (cylinder, head, sector) = (moved.cylinder, moved.head, moved.sector);
            put!(text, "  [{first}, {blocks}, {cylinder}, {head}, {sector}],");
        }
        put!(text, "]");
    }
    for group in &layout.groups {
        put!(text, "\n[[layout.group]]");
        rows(text, group);
    }
}

fn rows(text: &mut String, group: &GroupDescription) {
    match group {
        GroupDescription::Tracks(runs) => {
            put!(text, "tracks = [");
            for run in runs {
                let (start, step) = (turns(run.start), turns(run.step));
                let _ = write!(text, "  [{}, {}, ", run.cylinder, run.head);
                let _ = write!(text, "{}, {start}, {}, {step}", run.sectors, run.tracks);
                if run.blocks < run.sectors {
                    let _ = write!(text, ", {}", run.blocks);
                }
                put!(text, "],");
            }
        }
        GroupDescription::Groups(runs) => {
            put!(text, "groups = [");
            for run in runs {
                let (start, step) = (turns(run.start), turns(run.step));
                let _ = write!(text, "  [{}, {}, {start}, ", run.group, run.cylinder);
                put!(text, "{}, {}, {step}],", run.repeats, run.cylinders);
            }
        }
    }
    put!(text, "]");
}

/// An angle in profile files: the shorter direction, so that repetition preserves its digits.
fn turns(angle: Angle) -> f64 {
    crate::clock::apart(Angle::ZERO, angle)
}

fn millis(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}
