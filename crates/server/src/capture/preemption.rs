//! The rules of preemption as bytes and back.

use block::{Sectors, Switch};
use scheduler::Preemption;
use scheduler::preemption::{Aside, Landing, LastChunk, Split, SplitCost, When};

use super::numbers::{In, Out, Wrong};

/// A chunk has at most so many blocks: a terabyte, a choice far above all requests.
const MOST_BLOCKS: u64 = 1 << 31;

pub(super) fn encode(rules: &Preemption, out: &mut Out) {
    let Preemption {
        chunk,
        just_in_time,
        split,
        free_prefetch,
        last_chunk,
        aside,
        when,
    } = *rules;
    out.option(chunk, |out, chunk| out.number(chunk.0));
    match just_in_time {
        None => out.number(0),
        Some(Landing::Learned) => out.number(1),
        Some(Landing::Fixed(landing)) => {
            out.number(2);
            out.duration(landing);
        }
    }
    out.option(split, |out, Split { longest, cost }| {
        out.number(u64::from(longest));
        out.number(u64::from(cost == SplitCost::Revolution));
    });
    out.number(u64::from(free_prefetch == Switch::On));
    match last_chunk {
        LastChunk::Buffered => out.number(0),
        LastChunk::Forced => out.number(1),
        LastChunk::Every(every) => {
            out.number(2);
            out.number(u64::from(every));
        }
    }
    out.option(aside, |out, aside| {
        out.number(u64::from(aside.fill == Switch::On));
        out.number(u64::from(aside.most_permille));
    });
    out.number(u64::from(when == When::Always));
}

pub(super) fn decode(from: &mut In<'_>) -> Result<Preemption, Wrong> {
    let chunk = from.option(|from| {
        let at = from.at();
        match from.up_to(MOST_BLOCKS, CHUNK)? {
            0 => from.wrong(at, CHUNK),
            blocks => Ok(Sectors(blocks)),
        }
    })?;
    let just_in_time = match from.up_to(2, "no landing, a learned one, or a fixed one")? {
        0 => None,
        1 => Some(Landing::Learned),
        _ => Some(Landing::Fixed(from.duration()?)),
    };
    let split = from.option(|from| {
        let at = from.at();
        let longest = from.up_to(u64::from(u32::MAX), CYLINDERS)? as u32;
        if longest == 0 {
            return from.wrong(at, CYLINDERS);
        }
        let cost = match from.flag()? {
            true => SplitCost::Revolution,
            false => SplitCost::Hidden,
        };
        Ok(Split { longest, cost })
    })?;
    Ok(Preemption {
        chunk,
        just_in_time,
        split,
        free_prefetch: switch(from)?,
        last_chunk: match from.up_to(2, "buffered, forced, or every so many")? {
            0 => LastChunk::Buffered,
            1 => LastChunk::Forced,
            _ => LastChunk::Every(from.up_to(u64::from(u32::MAX), "at most 2^32 - 1")? as u32),
        },
        aside: from.option(|from| {
            Ok(Aside {
                fill: switch(from)?,
                most_permille: from.up_to(1000, "at most a thousand")? as u16,
            })
        })?,
        when: match from.flag()? {
            true => When::Always,
            false => When::Worth,
        },
    })
}

const CHUNK: &str = "one to 2^31 blocks";
const CYLINDERS: &str = "one to 2^32 - 1 cylinders";

fn switch(from: &mut In<'_>) -> Result<Switch, Wrong> {
    Ok(match from.flag()? {
        true => Switch::On,
        false => Switch::Off,
    })
}
