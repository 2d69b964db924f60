//! What holds for every small drive, every load and all bad luck.

use block::{
    Action, Command, CommandId, Duration, Instant, Lba, Outcome, Refused, Switch, Urgency,
};
use drive::firmware::{LookAhead, QueueOrder, WriteBack};
use drive::imperfection::{
    AheadTrigger, Chance, DurableWrites, HeldLookAhead, Periodic, SlowHead, UnalignedWrites,
};
use drive::{HostJitter, Imperfections, Profile, VirtualDrive};
use proptest::prelude::*;

use crate::play::Play;
use crate::small::*;

/// A small drive with random electronics; some with two arms, some that cannot do much.
pub fn profiles() -> impl Strategy<Value = Profile> {
    let times = prop::collection::vec(0..900_000u64, 14);
    let shape = (0..5u32, 1..80u32, 0..5u32, 0..80u32, 1..3u8);
    let modes = (0..5usize, 0..3usize, 0..3usize, 1..12u32, 0..3usize);
    let shares = (0..1001u16, 0..1001u16);
    let flags = prop::collection::vec(any::<bool>(), 8);
    (times, shape, modes, shares, flags).prop_map(|(times, shape, modes, shares, flags)| {
        let mut profile = bare();
        let nanos = |n: usize| Duration::from_nanos(times[n]);
        let overheads = &mut profile.overheads;
        let pairs = [
            &mut overheads.read_hit,
            &mut overheads.read_miss,
            &mut overheads.write_hit,
            &mut overheads.write_miss,
        ];
        for (index, pair) in pairs.into_iter().enumerate() {
            (pair.read, pair.write) = (nanos(2 * index), nanos(2 * index + 1));
        }
        overheads.read_completion = nanos(8);
        overheads.write_completion = nanos(9);
        overheads.read_reselect = nanos(10);
        overheads.write_reselect = nanos(11);
        profile.bus.read_block = nanos(12);
        profile.bus.write_block = nanos(13);
        let buffer = &mut profile.buffer;
        buffer.segments = shape.0;
        buffer.segment_blocks = shape.1;
        buffer.write_segments = shape.2.min(shape.0);
        buffer.look_ahead_blocks = shape.3;
        profile.actuators = shape.4;
        buffer.look_ahead = [
            LookAhead::None,
            LookAhead::Segment,
            LookAhead::Track,
            LookAhead::Cylinder,
            LookAhead::TrackIfSequential,
        ][modes.0];
        buffer.write_back = [WriteBack::None, WriteBack::Append, WriteBack::All][modes.1];
        buffer.read_watermark = shares.0;
        buffer.write_watermark = shares.1;
        buffer.read_written = flags[0];
        buffer.look_ahead_on_hit = flags[1];
        buffer.read_on_arrival = flags[2];
        buffer.zero_latency_read = flags[3];
        buffer.zero_latency_write = flags[4];
        buffer.segment_per_write = flags[5];
        buffer.destage_first = flags[6];
        buffer.writes_in_parts = flags[7];
        buffer.destage_order = ORDERS[modes.4];
        profile.queue.order = ORDERS[modes.2];
        profile.queue.depth = modes.3;
        profile
    })
}

const ORDERS: [QueueOrder; 3] = [QueueOrder::Fcfs, QueueOrder::Sptf, QueueOrder::AgedSptf];

