//! Against an owner that keeps, of each block, every version that it ever had.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const BLOCKS: u64 = 12;
const LIMIT: usize = 5;
const AGE: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
enum Step {
    /// A block is stored, in a frame.
    Store(u64),
    /// A block goes from its frame.
    Evict(u64),
    /// What is next begins to be written: at most so many blocks, before this one.
    Begin(u64, u64),
    /// One of the writes that may end does: well, or not.
    End(usize, bool),
    /// There are no blocks from here on any more, and then there are again.
    Cut(u64),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..BLOCKS).prop_map(Step::Store),
        3 => (0..BLOCKS).prop_map(Step::Evict),
        4 => (1..5u64, 1..=BLOCKS).prop_map(|(most, end)| Step::Begin(most, end)),
        4 => (any::<usize>(), prop::bool::weighted(0.9)).prop_map(|(which, well)| Step::End(which, well)),
        1 => (0..=BLOCKS).prop_map(Step::Cut),
        1 => (0..1500u64).prop_map(Step::Wait),
    ]
}

/// A write under way: its blocks with the serials of their versions.
struct Writing {
    next: WriteBackTarget,
    versions: Vec<(u64, u64)>,
}

/// The owner. A version of a block is the serial under which it was stored.
struct Owner {
    unwritten: Unwritten,
    now: Instant,
    serial: u64,
    /// Where blocks in frames are, and the versions at places.
    places: BTreeMap<u64, StoreSlot>,
    versions: BTreeMap<u32, u64>,
    free: Vec<u32>,
    writing: Vec<Writing>,
    /// The versions below, and those that were stored and are not to be found there any more.
    below: BTreeMap<u64, u64>,
    gone: Vec<(u64, u64)>,
    /// Blocks and serials of all that was stored.
    stored: Vec<(u64, u64)>,
    has_failed: bool,
}

impl Owner {
    fn new() -> Self {
        let places = BLOCKS as usize + LIMIT;
        Owner {
            unwritten: Unwritten::new(places, LIMIT, AGE),
            now: Instant::ZERO,
            serial: 0,
            places: BTreeMap::new(),
            versions: BTreeMap::new(),
            free: (0..places as u32).collect(),
            writing: Vec::new(),
            below: BTreeMap::new(),
            gone: Vec::new(),
            stored: Vec::new(),
            has_failed: false,
        }
    }

    fn take_step(&mut self, step: &Step) {
        match *step {
            Step::Store(block) => self.store(block),
            Step::Evict(block) => self.evict(block),
            Step::Begin(most, end) => self.begin(most, end),
            Step::End(which, is_well) => {
                self.end(which, is_well);
            }
            Step::Cut(end) => self.cut(end),
            Step::Wait(ms) => self.now += Duration::from_millis(ms),
        }
        assert!(self.unwritten.count() <= LIMIT);
        assert_eq!(self.unwritten.count(), self.newer().len());
    }

    fn store(&mut self, block: u64) {
        if !self.unwritten.has_room(1) {
            return;
        }
        self.serial += 1;
        let free = &mut self.free;
        let taken = || {
            StoreSlot(
                free.pop()
                    .expect("a place for each frame and each that left"),
            )
        };
        let place = *self.places.entry(block).or_insert_with(taken);
        self.versions.insert(place.0, self.serial);
        self.stored.push((block, self.serial));
        self.unwritten.store(self.now, place, block, self.serial);
        assert!(self.unwritten.has(place) && self.unwritten.has_any(Interval::new(block, block)));
    }

    fn evict(&mut self, block: u64) {
        if let Some(place) = self.places.remove(&block)
            && !self.unwritten.evict(place, block)
        {
            self.free.push(place.0);
        }
    }

    fn begin(&mut self, most: u64, end: u64) {
        let places = self.places.clone();
        let place = |block: u64| places.get(&block).copied();
        let Some(next) = self.unwritten.next((most, end), place) else {
            return assert_eq!(
                self.unwritten.count(),
                0,
                "the oldest can always be written"
            );
        };
        let blocks = next.blocks();
        assert!(!blocks.is_empty() && blocks.len() <= most);
        let versions = match next {
            WriteBackTarget::Evicted(evicted) => {
                vec![(evicted.block, self.versions[&evicted.slot.0])]
            }
            WriteBackTarget::Run { .. } => {
                assert!(
                    self.unwritten.evicted().is_empty(),
                    "what has left goes first"
                );
                let version = |block| (block, self.versions[&places[&block].0]);
                blocks.blocks().map(version).collect()
            }
        };
        for &(block, version) in &versions {
            let earlier = self.writing.iter().flat_map(|writing| &writing.versions);
            let mut earlier = earlier.filter(|(other, _)| *other == block);
            assert!(
                earlier.all(|&(_, earlier)| earlier < version),
                "in their order"
            );
            assert!(self.below.get(&block).is_none_or(|&below| below < version));
            assert!(next.serial() <= version, "a barrier may not miss it");
        }
        self.unwritten.begin(&next, place);
        if let WriteBackTarget::Evicted(evicted) = next {
            self.free.push(evicted.slot.0);
        }
        self.writing.push(Writing { next, versions });
    }

    /// Ends one of the writes that overlap none before them; whether there was one.
    fn end(&mut self, which: usize, is_well: bool) -> bool {
        let overlaps = |one: Interval, other: Interval| one.blocks().any(|b| other.contains(b));
        let is_first = |place: &usize| {
            let blocks = self.writing[*place].next.blocks();
            let mut before = self.writing[..*place].iter();
            !before.any(|writing| overlaps(writing.next.blocks(), blocks))
        };
        let may: Vec<usize> = (0..self.writing.len()).filter(is_first).collect();
        if may.is_empty() {
            return false;
        }
        let Writing { next, versions } = self.writing.remove(may[which % may.len()]);
        let result = match is_well {
            true => Ok(()),
            false => Err(Lost),
        };
        self.unwritten
            .ended(next.serial(), next.blocks().len(), result);
        match is_well {
            true => self.below.extend(versions),
            false => {
                self.gone.extend(versions);
                self.has_failed = true;
            }
        }
        true
    }

