//! The nine levels of urgency: the eight queues of ABISS (3.6), and background work below them.

use block::Class;

/// The urgency of a request. Smaller levels are more urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PriorityLevel(u8);

impl PriorityLevel {
    /// The most urgent level.
    pub const REAL_TIME: PriorityLevel = PriorityLevel(0);
    /// The least urgent level.
    pub const BACKGROUND: PriorityLevel = PriorityLevel(8);
    /// The number of levels.
    pub const COUNT: usize = 9;

    /// The level of a class; `None` if the best-effort priority does not exist.
    pub const fn of(class: Class) -> Option<PriorityLevel> {
        match class {
            Class::RealTime { .. } => Some(PriorityLevel::REAL_TIME),
            Class::BestEffort(priority @ 0..=6) => Some(PriorityLevel(1 + priority)),
            Class::BestEffort(_) => None,
            Class::Background => Some(PriorityLevel::BACKGROUND),
        }
    }

    /// The index of the level in a table of all levels.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::Instant;

    #[test]
    fn classes_have_levels_in_the_order_of_their_urgency() {
        let deadline = Instant::ZERO;
        let classes = [Class::RealTime { deadline }]
            .into_iter()
            .chain((0..=6).map(Class::BestEffort))
            .chain([Class::Background]);
        let levels: Vec<_> = classes
            .map(|class| PriorityLevel::of(class).map(PriorityLevel::index))
            .collect();
        assert_eq!(
            levels,
            (0..PriorityLevel::COUNT).map(Some).collect::<Vec<_>>()
        );
        assert_eq!(PriorityLevel::of(Class::BestEffort(7)), None);
    }
}
