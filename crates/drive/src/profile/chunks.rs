//! The `[chunks]` table: the sizes of commands at which sequential reads keep the full rate.

use block::Sectors;

use document::{DocumentError, Section};

/// The sizes of successive commands at which sequential reads keep the full rate: points a and b of
/// Figure 3 of Virtual IO (Dimitrijevic et al. 2002).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunks {
    /// Point a: below it the overhead of a command is no longer hidden.
    pub least: Sectors,
    /// Point b: beyond it the buffer is too small; `None` if no larger size was slower.
    pub most: Option<Sectors>,
}

/// Reads the table, if it is there. Only timings tell: shipped profiles of data sheets have none.
pub(super) fn read(root: &Section, blocks: u64) -> Result<Option<Chunks>, DocumentError> {
    let Some(field) = root.get("chunks") else {
        return Ok(None);
    };
    let section = field.section(&["origin", "least_blocks", "most_blocks"])?;
    let blocks = i64::try_from(blocks).unwrap_or(i64::MAX);
    let least = section
        .need("least_blocks", "a number of blocks")?
        .integer(1..=blocks)?;
    let most = match section.get("most_blocks") {
        Some(field) => Some(Sectors(field.integer(least..=blocks)? as u64)),
        None => None,
    };
    Ok(Some(Chunks {
        least: Sectors(least as u64),
        most,
    }))
}
