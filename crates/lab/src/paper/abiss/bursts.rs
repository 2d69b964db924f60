//! Best-effort delays beside bursts of dirty pages: the candidate for the load of the paper's delays of a second.

use super::run::{AbissRun, CompetingLoad, Machine};
use super::{AbissPaper, AbissRow, FIGURE_18, LEAST_WAIT, ROWS};
use crate::Failure;
use crate::paper::Table;
use crate::paper::finding::ShapeVerdict;
use crate::paper::grounds::OtherSetup;

/// Sizes of a burst, in MB.
pub(super) const BURSTS: [u64; 4] = [5, 10, 20, 40];

/// A row beside the reader and bursts of so many MB, four streams.
fn beside(row: AbissRow, megabytes: u64) -> AbissRun {
    AbissRun {
        others: CompetingLoad::Bursts(megabytes),
        ..row.run(Machine::PaperWritten, 4)
    }
}

/// The rows of best effort, then the paper's way with a buffer.
fn rows() -> impl Iterator<Item = AbissRow> {
    let elevators = ROWS.into_iter();
    let elevators = elevators.filter(|row| matches!(row, AbissRow::Elevator(..)));
    elevators.chain([AbissRow::Batch(FIGURE_18)])
}

/// The runs of all bursts.
pub(super) fn runs() -> impl Iterator<Item = AbissRun> {
    BURSTS
        .into_iter()
        .flat_map(|megabytes| rows().map(move |row| beside(row, megabytes)))
}

impl AbissPaper<'_> {
    /// The longest waits for the disk beside bursts, with the claim's check.
    pub(super) fn beside_bursts(&self) -> Result<Vec<OtherSetup>, Failure> {
        let mut setups = Vec::new();
        for megabytes in BURSTS {
            let buffered = self.of(beside(AbissRow::Batch(FIGURE_18), megabytes))?;
            let buffered = buffered.longest().as_millis_f64();
            let (mut named, mut checks) = (Vec::new(), Vec::new());
            for row in rows() {
                let wait = self.of(beside(row, megabytes))?.longest_wait();
                let wait = wait.as_millis_f64();
                if let AbissRow::Elevator(..) = row {
                    checks.push(wait >= LEAST_WAIT && wait > buffered);
                }
                named.push((format!("{}_ms", row.name()), wait));
            }
            let figures: Vec<(&str, f64)> = named
                .iter()
                .map(|(name, ms)| (name.as_str(), *ms))
                .collect();
            let name = format!("beside {megabytes} MB of dirty pages every 5 s");
            let setup = OtherSetup::several(name, &figures);
            setups.push(setup.shaped(ShapeVerdict::of(&checks)));
        }
        Ok(setups)
    }

    /// The longest waits beside the bursts of which most elevators have the paper's delay.
    pub(super) fn said_of_bursts(&self) -> Result<String, Failure> {
        let mut best = (0, String::new());
        for megabytes in BURSTS {
            let (mut long, mut short) = (Vec::new(), Vec::new());
            for row in rows() {
                let wait = self.of(beside(row, megabytes))?.longest_wait();
                let wait = wait.as_millis_f64();
                match row {
                    AbissRow::Elevator(name, _) if wait >= LEAST_WAIT => {
                        long.push(format!("{name} {wait:.0}"));
                    }
                    _ => short.push(format!("{} {wait:.0}", row.name())),
                }
            }
            if long.len() > best.0 {
                let (count, long) = (long.len(), long.join(", "));
                let said = format!(
                    "beside {megabytes} MB of dirty pages every 5 s these elevators have it: {long} ms; these do not: {} ms",
                    short.join(", ")
                );
                best = (count, said);
            }
        }
        Ok(match best.0 {
            0 => "bursts of dirty pages do not make it either".to_owned(),
            _ => best.1,
        })
    }

    /// The longest waits beside bursts, by elevator.
    pub(super) fn burst_table(&self) -> Result<Table, Failure> {
        let columns = [
            "four streams",
            "longest wait for the disk, ms: 5 MB",
            "10 MB",
            "20 MB",
            "40 MB",
        ];
        let mut table = Table::new(
            "Streams beside the reader and bursts of dirty pages, written every 5 s",
            &columns,
        );
        for row in rows() {
            let mut cells = vec![row.name()];
            for megabytes in BURSTS {
                let wait = self.of(beside(row, megabytes))?.longest_wait();
                cells.push(format!("{:.0}", wait.as_millis_f64()));
            }
            table.rows.push(cells);
        }
        Ok(table)
    }
}
