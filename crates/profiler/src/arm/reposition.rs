//! The time of the head from one track to another, from the sectors that it just misses.
//!
//! ```text
//!   from  ---[block]|                          the command ends: the clock is anchored by it
//!                        | command given
//!   to                   |------ lead ------>[block]         taken in this revolution, or in the
//!                        |---- overhead, arm ---|            next: one answer
//! ```
//!
//! The lead of a sector follows from the believed angles. A short pause before the command permits
//! any lead, however wide sectors are.

use block::{Action, Direction, Durability, Duration, Extent, Instant, Lba, Status};
use drive::Angle;

use crate::arm::threshold::{AnswerFit, MeasuredTime, PassBracket, Threshold};
use crate::arm::track_blocks::TrackBlocks;
use crate::clock::{apart, forward};
use crate::device::{Offers, WritePermission};
use crate::findings::FoundTrack;
use crate::prober::{Continuity, Prober, Timing};

/// The angles at which blocks begin.
pub(crate) trait Angles: Sync {
    /// The angle at which a block of a track begins; `None` if it is unknown, or the block is on
    /// another track.
    fn begin(&self, on: &TrackBlocks, lba: Lba) -> Option<Angle>;
}

/// The angles of the found map.
struct Mapped<'a>(&'a Prober);

impl Angles for Mapped<'_> {
    fn begin(&self, _: &TrackBlocks, lba: Lba) -> Option<Angle> {
        self.0.findings(|findings| findings.map.angle_of(lba))
    }
}

/// The result of a trip.
#[derive(Clone, Copy, Debug, PartialEq)]
enum TripResult {
    Answered(PassBracket),
    /// A disturbance: the trip is not informative.
    Void,
}

/// The position of the head, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeadPosition {
    Unknown,
    /// The last read block is on this track.
    On {
        first: Lba,
        block: Lba,
    },
}

/// Measures the time of the head to tracks, and keeps track of its position.
pub(crate) struct Trips<'a> {
    prober: &'a Prober,
    angles: &'a dyn Angles,
    head: HeadPosition,
    /// Counts choices of blocks, so that they differ.
    choices: u64,
    /// Number of answers of the buffer.
    buffered: u32,
}

/// The time from the end of a one-block read of track `from`, immediately followed by a command, to
/// the first moment at which a block of track `to` may begin to be read (or written) without
/// another revolution. It contains the overhead of the command and the constant delay of ends. With
/// equal tracks it contains nothing else, so the difference is the time of arm and head.
///
/// Angles are those of the map, which must know both tracks. Without cache control the buffer
/// answers for blocks near earlier ones. Such answers do not count, and the others may be too few.
/// `None` if the clock is not running, the answers are contradictory, or writes are not permitted
/// or not distinguishable from those that the buffer absorbs.
pub async fn reposition(
    prober: &Prober,
    from: &FoundTrack,
    to: &FoundTrack,
    direction: Direction,
    samples: u32,
) -> Option<MeasuredTime> {
    let angles = Mapped(prober);
    let mut trips = Trips::new(prober, &angles);
    let (from, to) = (TrackBlocks::from(from), TrackBlocks::from(to));
    trips.least(&from, &to, direction, samples, None).await
}

/// The last part of a track, from which look-ahead may leave it before the next command arrives. A
/// choice: an eighth of a revolution is a millisecond.
const TAIL: u32 = 8;

/// Maximum deviation of a read's end from its predicted angle, in revolutions, if the host delays it
/// less.
const OFF: f64 = 0.02;

/// The same for a write, whose end has another constant delay.
const WRITE_OFF: f64 = 0.2;

/// The part of a track behind a read block that look-ahead may have read before the next command. A
/// choice: half a millisecond.
const REACH: u64 = 16;

/// Answers of the buffer after which whole tracks are evicted before they are read again: a buffer that
/// keeps what passes under a waiting head holds more than what was asked for. A choice.
const MOST_BUFFERED: u32 = 2;

/// Blocks that are tried for one that the buffer does not hold. A choice.
const CANDIDATES: u32 = 16;

/// Number of tries of a trip that is not informative. A choice.
const TRIES: u32 = 4;

impl<'a> Trips<'a> {
    pub fn new(prober: &'a Prober, angles: &'a dyn Angles) -> Self {
        Trips {
            prober,
            angles,
            head: HeadPosition::Unknown,
            choices: 0,
            buffered: 0,
        }
    }

