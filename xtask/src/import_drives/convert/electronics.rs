//! The tables of the electronics.

use serde_json::Value;

use super::{number, set, table};
use crate::import_drives::Drive;

/// The keys of `[overhead]` and DiskSim's names for them.
const OVERHEADS: [(&str, &str); 10] = [
    ("read_hit_after_read_ms", "Read hit over. after read"),
    ("read_hit_after_write_ms", "Read hit over. after write"),
    ("read_miss_after_read_ms", "Read miss over. after read"),
    ("read_miss_after_write_ms", "Read miss over. after write"),
    ("write_hit_after_read_ms", "Write hit over. after read"),
    ("write_hit_after_write_ms", "Write hit over. after write"),
    ("write_miss_after_read_ms", "Write miss over. after read"),
    ("write_miss_after_write_ms", "Write miss over. after write"),
    ("read_completion_ms", "Read completion overhead"),
    ("write_completion_ms", "Write completion overhead"),
];

/// What a write's data wait for on drives that leave the bus twice before them, and DiskSim's
/// names for it.
const EARLY_DISCONNECT: [&str; 5] = [
    "Extradisc command overhead",
    "Extradisc disconnect overhead",
    "Extradisc inter-disconnect delay",
    "Extradisc 2nd disconnect overhead",
    "First reselect overhead",
];

/// Commands that a SCSI drive with tagged queueing holds: a choice, since manuals could not be read.
const TAGS: u64 = 64;

/// All tables.
pub(super) fn tables(out: &mut String, drive: &Drive, json: &Value) -> Option<()> {
    overhead(out, drive, json)?;
    bus(out, drive, json)?;
    buffer(out, drive, json)?;
    queue(out, drive, json)?;
    Some(())
}

fn overhead(out: &mut String, drive: &Drive, json: &Value) -> Option<()> {
    let times = &json["overheads_ms"];
    table(out, drive, "overhead", "overheads_ms");
    for (key, theirs) in OVERHEADS {
        set(out, key, number(times[theirs].as_f64()?), "");
    }
    let first = times["First reselect overhead"].as_f64()?;
    let preparation = times["Data preparation overhead"].as_f64()?;
    let comment = match first + preparation {
        0.0 => "",
        _ => "first reselection and data preparation",
    };
    // Published times have five digits: so has their sum.
    let sum = ((first + preparation) * 1e5).round() / 1e5;
    set(out, "read_reselect_ms", number(sum), comment);
    let (before_data, comment) =
        match json["cache_and_policy"]["Extra write disconnect"].as_i64()? {
            0 => (0.0, ""),
            _ => {
                let mut sum = -times["Write miss over. after read"].as_f64()?;
                for theirs in EARLY_DISCONNECT {
                    sum += times[theirs].as_f64()?;
                }
                (
                    sum,
                    "command to data with an extra disconnection, less the overhead",
                )
            }
        };
    set(
        out,
        "write_reselect_ms",
        number((before_data * 1e5).round() / 1e5),
        comment,
    );
    Some(())
}

/// A block takes as long as the slower end of the bus needs for it.
fn bus(out: &mut String, drive: &Drive, json: &Value) -> Option<()> {
    table(out, drive, "bus", "bus_in_parv, overheads_ms");
    let bulk = json["overheads_ms"]["Bulk sector transfer time"].as_f64()?;
    for (key, theirs) in [
        ("read_block_ms", "read_block_transfer_ms"),
        ("write_block_ms", "write_block_transfer_ms"),
    ] {
        let host = match &json["bus_in_parv"] {
            Value::Null => 0.0,
            bus => bus[theirs]
                .as_array()?
                .iter()
                .filter_map(Value::as_f64)
                .fold(0.0, f64::max),
        };
        let comment = if bulk < 0.0 {
            format!("published as {bulk}, an artefact of the extraction")
        } else if json["bus_in_parv"].is_null() {
            "no bus was published".to_owned()
        } else {
            String::new()
        };
        set(out, key, number(host.max(bulk)), &comment);
    }
    Some(())
}

fn buffer(out: &mut String, drive: &Drive, json: &Value) -> Option<()> {
    let rules = &json["cache_and_policy"];
    let whole = |key: &str| rules[key].as_u64();
    let on = |key: &str| Some(rules[key].as_i64()? > 0);
    table(out, drive, "buffer", "cache_and_policy");
    let caching = on("Enable caching in buffer")?;
    let segments = if caching {
        whole("Number of buffer segments")?
    } else {
        0
    };
    set(out, "segments", segments, "");
    set(out, "segment_blocks", whole("Segment size (in blks)")?, "");
    let writes = whole("Maximum number of write segments")?;
    set(out, "write_segments", writes.min(segments), "");
    set(
        out,
        "read_written",
        on("Allow read hits on write data")?,
        "",
    );
    let look_ahead = match whole("Buffer continuous read")? {
        0 => "none",
        1 => "track",
        2 => "cylinder",
        3 => "segment",
        4 => "track-if-sequential",
        _ => return None,
    };
    set(out, "look_ahead", format!("\"{look_ahead}\""), "");
    set(
        out,
        "look_ahead_blocks",
        whole("Maximum read-ahead (blks)")?,
        "",
    );
    set(out, "look_ahead_on_hit", on("Read-ahead on idle hit")?, "");
    set(out, "read_on_arrival", on("Read any free blocks")?, "");
    set(out, "zero_latency_read", on("Immediate buffer read")?, "");
    set(out, "zero_latency_write", on("Immediate buffer write")?, "");
    let write_back = match whole("Fast write level")? {
        0 => "none",
        1 => "append",
        2 => "all",
        _ => return None,
    };
    set(out, "write_back", format!("\"{write_back}\""), "");
    let watermark = rules["High (read) water mark"].as_f64()?;
    set(out, "read_watermark_permille", permille(watermark), "");
    let comment = "DiskSim's low watermark says when to ask for more, not when the medium begins";
    set(out, "write_watermark_permille", 0, comment);
    Some(())
}

fn queue(out: &mut String, drive: &Drive, json: &Value) -> Option<()> {
    table(out, drive, "queue", "cache_and_policy, device_scheduler");
    let published = json["cache_and_policy"]["Max queue length"].as_u64()?;
    let comment = "tagged queueing; the published length is that of the validation runs";
    set(out, "depth", published.max(TAGS), comment);
    let (order, comment) = match json["device_scheduler"]["Scheduling policy"].as_u64()? {
        1 => ("fcfs", ""),
        8 => ("sptf", "DiskSim's SPTF_OPT"),
        21 => (
            "aged-sptf",
            "DiskSim's PRI_ASPCTF_OPT: aged, by priority, knows what the buffer holds",
        ),
        _ => return None,
    };
    set(out, "order", format!("\"{order}\""), comment);
    Some(())
}

fn permille(share: f64) -> i64 {
    (share * 1000.0).round() as i64
}
