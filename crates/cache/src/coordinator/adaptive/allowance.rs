//! The limit of readmore: all that the rule requests, until too much of it is evicted unused.

/// The share of the rule's readmore that may be read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Allowance {
    /// The number of halvings of the share.
    halvings: u32,
    used: u32,
    unused: u32,
}

/// Evicted blocks between two changes of the share. A choice.
const LOOKED_AT: u32 = 64;

/// Halvings after which a request may add nothing: requests have at most 2^16 blocks.
const MOST_HALVINGS: u32 = 17;

impl Allowance {
    /// The number of `wanted` blocks that may be read.
    pub(super) fn of(&self, wanted: u64) -> u64 {
        wanted >> self.halvings
    }

    /// Notes the eviction of a readmore block that was used.
    pub(super) fn used(&mut self) {
        self.used += 1;
        self.judge();
    }

    /// Notes the eviction of a readmore block that was not used.
    pub(super) fn unused(&mut self) {
        self.unused += 1;
        self.judge();
    }

    /// Halves the share if more than half of the blocks were unused; doubles it below an eighth.
    fn judge(&mut self) {
        if self.used + self.unused < LOOKED_AT {
            return;
        }
        if self.unused > LOOKED_AT / 2 {
            self.halvings = (self.halvings + 1).min(MOST_HALVINGS);
        } else if self.unused < LOOKED_AT / 8 {
            self.halvings = self.halvings.saturating_sub(1);
        }
        self.used = 0;
        self.unused = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::{Allowance, LOOKED_AT};

    #[test]
    fn waste_halves_it_and_use_brings_it_back() {
        let mut allowance = Allowance::default();
        assert_eq!(allowance.of(64), 64);
        (0..2 * LOOKED_AT).for_each(|_| allowance.unused());
        assert_eq!(allowance.of(64), 16);
        (0..LOOKED_AT).for_each(|_| allowance.used());
        assert_eq!(allowance.of(64), 32);
        // A quarter unused changes nothing.
        for step in 0..LOOKED_AT {
            match step % 4 {
                0 => allowance.unused(),
                _ => allowance.used(),
            }
        }
        assert_eq!(allowance.of(64), 32);
        (0..99 * LOOKED_AT).for_each(|_| allowance.unused());
        assert_eq!(allowance.of(u64::from(u16::MAX)), 0);
    }
}