    fn cut(&mut self, end: u64) {
        let beyond: Vec<(u64, u64)> = self
            .newer()
            .into_iter()
            .filter(|(b, _)| *b >= end)
            .collect();
        let freed = self.unwritten.cut(end);
        self.free.extend(freed.iter().map(|place| place.0));
        self.gone.extend(beyond);
        assert!(!self.unwritten.has_any(Interval::new(end, BLOCKS)));
    }

    /// Blocks that are newer than below, and what they are: those in frames, and those that left.
    fn newer(&self) -> Vec<(u64, u64)> {
        let version = |place: StoreSlot| self.versions[&place.0];
        let in_frames = self
            .places
            .iter()
            .filter(|(_, place)| self.unwritten.has(**place));
        let in_frames = in_frames.map(|(&block, &place)| (block, version(place)));
        let evicted = self.unwritten.evicted().iter();
        let evicted = evicted.map(|evicted| (evicted.block, version(evicted.slot)));
        in_frames.chain(evicted).collect()
    }

    /// All that was stored under the serial or an earlier one is below, or something newer of its block
    /// is, or it was lost: what no barrier waits for.
    fn is_below(&self, serial: u64) -> bool {
        let stored = self.stored.iter().filter(|(_, version)| *version <= serial);
        let mut newest = BTreeMap::new();
        newest.extend(stored.copied());
        newest.iter().all(|(block, version)| {
            let is_gone = |gone: &(u64, u64)| gone.0 == *block && gone.1 >= *version;
            self.below.get(block).is_some_and(|below| below >= version)
                || self.gone.iter().any(is_gone)
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    /// At each moment, for each barrier that somebody might have set.
    #[test]
    fn a_barrier_is_passed_when_all_before_it_is_below_and_versions_come_in_their_order(
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut owner = Owner::new();
        for step in &steps {
            owner.take_step(step);
            for serial in 0..=owner.serial {
                let is_passed = !owner.unwritten.has_unwritten(serial);
                prop_assert!(!is_passed || owner.is_below(serial), "barrier {}", serial);
            }
            if matches!(step, Step::End(..)) {
                let told = owner.unwritten.take_failure();
                prop_assert_eq!(told, std::mem::take(&mut owner.has_failed));
                prop_assert!(!owner.unwritten.take_failure(), "once");
            }
        }
        // Whoever waits gets all of it written, and no barrier is left.
        owner.unwritten.set_urgent();
        while owner.unwritten.is_due(owner.now) || owner.end(0, true) {
            owner.begin(3, BLOCKS);
        }
        prop_assert!(!owner.unwritten.has_unwritten(u64::MAX));
        prop_assert!(!owner.unwritten.is_urgent());
        prop_assert_eq!(owner.free.len() + owner.places.len(), BLOCKS as usize + LIMIT);
    }
}

#[test]
fn a_failed_write_loses_its_version_and_not_what_was_stored_over_it() {
    let mut owner = Owner::new();
    owner.store(3);
    owner.begin(4, BLOCKS);
    owner.store(3);
    assert!(owner.end(0, false));
    assert!(owner.unwritten.take_failure() && !owner.unwritten.take_failure());
    assert_eq!(owner.unwritten.written_and_lost(), (1, 1));
    // The first barrier waits for nothing any more; the second for what is still to be written.
    assert!(!owner.unwritten.has_unwritten(1) && owner.unwritten.has_unwritten(2));
    owner.begin(4, BLOCKS);
    assert!(owner.end(0, true));
    assert_eq!(owner.below[&3], 2);
    assert!(!owner.unwritten.has_unwritten(2));
}

#[test]
fn what_is_stored_after_a_barrier_delays_nobody() {
    let mut owner = Owner::new();
    owner.store(0);
    owner.store(8);
    owner.begin(1, BLOCKS);
    assert!(owner.end(0, true));
    assert!(!owner.unwritten.has_unwritten(1));
    assert!(owner.unwritten.has_unwritten(2));
}

#[test]
fn the_oldest_goes_first_with_what_follows_it_and_what_has_left_before_it() {
    let mut owner = Owner::new();
    for block in [5, 2, 6, 9] {
        owner.store(block);
    }
    owner.evict(9);
    for _ in 0..3 {
        owner.begin(4, BLOCKS);
    }
    let begun = owner.writing.iter().map(|writing| writing.next.blocks());
    let expected = [(9, 9), (5, 6), (2, 2)].map(|(first, last)| Interval::new(first, last));
    assert_eq!(begun.collect::<Vec<_>>(), expected);
}

#[test]
fn what_nobody_waits_for_is_written_when_it_is_old_or_when_there_are_many() {
    let mut owner = Owner::new();
    owner.store(0);
    assert!(!owner.unwritten.is_due(owner.now));
    assert_eq!(owner.unwritten.next_due(), Some(owner.now + AGE));
    assert!(owner.unwritten.is_due(owner.now + AGE));
    // Three of five are many; it goes on until one is left.
    owner.store(2);
    assert!(!owner.unwritten.is_due(owner.now));
    owner.store(4);
    for left in [3, 2] {
        assert_eq!(owner.unwritten.count(), left);
        assert!(owner.unwritten.is_due(owner.now));
        owner.begin(1, BLOCKS);
    }
    assert!(!owner.unwritten.is_due(owner.now));
}
