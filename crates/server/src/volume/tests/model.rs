//! What bytes may be: for each unit all values that some order of the operations gives it.
//!
//! A change's value is possible from its submission on. When it has ended, values whose changes had ended before
//! it was submitted are gone. A read that finds a value rules out earlier ones for later reads. It rules out none for
//! the medium: what was read may be of a change that has not ended, and a flush is for those that have.

/// Bytes of a unit: a part of a block, so that operations begin and end within blocks.
pub(super) const UNIT: u64 = 128;

#[derive(Clone, Copy, Debug)]
struct Value {
    value: u8,
    change: usize,
    /// The time at which the change ended; `usize::MAX` before.
    ended: usize,
    /// Whether a read has found a later value.
    is_passed: bool,
}

/// The units of a volume.
pub(super) struct Model {
    units: Vec<Vec<Value>>,
    now: usize,
}

/// A change that has been submitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    number: usize,
    pub(super) first: u64,
    pub(super) count: u64,
}

impl Model {
    /// All zeroes.
    pub(super) fn new(units: u64) -> Self {
        let zero = Value {
            value: 0,
            change: 0,
            ended: 0,
            is_passed: false,
        };
        Model {
            units: vec![vec![zero]; units as usize],
            now: 0,
        }
    }

    /// The number of events so far.
    pub(super) fn now(&self) -> usize {
        self.now
    }

    pub(super) fn submit(&mut self, first: u64, count: u64, value: u8) -> Change {
        self.now += 1;
        let number = self.now;
        for unit in self.range(first, count) {
            unit.push(Value {
                value,
                change: number,
                ended: usize::MAX,
                is_passed: false,
            });
        }
        Change {
            number,
            first,
            count,
        }
    }

    /// A change has ended. A certain one replaces what had ended before its submission.
    pub(super) fn end(&mut self, change: Change, is_certain: bool) {
        self.now += 1;
        let now = self.now;
        for unit in self.range(change.first, change.count) {
            for value in unit.iter_mut().filter(|v| v.change == change.number) {
                value.ended = now;
            }
            if is_certain {
                unit.retain(|value| value.change == change.number || value.ended > change.number);
            }
        }
    }

    /// A change was refused, and did nothing.
    pub(super) fn forget(&mut self, change: Change) {
        for unit in self.range(change.first, change.count) {
            unit.retain(|value| value.change != change.number);
        }
    }

    /// What a read that is submitted now may find, as long as nothing else is submitted.
    pub(super) fn possible(&self, first: u64, count: u64) -> Vec<Vec<u8>> {
        self.values(first, count, |value| !value.is_passed)
    }

    /// What the medium may have when all that has ended so far is on it.
    pub(super) fn on_medium(&self, first: u64, count: u64) -> Vec<Vec<u8>> {
        self.values(first, count, |_| true)
    }

    fn values(&self, first: u64, count: u64, is_one: impl Fn(&Value) -> bool) -> Vec<Vec<u8>> {
        let units = &self.units[first as usize..(first + count) as usize];
        let values = |unit: &Vec<Value>| {
            let possible = unit.iter().filter(|value| is_one(value));
            possible.map(|value| value.value).collect()
        };
        units.iter().map(values).collect()
    }

    /// A read that was submitted at `since` has found a value: no later one finds those that had ended by then.
    pub(super) fn found(&mut self, unit: u64, value: u8, since: usize) {
        for one in &mut self.units[unit as usize] {
            one.is_passed |= one.value != value && one.ended <= since;
        }
    }

    fn range(&mut self, first: u64, count: u64) -> &mut [Vec<Value>] {
        &mut self.units[first as usize..(first + count) as usize]
    }
}
