//! Where the time of slow requests went, as programs and people are told.
//!
//! Times are the drive's: with a time scale of 4 a second is four real ones. Phases of commands are
//! believed; that and when commands were given and ended is all that is used, on emulated drives, too.

use block::{Class, Direction, Status};
use engine::explanation::{Ahead, Before, Explanation, Held, Whose};
use scheduler::background::Means;
use serde::{Deserialize, Serialize};

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// Of which export; otherwise of all.
    #[serde(default)]
    pub export: Option<String>,
    /// How many, the slowest first; otherwise as many as are kept.
    #[serde(default)]
    pub slowest: Option<u32>,
    /// The one of this number alone.
    #[serde(default)]
    pub request: Option<u64>,
}

/// A slow request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slow {
    /// Which of the requests of its drive it was, in the order of their ends, from one on.
    pub request: u64,
    /// The drive.
    pub drive: String,
    /// The export; empty where there are none.
    pub export: String,
    /// How urgent, as in a configuration.
    pub class: String,
    /// `read` or `write`.
    pub direction: String,
    /// The first block.
    pub block: u64,
    /// How many blocks.
    pub blocks: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Whether it ended well.
    pub good: bool,
    /// When it ended, in seconds of the drive's time.
    pub at_s: f64,
    /// How many seconds of the drive's time ago, of a drive in service.
    pub ended_s_ago: Option<f64>,
    /// The time from the arrival of the request to its end. It is the sum of the following times.
    pub response_us: f64,
    /// The time before the acceptance, while the engine was full.
    pub outside_us: f64,
    /// The time behind earlier requests with common blocks, or behind a barrier.
    pub order_us: f64,
    /// The times of other commands at the head, by their reason.
    pub others: Vec<Others>,
    /// The time in which the drive was held idle on purpose.
    pub held_back_us: f64,
    /// The time of commands that the engine has forgotten.
    pub forgotten_us: f64,
    /// The time of the request's commands.
    pub in_drive: InDrive,
    /// The first command before the request, and the longest of the others.
    pub before: Vec<Command>,
}

/// The commands before a request for one reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Others {
    /// The reason.
    pub how: How,
    /// The number of commands.
    pub commands: u32,
    /// The head time of these commands in which the request could have been served.
    pub us: f64,
}

/// The reason for which a command went before a request, see [`Ahead`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// It was at the drive when the request arrived.
    AtDrive,
    /// It was more urgent.
    MoreUrgent,
    /// It was as urgent and chosen before.
    AsUrgent,
    /// It was less urgent: chosen before the request arrived, in flight in parts, or out of patience.
    LessUrgent,
    /// It was a background task's, in the gap before a request.
    Task,
    /// It was a flush, a prefetch, a stop of the arm, or a calibration read.
    Upkeep,
}

/// The time of a request at the drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InDrive {
    /// The whole time.
    pub us: f64,
    /// The number of commands.
    pub commands: u32,
    /// The number of commands that the drive's buffer answered, derived from their ends.
    pub buffered: u32,
    /// The believed time of the electronics.
    pub believed_electronics_us: f64,
    /// The believed seek time.
    pub believed_seek_us: f64,
    /// The believed rotational latency.
    pub believed_rotation_us: f64,
    /// The believed transfer time.
    pub believed_transfer_us: f64,
    /// The believed time of bus and completion.
    pub believed_bus_us: f64,
    /// The error of the prediction, negative if the command ended early.
    pub mispredicted_us: f64,
    /// The time without a prediction.
    pub unknown_us: f64,
}

/// A command that went before a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// The origin: `request`, `task`, `read-ahead`, `hop`, `calibration`, `flush`.
    pub whose: String,
    /// The export of a request, if it is known.
    pub export: Option<String>,
    /// The class of a request, or the kind of time of a task's read: `free`, `idle`, `paid`.
    pub class: Option<String>,
    /// The direction of a request's command: `read` or `write`.
    pub direction: Option<String>,
    /// The first block of a request's command.
    pub block: Option<u64>,
    /// The number of blocks of a request's command.
    pub blocks: Option<u64>,
    /// The reason for which it went before.
    pub how: How,
    /// The time of its dispatch after the request's arrival, negative before that.
    pub given_us: f64,
    /// The head time in which the request could have been served.
    pub us: f64,
}

