//! What a drive promises to streams, from its configuration.

use block::Duration;
use engine::guarantees::{Beyond, FOREGROUND_BYTES};
use engine::streams::Promise;
use stream::admission::Rules;
use stream::memory::MemoryRule;
use stream::quota::{Quotas, Rule, Who};
use stream::streams::Settings;

use crate::clock::TimeScale;
use crate::config::{StreamRule, StreamsConfig};
use crate::volume::streams;

/// The engine's part and the loop's.
pub(super) fn promised(
    config: &StreamsConfig,
    scale: TimeScale,
    block_bytes: u32,
) -> (Promise, streams::Settings) {
    (
        promise(config, scale, block_bytes),
        settings(config, block_bytes),
    )
}

/// What a drive of this time scale promises to streams, and the rule of their memory, for plans without a service.
pub fn promise_to_streams(
    config: &StreamsConfig,
    scale: TimeScale,
    block_bytes: u32,
) -> (Promise, MemoryRule) {
    let (promise, settings) = promised(config, scale, block_bytes);
    (promise, settings.memory_rule())
}

/// The engine's part, in the drive's time.
fn promise(config: &StreamsConfig, scale: TimeScale, block_bytes: u32) -> Promise {
    let drive = |margin: std::time::Duration| Duration::from_nanos(margin.as_nanos() as u64);
    Promise {
        beyond: Beyond {
            seek: drive(config.seek_margin),
            overhead: drive(config.overhead_margin),
            stall: drive(config.stall),
        },
        rules: Rules {
            foreground_permille: config.foreground_permille,
            latency: scale.model(config.latency),
            longest_round: scale.model(config.longest_round),
            streams: config.streams as usize,
        },
        quotas: match &config.rules[..] {
            [] => Quotas::open(),
            rules => Quotas::new(rules.iter().map(|rule| quota(rule, scale)).collect()),
        },
        settings: Settings {
            page: page(block_bytes),
            fill: FOREGROUND_BYTES,
            priority: FILLING,
        },
        place: None,
    }
}

/// The loop's part.
fn settings(config: &StreamsConfig, block_bytes: u32) -> streams::Settings {
    streams::Settings {
        memory: config.memory,
        batch: streams::Settings::default().batch.min(config.longest_round),
        page: page(block_bytes),
        latency: config.latency,
    }
}

/// What file systems have for a block, and no less than the drive's.
fn page(block_bytes: u32) -> u64 {
    u64::from(block_bytes.max(4096))
}

/// Buffers fill behind what people wait for. A choice: the middle of the priorities.
const FILLING: u8 = 3;

/// Clients' seconds are real ones.
fn quota(rule: &StreamRule, scale: TimeScale) -> Rule {
    let rate = match rule.rate {
        u64::MAX => u64::MAX,
        rate => (rate as f64 * scale.times()).ceil() as u64,
    };
    Rule {
        who: match (rule.user, &rule.name) {
            (None, None) => Who::Anyone,
            (Some(user), None) => Who::User(user),
            (None, Some(name)) => Who::Named(name.clone()),
            (Some(user), Some(name)) => Who::UserNamed(user, name.clone()),
        },
        streams: rule.streams as usize,
        rate,
        head_permille: rule.head_permille,
    }
}
