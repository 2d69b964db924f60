//! LRU, FIFO, DU, SIEVE, S3-FIFO, as their descriptions say.

use cache::Pattern;

use super::{MayGo, Order, Policy, oldest, take};

/// The least recently used goes.
#[derive(Default)]
pub struct Lru {
    order: Order,
}

impl Policy for Lru {
    fn touch(&mut self, block: u64, _: bool, _: Pattern) {
        take(&mut self.order, block);
        self.order.push(block);
    }

    fn choose(&mut self, _: u64, may_go: MayGo) -> u64 {
        oldest(&self.order, may_go).unwrap()
    }

    fn go(&mut self, block: u64) {
        take(&mut self.order, block);
    }

    fn come(&mut self, block: u64, _: Pattern) {
        self.order.push(block);
    }

    fn refresh(&mut self, block: u64, pattern: Pattern) {
        self.touch(block, true, pattern);
    }

    fn withdraw(&mut self, block: u64) {
        take(&mut self.order, block);
    }
}

/// The one that came first goes.
#[derive(Default)]
pub struct Fifo {
    order: Order,
}

impl Policy for Fifo {
    fn touch(&mut self, _: u64, _: bool, _: Pattern) {}

    fn choose(&mut self, _: u64, may_go: MayGo) -> u64 {
        oldest(&self.order, may_go).unwrap()
    }

    fn go(&mut self, block: u64) {
        take(&mut self.order, block);
    }

    fn come(&mut self, block: u64, _: Pattern) {
        self.order.push(block);
    }

    fn refresh(&mut self, block: u64, _: Pattern) {
        take(&mut self.order, block);
        self.order.push(block);
    }

    fn withdraw(&mut self, block: u64) {
        take(&mut self.order, block);
    }
}

/// What was sent goes first, then the least recently used.
pub struct Du {
    order: Order,
    sent: Order,
    takes_newest: bool,
}

impl Du {
    pub fn oldest_first() -> Self {
        Self {
            order: Vec::new(),
            sent: Vec::new(),
            takes_newest: false,
        }
    }

    pub fn newest_first() -> Self {
        Self {
            takes_newest: true,
            ..Self::oldest_first()
        }
    }
}

impl Policy for Du {
    fn touch(&mut self, block: u64, _: bool, _: Pattern) {
        if take(&mut self.sent, block) {
            self.sent.push(block);
        } else {
            take(&mut self.order, block);
            self.order.push(block);
        }
    }

    fn choose(&mut self, _: u64, may_go: MayGo) -> u64 {
        let mut sent = self.sent.clone();
        if self.takes_newest {
            sent.reverse();
        }
        oldest(&sent, may_go)
            .or_else(|| oldest(&self.order, may_go))
            .unwrap()
    }

    fn go(&mut self, block: u64) {
        self.withdraw(block);
    }

    fn come(&mut self, block: u64, _: Pattern) {
        self.order.push(block);
    }

    fn refresh(&mut self, block: u64, _: Pattern) {
        self.withdraw(block);
        self.order.push(block);
    }

    fn sent(&mut self, block: u64) {
        self.withdraw(block);
        self.sent.push(block);
    }

    fn withdraw(&mut self, block: u64) {
        take(&mut self.order, block);
        take(&mut self.sent, block);
    }
}

/// A queue, the visited ones of it, and a place in it.
#[derive(Default)]
pub struct Sieve {
    queue: Order,
    visited: Order,
    hand: usize,
}

impl Policy for Sieve {
    fn touch(&mut self, block: u64, counts: bool, _: Pattern) {
        if counts && !self.visited.contains(&block) {
            self.visited.push(block);
        }
    }

    fn choose(&mut self, _: u64, may_go: MayGo) -> u64 {
        loop {
            if self.hand >= self.queue.len() {
                self.hand = 0;
            }
            let block = self.queue[self.hand];
            if may_go(block) && !take(&mut self.visited, block) {
                return block;
            }
            self.hand += 1;
        }
    }

    fn go(&mut self, block: u64) {
        self.withdraw(block);
    }

    fn come(&mut self, block: u64, _: Pattern) {
        // A hand past the newest is at the oldest, not at what comes after it.
        if self.hand == self.queue.len() {
            self.hand = 0;
        }
        self.queue.push(block);
    }