    /// See [`reposition`]; `near` is an estimate and its possible error, in nanoseconds.
    pub async fn least(
        &mut self,
        from: &TrackBlocks,
        to: &TrackBlocks,
        direction: Direction,
        samples: u32,
        near: Option<(f64, f64)>,
    ) -> Option<MeasuredTime> {
        let device = self.prober.device();
        let may =
            device.writes == WritePermission::Allowed && device.offers == Offers::CacheControl;
        if direction == Direction::Write && !may {
            return None;
        }
        let period = self.period()?;
        let mut search = Threshold::new(period, near);
        // Halving takes some, and some are void.
        for _ in 0..samples * 3 + 30 {
            if search.weighed() >= samples || search.is_hopeless() {
                break;
            }
            self.step(from, to, direction, &mut search).await;
        }
        search.spread().filter(|_| search.weighed() >= samples)
    }

    /// One trip with the lead that a search requests; reports the result to the search.
    pub async fn step(
        &mut self,
        from: &TrackBlocks,
        to: &TrackBlocks,
        direction: Direction,
        search: &mut Threshold,
    ) {
        // On one track without cache control no sector that has passed already can be asked for: it is read
        // by then.
        let least = match from.first == to.first && self.needs_fresh_tracks() {
            true => 0.0,
            false => f64::NEG_INFINITY,
        };
        let lead = search.lead().max(least);
        if let TripResult::Answered(answer) = self.attempt(from, to, direction, lead).await
            && search.take(answer) == AnswerFit::Odd
        {
            self.head = HeadPosition::Unknown;
        }
    }

    /// One trip for a read, with a lead in nanoseconds; a second one if the first is not
    /// informative.
    pub async fn try_once(
        &mut self,
        from: &TrackBlocks,
        to: &TrackBlocks,
        lead: f64,
    ) -> Option<PassBracket> {
        for _ in 0..TRIES {
            if let TripResult::Answered(answer) =
                self.attempt(from, to, Direction::Read, lead).await
            {
                return Some(answer);
            }
        }
        None
    }

    /// The current time.
    pub fn now(&self) -> Instant {
        self.prober.now()
    }

    /// How long after the end of a block its read may end, and the next command come: no longer than a whole answer of the
    /// buffer, and a delay of the host, in nanoseconds.
    pub fn longest_delay(&self) -> f64 {
        let host = self.prober.findings(|findings| findings.host);
        (host.floor + host.late).as_nanos() as f64
    }

    fn period(&self) -> Option<f64> {
        let clock = self.prober.findings(|findings| findings.clock);
        clock.map(|clock| clock.period())
    }

    /// Whether the buffer would answer for tracks that were read before.
    pub fn needs_fresh_tracks(&self) -> bool {
        self.prober.device().offers == Offers::Nothing
    }

    /// One trip from one track to another, with a lead in nanoseconds. Without cache control it is from
    /// and to blocks that were not read lately; if there are none, or the buffer has answered for such
    /// blocks, it waits until other reads have evicted both tracks.
    async fn attempt(
        &mut self,
        from: &TrackBlocks,
        to: &TrackBlocks,
        direction: Direction,
        lead: f64,
    ) -> TripResult {
        if !self.needs_fresh_tracks() {
            return self.attempt_now(from, to, (direction, lead), None).await;
        }
        self.head = HeadPosition::Unknown;
        if from.first != to.first && self.buffered < MOST_BUFFERED {
            let turn = self.prober.turn(0).await;
            if let Some(block) = self.fresh(from, to, lead) {
                let way = (direction, lead);
                return self.attempt_now(from, to, way, Some(block)).await;
            }
            drop(turn);
        }
        loop {
            let turn = self.prober.turn(self.evicted(from, to)).await;
            // Others may have read near these tracks before this turn came.
            if self.prober.reads() >= self.evicted(from, to) {
                let block = match from.first == to.first {
                    true => self.before_the_end(from, lead),
                    false => None,
                };
                let way = (direction, lead);
                return self.attempt_now(from, to, way, block).await;
            }
            drop(turn);
        }
    }

