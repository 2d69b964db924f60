//! A drive's engine and its loop, from its parts.

use std::io;
use std::sync::Arc;

use block::Instant;
use drive::Profile;
use engine::explanation::Known;
use engine::{Engine, Limits, ReadRule, Rules};
use scheduler::ordering::{Grace, Phases};
use scheduler::policy::{Depth, NamedPolicy};

use super::caching::Caches;
use super::mirrored::MirrorParts;
use super::promise::promised;
use super::{Parts, recording};
use crate::capture::{Tasks, Tracking};
use crate::clients::Bounds;
use crate::clock::Clock;
use crate::config;
use crate::event_loop::EventLoop;
use crate::featureless;
use crate::station::Station;
use crate::volume::{Export, OpenBitmap};

/// Starts a drive's loop.
pub(super) fn station(
    config: &config::DriveConfig,
    limits: &config::Limits,
    parts: Parts,
    exports: Vec<Export>,
    (caches, bitmaps): (Caches, Vec<OpenBitmap>),
) -> Result<Station, String> {
    let policy = config.policy;
    let is_known = parts.belief.is_some();
    let featureless = || {
        let profile = featureless::profile(&config.name, parts.blocks, parts.block_bytes);
        profile.map(Arc::new).map_err(|error| error.to_string())
    };
    let believed = |belief: Option<Arc<Profile>>| belief.map_or_else(featureless, Ok);
    let belief = believed(parts.belief.clone())?;
    let mirror = match parts.mirror {
        Some(MirrorParts { second, read }) => Some((believed(second)?, read)),
        None => None,
    };
    let bounds = bounds(limits);
    let grace = match is_known {
        true => config.grace.with_belief(),
        false => config.grace.without_belief(),
    };
    let mut limits = limits_of(policy, &belief, config.phases, grace);
    if !is_known {
        // Nobody predicts anything: the kernel or the memory may have as much as it takes.
        limits.commands_at_drive = limits.commands_at_drive.max(UNKNOWN_DEPTH);
    }
    let known = explained_by(is_known);
    let is_followed = is_known && policy.depth() == Depth::JustInTime;
    let uses = match is_followed {
        true => uses(limits, || config.background(&belief)),
        false => (Tracking::Off, Tasks::None),
    };
    let streams = config.streams.as_ref().filter(|_| is_followed);
    let promised = streams.map(|streams| promised(streams, parts.scale, parts.block_bytes));
    let preemption = config.preemption.filter(|_| is_followed);
    let preemption = preemption.map(|rules| rules.rules(&belief));
    let layout = (parts.blocks, parts.block_bytes);
    let recorder = recording::begin(config, layout, limits, uses, preemption)?;
    let name = format!("drive {}", config.name);
    let (scale, make, cpu_latency) = (parts.scale, parts.back_end, config.cpu_latency_us);
    Station::start(&name, move |mailbox| {
        let engine = bare(belief, mirror, policy, limits)?;
        let mut engine = used(engine, (policy, known), uses, Instant::ZERO);
        if let Some(rules) = preemption {
            engine = engine.with_preemption(rules);
        }
        let settings = promised.as_ref().map(|(_, settings)| *settings);
        if let Some((promise, _)) = promised {
            engine = engine.with_guarantees(promise).map_err(io::Error::other)?;
        }
        let (clock, back_end) = (Clock::start(scale), make()?);
        let event_loop = EventLoop::new(clock, engine, back_end, exports, mailbox, bounds)?;
        let event_loop = event_loop.with_streams(settings.unwrap_or_default());
        let mut event_loop = event_loop
            .with_cpu_latency(cpu_latency)
            .with_caches(&caches)?;
        for bitmap in bitmaps {
            event_loop.checkpoints().add_bitmap(bitmap)?;
        }
        Ok(match recorder {
            Some(recorder) => event_loop.with_capture(recorder),
            None => event_loop,
        })
    })
    .map_err(|error| error.to_string())
}

/// What explanations of response times rest on.
fn explained_by(is_known: bool) -> Known {
    match is_known {
        true => Known::Profile,
        false => Known::Nothing,
    }
}

/// The limits of an engine that follows a policy, with these turns of reads and writes and this grace period.
pub(super) fn limits_of(
    policy: NamedPolicy,
    belief: &Profile,
    phases: Phases,
    grace: Option<Grace>,
) -> Limits {
    Limits {
        phases,
        grace,
        ..Limits::suited_to(policy, belief)
    }
}

/// The uses of a belief that an engine follows.
pub(super) fn uses(limits: Limits, rules: impl FnOnce() -> Rules) -> (Tracking, Tasks) {
    match limits.commands_at_drive {
        // A drive that takes one command at a time has no gaps that another could fill.
        0 | 1 => (Tracking::On, Tasks::None),
        _ => (Tracking::On, Tasks::By(rules())),
    }
}

/// An engine with these uses of its belief, as one that begins at `now`.
pub(super) fn engine_of(
    belief: Arc<Profile>,
    policy: NamedPolicy,
    (limits, known): (Limits, Known),
    (tracking, tasks): (Tracking, Tasks),
    now: Instant,
) -> Engine {
    let engine = Engine::new(belief, &|| policy.make(), limits);
    used(engine, (policy, known), (tracking, tasks), now)
}

/// An engine of a drive, or of a mirror with a second leg.
fn bare(
    belief: Arc<Profile>,
    mirror: Option<(Arc<Profile>, ReadRule)>,
    policy: NamedPolicy,
    limits: Limits,
) -> io::Result<Engine> {
    match mirror {
        None => Ok(Engine::new(belief, &|| policy.make(), limits)),
        Some((second, read)) => Engine::mirrored([belief, second], read, &|| policy.make(), limits)
            .map_err(io::Error::other),
    }
}

/// An engine that uses its belief so, as one that begins at `now`.
fn used(
    engine: Engine,
    (policy, known): (NamedPolicy, Known),
    (tracking, tasks): (Tracking, Tasks),
    now: Instant,
) -> Engine {
    let mut engine = engine.starting_at(now).with_explanations(known);
    if let Tasks::By(rules) = tasks {
        engine = engine.with_background(rules);
    }
    match tracking {
        Tracking::On => engine.with_tracking(policy),
        Tracking::Off => engine,
    }
}

fn bounds(limits: &config::Limits) -> Bounds {
    Bounds {
        memory: usize::try_from(limits.buffer_bytes).unwrap_or(usize::MAX),
        connections: limits.connections as usize,
        requests: limits.requests_per_connection as usize,
        longest: limits.request_bytes as usize,
        pause: std::time::Duration::from_secs(u64::from(limits.handshake_s)),
    }
}

/// Commands at a back end of which nothing is known: what Linux gives a disk with a deep queue. A
/// choice.
const UNKNOWN_DEPTH: usize = 128;
