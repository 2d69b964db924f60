//! What happens in a run of random operations.

use block::Durability;
use block::operation::{Ask, Space, ZeroingPace};
use nbd::Style;
use nbd::request::{Asked, Wanted};
use proptest::prelude::*;

use crate::hostile::{self, Hostile};
use crate::station::{BLOCK, LONGEST};
use crate::streams;

/// What happens next.
#[derive(Clone, Debug)]
pub enum Step {
    Open(Style),
    /// The client submits; it does not wait.
    Submit {
        who: usize,
        what: Asked,
        first: u64,
        count: u64,
    },
    /// The client takes one end.
    Take(usize),
    Leave(usize, Leaving),
    Hostile(Hostile),
    Stream(streams::Step),
    /// The drive takes up a belief.
    TakeUp,
    /// The client writes the next page of a recording.
    Record {
        who: usize,
        stream: usize,
    },
}

#[derive(Clone, Copy, Debug)]
pub enum Leaving {
    /// It says so, and takes the replies.
    Politely,
    /// It closes its half, and takes the replies.
    ByHalf,
    /// It is gone.
    Abruptly,
    /// It is gone in the middle of a payload.
    WithinPayload,
}

/// Blocks of the device: few, so that operations overlap, and enough for the longest.
pub const BLOCKS: u64 = 4096;

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..150)
}

/// The same, and a belief is taken up among them.
pub fn steps_with_a_belief() -> impl Strategy<Value = Vec<Step>> {
    (steps(), any::<prop::sample::Index>()).prop_map(|(mut steps, at)| {
        steps.insert(at.index(steps.len()), Step::TakeUp);
        steps
    })
}

/// The same beside streams, and reads are what most do.
pub fn steps_beside_streams() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        10 => step(),
        4 => (0..4usize, place()).prop_map(|(who, (first, count))| Step::Submit {
            who, what: Asked::Of(Ask::Read), first, count: count.min(16)
        }),
        4 => (0..4usize, 0..4usize).prop_map(|(who, stream)| Step::Record { who, stream }),
        4 => streams::step().prop_map(Step::Stream),
    ];
    prop::collection::vec(step, 1..200)
}

fn step() -> impl Strategy<Value = Step> {
    let who = 0..4usize;
    prop_oneof![
        3 => prop_oneof![Just(Style::Simple), Just(Style::Structured), Just(Style::Extended)]
            .prop_map(Step::Open),
        40 => (who.clone(), what(), place()).prop_map(|(who, what, (first, count))| Step::Submit {
            who, what, first, count
        }),
        12 => who.clone().prop_map(Step::Take),
        2 => (who, prop_oneof![
            Just(Leaving::Politely), Just(Leaving::ByHalf),
            Just(Leaving::Abruptly), Just(Leaving::WithinPayload)
        ]).prop_map(|(who, how)| Step::Leave(who, how)),
        1 => hostile::hostile().prop_map(Step::Hostile),
    ]
}

fn what() -> impl Strategy<Value = Asked> {
    let durability = prop_oneof![Just(Durability::Volatile), Just(Durability::Durable)];
    let space = prop_oneof![Just(Space::MayBeFreed), Just(Space::Kept)];
    let pace = prop_oneof![Just(ZeroingPace::Any), Just(ZeroingPace::Fast)];
    let of = |ask: Ask| Asked::Of(ask);
    prop_oneof![
        8 => Just(of(Ask::Read)),
        8 => durability.clone().prop_map(move |durability| of(Ask::Write { durability })),
        2 => (durability.clone(), space, pace).prop_map(move |(durability, space, pace)| {
            of(Ask::Zero { durability, space, pace })
        }),
        2 => durability.prop_map(move |durability| of(Ask::Trim { durability })),
        2 => Just(of(Ask::Flush)),
        1 => Just(of(Ask::Cache)),
        1 => prop_oneof![Just(Wanted::Many), Just(Wanted::One)]
            .prop_map(|wanted| Asked::BlockStatus { wanted }),
    ]
}

fn place() -> impl Strategy<Value = (u64, u64)> {
    let longest = u64::from(LONGEST) / BLOCK;
    prop_oneof![
        6 => (0..64u64, 1..32u64),
        2 => (0..BLOCKS - 300, 1..300u64),
        1 => (0..BLOCKS - longest, Just(longest)),
    ]
}