/// Bad luck of all kinds, also none.
pub fn luck() -> impl Strategy<Value = Imperfections> {
    let up_to = |most: u64| prop_oneof![Just(0), 0..most].prop_map(Duration::from_nanos);
    let chance = (prop_oneof![Just(0), 0..300_000u32], up_to(20_000_000))
        .prop_map(|(per_million, costs)| Chance { per_million, costs });
    let periodic = (up_to(300_000_000), up_to(20_000_000))
        .prop_map(|(every, costs)| Periodic { every, costs });
    let extents = prop::collection::vec((0..BLOCKS, 1..30u64), 0..4).prop_map(|bad| {
        let within = |(start, blocks): (u64, u64)| extent(start, blocks.min(BLOCKS - start));
        bad.into_iter().map(within).collect::<Vec<_>>()
    });
    let grown = prop::collection::vec((0..BLOCKS).prop_map(Lba), 0..3);
    let hang = prop::option::of((0..20u64, up_to(2_000_000_000)));
    let zones = prop_oneof![4 => Just(None), 1 => (1..400u64).prop_map(Some)];
    let speed = (-200..200i32, prop_oneof![Just(0), 0..100u32]);
    let noise = (up_to(500_000), up_to(100_000));
    let bad = (
        noise,
        speed,
        (chance.clone(), chance),
        (periodic.clone(), periodic.clone(), periodic),
        extents,
        grown,
        hang,
        zones,
    )
        .prop_map(
            |(noise, speed, chances, periods, unreadable, grown, hang, zone)| Imperfections {
                seek_noise: noise.0,
                settle_retry: chances.0,
                spindle_ppm: speed.0,
                spindle_drift_ppm: speed.1,
                overhead_noise: noise.1,
                recalibration: periods.0,
                media_scan: periods.1,
                irregular_scan: periods.2,
                held_look_ahead: HeldLookAhead {
                    blocks: u32::from(zone.is_none()) * 7,
                    after: match hang {
                        Some(_) => AheadTrigger::EveryRead,
                        None => AheadTrigger::SameTrack,
                    },
                },
                unaligned_writes: UnalignedWrites::ReadFirst,
                media_retry: chances.1,
                slow_head: Some(SlowHead {
                    head: speed.1 % 2,
                    slower_ppm: chances.0.per_million,
                }),
                unreadable,
                grown_defects: grown,
                hang,
                sequential_zone: zone,
                durable_writes: DurableWrites::Kept,
                durable_behind_cached: noise.1,
                host: HostJitter::default(),
                later: None,
            },
        );
    prop_oneof![1 => Just(Imperfections::default()), 2 => bad]
}

/// Any command: mostly short and near each other, so that the buffer is hit.
pub fn actions() -> impl Strategy<Value = Action> {
    let start = prop_oneof![3 => 0..120u64, 1 => 780..860u64, 1 => 0..BLOCKS];
    let blocks = prop_oneof![6 => 1..16u64, 1 => 1..120u64];
    (0..14u8, start, blocks).prop_map(|(kind, start, blocks)| {
        let blocks = blocks.min(BLOCKS - start);
        match kind {
            0..=4 => read(start, blocks),
            5 => read_medium(start, blocks),
            6..=9 => write(start, blocks),
            10 => write_medium(start, blocks),
            11 => seek(start),
            12 => Action::Flush,
            _ => match start % 4 {
                0 => Action::SetLookAhead(Switch::Off),
                1 => Action::SetLookAhead(Switch::On),
                2 => Action::SetWriteCache(Switch::Off),
                _ => Action::SetWriteCache(Switch::On),
            },
        }
    })
}

/// A command, how long after the one before it comes, and what it asks for.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub after: Duration,
    pub action: Action,
    pub urgency: Urgency,
    pub limit: Option<Duration>,
}

/// A load: bursts and pauses.
pub fn loads() -> impl Strategy<Value = Vec<Step>> {
    let after = prop_oneof![Just(0), 0..5_000_000u64, 0..60_000_000u64];
    let limit = prop_oneof![5 => Just(None), 1 => (0..40_000_000u64).prop_map(Some)];
    let urgency = prop_oneof![5 => Just(Urgency::Normal), 1 => Just(Urgency::High)];
    let step =
        (after, actions(), urgency, limit).prop_map(|(after, action, urgency, limit)| Step {
            after: Duration::from_nanos(after),
            action,
            urgency,
            limit: limit.map(Duration::from_nanos),
        });
    prop::collection::vec(step, 1..60)
}

/// Plays a load; what the drive refuses waits until something has ended.
pub fn play(play: &mut Play, load: &[Step]) {
    let mut due = play.now;
    for step in load {
        due = due.max(play.now) + step.after;
        while play.drive.held() >= play.drive.truth().queue.depth as usize {
            let wakeup = play
                .drive
                .next_wakeup()
                .expect("a full drive will end something");
            play.run_until(wakeup.max(play.now));
        }
        let at = due.max(play.now);
        play.run_until(at);
        if play.drive.held() < play.drive.truth().queue.depth as usize {
            play.submit_as(at, step.action, |command| {
                command.urgency = step.urgency;
                command.duration_limit = step.limit;
            });
        }
    }
}

