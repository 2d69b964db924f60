//! LIRS, MQ, W-TinyLFU, as their papers say.

use std::collections::BTreeMap;

use cache::Pattern;

use super::{MayGo, Order, Policy, oldest, take};

/// LIRS: the stack holds all low ones, and high ones that may be resident or not.
pub struct Lirs {
    low_size: usize,
    gone_size: usize,
    stack: Order,
    low: Order,
    queue: Order,
    gone: Order,
    was_gone: bool,
}

impl Lirs {
    pub fn new(low_size: usize, gone_size: usize) -> Self {
        Self {
            low_size,
            gone_size,
            stack: Vec::new(),
            low: Vec::new(),
            queue: Vec::new(),
            gone: Vec::new(),
            was_gone: false,
        }
    }

    fn push(&mut self, block: u64) {
        take(&mut self.stack, block);
        self.stack.push(block);
    }

    fn prune(&mut self) {
        while let Some(bottom) = self.stack.first().copied() {
            if self.low.contains(&bottom) {
                return;
            }
            self.stack.remove(0);
            take(&mut self.gone, bottom);
        }
    }

    fn becomes_low(&mut self, block: u64) {
        self.push(block);
        self.low.push(block);
        self.prune();
        if self.low.len() > self.low_size {
            let bottom = self.stack.remove(0);
            take(&mut self.low, bottom);
            self.queue.push(bottom);
            self.prune();
        }
    }
}

impl Policy for Lirs {
    fn touch(&mut self, block: u64, counts: bool, pattern: Pattern) {
        let is_high_in_stack = self.queue.contains(&block) && self.stack.contains(&block);
        if counts && is_high_in_stack {
            take(&mut self.queue, block);
            self.becomes_low(block);
        } else {
            self.refresh(block, pattern);
        }
    }

    fn recall(&mut self, block: u64) {
        self.was_gone = take(&mut self.gone, block);
        if self.was_gone {
            take(&mut self.stack, block);
        }
    }

    fn choose(&mut self, _: u64, may_go: MayGo) -> u64 {
        let low = |block: &u64| self.low.contains(block);
        let lows: Order = self.stack.iter().copied().filter(low).collect();
        oldest(&self.queue, may_go)
            .or_else(|| oldest(&lows, may_go))
            .unwrap()
    }

    fn go(&mut self, block: u64) {
        if take(&mut self.low, block) {
            take(&mut self.stack, block);
            self.prune();
        } else {
            take(&mut self.queue, block);
            if self.stack.contains(&block) {
                self.gone.push(block);
            }
            if self.gone.len() > self.gone_size {
                let forgotten = self.gone.remove(0);
                take(&mut self.stack, forgotten);
            }
        }
    }

    fn come(&mut self, block: u64, _: Pattern) {
        if self.was_gone || self.low.len() < self.low_size {
            self.becomes_low(block);
        } else {
            self.push(block);
            self.queue.push(block);
        }
    }

    fn refresh(&mut self, block: u64, _: Pattern) {
        self.push(block);
        if take(&mut self.queue, block) {
            self.queue.push(block);
        } else {
            self.prune();
        }
    }

    fn withdraw(&mut self, block: u64) {
        take(&mut self.stack, block);
        take(&mut self.queue, block);
        if take(&mut self.low, block) {
            self.prune();
        }
    }
}

/// What MQ knows of a block, resident or remembered.
#[derive(Clone, Copy, Default)]
struct Uses {
    count: u32,
    last: u64,
    expires: u64,
}

/// MQ: queues, oldest first.
pub struct Mq {
    queues: Vec<Order>,
    uses: BTreeMap<u64, Uses>,
    gone: Order,
    gone_size: usize,
    now: u64,
    life: u64,
    /// After so many demands the life time is measured, if it is.
    period: Option<u64>,
    /// How many distances there were of each number of bits.
    distances: [u32; 64],
}

impl Mq {
    pub fn constant(life: usize, queues: usize, gone_size: usize) -> Self {
        Self {
            queues: vec![Vec::new(); queues],
            uses: BTreeMap::new(),
            gone: Vec::new(),
            gone_size,
            now: 0,
            life: life as u64,
            period: None,
            distances: [0; 64],
        }
    }

    pub fn measuring(capacity: usize, queues: usize, gone_size: usize) -> Self {
        Self {
            period: Some(capacity as u64),
            ..Self::constant(capacity, queues, gone_size)
        }
    }

    fn reference(&mut self, block: u64) {
        let uses = self.uses.entry(block).or_default();
        if uses.count > 0 {
            let bits = 64 - (self.now - uses.last).max(1).leading_zeros();
            self.distances[bits as usize - 1] += 1;
        }
        uses.count += 1;
        uses.last = self.now;
    }

    fn put(&mut self, block: u64, queue: usize) {
        self.uses.get_mut(&block).unwrap().expires = self.now + self.life;
        self.queues[queue].push(block);
    }

