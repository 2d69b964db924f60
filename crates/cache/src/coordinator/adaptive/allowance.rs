//! How much more may be read: all that the rule wants, until too much of it is evicted unused.

/// A share of what the rule wants.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Allowance {
    /// So often the share was halved.
    halvings: u32,
    used: u32,
    unused: u32,
}

/// So many blocks are looked at before the share changes. A choice.
const LOOKED_AT: u32 = 64;

/// Halved so often, what a request may add is nothing: requests have at most 2^16 blocks.
const MOST_HALVINGS: u32 = 17;

impl Allowance {
    /// What of `wanted` blocks may be read.
    pub(super) fn of(&self, wanted: u64) -> u64 {
        wanted >> self.halvings
    }

    /// A block that was read more is evicted, and was used.
    pub(super) fn used(&mut self) {
        self.used += 1;
        self.judge();
    }

    /// A block that was read more is evicted, and was not used.
    pub(super) fn unused(&mut self) {
        self.unused += 1;
        self.judge();
    }

    /// Half of them unused halves the share, an eighth doubles it.
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
