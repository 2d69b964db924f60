//! The nine levels of urgency: eight queues of ABISS (3.6), and background work below them.

use block::Class;

/// How urgent a request is; the smaller, the more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PriorityLevel(u8);

impl PriorityLevel {
    /// Before everything else.
    pub const REAL_TIME: PriorityLevel = PriorityLevel(0);
    /// After everything else.
    pub const BACKGROUND: PriorityLevel = PriorityLevel(8);
    /// How many levels there are.
    pub const COUNT: usize = 9;

    /// The level of a class; `None` if there is no such best-effort priority.
    pub const fn of(class: Class) -> Option<PriorityLevel> {
        match class {
            Class::RealTime { .. } => Some(PriorityLevel::REAL_TIME),
            Class::BestEffort(priority @ 0..=6) => Some(PriorityLevel(1 + priority)),
            Class::BestEffort(_) => None,
            Class::Background => Some(PriorityLevel::BACKGROUND),
        }
    }

    /// Its place in a table of all levels.
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