    /// A block of a track that the buffer does not hold, if look-ahead reads no farther than known, and
    /// from which the lead comes to such a block of another track.
    fn fresh(&mut self, from: &TrackBlocks, to: &TrackBlocks, lead: f64) -> Option<Lba> {
        let usable = from.blocks.saturating_sub(from.sectors / TAIL).max(1);
        let turned = forward(lead / self.period()?);
        for _ in 0..CANDIDATES {
            let block = Lba(from.first.0 + self.choice(u64::from(usable)));
            let ends = self.angles.begin(from, block)? + from.width();
            let there = self.behind(to, ends + turned)?.1;
            if self.is_fresh(from, block) && self.is_fresh(to, there) {
                return Some(block);
            }
        }
        None
    }

    /// Whether the buffer holds no block of a track that a read of `block` would find.
    fn is_fresh(&self, track: &TrackBlocks, block: Lba) -> bool {
        let reach = u64::from(track.sectors) / REACH;
        let near = block.0.saturating_sub(2 * reach)..block.0 + reach;
        self.prober.reads() >= self.prober.fresh_after(near)
    }

    /// The number of reads of the medium after which the buffer holds nothing of two tracks.
    fn evicted(&self, from: &TrackBlocks, to: &TrackBlocks) -> u64 {
        let of = |track: &TrackBlocks| {
            let (first, sectors) = (track.first.0, u64::from(track.sectors));
            let from = first.saturating_sub(sectors / REACH);
            self.prober.fresh_after(from..first + sectors)
        };
        of(from).max(of(to))
    }

    async fn attempt_now(
        &mut self,
        from: &TrackBlocks,
        to: &TrackBlocks,
        (direction, lead): (Direction, f64),
        block: Option<Lba>,
    ) -> TripResult {
        if !self.stand_on(from, block).await {
            return TripResult::Void;
        }
        let is_same = from.first == to.first && self.needs_fresh_tracks();
        let gap = if is_same { from.gap() } else { 0.0 };
        let Some((lba, pause)) = self.choose(to, lead, gap) else {
            self.head = HeadPosition::Unknown;
            return TripResult::Void;
        };
        if !pause.is_zero() {
            self.prober.pause(pause).await;
        }
        let timing = self.prober.ask(self.action(lba, direction)).await;
        let most = if is_same { 1.0 } else { f64::INFINITY };
        let answer = self.judge(to, lba, (direction, lead), most, &timing);
        self.head = match (&answer, direction) {
            (TripResult::Answered(_), Direction::Read) => HeadPosition::On {
                first: to.first,
                block: lba,
            },
            _ => HeadPosition::Unknown,
        };
        answer
    }

    /// The block of a track from which its first block is as far as the lead. No look-ahead has read
    /// that one: it is still on its way to the end of the track when the next command arrives.
    fn before_the_end(&self, track: &TrackBlocks, lead: f64) -> Option<Lba> {
        let ahead = (lead / self.period()? * f64::from(track.sectors)).ceil() as u64;
        let spare = u64::from(track.sectors.saturating_sub(track.blocks));
        let back = ahead.saturating_sub(spare).min(u64::from(track.blocks) - 1);
        Some(Lba(track.first.0 + u64::from(track.blocks) - 1 - back))
    }

    /// Moves the head to a track, unless it is there, by a read of `block`, or of any one, that anchors
    /// the clock. Returns whether it is there.
    async fn stand_on(&mut self, track: &TrackBlocks, block: Option<Lba>) -> bool {
        let tail = track.sectors / TAIL;
        let usable = track.blocks.saturating_sub(tail).max(1);
        if let HeadPosition::On { first, block } = self.head
            && first == track.first
            && block.0 - first.0 < u64::from(usable)
        {
            return true;
        }
        self.head = HeadPosition::Unknown;
        let any = Lba(track.first.0 + self.choice(u64::from(usable)));
        let lba = block.unwrap_or(any);
        let sighting = match self.prober.sight_now(lba).await {
            Ok(Some(sighting)) => sighting,
            Ok(None) => {
                self.buffered += 1;
                return false;
            }
            Err(_) => return false,
        };
        let Some(error) = self.anchor(track, lba, sighting.at) else {
            return false;
        };
        let there = error.abs() < self.off();
        if there {
            self.head = HeadPosition::On {
                first: track.first,
                block: lba,
            };
        }
        there
    }

    /// Corrects the clock by a completed read. Returns the previous error.
    fn anchor(&self, track: &TrackBlocks, lba: Lba, at: Instant) -> Option<f64> {
        let end = self.angles.begin(track, lba)? + track.width();
        self.prober.anchor(end, at)
    }

