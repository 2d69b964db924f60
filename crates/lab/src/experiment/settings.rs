//! The settings of experiments.

/// A setting of experiments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExperimentSetting {
    /// The key.
    pub name: &'static str,
    /// The table of a single value; empty for the top of the file.
    pub table: &'static str,
    /// The kind of its values.
    pub kind: Kind,
    /// The description.
    pub what: &'static str,
}

/// The kind of a setting's values. Their users check further limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers in a range.
    Whole(u64, u64),
    /// Numbers.
    Number,
    /// Numbers, or a word.
    NumberOr(&'static str),
    /// Words.
    Text,
}

impl ExperimentSetting {
    /// The path of its key in the file.
    pub fn path(&self) -> String {
        match self.table {
            "" => self.name.to_owned(),
            table => format!("{table}.{}", self.name),
        }
    }
}

impl Kind {
    /// A description of the expected value.
    pub fn expected(self) -> String {
        match self {
            Kind::Whole(low, u64::MAX) => format!("a whole number from {low}"),
            Kind::Whole(low, high) => format!("a whole number from {low} to {high}"),
            Kind::Number => "a number".to_owned(),
            Kind::NumberOr(word) => format!("a number, or \"{word}\""),
            Kind::Text => "a text".to_owned(),
        }
    }
}

/// All settings, one line each. Parser, help and tests are made from this table.
pub const SETTINGS: &[ExperimentSetting] = &[
    top(
        "system",
        Kind::Text,
        "a description of a system, in place of drive, loads, truth and scan",
    ),
    top("drive", Kind::Text, "the drive: a name, or a profile file"),
    top("policy", Kind::Text, "the policy"),
    top(
        "workload",
        Kind::Text,
        "a synthetic load: a name, or a file",
    ),
    top("trace", Kind::Text, "a trace instead of a synthetic load"),
    top(
        "depth",
        Kind::Whole(1, u32::MAX as u64),
        "commands at the drive",
    ),
    top("requests", Kind::Whole(1, u64::MAX), "limit of requests"),
    top(
        "seconds",
        Kind::Number,
        "time of the last arrival, in virtual seconds",
    ),
    top("seed", Kind::Whole(0, u64::MAX), "the first seed"),
    load("tasks", COUNT, "clients of a closed load"),
    load("think_ms", Kind::Number, "their mean think time"),
    load("size_kib", Kind::Number, "size of all requests"),
    load("rate", Kind::Number, "requests per second of an open load"),
    load("read_fraction", Kind::Number, "share of reads, 0 to 1"),
    load("device", Kind::Text, "a trace's device, or \"all\""),
    load("format", Kind::Text, "a trace's format"),
    load("closed", COUNT, "outstanding requests of a replayed trace"),
    load("scale_time", Kind::Number, "factor of a trace's times"),
    load(
        "fit",
        Kind::Text,
        "mapping of addresses past the end: \"wrap\", \"scale\"",
    ),
    load(
        "phases",
        Kind::Text,
        "reads and writes: \"mixed\" or \"alternate\"",
    ),
    truth(
        "seek_noise_us",
        Kind::Number,
        "standard deviation of seek times, not in the belief",
    ),
    truth(
        "late_seeks",
        Kind::Text,
        "\"PERMILLE:MS\", not in the belief",
    ),
    truth(
        "held_ahead",
        Kind::Text,
        "\"BLOCKS\" or \"BLOCKS:every\": look-ahead that delays the next command",
    ),
    truth(
        "own_scan",
        Kind::Text,
        "\"EVERY_MS:MS\": a scan of the drive's own",
    ),
    truth(
        "read_first",
        Kind::Text,
        "\"on\": parts of sectors (512e) are read before they are written",
    ),
    truth(
        "host_jitter",
        Kind::Text,
        "\"US\" or \"measured-nbd\": delay of commands and outcomes by the host",
    ),
    truth("look_ahead", Kind::Text, "\"on\" or \"off\""),
    truth("write_cache", Kind::Text, "\"on\" or \"off\""),
    truth("bus_mb_s", Kind::Number, "bandwidth of the host's bus"),
    scan(
        "blocks",
        Kind::Text,
        "blocks of a scan: \"all\", or \"0..1000,5000..6000\"",
    ),
    scan(
        "until_percent",
        Kind::Whole(1, 100),
        "progress of the scan that ends the load",
    ),
    scan(
        "guard",
        Kind::NumberOr("learned"),
        "time added to predicted seeks, in ms",
    ),
    scan(
        "near_miss_us",
        Kind::Number,
        "distance from a revolution at which gaps are skipped",
    ),
    scan(
        "impact_percent",
        Kind::Number,
        "impact budget of a learned guard",
    ),
    scan(
        "same_track",
        Kind::Text,
        "free reads on foreground tracks: \"auto\", \"never\", \"allowed\"",
    ),
    scan(
        "stops",
        Kind::Whole(1, scheduler::freeblock::plan::MOST_STOPS as u64),
        "largest number of stops in a gap",
    ),
    scan(
        "paid_percent",
        Kind::Number,
        "share of head time that the scan may spend",
    ),
    scan(
        "idle_ms",
        Kind::NumberOr("never"),
        "idle time before the scan reads by itself",
    ),
];

/// The kind of a number of tasks.
const COUNT: Kind = Kind::Whole(1, simulator::workload::LARGEST_COUNT as u64);

const fn top(name: &'static str, kind: Kind, what: &'static str) -> ExperimentSetting {
    within("", name, kind, what)
}

const fn load(name: &'static str, kind: Kind, what: &'static str) -> ExperimentSetting {
    within("load", name, kind, what)
}

const fn truth(name: &'static str, kind: Kind, what: &'static str) -> ExperimentSetting {
    within("truth", name, kind, what)
}

const fn scan(name: &'static str, kind: Kind, what: &'static str) -> ExperimentSetting {
    within("scan", name, kind, what)
}

const fn within(
    table: &'static str,
    name: &'static str,
    kind: Kind,
    what: &'static str,
) -> ExperimentSetting {
    ExperimentSetting {
        name,
        table,
        kind,
        what,
    }
}
