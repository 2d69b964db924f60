//! ARC and SARC, as their papers say.

use cache::Pattern;

use super::{MayGo, Order, Policy, oldest, take};

/// ARC, in the paper's letters.
pub struct Arc {
    c: usize,
    p: f64,
    t1: Order,
    t2: Order,
    b1: Order,
    b2: Order,
    /// Where the coming block was.
    was_in_b1: bool,
    was_in_b2: bool,
}

impl Arc {
    pub fn new(c: usize) -> Self {
        Self {
            c,
            p: 0.0,
            t1: Vec::new(),
            t2: Vec::new(),
            b1: Vec::new(),
            b2: Vec::new(),
            was_in_b1: false,
            was_in_b2: false,
        }
    }
}

impl Policy for Arc {
    fn touch(&mut self, block: u64, counts: bool, _: Pattern) {
        let was_in_t1 = take(&mut self.t1, block);
        take(&mut self.t2, block);
        match was_in_t1 && !counts {
            true => self.t1.push(block),
            false => self.t2.push(block),
        }
    }

    fn recall(&mut self, block: u64) {
        let (b1, b2) = (self.b1.len() as f64, self.b2.len() as f64);
        self.was_in_b1 = take(&mut self.b1, block);
        self.was_in_b2 = take(&mut self.b2, block);
        if self.was_in_b1 {
            self.p = (self.c as f64).min(self.p + f64::max(b2 / b1, 1.0));
        } else if self.was_in_b2 {
            self.p = f64::max(0.0, self.p - f64::max(b1 / b2, 1.0));
        }
    }

    fn choose(&mut self, _: u64, may_go: MayGo) -> u64 {
        let t1 = self.t1.len() as f64;
        let is_new = !self.was_in_b1 && !self.was_in_b2;
        let from_t1 = oldest(&self.t1, may_go);
        let from_t2 = oldest(&self.t2, may_go);
        // Case IV A, second half: the cache is all T1.
        if is_new && self.t1.len() == self.c {
            return from_t1.unwrap();
        }
        let wants_t1 = t1 >= 1.0 && (t1 > self.p || (self.was_in_b2 && t1 == self.p));
        match wants_t1 {
            true => from_t1.or(from_t2).unwrap(),
            false => from_t2.or(from_t1).unwrap(),
        }
    }

    fn go(&mut self, block: u64) {
        let is_new = !self.was_in_b1 && !self.was_in_b2;
        let (l1, l2) = (self.t1.len() + self.b1.len(), self.t2.len() + self.b2.len());
        let mut is_remembered = true;
        if is_new && l1 == self.c {
            // Case IV A.
            if self.t1.len() < self.c {
                self.b1.remove(0);
            } else {
                is_remembered = false;
            }
        } else if is_new && l1 + l2 == 2 * self.c {
            // Case IV B.
            self.b2.remove(0);
        }
        let is_from_t1 = take(&mut self.t1, block);
        take(&mut self.t2, block);
        match (is_remembered, is_from_t1) {
            (true, true) => self.b1.push(block),
            (true, false) => self.b2.push(block),
            (false, _) => {}
        }
    }

    fn come(&mut self, block: u64, _: Pattern) {
        if self.was_in_b1 || self.was_in_b2 {
            self.t2.push(block);
            return;
        }
        // The paper has no free frames once something is remembered. We may: then its bounds hold
        // all the same.
        if self.t1.len() + self.b1.len() == self.c {
            self.b1.remove(0);
        } else if self.t1.len() + self.t2.len() + self.b1.len() + self.b2.len() == 2 * self.c {
            self.b2.remove(0);
        }
        self.t1.push(block);
    }

    fn refresh(&mut self, block: u64, _: Pattern) {
        for list in [&mut self.t1, &mut self.t2] {
            if take(list, block) {
                list.push(block);
            }
        }
    }

    fn withdraw(&mut self, block: u64) {
        take(&mut self.t1, block);
        take(&mut self.t2, block);
    }
}

/// SARC's lists: blocks with their time stamps, oldest first.
pub struct Sarc {
    c: usize,
    seq: Vec<(u64, u64)>,
    random: Vec<(u64, u64)>,
    clock: u64,
    delta: usize,
    large_ratio: f64,
    desired: f64,
    adapt: f64,
    misses: u64,
}

impl Sarc {
    pub fn new(c: usize, delta: usize, large_ratio: f64) -> Self {
        Self {
            c,
            seq: Vec::new(),
            random: Vec::new(),
            clock: 0,
            delta,
            large_ratio,
            desired: 0.0,
            adapt: 0.0,
            misses: 0,
        }
    }

    fn is_bottom(&self, list: &[(u64, u64)], stamp: u64) -> bool {
        let (oldest, newest) = (list[0].1, list[list.len() - 1].1);
        (stamp - oldest) as f64 * list.len() as f64 <= self.delta as f64 * (newest - oldest) as f64
    }
}

impl Policy for Sarc {
    fn touch(&mut self, block: u64, _: bool, pattern: Pattern) {
        let ratio = 2.0 * self.misses as f64 * self.delta as f64 / self.seq.len().max(1) as f64;
        let stamp = |list: &[(u64, u64)]| list.iter().find(|one| one.0 == block).map(|one| one.1);
        if let Some(stamp) = stamp(&self.random) {
            if self.is_bottom(&self.random, stamp) {
                self.adapt = (ratio - 1.0).clamp(-1.0, 1.0);
                self.misses = 0;
            }
        } else if let Some(stamp) = stamp(&self.seq)
            && self.is_bottom(&self.seq, stamp)
            && ratio > self.large_ratio
        {
            self.adapt = 1.0;
        }
        self.refresh(block, pattern);
    }

    fn choose(&mut self, _: u64, may_go: MayGo) -> u64 {
        let oldest = |list: &[(u64, u64)]| list.iter().copied().find(|one| may_go(one.0));
        let (seq, random) = match (oldest(&self.seq), oldest(&self.random)) {
            (Some(seq), Some(random)) => (seq, random),
            (Some(only), None) | (None, Some(only)) => return only.0,
            (None, None) => unreachable!(),
        };
        if self.seq.len() < self.delta || self.random.len() < self.delta {
            return if seq.1 < random.1 { seq.0 } else { random.0 };
        }
        if self.seq.len() as f64 > self.desired {
            seq.0
        } else {
            random.0
        }
    }

    fn go(&mut self, block: u64) {
        self.withdraw(block);
        if self.desired > 0.0 {
            self.desired += self.adapt / 2.0;
        } else {
            self.desired = self.seq.len() as f64;
        }
        self.desired = f64::max(0.0, f64::min(self.c as f64, self.desired));
    }

    fn come(&mut self, block: u64, pattern: Pattern) {
        self.clock += 1;
        match pattern {
            Pattern::Sequential => self.seq.push((block, self.clock)),
            Pattern::Random => self.random.push((block, self.clock)),
        }
    }

    fn refresh(&mut self, block: u64, pattern: Pattern) {
        let is_seq = self.seq.iter().any(|one| one.0 == block);
        self.withdraw(block);
        match is_seq {
            true => self.come(block, Pattern::Sequential),
            false => self.come(block, pattern),
        }
    }

    fn withdraw(&mut self, block: u64) {
        self.seq.retain(|one| one.0 != block);
        self.random.retain(|one| one.0 != block);
    }

    fn sequential_miss(&mut self) {
        self.misses += 1;
    }
}
