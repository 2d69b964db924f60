//! Writes the profile of a random drive to standard output: `cargo run -p drive --example random_drive -- 7`.
//!
//! The file is a drive for `headtime bench adopt --drive FILE`, `headtime emulate` and `headtime simulate`. What the drive
//! does that no profile has goes to standard error.

use std::env;
use std::error::Error;
use std::io::{Write, stderr, stdout};

use drive::random::RandomDrive;

fn main() -> Result<(), Box<dyn Error>> {
    let number = env::args().nth(1);
    let number = number.ok_or("the number of the drive is missing: expected a whole number")?;
    let seed: u64 = number
        .parse()
        .map_err(|_| format!("{number}: expected a whole number"))?;
    let drive = RandomDrive::draw(seed);
    let text = drive.text(seed).ok_or("the drawn zones hold no drive")?;
    stdout().write_all(text.as_bytes())?;
    let faults = &drive.faults;
    writeln!(
        stderr(),
        "not in the profile: seek noise {} us, spindle {:+} ppm, drift {} ppm, {} retries of a million reads, {} remapped \
         blocks",
        faults.seek_noise_us,
        faults.spindle_ppm,
        faults.drift_ppm,
        faults.retries_per_million,
        faults.grown.len()
    )?;
    Ok(())
}
