//! Random histories of a mirror whose drives fail and are taken out.

use std::collections::BTreeMap;

use super::*;

/// The blocks that the histories use: few, so that requests overlap.
const BLOCKS: u64 = 24;

/// A read that has not ended, with versions by block.
struct HeldRead {
    /// What it has to return at least.
    least: BTreeMap<u64, u64>,
    /// What it was given.
    got: BTreeMap<u64, u64>,
}

/// A mirror with drives that end commands in any order, and the versions that they hold.
struct History {
    engine: Engine,
    now: Instant,
    at_drive: Vec<Command>,
    /// The version of each block on each drive.
    held: [BTreeMap<u64, u64>; 2],
    /// The version of each block whose write was acknowledged last.
    acknowledged: BTreeMap<u64, u64>,
    /// Blocks of writes that failed: their versions may differ.
    undefined: Vec<u64>,
    reads: BTreeMap<RequestId, HeldRead>,
    /// When each request came.
    came: BTreeMap<RequestId, Instant>,
    next: u64,
    ended: u64,
    flushes: u64,
}

impl History {
    fn new(rule: ReadRule) -> Self {
        History {
            engine: pair(rule),
            now: Instant::ZERO,
            at_drive: Vec::new(),
            held: Default::default(),
            acknowledged: BTreeMap::new(),
            undefined: Vec::new(),
            reads: BTreeMap::new(),
            came: BTreeMap::new(),
            next: 1,
            ended: 0,
            flushes: 0,
        }
    }

    fn submit(&mut self, direction: Direction, extent: Extent) {
        self.submit_to(direction, extent, WrittenLegs::All);
    }

    fn submit_to(&mut self, direction: Direction, extent: Extent, legs: WrittenLegs) {
        let id = self.next;
        self.next += 1;
        let it = request(id, direction, extent);
        let submitted = self.engine.submit_to(self.now, it, legs);
        submitted.expect("there is room");
        self.came.insert(it.id, self.now);
        if direction == Direction::Read {
            let least = self.acknowledged.clone();
            let got = BTreeMap::new();
            self.reads.insert(RequestId(id), HeldRead { least, got });
        }
        self.poll();
    }

    fn poll(&mut self) {
        while let Some(command) = self.engine.poll(self.now) {
            self.at_drive.push(command);
        }
        self.collect();
    }

    /// Ends a command at one of the drives.
    fn complete(&mut self, which: usize, status: Status) {
        if self.at_drive.is_empty() {
            return;
        }
        let command = self.at_drive.swap_remove(which % self.at_drive.len());
        self.now += Duration::from_micros(100);
        let side = Engine::leg_of(command.id);
        let held = &mut self.held[side as usize];
        let of = self.engine.request_of(command.id);
        let status = match status {
            Status::Good => Status::Good,
            _ => error(&command),
        };
        if let (Some(request), Some(extent), Status::Good) = (of, command.action.extent(), status) {
            for block in extent.start().0..extent.end().0 {
                match request.direction {
                    Direction::Write => drop(held.insert(block, request.id.0)),
                    Direction::Read => {
                        let read = self.reads.get_mut(&request.id).expect("it is held");
                        read.got
                            .insert(block, held.get(&block).copied().unwrap_or(0));
                    }
                }
            }
        }
        let outcome = outcome(&command, self.now, status);
        self.engine.complete(self.now, command.id, outcome);
        self.collect();
        self.poll();
    }

    fn collect(&mut self) {
        while let Some(flushed) = self.engine.poll_flushed() {
            assert!(flushed.at <= self.now);
            self.flushes -= 1;
        }
        while let Some(end) = self.engine.poll_finished() {
            self.ended += 1;
            let extent = end.request.extent;
            let blocks = extent.start().0..extent.end().0;
            let is_good = end.status == Status::Good;
            assert_ne!(end.status, Status::Aborted, "no client gave {end:?} up");
            assert_eq!(Some(end.submitted), self.came.remove(&end.request.id));
            match end.request.direction {
                Direction::Write if is_good => {
                    for block in blocks {
                        let version = self.acknowledged.entry(block).or_default();
                        *version = end.request.id.0.max(*version);
                    }
                }
                Direction::Write => self.undefined.extend(blocks),
                Direction::Read => {
                    let read = self.reads.remove(&end.request.id).expect("once");
                    if is_good {
                        for block in blocks {
                            let least = read.least.get(&block).copied().unwrap_or(0);
                            assert!(read.got[&block] >= least, "block {block}: {:?}", read.got);
                        }
                    }
                }
            }
        }
    }

    fn drain(&mut self) {
        while !self.at_drive.is_empty() {
            self.complete(0, Status::Good);
        }
        assert_eq!(self.engine.held(), 0);
        assert_eq!(self.ended + 1, self.next, "each request ended once");
        assert_eq!(self.flushes, 0, "each flush ended once");
    }

    /// A drive that is out is to be filled. One that is being filled gets all from the other one, beside nothing, and is
    /// in sync again.
    fn refill(&mut self) {
        for side in Side::ALL {
            let state = match self.engine.leg(side) {
                LegState::InSync => continue,
                LegState::Out => LegState::Filling,
                LegState::Filling => {
                    self.drain();
                    self.held[side as usize] = self.held[side.other() as usize].clone();
                    LegState::InSync
                }
            };
            let set = self.engine.set_leg(self.now, side, state);
            set.expect("the other one is in sync");
        }
    }

    fn assert_acknowledged(&mut self) {
        self.drain();
        for side in Side::ALL {
            if self.engine.leg(side) != LegState::InSync {
                continue;
            }
            for (block, version) in &self.acknowledged {
                let held = self.held[side as usize].get(block).copied().unwrap_or(0);
                let is_defined = !self.undefined.contains(block);
                assert!(
                    held == *version || (!is_defined && held >= *version),
                    "{side:?}, block {block}: {held}, acknowledged {version}"
                );
            }
        }
    }
}

proptest! {
    /// Whatever fails in whatever order: a drive in sync has every acknowledged write, a read returns none that is
    /// older than what was acknowledged before it, and every request ends once.
    #[test]
    fn drives_in_sync_have_all_acknowledged_writes(
        rule in prop_oneof![Just(ReadRule::Nearest), Just(ReadRule::RoundRobin)],
        steps in proptest::collection::vec((0..12u8, 0..BLOCKS, 1..6u64, 0..16usize), 1..200)
    ) {
        let mut history = History::new(rule);
        for (kind, start, blocks, which) in steps {
            let extent = extent(start, blocks);
            match kind {
                0..=1 => history.submit(Direction::Write, extent),
                2 => history.submit_to(Direction::Write, extent, WrittenLegs::InSync),
                3..=4 => history.submit(Direction::Read, extent),
                5..=8 => history.complete(which, Status::Good),
                9 => history.complete(which, Status::TimedOut),
                10 if which < 4 => {
                    let side = Side::ALL[which % 2];
                    // The last one in sync stays.
                    let _ = history.engine.set_leg(history.now, side, LegState::Out);
                    history.poll();
                }
                10 => {
                    let id = RequestId(10_000 + history.next);
                    history.engine.flush(history.now, id).expect("room");
                    history.flushes += 1;
                    history.poll();
                }
                _ => history.refill(),
            }
        }
        history.assert_acknowledged();
    }
}
