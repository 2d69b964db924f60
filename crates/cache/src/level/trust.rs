//! Whether wishes are granted in time. Readmore becomes wishes while they are, and is fetched otherwise.
//!
//! ```text
//!   of WINDOW wishes that ended      half were granted, or more --> wished
//!                                    most were requested before --> fetched, except one in PROBE
//! ```
//!
//! A single client in a closed loop leaves no requests with gaps at the disk, and its next request arrives before
//! the disk has been idle for long. Fetching readmore with its request costs little then, because no other client
//! waits.

use block::Switch;

/// The outcome of recent wishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trust {
    granted: u32,
    late: u32,
    switch: Switch,
    /// The number of readmore requests since wishes are not trusted.
    turns: u32,
}

/// Ended wishes per decision. A choice: some windows of a reader.
const WINDOW: u32 = 32;

/// While wishes are not trusted, one readmore request in this many becomes wishes, to detect a change. A choice.
const PROBE: u32 = 8;

impl Trust {
    /// The initial state: wishes are trusted.
    pub(super) const NEW: Trust = Trust {
        granted: 0,
        late: 0,
        switch: Switch::On,
        turns: 0,
    };

    /// Notes a granted wish.
    pub(super) fn granted(&mut self) {
        self.granted += 1;
        self.judge();
    }

    /// Notes wishes for `blocks` blocks that were requested before they were granted.
    pub(super) fn late(&mut self, blocks: u64) {
        self.late += u32::try_from(blocks).unwrap_or(WINDOW).min(WINDOW);
        self.judge();
    }

    /// Whether this readmore request becomes wishes.
    pub(super) fn turn(&mut self) -> Switch {
        if self.switch == Switch::On {
            return Switch::On;
        }
        self.turns += 1;
        match self.turns % PROBE {
            0 => Switch::On,
            _ => Switch::Off,
        }
    }

    fn judge(&mut self) {
        if self.granted + self.late < WINDOW {
            return;
        }
        *self = Trust {
            switch: match self.granted >= self.late {
                true => Switch::On,
                false => Switch::Off,
            },
            turns: self.turns,
            ..Trust::NEW
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_trusted_while_half_of_them_come_in_time() {
        let mut trust = Trust::NEW;
        let on = |trust: &mut Trust| {
            let turns = (0..2 * PROBE).map(|_| trust.turn());
            turns.filter(|&turn| turn == Switch::On).count() as u32
        };
        assert_eq!(on(&mut trust), 2 * PROBE);
        trust.late(u64::from(WINDOW) / 2 + 1);
        assert_eq!(on(&mut trust), 2 * PROBE, "too few to judge by");
        for _ in 1..WINDOW / 2 {
            trust.granted();
        }
        assert_eq!(on(&mut trust), 2, "one in {PROBE}");
        for _ in 0..WINDOW / 2 {
            trust.granted();
        }
        trust.late(u64::from(WINDOW) / 2);
        assert_eq!(on(&mut trust), 2 * PROBE);
        // However many there were at once, what was before is forgotten.
        trust.late(1 << 40);
        assert_eq!(on(&mut trust), 2);
    }
}
