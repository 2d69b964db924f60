//! Commands: drafts, those at the drive, and the answer of a stage.

use block::{CommandId, Duration, Extent, Instant};
use drive::Profile;
use scheduler::PieceId;
use scheduler::background::Means;
use scheduler::freeblock::{GapUse, Kind, Stop};

use crate::forecast::{Course, Head, Route};

/// What a stage answers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StageAnswer {
    /// This command is given to the drive.
    Give(Draft),
    /// Nothing is given before this moment; before an input, if there is none.
    WaitUntil(Option<Instant>),
    /// The next stage is asked.
    Pass,
}

/// What a command is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// A piece of a request.
    Request {
        piece: PieceId,
        /// The end of it that was expected without the plan before it.
        unplanned: Option<UnplannedEnd>,
    },
    /// A piece of a request, and before its blocks free ones of the same track.
    Merged {
        piece: PieceId,
        unplanned: Option<UnplannedEnd>,
        read: BackgroundRead,
    },
    /// A background request in the gap before another one.
    InGap { piece: PieceId },
    /// Background blocks alone.
    Background(BackgroundRead),
    /// Blocks that follow those of a read, in slack that nothing else wants.
    ReadAhead,
    /// A stop of the arm on its way to a request.
    Hop,
    /// No blocks: what the drive's buffer holds goes to the medium.
    Flush,
    /// A block that tells where the platter is.
    Calibration,
}

/// A background read. Drafts and commands are copied for every request, so they hold no more of its plan
/// than this, and the gap stage keeps which tasks wanted its blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BackgroundRead {
    /// Its blocks.
    pub(crate) extent: Extent,
    /// Where it is in its gap.
    pub(crate) kind: Kind,
    /// What pays for it.
    pub(crate) means: Means,
}

/// When a request's command was expected to leave the medium without the plan before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnplannedEnd {
    /// The moment.
    pub(crate) end: Instant,
    /// The command before the gap, if it was still at the drive, and its expected end: if that
    /// ends later, so would the request have.
    pub(crate) after: Option<(CommandId, Instant)>,
    /// How much sooner by luck, on average: its seek might have made a sector that it was believed
    /// to just miss.
    pub(crate) luck: Duration,
    /// Revolutions by which the plan was meant to be late, because they were paid for.
    pub(crate) paid: u64,
    /// What is in the gap.
    pub(crate) gap: GapUse,
    /// How much later the bus has its blocks, because of those that are merged with it.
    pub(crate) on_bus: Duration,
}

/// How the head comes to the blocks of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Approach {
    /// It seeks.
    Seek,
    /// It continues: the drive has read ahead, or takes the blocks before it writes them.
    Continue,
    /// It seeks, and no block passes under it.
    SeekOnly,
}

/// Whether the gap before a request was planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planned {
    /// It may still be filled.
    No,
    /// The drafts of what comes before the request stand before its own.
    Yes,
}

/// One command at the drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentCommand {
    pub(crate) id: CommandId,
    pub(crate) given: Instant,
    pub(crate) purpose: Purpose,
    /// Those of its blocks that its request asked for.
    pub(crate) part: Option<Extent>,
    pub(crate) approach: Approach,
    /// Whether it was held back for a just-in-time seek.
    pub(crate) was_held: bool,
    /// Whether the drive reports its end when the buffer has it, which says nothing of the head.
    pub(crate) is_buffered: bool,
    /// Where it lies, where the position of the head is of use.
    pub(crate) route: Option<Route>,
    /// The longest that it takes, where streams have to be served in time.
    pub(crate) worst: Duration,
}

/// A command that is chosen and not yet given to the drive.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Draft {
    /// A background read.
    Background(BackgroundRead),
    /// A background request in the gap before the chosen one.
    InGap { piece: PieceId },
    /// A read that tells where the platter is.
    Calibration(Extent),
    /// The next part of a piece that is under way, of at most so many blocks.
    Part { piece: PieceId, most: u64 },
    /// A read of what follows the one before.
    ReadAhead(Extent),
    /// A block on the way of a long seek.
    Hop(Extent),
    /// What the drive's buffer holds goes to the medium.
    Flush,
    /// A piece of a request, or its first part since the head left it, with the free blocks before it
    /// that are merged with it.
    Request {
        piece: PieceId,
        planned: Planned,
        was_held: bool,
        merged: Option<BackgroundRead>,
        unplanned: Option<UnplannedEnd>,
    },
}

impl Draft {
    /// A piece of a request by itself.
    pub(crate) fn request(piece: PieceId, planned: Planned) -> Self {
        Draft::Request {
            piece,
            planned,
            was_held: false,
            merged: None,
            unplanned: None,
        }
    }

    /// The next part of a piece, as large as the rules let it be.
    pub(crate) fn part(piece: PieceId) -> Self {
        Draft::Part {
            piece,
            most: u64::MAX,
        }
    }
}

impl BackgroundRead {
    /// A stop of a plan.
    pub(crate) fn of(stop: &Stop, means: Means) -> Self {
        BackgroundRead {
            extent: stop.extent,
            kind: stop.kind,
            means,
        }
    }
}

impl UnplannedEnd {
    /// The command `id` has left the medium at `end`.
    pub(crate) fn resync(&mut self, id: CommandId, end: Instant) {
        if let Some((after, expected)) = self.after
            && after == id
        {
            let shift = end.as_nanos() as i64 - expected.as_nanos() as i64;
            let shifted = self.end.as_nanos().saturating_add_signed(shift);
            self.end = Instant::from_nanos(shifted);
            self.after = None;
        }
    }
}

impl Purpose {
    pub(crate) fn unplanned_mut(&mut self) -> Option<&mut UnplannedEnd> {
        match self {
            Purpose::Request { unplanned, .. } | Purpose::Merged { unplanned, .. } => {
                unplanned.as_mut()
            }
            Purpose::InGap { .. }
            | Purpose::Background(_)
            | Purpose::ReadAhead
            | Purpose::Hop
            | Purpose::Calibration
            | Purpose::Flush => None,
        }
    }

    /// The piece of a request that it serves.
    pub(crate) fn piece(&self) -> Option<PieceId> {
        match *self {
            Purpose::Request { piece, .. }
            | Purpose::Merged { piece, .. }
            | Purpose::InGap { piece } => Some(piece),
            Purpose::Background(_)
            | Purpose::ReadAhead
            | Purpose::Hop
            | Purpose::Calibration
            | Purpose::Flush => None,
        }
    }
}

impl SentCommand {
    /// What is believed of it, if the head is at `head` before.
    pub(crate) fn course(&self, head: &Head, belief: &Profile, route: &Route) -> Course {
        match self.approach {
            Approach::Seek => head.course(belief, self.given, route),
            Approach::Continue => head.on(belief, route),
            Approach::SeekOnly => head.sought(belief, self.given, route),
        }
    }
}
