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
    top("drive", Kind::Text, "the drive: a name, or a profile file"),
    top("policy", Kind::Text, "the policy"),
    top(
        "workload",
        Kind::Text,
        "a synthetic load: a name, or a file",
    ),
    top("trace", Kind::Text, "a trace instead"),
    top(
        "depth",
        Kind::Whole(1, u32::MAX as u64),
        "commands at the drive at once",
    ),
    top("requests", Kind::Whole(1, u64::MAX), "how many are served"),
    top(
        "seconds",
        Kind::Number,
        "the last arrival, in virtual seconds",
    ),
    top("seed", Kind::Whole(0, u64::MAX), "the first seed"),
    load("tasks", COUNT, "clients of a closed load"),
    load("think_ms", Kind::Number, "their mean time of thinking"),
    load("size_kib", Kind::Number, "one size for all requests"),
    load("rate", Kind::Number, "requests a second, an open load"),
    load("read_fraction", Kind::Number, "the share that reads"),
    load("device", Kind::Text, "a trace's device, or \"all\""),
    load("format", Kind::Text, "a trace's format"),
    load(
        "closed",
        COUNT,
        "a trace replayed with so many requests pending",
    ),
    load("scale_time", Kind::Number, "multiplies a trace's times"),
    load(
        "fit",
        Kind::Text,
        "brings a trace onto the drive: \"wrap\", \"scale\"",
    ),
    load(
        "phases",
        Kind::Text,
        "reads and writes: \"mixed\", or in turns: \"alternate\"",
    ),
    truth(
        "seek_noise_us",
        Kind::Number,
        "a seek's standard deviation, unknown to the belief",
    ),
    truth(
        "late_seeks",
        Kind::Text,
        "\"PERMILLE:MS\", unknown to the belief",
    ),
    truth("look_ahead", Kind::Text, "\"on\" or \"off\""),
    truth("write_cache", Kind::Text, "\"on\" or \"off\""),
    truth("bus_mb_s", Kind::Number, "the speed of the host's bus"),
    scan(
        "blocks",
        Kind::Text,
        "what is read in the background: \"all\", or \"0..1000,5000..6000\"",
    ),
    scan(
        "until_percent",
        Kind::Whole(1, 100),
        "the load ends when so much of it is read",
    ),
    scan(
        "guard",
        Kind::NumberOr("learned"),
        "added to predicted seeks, in ms",
    ),
    scan(
        "near_miss_us",
        Kind::Number,
        "gaps so near to a revolution are left alone",
    ),
    scan(
        "impact_percent",
        Kind::Number,
        "what a learned guard may cost the foreground",
    ),
    scan(
        "same_track",
        Kind::Text,
        "reads on the foreground's tracks: \"on\" or \"off\"",
    ),
    scan(
        "stops",
        Kind::Whole(1, scheduler::freeblock::plan::MOST_STOPS as u64),
        "reads on one way",
    ),
    scan(
        "paid_percent",
        Kind::Number,
        "head time that may be spent on it",
    ),
    scan(
        "idle_ms",
        Kind::NumberOr("never"),
        "it goes by itself when nobody was there so long",
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