impl From<Ahead> for How {
    fn from(ahead: Ahead) -> Self {
        match ahead {
            Ahead::AtDrive => How::AtDrive,
            Ahead::MoreUrgent => How::MoreUrgent,
            Ahead::AsUrgent => How::AsUrgent,
            Ahead::LessUrgent => How::LessUrgent,
            Ahead::Task => How::Task,
            Ahead::Upkeep => How::Upkeep,
        }
    }
}

impl Slow {
    /// The account of request number `request`. `export` answers the export of a command by its index in
    /// [`Explanation::before`]. The caller adds drive, export, block size and age.
    pub fn new(
        request: u64,
        explanation: &Explanation,
        export: impl Fn(usize) -> Option<String>,
    ) -> Self {
        let asked = &explanation.finished.request;
        let others = Ahead::ALL.into_iter().filter_map(|ahead| {
            let share = explanation.share(ahead);
            (share.commands > 0).then(|| Others {
                how: ahead.into(),
                commands: share.commands,
                us: us(share.time),
            })
        });
        let before = explanation.before.iter().flatten().enumerate();
        Slow {
            request,
            drive: String::new(),
            export: String::new(),
            class: urgency(asked.class),
            direction: way(asked.direction),
            block: asked.extent.start().0,
            blocks: asked.extent.length().0,
            block_bytes: 0,
            good: explanation.finished.status == Status::Good,
            at_s: explanation.finished.at.as_secs_f64(),
            ended_s_ago: None,
            response_us: us(explanation.response()),
            outside_us: us(explanation.outside()),
            order_us: us(explanation.order),
            others: others.collect(),
            held_back_us: us(explanation.held_back),
            forgotten_us: us(explanation.forgotten),
            in_drive: in_drive(explanation),
            before: before
                .map(|(place, before)| command(before, explanation, export(place)))
                .collect(),
        }
    }
}

fn in_drive(explanation: &Explanation) -> InDrive {
    let drive = &explanation.drive;
    InDrive {
        us: us(drive.total()),
        commands: drive.commands,
        buffered: drive.buffered,
        believed_electronics_us: us(drive.electronics),
        believed_seek_us: us(drive.seek),
        believed_rotation_us: us(drive.rotation),
        believed_transfer_us: us(drive.transfer),
        believed_bus_us: us(drive.bus),
        mispredicted_us: drive.mispredicted as f64 / 1e3,
        unknown_us: us(drive.unknown),
    }
}

fn command(before: &Before, explanation: &Explanation, export: Option<String>) -> Command {
    let Held { whose, given, .. } = before.held;
    let given = given.as_nanos() as i64 - explanation.came.as_nanos() as i64;
    let command = Command {
        whose: String::new(),
        export,
        class: None,
        direction: None,
        block: None,
        blocks: None,
        how: before.ahead.into(),
        given_us: given as f64 / 1e3,
        us: us(before.time),
    };
    match whose {
        Whose::Request {
            class,
            direction,
            extent,
            ..
        } => Command {
            whose: "request".to_owned(),
            class: Some(urgency(class)),
            direction: Some(way(direction)),
            block: Some(extent.start().0),
            blocks: Some(extent.length().0),
            ..command
        },
        Whose::Task(means) => {
            let means = match means {
                Means::Free => "free",
                Means::Idle => "idle",
                Means::Paid => "paid",
            };
            Command {
                whose: "task".to_owned(),
                class: Some(means.to_owned()),
                ..command
            }
        }
        Whose::Ahead => Command {
            whose: "read-ahead".to_owned(),
            ..command
        },
        Whose::Hop => Command {
            whose: "hop".to_owned(),
            ..command
        },
        Whose::Calibration => Command {
            whose: "calibration".to_owned(),
            ..command
        },
        Whose::Flush => Command {
            whose: "flush".to_owned(),
            ..command
        },
    }
}

fn us(time: block::Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

fn way(direction: Direction) -> String {
    match direction {
        Direction::Read => "read".to_owned(),
        Direction::Write => "write".to_owned(),
    }
}

/// The class as in a configuration.
fn urgency(class: Class) -> String {
    match class {
        Class::RealTime { .. } => "real-time".to_owned(),
        Class::BestEffort(0) => "foreground".to_owned(),
        Class::BestEffort(priority) => format!("best-effort-{priority}"),
        Class::Background => "background".to_owned(),
    }
}
