//! The text of a profile: what [`Profile::parse`] reads.

use std::fmt::Write as _;

use block::{Duration, Sectors, Switch};

use super::Profile;
use super::electronics::{BUS, Electronics, LOOK_AHEADS, OVERHEADS, QUEUE_ORDERS, WRITE_BACKS};
use super::layout::{HEAD_ORDERS, SPARINGS};
use crate::Angle;
use crate::geometry::indexed::{self, GroupDescription};
use crate::geometry::zoned::{self, Sparing, ZoneDescription};
use crate::seek::SeekTable;

/// Where the blocks of a drive are, as a profile describes it.
#[derive(Clone, Debug)]
pub enum LayoutDescription {
    /// Zones.
    Zoned(zoned::Description),
    /// Nested patterns of tracks.
    Indexed(indexed::Description),
}

/// Adds formatted text; writing into a string cannot fail.
macro_rules! put {
    ($text:expr, $($arg:tt)*) => {
        let _ = writeln!($text, $($arg)*);
    };
}

impl Profile {
    /// The profile as a file whose numbers have this origin. A profile does not keep how its layout was described, nor
    /// fitted constants, confidences and chunks: the layout is told, and the others are left out.
    pub fn text(&self, layout: &LayoutDescription, origin: &str) -> String {
        let mut text = String::new();
        let Sectors(blocks) = self.geometry.sectors();
        put!(text, "name = {:?}\nmodel = {:?}", self.name, self.model);
        put!(
            text,
            "provenance = {:?}\norigin = {origin:?}",
            self.provenance.name()
        );
        put!(text, "block_bytes = {}", self.block_bytes);
        put!(text, "physical_block_bytes = {}", self.physical_block_bytes);
        put!(text, "blocks = {blocks}\nactuators = {}", self.actuators);
        let table = |text: &mut String, name: &str| {
            put!(text, "\n[{name}]\norigin = {origin:?}");
        };
        table(&mut text, "spindle");
        put!(text, "rpm = {}", self.rpm());
        table(&mut text, "seek");
        self.arm_text(&mut text);
        let mut electronics = Electronics {
            overheads: self.overheads,
            bus: self.bus,
            buffer: self.buffer,
        };
        for (name, times) in [("overhead", &OVERHEADS[..]), ("bus", &BUS[..])] {
            table(&mut text, name);
            for (key, place) in times {
                put!(text, "{key} = {}", millis(*place(&mut electronics)));
            }
        }
        table(&mut text, "buffer");
        self.buffer_text(&mut text);
        table(&mut text, "queue");
        let order = word(&QUEUE_ORDERS, self.queue.order);
        put!(text, "depth = {}\norder = {order:?}", self.queue.depth);
        table(&mut text, "commands");
        put!(text, "seek = {}", self.seek_command == Switch::On);
        table(&mut text, "layout");
        match layout {
            LayoutDescription::Zoned(zones) => zoned_text(&mut text, zones),
            LayoutDescription::Indexed(groups) => indexed_text(&mut text, groups),
        }
        text
    }

    fn arm_text(&self, text: &mut String) {
        put!(text, "head_switch_ms = {}", millis(self.head_switch));
        put!(
            text,
            "write_settle_ms = {}",
            self.write_settle_nanos as f64 / 1e6
        );
        points(text, "read_points", self.seek.read());
        points(text, "write_points", self.seek.write());
    }

    fn buffer_text(&self, text: &mut String) {
        let rules = &self.buffer;
        put!(text, "segments = {}", rules.segments);
        put!(text, "segment_blocks = {}", rules.segment_blocks);
        put!(text, "write_segments = {}", rules.write_segments);
        put!(text, "read_written = {}", rules.read_written);
        put!(
            text,
            "look_ahead = {:?}",
            word(&LOOK_AHEADS, rules.look_ahead)
        );
        put!(text, "look_ahead_blocks = {}", rules.look_ahead_blocks);
        put!(text, "look_ahead_on_hit = {}", rules.look_ahead_on_hit);
        put!(text, "read_on_arrival = {}", rules.read_on_arrival);
        put!(text, "zero_latency_read = {}", rules.zero_latency_read);
        put!(text, "zero_latency_write = {}", rules.zero_latency_write);
        put!(
            text,
            "write_back = {:?}",
            word(&WRITE_BACKS, rules.write_back)
        );
        put!(text, "read_watermark_permille = {}", rules.read_watermark);
        put!(text, "write_watermark_permille = {}", rules.write_watermark);
        put!(text, "segment_per_write = {}", rules.segment_per_write);
        put!(
            text,
            "destage_order = {:?}",
            word(&QUEUE_ORDERS, rules.destage_order)
        );
        put!(text, "destage_first = {}", rules.destage_first);
        put!(text, "writes_in_parts = {}", rules.writes_in_parts);
    }
}