    fn place(&mut self, block: u64) {
        self.remove(block);
        let count = self.uses[&block].count;
        let queue = (0..self.queues.len())
            .rev()
            .find(|queue| count >= 1 << queue);
        self.put(block, queue.unwrap());
        self.now += 1;
        for queue in 1..self.queues.len() {
            if let Some(head) = self.queues[queue].first().copied()
                && self.uses[&head].expires < self.now
            {
                self.queues[queue].remove(0);
                self.put(head, queue - 1);
            }
        }
        if self
            .period
            .is_some_and(|period| self.now.is_multiple_of(period))
        {
            let most = *self.distances.iter().max().unwrap();
            if let Some(bits) = self.distances.iter().position(|one| *one == most)
                && most > 0
            {
                self.life = (2 << bits) - 1;
            }
            self.distances = self.distances.map(|one| one / 2);
        }
    }

    fn remove(&mut self, block: u64) -> Option<usize> {
        let mut queues = self.queues.iter_mut();
        queues.position(|queue| take(queue, block))
    }
}

impl Policy for Mq {
    fn touch(&mut self, block: u64, counts: bool, _: Pattern) {
        if counts {
            self.reference(block);
        }
        self.place(block);
    }

    fn recall(&mut self, block: u64) {
        if !take(&mut self.gone, block) {
            self.uses.remove(&block);
        }
    }

    fn choose(&mut self, _: u64, may_go: MayGo) -> u64 {
        let mut queues = self.queues.iter();
        queues.find_map(|queue| oldest(queue, may_go)).unwrap()
    }

    fn go(&mut self, block: u64) {
        self.remove(block);
        self.gone.push(block);
        if self.gone.len() > self.gone_size {
            let forgotten = self.gone.remove(0);
            self.uses.remove(&forgotten);
        }
    }

    fn come(&mut self, block: u64, _: Pattern) {
        self.reference(block);
        self.place(block);
    }

    fn refresh(&mut self, block: u64, _: Pattern) {
        let queue = self.remove(block).unwrap();
        self.put(block, queue);
    }

    fn withdraw(&mut self, block: u64) {
        self.remove(block);
        self.uses.remove(&block);
    }
}

/// W-TinyLFU: three LRU lists and a sketch.
pub struct WTinyLfu {
    window: Order,
    probation: Order,
    protected: Order,
    window_size: usize,
    protected_size: usize,
    rows: [Vec<u8>; 4],
    added: usize,
    sample: usize,
}

impl WTinyLfu {
    pub fn new(capacity: usize, window: usize, protected: usize, sample: usize) -> Self {
        let counters = capacity.next_power_of_two().max(16);
        Self {
            window: Vec::new(),
            probation: Vec::new(),
            protected: Vec::new(),
            window_size: window,
            protected_size: protected,
            rows: [0; 4].map(|zero| vec![zero; counters]),
            added: 0,
            sample: sample * capacity,
        }
    }

    /// The block's counter of each row: hashes are the sketch's own choice.
    fn places(&self, block: u64) -> [usize; 4] {
        let roots: [u64; 4] = [
            0x6A09_E667_F3BC_C909,
            0xBB67_AE85_84CA_A73B,
            0x3C6E_F372_FE94_F82B,
            0xA54F_F53A_5F1D_36F1,
        ];
        let bits = self.rows[0].len().trailing_zeros();
        roots.map(|root| ((block ^ (block >> 32)).wrapping_mul(root) >> (64 - bits)) as usize)
    }

    fn estimate(&self, block: u64) -> u8 {
        let places = self.places(block).into_iter().zip(&self.rows);
        places.map(|(place, row)| row[place]).min().unwrap()
    }

    fn add(&mut self, block: u64) {
        let least = self.estimate(block);
        for (place, row) in self.places(block).into_iter().zip(&mut self.rows) {
            if row[place] == least && least < 15 {
                row[place] += 1;
            }
        }
        self.added += 1;
        if self.added == self.sample {
            self.added = 0;
            for counter in self.rows.iter_mut().flatten() {
                *counter /= 2;
            }
        }
    }
}

impl Policy for WTinyLfu {
    fn touch(&mut self, block: u64, counts: bool, pattern: Pattern) {
        if !counts {
            return self.refresh(block, pattern);
        }
        self.add(block);
        if take(&mut self.probation, block) {
            self.protected.push(block);
            if self.protected.len() > self.protected_size {
                let demoted = self.protected.remove(0);
                self.probation.push(demoted);
            }
        } else {
            self.refresh(block, pattern);
        }
    }

    fn choose(&mut self, _: u64, may_go: MayGo) -> u64 {
        let main = oldest(&self.probation, may_go).or_else(|| oldest(&self.protected, may_go));
        let candidate = oldest(&self.window, may_go);
        let (Some(main), Some(candidate)) = (main, candidate) else {
            return main.or(candidate).unwrap();
        };
        let is_contest = self.window.len() >= self.window_size;
        if !is_contest || self.estimate(candidate) > self.estimate(main) {
            main
        } else {
            candidate
        }
    }

    fn go(&mut self, block: u64) {
        self.withdraw(block);
    }

    fn come(&mut self, block: u64, _: Pattern) {
        self.add(block);
        self.window.push(block);
        if self.window.len() > self.window_size {
            self.probation.push(self.window.remove(0));
        }
    }

    fn refresh(&mut self, block: u64, _: Pattern) {
        for list in [&mut self.window, &mut self.probation, &mut self.protected] {
            if take(list, block) {
                list.push(block);
            }
        }
    }

    fn withdraw(&mut self, block: u64) {
        for list in [&mut self.window, &mut self.probation, &mut self.protected] {
            take(list, block);
        }
    }
}