    fn refresh(&mut self, block: u64, pattern: Pattern) {
        let was_visited = self.visited.contains(&block);
        self.withdraw(block);
        self.come(block, pattern);
        if was_visited {
            self.visited.push(block);
        }
    }

    fn withdraw(&mut self, block: u64) {
        let place = self.queue.iter().position(|one| *one == block).unwrap();
        self.queue.remove(place);
        take(&mut self.visited, block);
        if place < self.hand {
            self.hand -= 1;
        }
    }
}

/// A small queue, the main one, what is remembered, and how often each was asked for again.
pub struct S3Fifo {
    capacity: usize,
    small: Vec<(u64, u32)>,
    main: Vec<(u64, u32)>,
    ghosts: Order,
    small_size: usize,
    ghosts_size: usize,
    again: u32,
    /// Whether the small queue goes on until a block has gone.
    goes_on: bool,
    was_ghost: bool,
    /// Whether new blocks go to the main queue until a block has gone.
    fills_main: bool,
}

impl S3Fifo {
    /// As in the paper.
    pub fn new(capacity: usize, small: usize, ghosts: usize, again: u32) -> Self {
        Self {
            capacity,
            small: Vec::new(),
            main: Vec::new(),
            ghosts: Vec::new(),
            small_size: small.max(1),
            ghosts_size: ghosts,
            again,
            goes_on: true,
            was_ghost: false,
            fills_main: false,
        }
    }

    /// New blocks go to the main queue until a block has gone, but for those of the first small queue.
    pub fn filling_main(self) -> Self {
        Self {
            fills_main: true,
            ..self
        }
    }

    /// The small queue is measured again before each block.
    pub fn measured(self) -> Self {
        Self {
            goes_on: false,
            ..self
        }
    }

    /// The place of the oldest that may go.
    fn oldest(queue: &[(u64, u32)], may_go: MayGo) -> Option<usize> {
        queue.iter().position(|(block, _)| may_go(*block))
    }
}

impl Policy for S3Fifo {
    fn touch(&mut self, block: u64, counts: bool, _: Pattern) {
        for (one, count) in self.small.iter_mut().chain(&mut self.main) {
            if *one == block && counts {
                *count = (*count + 1).min(3);
            }
        }
    }

    fn recall(&mut self, block: u64) {
        self.was_ghost = take(&mut self.ghosts, block);
    }

    fn choose(&mut self, _: u64, may_go: MayGo) -> u64 {
        let began_small = self.small.len() >= self.small_size;
        loop {
            let small = Self::oldest(&self.small, may_go);
            let main = Self::oldest(&self.main, may_go);
            let is_long = self.small.len() >= self.small_size;
            let is_small = began_small && (self.goes_on || is_long) || main.is_none();
            if let (true, Some(place)) = (is_small, small) {
                let (block, count) = self.small[place];
                if count < self.again {
                    return block;
                }
                self.small.remove(place);
                self.main.push((block, 0));
            } else {
                let place = main.unwrap();
                let (block, count) = self.main[place];
                if count == 0 {
                    return block;
                }
                self.main.remove(place);
                self.main.push((block, count - 1));
            }
            assert!(self.small.len() + self.main.len() <= self.capacity);
        }
    }

    fn go(&mut self, block: u64) {
        self.fills_main = false;
        if self.small.iter().any(|(one, _)| *one == block) {
            self.ghosts.push(block);
            if self.ghosts.len() > self.ghosts_size {
                self.ghosts.remove(0);
            }
        }
        self.withdraw(block);
    }

    fn come(&mut self, block: u64, _: Pattern) {
        let is_small_long = self.small.len() >= self.small_size;
        match self.was_ghost || self.fills_main && is_small_long {
            true => self.main.push((block, 0)),
            false => self.small.push((block, 0)),
        }
    }

    fn refresh(&mut self, block: u64, _: Pattern) {
        for queue in [&mut self.small, &mut self.main] {
            if let Some(place) = queue.iter().position(|(one, _)| *one == block) {
                let entry = queue.remove(place);
                queue.push(entry);
            }
        }
    }

    fn withdraw(&mut self, block: u64) {
        self.small.retain(|(one, _)| *one != block);
        self.main.retain(|(one, _)| *one != block);
    }
}
