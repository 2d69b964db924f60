//! A bounded map that drops the least recently used entry. All memory is allocated at the
//! beginning.
//!
//! ```text
//!   index (open addressing)     slots: key, value, newer, older
//!   [ . 2 . . 0 1 . . ]   --->  [0] <-> [2] <-> [1]
//!                               newest        oldest
//! ```

/// A key of an [`LruMap`].
pub trait Key: Copy + Eq {
    /// A number whose upper bits differ for most pairs of keys.
    fn mixed(self) -> u64;
}

impl Key for u64 {
    /// Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4): neighbours spread evenly.
    fn mixed(self) -> u64 {
        self.wrapping_mul(GOLDEN)
    }
}

impl Key for (u32, u64) {
    fn mixed(self) -> u64 {
        (self.1 ^ u64::from(self.0).rotate_left(40)).wrapping_mul(GOLDEN)
    }
}

/// A bounded number of values by key, in the order of use.
#[derive(Clone, Debug)]
pub struct LruMap<K, V> {
    index: Vec<u32>,
    slots: Vec<LruSlot<K, V>>,
    capacity: usize,
    shift: u32,
    newest: u32,
    oldest: u32,
    /// The free slots, as a list through `older`.
    free: u32,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct LruSlot<K, V> {
    key: K,
    value: V,
    newer: u32,
    older: u32,
}

/// 2^64 divided by the golden ratio, made odd.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

const NONE: u32 = u32::MAX;

/// The largest capacity, because slots have 32-bit numbers. A choice: 2^28 blocks of 4 KiB are a
/// cache of one TiB.
pub const LARGEST: usize = 1 << 28;

impl<K: Key, V: Copy> LruMap<K, V> {
    /// An empty map of `capacity` values: at least 1, at most [`LARGEST`].
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.clamp(1, LARGEST);
        let places = (2 * capacity).next_power_of_two();
        LruMap {
            index: vec![NONE; places],
            slots: Vec::with_capacity(capacity),
            capacity,
            shift: 64 - places.trailing_zeros(),
            newest: NONE,
            oldest: NONE,
            free: NONE,
            len: 0,
        }
    }

    /// The memory of the map in bytes.
    pub fn memory(&self) -> usize {
        size_of_val(self.index.as_slice()) + self.slots.capacity() * size_of::<LruSlot<K, V>>()
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The least recently used key.
    pub fn oldest(&self) -> Option<K> {
        Some(self.slots.get(self.oldest as usize)?.key)
    }

    /// The value of a key; its age does not change.
    pub fn get(&self, key: K) -> Option<&V> {
        Some(&self.slots[self.find(key)?.1 as usize].value)
    }

    /// The mutable value of a key; its age does not change.
    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let slot = self.find(key)?.1;
        Some(&mut self.slots[slot as usize].value)
    }

    /// The value of a key, which becomes the newest.
    pub fn touch(&mut self, key: K) -> Option<&mut V> {
        let slot = self.find(key)?.1;
        self.renew(slot);
        Some(&mut self.slots[slot as usize].value)
    }

    /// The value of a key, which becomes the newest. `make` makes an absent value, for which the
    /// oldest is dropped if the map is full.
    pub fn touch_or(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let slot = match self.find(key) {
            Some((_, slot)) => {
                self.renew(slot);
                slot
            }
            None => self.add(key, make()),
        };
        &mut self.slots[slot as usize].value
    }

    /// Sets a value, which becomes the newest. The oldest is dropped if the map is full.
    pub fn insert(&mut self, key: K, value: V) {
        *self.touch_or(key, || value) = value;
    }

    /// Removes a value.
    pub fn remove(&mut self, key: K) -> Option<V> {
        let (place, slot) = self.find(key)?;
        self.vacate(place);
        self.unlink(slot);
        self.slots[slot as usize].older = self.free;
        self.free = slot;
        self.len -= 1;
        Some(self.slots[slot as usize].value)
    }

