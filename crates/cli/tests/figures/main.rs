//! The commands that simulate and measure, as a whole binary.

mod adopt;
mod bench;
mod book;
mod cache;
mod drawings;
mod drives;
mod experiment;
mod fit;
mod hostile;
mod installed;
mod narrow;
mod packaged;
mod paper;
mod profile;
mod published;
mod reported;
mod sample;
mod scan;
mod scene;
mod shards;
mod simulate;
mod stream_plan;
mod trace;
mod truth;
mod units;
mod validate;
mod verdicts;
mod whole_scan;

#[allow(
    dead_code,
    reason = "shared with the tests of services, which need more of it"
)]
#[path = "../service/judged.rs"]
mod judged;