    /// Maximum deviation of a read's end from its predicted angle, in revolutions.
    fn off(&self) -> f64 {
        self.prober.findings(|findings| {
            let clock = findings.clock.as_ref();
            clock.map_or(OFF, |clock| OFF.max(2.0 * findings.host.late_turns(clock)))
        })
    }

    /// A number below `of`, different each time.
    fn choice(&mut self, of: u64) -> u64 {
        self.choices += 1;
        // The golden section spreads them.
        let spread = self.choices.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((u128::from(spread) * u128::from(of)) >> 64) as u64
    }

    /// The first block of a track that begins at the lead after now or later, and the pause that
    /// makes the lead exact: not longer than a part of a revolution, and a gap behind the last block in revolutions.
    fn choose(&self, track: &TrackBlocks, lead: f64, gap: f64) -> Option<(Lba, Duration)> {
        let clock = self.prober.findings(|findings| findings.clock)?;
        let now = self.prober.now();
        let aim = clock.angle_at(now) + forward(lead / clock.period());
        let (wait, lba) = self.behind(track, aim)?;
        let spindle = clock.spindle();
        let pause = spindle.time_of(Angle::from_raw(wait));
        let longest = Angle::fraction(1, u64::from(TAIL) * 2) + forward(gap);
        let longest = spindle.time_of(longest);
        (pause <= longest).then_some((lba, pause))
    }

    /// The first block of a track that begins at an angle or behind it, and the angle between, raw.
    fn behind(&self, track: &TrackBlocks, aim: Angle) -> Option<(u64, Lba)> {
        let width = track.width();
        let start = self.angles.begin(track, track.first)?;
        let sector = (aim - start).raw().div_ceil(width.raw());
        // Slipped sectors before a block put it later than its number says.
        let slack = u64::from(track.sectors - track.blocks.min(track.sectors));
        let first = sector.saturating_sub(slack);
        let candidates = (first..=sector).filter(|&index| index < u64::from(track.blocks));
        // Or past the end of the track: its beginning is next.
        candidates
            .chain([0])
            .filter_map(|index| {
                let lba = Lba(track.first.0 + index);
                let begin = self.angles.begin(track, lba)?;
                Some(((begin - aim).raw(), lba))
            })
            .min()
    }

    fn action(&self, lba: Lba, direction: Direction) -> Action {
        let extent = Extent::block(lba);
        match direction {
            Direction::Read => self.prober.from_medium(extent),
            Direction::Write => Action::Write {
                extent,
                durability: Durability::Durable,
            },
        }
    }

    /// The constraint on the threshold from an answer. Where the head had no way to go, it is ready within one revolution
    /// of the first pass: if more passed, it had left the track, and has missed one.
    fn judge(
        &mut self,
        to: &TrackBlocks,
        lba: Lba,
        (direction, lead): (Direction, f64),
        most_turns: f64,
        timing: &Timing,
    ) -> TripResult {
        let took = timing.ended.since(timing.submitted);
        let clock = self.prober.findings(|findings| findings.clock);
        let Some(clock) = clock else {
            return TripResult::Void;
        };
        if timing.status != Status::Good || timing.order != Continuity::Direct {
            return TripResult::Void;
        }
        let Some(begin) = self.angles.begin(to, lba) else {
            return TripResult::Void;
        };
        let (period, end) = (clock.period(), begin + to.width());
        let off = apart(end, clock.angle_at(timing.ended));
        let allowed = match direction {
            Direction::Read => self.off(),
            Direction::Write => WRITE_OFF,
        };
        if off.abs() > allowed {
            self.buffered += u32::from(took <= self.prober.findings(|findings| findings.fast));
            return TripResult::Void;
        }
        if direction == Direction::Read {
            self.anchor(to, lba, timing.ended);
        }
        // The lead as it was, however long the pause was in fact.
        let aside = apart(
            clock.angle_at(timing.submitted) + forward(lead / period),
            begin,
        );
        let lead = lead + aside * period;
        let width = to.width().revolutions() * period;
        let turns = ((took.as_nanos() as f64 - lead - width) / period).round();
        let turns = turns.min(most_turns);
        let made = lead + turns * period;
        TripResult::Answered(PassBracket {
            missed: made - period,
            made,
        })
    }
}
