//! Whether wishes come true in time: more is wished as long as they do, and else fetched.
//!
//! ```text
//!   of WINDOW wishes that ended      half were granted, or more --> wished
//!                                    most were asked for before --> fetched, but one time in PROBE
//! ```
//!
//! Who waits for each answer before he asks again leaves the disk no request in whose gap there is room, and
//! is back before it has been idle for long. What is fetched with a request costs him little then: nobody else waits.

use block::Switch;

/// What became of wishes lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trust {
    granted: u32,
    late: u32,
    switch: Switch,
    /// Times that more was to be read since they were not trusted.
    turns: u32,
}

/// Wishes, by which it is judged. A choice: some windows of a reader.
const WINDOW: u32 = 32;

/// While wishes are not trusted, one time in so many more is wished: to see whether it has changed. A choice.
const PROBE: u32 = 8;

impl Trust {
    /// At first they are trusted.
    pub(super) const NEW: Trust = Trust {
        granted: 0,
        late: 0,
        switch: Switch::On,
        turns: 0,
    };

    /// A wish was granted.
    pub(super) fn granted(&mut self) {
        self.granted += 1;
        self.judge();
    }

    /// So many were asked for before they could be granted.
    pub(super) fn late(&mut self, blocks: u64) {
        self.late += u32::try_from(blocks).unwrap_or(WINDOW).min(WINDOW);
        self.judge();
    }

    /// Whether more is wished this time.
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