/// Submits at fixed times, polls as `polls` says, and answers the outcomes in order.
fn outcomes(drive: &mut VirtualDrive, load: &[Step], polls: Polls) -> Vec<Outcome> {
    let mut seen = Vec::new();
    let mut now = Instant::ZERO;
    for (id, step) in (0..).zip(load) {
        let due = now + step.after;
        match polls {
            Polls::Late => (),
            Polls::Often(every) => {
                let mut at = now;
                while at < due {
                    seen.extend(std::iter::from_fn(|| drive.poll(at)));
                    at += every;
                }
            }
        }
        now = due;
        let command = Command {
            id: CommandId(id),
            action: step.action,
            urgency: step.urgency,
            duration_limit: step.limit,
        };
        assert_eq!(drive.submit(now, command), Ok(()));
    }
    // Long enough for everything: 60 commands with 16 long transfers each hang for 2 s at most.
    let end = now + Duration::from_secs(1_000);
    seen.extend(std::iter::from_fn(|| drive.poll(end)));
    seen
}

#[derive(Clone, Copy, Debug)]
enum Polls {
    /// Only after everything.
    Late,
    /// Every so often, whether the drive asked for it or not.
    Often(Duration),
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// The player checks: exactly once, in the order of time, the phases add up, every wakeup in
    /// the future, nothing left at the end.
    #[test]
    fn every_command_ends_once_and_its_phases_add_up(
        profile in profiles(), luck in luck(), load in loads(), seed: u64,
    ) {
        let mut player = Play::new(VirtualDrive::imperfect(arc(profile), luck, seed));
        play(&mut player, &load);
        player.drain();
    }

    #[test]
    fn the_same_seed_gives_the_same_run(
        profile in profiles(), luck in luck(), load in loads(), seed: u64,
    ) {
        let profile = arc(profile);
        let run = || {
            let drive = VirtualDrive::imperfect(profile.clone(), luck.clone(), seed);
            let mut player = Play::new(drive);
            play(&mut player, &load);
            player.drain();
            player.done
        };
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn it_does_not_matter_when_one_polls(
        profile in profiles(), luck in luck(), load in loads(), seed: u64,
        every in 100_000..40_000_000u64,
    ) {
        let order = profile.queue.order;
        let profile = arc(profile);
        let fresh = || {
            VirtualDrive::imperfect(profile.clone(), luck.clone(), seed).with_queue(100, order)
        };
        let late = outcomes(&mut fresh(), &load, Polls::Late);
        let often = Polls::Often(Duration::from_nanos(every));
        prop_assert_eq!(late.len(), load.len());
        prop_assert_eq!(late, outcomes(&mut fresh(), &load, often));
    }

    #[test]
    fn absurd_numbers_are_refused_or_survived(
        now: u64, start: u64, blocks: u64, costs: u64, ppm: i32, drift: u32, zone: u64,
        profile in profiles(),
    ) {
        let costs = Duration::from_nanos(costs);
        let luck = Imperfections {
            seek_noise: costs,
            overhead_noise: costs,
            spindle_ppm: ppm,
            spindle_drift_ppm: drift,
            recalibration: Periodic { every: Duration::from_nanos(1), costs },
            media_retry: Chance { per_million: u32::MAX, costs },
            settle_retry: Chance { per_million: u32::MAX, costs },
            hang: Some((0, costs)),
            sequential_zone: Some(zone),
            grown_defects: vec![Lba(u64::MAX), Lba(0)],
            ..Imperfections::default()
        };
        let mut drive = VirtualDrive::imperfect(arc(profile), luck, 0);
        let now = Instant::from_nanos(now);
        let Ok(extent) = block::Extent::new(Lba(start), block::Sectors(blocks)) else {
            return Ok(());
        };
        let durability = block::Durability::Volatile;
        for action in [
            Action::Read { extent, durability },
            Action::Write { extent, durability },
            Action::Seek { to: Lba(start) },
            Action::Seek { to: Lba(u64::MAX) },
        ] {
            let refused = drive.submit(now, Command::new(CommandId(0), action));
            let past_end = matches!(refused, Err(Refused::PastEnd { .. }));
            prop_assert!(past_end || start < BLOCKS);
            if let Err(refused) = refused {
                prop_assert!(!refused.to_string().is_empty());
            }
        }
        for action in [read(0, 3), write(7, 1), Action::Flush] {
            let _ = drive.submit(now, Command::new(CommandId(1), action));
            let _ = drive.poll(now);
        }
        let _ = drive.poll(Instant::from_nanos(u64::MAX));
        let _ = drive.power_cut(Instant::from_nanos(u64::MAX));
    }
}
