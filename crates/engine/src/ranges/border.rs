//! The border between two actuators: block and command numbers of the drive, and those of an arm.

use block::{Command, CommandId, Extent, Lba, Sectors, Status};

/// One of two actuators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// That of the lower blocks.
    First,
    /// That of the upper blocks.
    Second,
}

/// The first block of the second actuator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Border(pub(super) Lba);

/// The actuator of a command, and the command's number there.
pub(super) fn arm_command(id: CommandId) -> (Side, CommandId) {
    let side = match id.0 % 2 {
        0 => Side::First,
        _ => Side::Second,
    };
    (side, CommandId(id.0 / 2))
}

impl Border {
    /// The parts of an extent of the drive that each actuator has, in the actuator's numbers.
    pub(super) fn parts(self, extent: Extent) -> impl Iterator<Item = (Side, Extent)> {
        let border = self.0;
        let part = |side, from: Lba, to: Lba| {
            let blocks = to.0.checked_sub(from.0)?;
            let part = Extent::new(from, Sectors(blocks)).ok()?;
            Some((side, part))
        };
        let (start, end) = (extent.start(), extent.end());
        let below = part(Side::First, start, end.min(border));
        let from_zero = |lba: Lba| Lba(lba.0.saturating_sub(border.0));
        let above = part(Side::Second, from_zero(start), from_zero(end));
        below.into_iter().chain(above)
    }

    /// The actuator that has all blocks of an extent, and the extent in its numbers; `None` if both
    /// have some.
    pub(super) fn only(self, extent: Extent) -> Option<(Side, Extent)> {
        let mut parts = self.parts(extent);
        parts.next().filter(|_| parts.next().is_none())
    }

    /// The part of an extent that the first actuator has. Without one: its first block, so that no more
    /// than that is on it.
    pub(super) fn first_part(self, extent: Extent) -> Extent {
        match self.parts(extent).next() {
            Some((Side::First, part)) => part,
            _ => Extent::block(Lba(0)),
        }
    }

    /// A block of an actuator in the numbers of the drive.
    pub(super) fn block_of_drive(self, side: Side, lba: Lba) -> Lba {
        match side {
            Side::First => lba,
            Side::Second => Lba(lba.0 + self.0.0),
        }
    }

    /// An extent of an actuator in the numbers of the drive.
    pub(super) fn of_drive(self, side: Side, extent: Extent) -> Extent {
        let start = self.block_of_drive(side, extent.start());
        Extent::new(start, extent.length()).expect("an extent of the drive")
    }

    /// A command of an actuator in the numbers of the drive.
    pub(super) fn command_of_drive(self, side: Side, command: Command) -> Command {
        let number = command.id.0 * 2 + u64::from(side == Side::Second);
        Command {
            id: CommandId(number),
            action: command
                .action
                .numbered_from(self.block_of_drive(side, Lba(0)).0),
            ..command
        }
    }

    /// A status of the drive in the numbers of an actuator.
    pub(super) fn status_of_arm(self, side: Side, status: Status) -> Status {
        let border = match side {
            Side::First => 0,
            Side::Second => self.0.0,
        };
        moved(status, |lba| Lba(lba.0.saturating_sub(border)))
    }

    /// A status of an actuator in the numbers of the drive.
    pub(super) fn status_of_drive(self, side: Side, status: Status) -> Status {
        moved(status, |lba| self.block_of_drive(side, lba))
    }
}

/// A status with another block.
fn moved(status: Status, to: impl Fn(Lba) -> Lba) -> Status {
    match status {
        Status::MediumError { at } => Status::MediumError { at: to(at) },
        Status::WritePointer { expected } => Status::WritePointer {
            expected: to(expected),
        },
        Status::Good | Status::TimedOut | Status::Aborted => status,
    }
}
