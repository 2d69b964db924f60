//! What was found against what is true.

use std::fmt;
use std::sync::Arc;

use block::{Duration, Instant, Lba};
use drive::seek::SeekTable;
use drive::{Geometry, HostJitter, Imperfections, Profile, VirtualDrive};
use profiler::clock::apart;
use profiler::findings::ProfilingStage;
use profiler::procedure::complete;
use profiler::rehearsal::{Rehearsed, rehearse};
use profiler::{DriveIdentity, Findings, Offers, Profiler, WritePermission};

use drive::random::RandomDrive;

/// What a drive of the 1990s may take, and larger ones are left at: "complete in at most 5 minutes".
const BUDGET: Duration = Duration::from_secs(300);

/// "Any drive usable in at most 10": who profiles may stop it then.
const LAST: Duration = Duration::from_secs(600);

/// A part with this confidence is believed: positions are, in service, above this share.
const BELIEVED: f64 = 0.75;

/// A way is as long as believed if it is not farther off, in microseconds: what a whole seek table may
/// be off by.
const CLOSE_US: f64 = 300.0;

/// Blocks that are near each other: some cylinders. A choice.
const NEIGHBOURS: u64 = 20_000;

/// By how much the share of right ways may be below the confidence: two standard deviations of what
/// so many checks as a layout is given come to (about thirty).
const FEW_CHECKS: f64 = 0.15;

/// The share of tracks that are exact on a map that is believed.
const EXACT: f64 = 0.99;

/// The same by reads alone. The map has 200 checks: all come true once in seven times if 1 % of the bounds
/// are wrong, and once in fifty if 2 % are.
const EXACT_BY_READS: f64 = 0.98;

/// How it went.
#[derive(Clone, Default)]
pub struct Judged {
    pub finished: bool,
    pub seconds: f64,
    pub probes: u64,
    pub failed: Vec<(ProfilingStage, String)>,
    pub period_ppm: Option<f64>,
    /// How far the spindle wanders, at most.
    pub drift_ppm: f64,
    pub tracks: u64,
    /// The share of blocks on known tracks; of random ones of these the shares whose tracks are exact, and
    /// whose angles are right within 1 % of a revolution.
    pub known: f64,
    pub exact: f64,
    pub right: f64,
    /// The share of exact tracks that a map which is believed has at least.
    least_exact: f64,
    /// The share whose first and last blocks are exact.
    pub bounds: f64,
    pub map: f64,
    pub surfaces: (u32, u32),
    /// Of random pairs of known blocks, the share whose distance is right within 1 % of the drive.
    pub distances: f64,
    /// Of random pairs of known tracks, half of them near each other, the share between which the
    /// way takes as long as believed, within 0.3 ms.
    pub ways: f64,
    /// How many such pairs there were.
    pub known_ways: u32,
    pub layout: f64,
    /// Mean error of the seek table at the distances measured, in microseconds.
    pub seek_us: f64,
    pub arm: f64,
}

impl Judged {
    /// Profiles a random drive with cache control.
    pub fn of(plan: &RandomDrive) -> Judged {
        let writes = WritePermission::Allowed;
        Judged::through(
            plan,
            (Offers::CacheControl, writes),
            BUDGET,
            HostJitter::default(),
        )
    }

    /// Profiles a random drive by reads alone, behind a host with this jitter.
    pub fn by_reads(plan: &RandomDrive, jitter: HostJitter) -> Judged {
        let offers = (Offers::Nothing, WritePermission::Forbidden);
        Judged::through(plan, offers, LAST, jitter)
    }

    fn through(
        plan: &RandomDrive,
        path: (Offers, WritePermission),
        budget: Duration,
        jitter: HostJitter,
    ) -> Judged {
        let truth = plan.profile().expect("a drive");
        let imperfections = plan.imperfections(truth.geometry.sectors().0);
        Judged::drive(&truth, (imperfections, plan.seed), path, budget, jitter)
    }

