//! `headtime drives map`: locates blocks.

use std::fs;
use std::io::Write;
use std::path::Path;

use block::Lba;
use drive::Profile;

use super::DrivesError;

/// A block number, and its place in the input.
pub struct LocatedBlock {
    lba: u64,
    place: String,
}

/// Blocks from the command line.
pub fn blocks(lbns: &[u64]) -> Vec<LocatedBlock> {
    let asked = |&lba: &u64| LocatedBlock {
        lba,
        place: format!("--lbn {lba}"),
    };
    lbns.iter().map(asked).collect()
}

/// Blocks from the first column of a CSV file, whose first line may be a heading.
pub fn blocks_of(path: &Path) -> Result<Vec<LocatedBlock>, DrivesError> {
    let file = path.display().to_string();
    let text = fs::read_to_string(path).map_err(|error| DrivesError::File {
        path: file.clone(),
        error,
    })?;
    let mut asked = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let column = line.split(',').next().unwrap_or("").trim();
        let place = format!("{file}:{number}");
        match column.parse() {
            Ok(lba) => asked.push(LocatedBlock { lba, place }),
            Err(_) if number == 1 => {}
            Err(_) => {
                return Err(DrivesError::Block {
                    place,
                    message: format!("\"{column}\": expected a block number in the first column"),
                });
            }
        }
    }
    Ok(asked)
}

/// Prints a CSV line for each block.
pub fn print(
    profile: &Profile,
    blocks: &[LocatedBlock],
    out: &mut impl Write,
) -> Result<(), DrivesError> {
    writeln!(out, "lbn,cylinder,head,sector,angle")?;
    for LocatedBlock { lba, place } in blocks {
        let found = profile.geometry.locate(Lba(*lba));
        let at = found.ok_or_else(|| DrivesError::Block {
            place: place.clone(),
            message: format!(
                "block {lba} of {}: expected below {}",
                profile.name,
                profile.geometry.sectors().0
            ),
        })?;
        writeln!(
            out,
            "{lba},{},{},{},{:.9}",
            at.cylinder,
            at.head,
            at.sector,
            at.angle.revolutions()
        )?;
    }
    Ok(())
}