/// The word for a value, of which each has one.
fn word<T: PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    let mut found = words.iter().filter(|(_, other)| *other == value);
    found.next().map_or("", |(word, _)| word)
}

fn millis(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}

fn points(text: &mut String, key: &str, table: &SeekTable) {
    put!(text, "{key} = [");
    for (distance, time) in table.points() {
        put!(text, "  [{distance}, {}],", millis(time));
    }
    put!(text, "]");
}

fn zoned_text(text: &mut String, layout: &zoned::Description) {
    put!(text, "kind = \"zoned\"\nsurfaces = {}", layout.surfaces);
    put!(text, "cylinders = {}", layout.cylinders);
    put!(
        text,
        "head_order = {:?}",
        word(&HEAD_ORDERS, layout.head_order)
    );
    put!(text, "sparing = {:?}", word(&SPARINGS, layout.sparing));
    if layout.sparing == Sparing::RangeEnd {
        put!(text, "range_cylinders = {}", layout.range_cylinders);
    }
    for zone in &layout.zones {
        zone_text(text, zone);
    }
}

fn zone_text(text: &mut String, zone: &ZoneDescription) {
    let sectors = |angle: Angle| {
        let sectors = angle.revolutions() * f64::from(zone.sectors_per_track);
        // Whole ones are read exactly.
        match (sectors - sectors.round()).abs() < 1e-6 {
            true => sectors.round(),
            false => sectors,
        }
    };
    put!(
        text,
        "\n[[layout.zone]]\nfirst_cylinder = {}",
        zone.first_cylinder
    );
    put!(text, "last_cylinder = {}", zone.last_cylinder);
    put!(text, "sectors_per_track = {}", zone.sectors_per_track);
    put!(text, "start_sectors = {}", sectors(zone.start));
    put!(text, "track_skew_sectors = {}", sectors(zone.track_skew));
    put!(
        text,
        "cylinder_skew_sectors = {}",
        sectors(zone.cylinder_skew)
    );
    put!(
        text,
        "unmapped_sectors = {}\nspares = {}",
        zone.unmapped,
        zone.spares
    );
    if !zone.slips.is_empty() {
        put!(text, "slips = {:?}", zone.slips);
    }
    if !zone.remaps.is_empty() {
        let remaps: Vec<[u32; 2]> = zone.remaps.iter().map(|&(from, to)| [from, to]).collect();
        put!(text, "remaps = {remaps:?}");
    }
}

fn indexed_text(text: &mut String, layout: &indexed::Description) {
    put!(text, "kind = \"indexed\"\nsurfaces = {}", layout.surfaces);
    put!(text, "cylinders = {}", layout.cylinders);
    if !layout.slips.is_empty() {
        let slips: Vec<String> = layout
            .slips
            .iter()
            .map(|(place, count)| format!("[{place}, {count}]"))
            .collect();
        put!(text, "slips = [{}]", slips.join(", "));
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
        group_text(text, group);
    }
}

fn group_text(text: &mut String, group: &GroupDescription) {
    match group {
        GroupDescription::Tracks(runs) => {
            put!(text, "tracks = [");
            for run in runs {
                let (start, step) = (run.start.revolutions(), run.step.revolutions());
                let (cylinder, head, sectors) = (run.cylinder, run.head, run.sectors);
                let (tracks, blocks) = (run.tracks, run.blocks);
                put!(
                    text,
                    "  [{cylinder}, {head}, {sectors}, {start:?}, {tracks}, {step:?}, {blocks}],"
                );
            }
        }
        GroupDescription::Groups(runs) => {
            put!(text, "groups = [");
            for run in runs {
                let (start, step) = (run.start.revolutions(), run.step.revolutions());
                let (group, cylinder) = (run.group, run.cylinder);
                let (repeats, cylinders) = (run.repeats, run.cylinders);
                put!(
                    text,
                    "  [{group}, {cylinder}, {start:?}, {repeats}, {cylinders}, {step:?}],"
                );
            }
        }
    }
    put!(text, "]");
}