    /// Profiles a drive.
    pub fn drive(
        truth: &Arc<Profile>,
        (mut imperfections, seed): (Imperfections, u64),
        (offers, writes): (Offers, WritePermission),
        budget: Duration,
        jitter: HostJitter,
    ) -> Judged {
        let spindle_ppm = imperfections.spindle_ppm;
        let drift_ppm = imperfections.spindle_drift_ppm;
        imperfections.host = jitter;
        let mut drive = VirtualDrive::imperfect(Arc::clone(truth), imperfections, seed);
        let device = DriveIdentity::of(&drive, offers, writes);
        let mut profiler = Profiler::new(device, Findings::default(), |prober| {
            complete(prober, budget)
        });
        let ended = rehearse(&mut profiler, &mut drive, Instant::ZERO, LAST);
        let findings = profiler.findings();
        let mut judged = Judged {
            // By reads alone the time may be over before the map is complete.
            finished: matches!(ended, Rehearsed::Finished(_)) || offers == Offers::Nothing,
            seconds: ended.at().as_secs_f64(),
            probes: profiler.probes(),
            failed: findings.progress.failed.clone(),
            drift_ppm: f64::from(drift_ppm),
            tracks: truth.geometry.tracks(),
            map: findings.map_confidence.share(),
            surfaces: (0, truth.geometry.surfaces()),
            least_exact: match offers {
                Offers::CacheControl => EXACT,
                Offers::Nothing => EXACT_BY_READS,
            },
            ..Judged::default()
        };
        if findings.spindle.period_ps > 0 {
            let turns = 1.0 + f64::from(spindle_ppm) / 1e6;
            let period = truth.spindle.period_ps() as f64 * turns;
            judged.period_ppm = Some(findings.spindle.period_ps as f64 / period * 1e6 - 1e6);
        }
        judged.blocks(&truth.geometry, &findings);
        judged.cylinders(&truth.geometry, &findings);
        judged.arm(truth, &findings);
        judged.ways(truth, &findings);
        judged
    }

    /// Random blocks.
    fn blocks(&mut self, truth: &Geometry, findings: &Findings) {
        const BLOCKS: u64 = 4_000;
        let blocks = findings.map.known();
        self.known = blocks as f64 / truth.sectors().0 as f64;
        let mut turned: Vec<(f64, bool)> = Vec::new();
        let mut bounds = 0;
        for n in 1..=BLOCKS {
            let Some(lba) = findings.map.known_block(spread(n, blocks).0) else {
                continue;
            };
            let Some(found) = findings.map.track_of(lba) else {
                continue;
            };
            let track = truth.track_of(lba).expect("a block");
            let last = found.first.0 + u64::from(found.blocks) - 1;
            let is_exact =
                (track.first, track.last.0, track.sectors) == (found.first, last, found.sectors);
            bounds += u32::from((track.first, track.last.0) == (found.first, last));
            let place = truth.locate(lba).expect("a block");
            let Some(angle) = findings.map.angle_of(lba) else {
                continue;
            };
            turned.push((apart(angle, place.angle), is_exact));
        }
        let off = |one: f64, other: f64| (one - other - (one - other).round()).abs();
        let near = |zero: f64| {
            turned
                .iter()
                .filter(|(angle, _)| off(*angle, zero) < 0.01)
                .count()
        };
        let right = turned.iter().take(50).map(|(zero, _)| near(*zero)).max();
        let exact = turned.iter().filter(|(_, is_exact)| *is_exact).count();
        let known = turned.len() as f64;
        self.bounds = f64::from(bounds) / known.max(1.0);
        self.exact = exact as f64 / known.max(1.0);
        self.right = right.unwrap_or(0) as f64 / known.max(1.0);
    }

    /// Random pairs of blocks on known tracks.
    fn cylinders(&mut self, truth: &Geometry, findings: &Findings) {
        const PAIRS: u64 = 2_000;
        let Some(layout) = &findings.layout else {
            return;
        };
        self.layout = layout.confidence.share();
        self.surfaces.0 = layout.pattern.surfaces;
        let found = Geometry::indexed(&layout.description).expect("a geometry");
        let allowed = (truth.cylinders() / 100).max(1);
        let (mut near, mut all) = (0, 0);
        for n in 1..=PAIRS {
            let pair = [2 * n, 2 * n + 1].map(|n| spread(n, truth.sectors().0));
            if pair.iter().any(|lba| findings.map.track_of(*lba).is_none()) {
                continue;
            }
            let distance = |geometry: &Geometry| {
                let [a, b] = pair.map(|lba| geometry.locate(lba).expect("a block").cylinder);
                a.abs_diff(b)
            };
            all += 1;
            near += u32::from(distance(&found).abs_diff(distance(truth)) <= allowed);
        }
        self.distances = f64::from(near) / f64::from(all.max(1));
    }

