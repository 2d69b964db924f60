//! An independent access range of a drive: the blocks of one actuator, numbered from 0.

use block::{Action, Command, Extent, Instant, Lba, Outcome, Refused, Status};

use super::RehearsalDrive;

/// A part of a drive's blocks as a drive of its own. Nobody else uses the drive.
pub struct RangeDrive<D> {
    drive: D,
    range: Extent,
}

impl<D: RehearsalDrive> RangeDrive<D> {
    /// The blocks of `range`, which is on the drive.
    pub fn new(drive: D, range: Extent) -> Self {
        RangeDrive { drive, range }
    }

    fn of_drive(&self, extent: Extent) -> Result<Extent, Refused> {
        let capacity = self.range.length().0;
        if extent.end().0 > capacity {
            return Err(Refused::PastEnd { extent, capacity });
        }
        let start = Lba(self.range.start().0 + extent.start().0);
        Ok(Extent::new(start, extent.length()).expect("blocks of the drive"))
    }
}

impl<D: RehearsalDrive> RehearsalDrive for RangeDrive<D> {
    fn submit(&mut self, now: Instant, mut command: Command) -> Result<(), Refused> {
        match &mut command.action {
            Action::Read { extent, .. } | Action::Write { extent, .. } => {
                *extent = self.of_drive(*extent)?;
            }
            Action::Seek { to } => *to = self.of_drive(Extent::block(*to))?.start(),
            Action::Flush | Action::SetLookAhead(_) | Action::SetWriteCache(_) => {}
        }
        self.drive.submit(now, command)
    }

    fn poll(&mut self, now: Instant) -> Option<Outcome> {
        let mut outcome = self.drive.poll(now)?;
        if let Status::MediumError { at } | Status::WritePointer { expected: at } =
            &mut outcome.status
        {
            at.0 -= self.range.start().0;
        }
        Some(outcome)
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.drive.next_wakeup()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use block::{CommandId, Durability, Sectors};
    use drive::{Imperfections, Profile, VirtualDrive, catalog};

    use super::*;

    fn extent(start: u64, blocks: u64) -> Extent {
        Extent::new(Lba(start), Sectors(blocks)).expect("an extent")
    }

    fn dual() -> Profile {
        let entry = catalog::find("modern-18tb-dual").expect("a shipped drive");
        entry.profile().expect("a valid profile")
    }

    /// The outcomes of some commands, one after the other.
    fn outcomes(drive: &mut impl RehearsalDrive, actions: &[Action]) -> Vec<(Instant, Status)> {
        let mut now = Instant::ZERO;
        let mut ended = Vec::new();
        for (id, &action) in actions.iter().enumerate() {
            let command = Command::new(CommandId(id as u64), action);
            drive.submit(now, command).expect("blocks of the drive");
            let outcome = loop {
                if let Some(outcome) = drive.poll(now) {
                    break outcome;
                }
                now = drive.next_wakeup().expect("it ends");
            };
            ended.push((outcome.at, outcome.status));
        }
        ended
    }

    #[test]
    fn a_range_behaves_as_its_actuator_alone_and_tells_its_own_blocks() {
        let dual = dual();
        let share = dual.share_of(1);
        let unreadable = |first: u64| Imperfections {
            unreadable: vec![extent(first + 70_000, 1)],
            ..Imperfections::default()
        };
        let alone = Arc::new(dual.of_actuator(1));
        let mut alone = VirtualDrive::imperfect(alone, unreadable(0), 3);
        let whole = VirtualDrive::imperfect(Arc::new(dual), unreadable(share.start().0), 3);
        let mut range = RangeDrive::new(whole, share);
        let read = |start| Action::Read {
            extent: extent(start, 8),
            durability: Durability::Durable,
        };
        let write = Action::Write {
            extent: extent(5_000, 8),
            durability: Durability::Durable,
        };
        let last = share.length().0 - 8;
        let actions = [read(3), read(last), write, Action::Flush, read(69_998)];
        let ended = outcomes(&mut range, &actions);
        assert_eq!(ended, outcomes(&mut alone, &actions));
        let failed = Status::MediumError { at: Lba(70_000) };
        assert_eq!(ended.last().map(|&(_, status)| status), Some(failed));
        let beyond = Command::new(CommandId(9), read(last + 1));
        let refused = range.submit(Instant::ZERO, beyond);
        assert!(
            matches!(refused, Err(Refused::PastEnd { .. })),
            "{refused:?}"
        );
    }
}