    /// Keys and values, newest first.
    pub fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        let mut slot = self.newest;
        std::iter::from_fn(move || {
            let found = self.slots.get(slot as usize)?;
            slot = found.older;
            Some((found.key, &found.value))
        })
    }

    fn home(&self, key: K) -> usize {
        (key.mixed() >> self.shift) as usize
    }

    /// The index position and the slot of a key.
    fn find(&self, key: K) -> Option<(usize, u32)> {
        let mask = self.index.len() - 1;
        let mut place = self.home(key);
        loop {
            let slot = self.index[place];
            if slot == NONE {
                return None;
            }
            if self.slots[slot as usize].key == key {
                return Some((place, slot));
            }
            place = (place + 1) & mask;
        }
    }

    fn add(&mut self, key: K, value: V) -> u32 {
        if self.len == self.capacity {
            let oldest = self.slots[self.oldest as usize].key;
            self.remove(oldest);
        }
        let new = LruSlot {
            key,
            value,
            newer: NONE,
            older: NONE,
        };
        let slot = if self.free == NONE {
            self.slots.push(new);
            (self.slots.len() - 1) as u32
        } else {
            let slot = self.free;
            self.free = self.slots[slot as usize].older;
            self.slots[slot as usize] = new;
            slot
        };
        let mask = self.index.len() - 1;
        let mut place = self.home(key);
        while self.index[place] != NONE {
            place = (place + 1) & mask;
        }
        self.index[place] = slot;
        self.link(slot);
        self.len += 1;
        slot
    }

    /// Empties a position of the index, and moves displaced keys back.
    fn vacate(&mut self, mut hole: usize) {
        let mask = self.index.len() - 1;
        let mut place = hole;
        loop {
            self.index[hole] = NONE;
            let moved = loop {
                place = (place + 1) & mask;
                let slot = self.index[place];
                if slot == NONE {
                    return;
                }
                let home = self.home(self.slots[slot as usize].key);
                if (place.wrapping_sub(home) & mask) >= (place.wrapping_sub(hole) & mask) {
                    break slot;
                }
            };
            self.index[hole] = moved;
            hole = place;
        }
    }

    fn renew(&mut self, slot: u32) {
        if self.newest != slot {
            self.unlink(slot);
            self.link(slot);
        }
    }

    fn link(&mut self, slot: u32) {
        self.slots[slot as usize].newer = NONE;
        self.slots[slot as usize].older = self.newest;
        match self.slots.get_mut(self.newest as usize) {
            Some(second) => second.newer = slot,
            None => self.oldest = slot,
        }
        self.newest = slot;
    }

    fn unlink(&mut self, slot: u32) {
        let LruSlot { newer, older, .. } = self.slots[slot as usize];
        match self.slots.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
        match self.slots.get_mut(older as usize) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::LruMap;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64, u8),
        Touch(u64),
        Remove(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        // Few keys, so that they collide; and the largest ones.
        let key = prop_oneof![0u64..24, u64::MAX - 4..=u64::MAX];
        prop_oneof![
            (key.clone(), any::<u8>()).prop_map(|(key, value)| Step::Insert(key, value)),
            key.clone().prop_map(Step::Touch),
            key.prop_map(Step::Remove),
        ]
    }

    proptest! {
        #[test]
        fn it_is_a_naive_list_in_the_order_of_use(
            capacity in 0usize..12,
            steps in prop::collection::vec(step(), 0..200),
        ) {
            let mut map = LruMap::new(capacity);
            let mut naive: Vec<(u64, u8)> = Vec::new();
            for step in steps {
                match step {
                    Step::Insert(key, value) => {
                        naive.retain(|&(other, _)| other != key);
                        naive.insert(0, (key, value));
                        naive.truncate(capacity.max(1));
                        map.insert(key, value);
                    }
                    Step::Touch(key) => {
                        let found = naive.iter().position(|&(other, _)| other == key);
                        let value = found.map(|place| {
                            let entry = naive.remove(place);
                            naive.insert(0, entry);
                            entry.1
                        });
                        prop_assert_eq!(map.touch(key).copied(), value);
                    }
                    Step::Remove(key) => {
                        let found = naive.iter().position(|&(other, _)| other == key);
                        prop_assert_eq!(map.remove(key), found.map(|place| naive.remove(place).1));
                    }
                }
                let all: Vec<(u64, u8)> = map.iter().map(|(key, &value)| (key, value)).collect();
                prop_assert_eq!(&all, &naive);
                prop_assert_eq!((map.len(), map.is_empty()), (naive.len(), naive.is_empty()));
                prop_assert_eq!(map.oldest(), naive.last().map(|&(key, _)| key));
            }
        }
    }
}