    /// The seek table, at the distances that were measured.
    fn arm(&mut self, truth: &Profile, findings: &Findings) {
        let Some(arm) = &findings.arm else {
            return;
        };
        self.arm = arm.confidence.share();
        let error = |point: &profiler::findings::SeekPoint| {
            let time = truth
                .seek
                .read()
                .time(point.distance)
                .max(truth.head_switch);
            (point.mean.as_nanos() as f64 - time.as_nanos() as f64).abs() / 1e3
        };
        self.seek_us = arm.read.iter().map(error).sum::<f64>() / arm.read.len().max(1) as f64;
    }

    /// How long arm and head take between tracks.
    fn ways(&mut self, truth: &Profile, findings: &Findings) {
        const PAIRS: u64 = 2_000;
        let (Some(layout), Some(arm)) = (&findings.layout, &findings.arm) else {
            return;
        };
        let found = Geometry::indexed(&layout.description).expect("a geometry");
        let table = arm.read_table(found.cylinders()).expect("a table");
        let time = |geometry: &Geometry, table: &SeekTable, switch: Duration, pair: [Lba; 2]| {
            let [a, b] = pair.map(|lba| geometry.locate(lba).expect("a block"));
            let across = a.cylinder.abs_diff(b.cylinder);
            match (across, a.head == b.head) {
                (0, true) => 0.0,
                (_, true) => table.time(across).as_nanos() as f64 / 1e3,
                (_, false) => table.time(across).max(switch).as_nanos() as f64 / 1e3,
            }
        };
        let blocks = truth.geometry.sectors().0;
        let (mut near, mut all) = (0, 0);
        for n in 1..=PAIRS {
            let from = spread(2 * n, blocks);
            let to = match n % 2 {
                0 => spread(2 * n + 1, blocks),
                _ => Lba((from.0 + spread(2 * n + 1, NEIGHBOURS).0).min(blocks - 1)),
            };
            let pair = [from, to];
            if pair.iter().any(|lba| findings.map.track_of(*lba).is_none()) {
                continue;
            }
            all += 1;
            let is = time(&truth.geometry, truth.seek.read(), truth.head_switch, pair);
            let believed = time(&found, &table, arm.head_switch, pair);
            near += u32::from((is - believed).abs() < CLOSE_US);
        }
        self.known_ways = all;
        self.ways = f64::from(near) / f64::from(all.max(1));
    }

    /// Whether tracks and the ways between them are known.
    pub fn is_known(&self) -> bool {
        self.known > 0.9 && self.exact > 0.99 && self.right > 0.99 && self.ways > 0.9
    }

    /// What is wrong and believed.
    pub fn complaints(&self) -> Vec<String> {
        let mut all = Vec::new();
        let mut complain = |is_so: bool, what: &str| {
            if is_so {
                all.push(what.to_owned());
            }
        };
        complain(!self.finished, "has no end");
        let off = self
            .period_ppm
            .is_some_and(|ppm| ppm.abs() > 5.0 + self.drift_ppm);
        complain(off, "the period is wrong");
        complain(self.period_ppm.is_none(), "no period");
        // Of a map of a few tracks none of the blocks may be known.
        let map = self.map >= BELIEVED && self.known > 0.0;
        complain(map && self.right < 0.99, "angles are wrong and believed");
        complain(
            map && self.exact < self.least_exact,
            "tracks are wrong and believed",
        );
        let believed = self.layout.min(self.arm);
        complain(
            believed >= BELIEVED && self.known_ways > 0 && self.ways < believed - FEW_CHECKS,
            "ways are wrong and believed",
        );
        let is_placed = self.surfaces.0 == self.surfaces.1 && self.distances >= 0.98;
        complain(
            is_placed && self.arm >= BELIEVED && self.seek_us > 300.0,
            "seeks are wrong and believed",
        );
        all
    }
}

impl fmt::Debug for Judged {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{:3.0} s, {} probes, {} tracks, period {:.1} ppm, map {:.2} (known {:.3}, exact {:.3}, bounds {:.3}, right {:.3}), ",
            self.seconds,
            self.probes,
            self.tracks,
            self.period_ppm.unwrap_or(f64::NAN),
            self.map,
            self.known,
            self.exact,
            self.bounds,
            self.right,
        )?;
        write!(
            out,
            "layout {:.2} ({} of {} surfaces, distances {:.2}), ways {:.3}, arm {:.2} ({:.0} us) {:?}",
            self.layout,
            self.surfaces.0,
            self.surfaces.1,
            self.distances,
            self.ways,
            self.arm,
            self.seek_us,
            self.failed,
        )
    }
}

/// A block, by the golden section.
fn spread(n: u64, blocks: u64) -> Lba {
    let far = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    Lba(((u128::from(far) * u128::from(blocks)) >> 64) as u64)
}
