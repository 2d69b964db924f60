//! The division of blocks between two arms: block and command numbers of the drive, and those of an arm.

use block::{Command, CommandId, Extent, Lba, Sectors, Status};

/// One of two arms: of the actuators of a drive, or of the drives of a mirror.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// That of the lower blocks, or a mirror's first drive.
    First,
    /// That of the upper blocks, or a mirror's second drive.
    Second,
}

impl Side {
    /// Both.
    pub const ALL: [Side; 2] = [Side::First, Side::Second];

    /// The other one.
    pub fn other(self) -> Side {
        match self {
            Side::First => Side::Second,
            Side::Second => Side::First,
        }
    }
}

/// Which arm has which blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Division {
    /// Two actuators of a drive: the second one has the blocks from here on.
    Border(Lba),
    /// Two drives of a mirror: each has all blocks, under the same numbers.
    Copies,
}

/// The actuator of a command, and the command's number there.
pub(super) fn arm_command(id: CommandId) -> (Side, CommandId) {
    let side = match id.0 % 2 {
        0 => Side::First,
        _ => Side::Second,
    };
    (side, CommandId(id.0 / 2))
}

impl Division {
    /// The parts of an extent of the drive that each arm has, in the arm's numbers.
    pub(super) fn parts(self, extent: Extent) -> impl Iterator<Item = (Side, Extent)> {
        let border = match self {
            Division::Border(border) => border,
            Division::Copies => {
                let both = Side::ALL.map(|side| Some((side, extent)));
                return both.into_iter().flatten();
            }
        };
        let part = |side, from: Lba, to: Lba| {
            let blocks = to.0.checked_sub(from.0)?;
            let part = Extent::new(from, Sectors(blocks)).ok()?;
            Some((side, part))
        };
        let (start, end) = (extent.start(), extent.end());
        let below = part(Side::First, start, end.min(border));
        let from_zero = |lba: Lba| Lba(lba.0.saturating_sub(border.0));
        let above = part(Side::Second, from_zero(start), from_zero(end));
        [below, above].into_iter().flatten()
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
        Lba(lba.0 + self.before(side))
    }

    /// The number of blocks before those of an arm.
    fn before(self, side: Side) -> u64 {
        match (self, side) {
            (Division::Border(border), Side::Second) => border.0,
            (Division::Border(_), Side::First) | (Division::Copies, _) => 0,
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
        moved(status, |lba| Lba(lba.0.saturating_sub(self.before(side))))
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
