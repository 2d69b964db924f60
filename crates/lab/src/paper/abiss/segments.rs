//! Table 1 over the number of segments in the drive's buffer, which is not known.
//!
//! The number is fitted on the cells of one stream, and the cells of four are judged with it.

use super::run::Machine;
use super::{AbissPaper, AbissRow, BACKGROUND, FITTED, ROWS, cell, cells, figures};
use crate::Failure;
use crate::claims::{self, Claim, Theirs};
use crate::paper::Table;
use crate::paper::finding::Finding;
use crate::paper::grounds::OtherSetup;

/// Numbers of segments: up to those of the profile, which are typical of drives of its year.
pub(super) const SEGMENTS: [u32; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

type Cell = (AbissRow, usize);

impl AbissPaper<'_> {
    /// The rates left to the background reader in cells, by their names.
    pub(super) fn cells(
        &self,
        cells: &[Cell],
        machine: Machine,
    ) -> Result<Vec<(String, f64)>, Failure> {
        let rate = |&(row, streams): &Cell| {
            let report = self.of(row.run(machine, streams))?;
            Ok((cell(row, streams), report.background_rate()))
        };
        cells.iter().map(rate).collect()
    }

    /// The cells with so many segments, beside the claim.
    pub(super) fn with_segments(
        &self,
        segments: u32,
        cells: &[Cell],
    ) -> Result<OtherSetup, Failure> {
        let ours = self.cells(cells, Machine::Segments(segments))?;
        let named: Vec<(&str, f64)> = ours.iter().map(|(name, of)| (name.as_str(), *of)).collect();
        Ok(OtherSetup::several(
            format!("a buffer of {segments} segments"),
            &named,
        ))
    }

    /// The cells of four streams, with the number of segments that fits those of one stream best.
    pub(super) fn fitted(&self) -> Result<Finding, Failure> {
        let mut errors = Vec::new();
        for segments in SEGMENTS {
            errors.push((segments, self.error(&column(1), segments)?));
        }
        let best = errors.iter().min_by(|one, other| one.1.total_cmp(&other.1));
        let &(best, error) = best.ok_or_else(|| Failure::failed("no number of segments"))?;
        let judged = column(4);
        let machine = Machine::Segments(best);
        let said: Vec<String> = errors
            .iter()
            .map(|(segments, error)| format!("{segments}: {error:.2}"))
            .collect();
        let more = format!(
            "{best} segments fit the ten cells of one stream best, {error:.2} MB/s off in the root mean square (all: {}), \
             and these of four streams are {:.2} off",
            said.join(", "),
            self.error(&judged, best)?
        );
        let ours = self.cells(&judged, machine)?;
        let finding = figures(FITTED, ours, self.note(machine, &more));
        let mut setups = Vec::new();
        for segments in SEGMENTS {
            setups.push(self.with_segments(segments, &judged)?);
        }
        Ok(finding.beside(setups))
    }

    /// The smallest deviation from the cells of four streams, over the numbers of segments.
    pub(super) fn best_error(&self) -> Result<f64, Failure> {
        let mut best = f64::INFINITY;
        for segments in SEGMENTS {
            best = best.min(self.error(&column(4), segments)?);
        }
        Ok(best)
    }

    /// The deviation of cells from the paper's, in MB/s: the root mean square.
    fn error(&self, cells: &[Cell], segments: u32) -> Result<f64, Failure> {
        let claim = table_1()?;
        let mut sum = 0.0;
        for (name, ours) in self.cells(cells, Machine::Segments(segments))? {
            let off = ours - theirs(&claim, &name)?;
            sum += off * off;
        }
        Ok((sum / cells.len().max(1) as f64).sqrt())
    }

    /// Table 1 for all numbers of segments.
    pub(super) fn by_segments(&self) -> Result<Table, Failure> {
        let claim = table_1()?;
        let mut table = Table::new(
            "Table 1 over the segments of the drive's buffer, MB/s left to the background reader",
            &[
                "cell",
                "theirs",
                "1",
                "2",
                "3",
                "4",
                "5",
                "6",
                "7",
                "8 segments",
            ],
        );
        for (row, streams) in column(1).into_iter().chain(column(4)) {
            let name = cell(row, streams);
            let mut cells = vec![name.clone(), theirs(&claim, &name)?.to_string()];
            for segments in SEGMENTS {
                let report = self.of(row.run(Machine::Segments(segments), streams))?;
                cells.push(format!("{:.2}", report.background_rate()));
            }
            table.rows.push(cells);
        }
        for streams in [1, 4] {
            let plural = if streams > 1 { "s" } else { "" };
            let mut cells = vec![
                format!("{streams} stream{plural}, root mean square off"),
                String::new(),
            ];
            for segments in SEGMENTS {
                cells.push(format!("{:.2}", self.error(&column(streams), segments)?));
            }
            table.rows.push(cells);
        }
        Ok(table)
    }
}

/// The cells with this number of streams.
fn column(streams: usize) -> Vec<Cell> {
    debug_assert!(cells().any(|(_, of)| of == streams));
    ROWS.map(|row| (row, streams)).to_vec()
}

/// The claim about Table 1.
pub(super) fn table_1() -> Result<Claim, Failure> {
    let built_in = claims::ALL.iter().find(|paper| paper.name == "abiss");
    let built_in = built_in.ok_or_else(|| Failure::failed("no claims of abiss"))?;
    let paper = built_in.paper().map_err(Failure::failed)?;
    let claim = paper.claim(BACKGROUND).cloned();
    claim.ok_or_else(|| Failure::failed("no claim about Table 1"))
}

/// The paper's figure of a cell.
pub(super) fn theirs(claim: &Claim, name: &str) -> Result<f64, Failure> {
    let figure = claim.figure(Some(name)).map(|figure| figure.theirs);
    match figure {
        Some(Theirs::Within(theirs, _) | Theirs::Exact(theirs)) => Ok(theirs),
        _ => Err(Failure::failed(format!("no figure of {name}"))),
    }
}
