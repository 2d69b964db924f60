//! The orderings of Table 1.

use super::run::Machine;
use super::{AbissPaper, AbissRow, ORDER, PAGES, ROWS, STREAMS, figures};
use crate::Failure;
use crate::paper::finding::{Finding, ShapeVerdict};

impl AbissPaper<'_> {
    /// The orderings that hold in our cells.
    pub(super) fn order(&self) -> Result<Finding, Failure> {
        let mut checks: Vec<(String, bool)> = Vec::new();
        for streams in STREAMS {
            for pair in PAGES.windows(2) {
                let [less, more] = [pair[0], pair[1]].map(AbissRow::Batch);
                let holds = self.left(less, streams)? < self.left(more, streams)?;
                let said = format!("{streams}: batch {} < {}", pair[0], pair[1]);
                checks.push((said, holds));
            }
            let mut best = 0.0f64;
            for row in ROWS {
                if let AbissRow::Elevator(..) = row {
                    best = best.max(self.left(row, streams)?);
                }
            }
            for pages in PAGES.into_iter().filter(|&pages| pages >= 40) {
                let holds = self.left(AbissRow::Batch(pages), streams)? > best;
                let said = format!("{streams}: every best effort < batch {pages}");
                checks.push((said, holds));
            }
        }
        for row in ROWS {
            let holds = self.left(row, 4)? < self.left(row, 1)?;
            checks.push((format!("{}: 4 streams < 1", row.name()), holds));
        }
        for [less, more] in ELEVATORS {
            let [left, other] = [less, more].map(|name| self.elevator(name));
            checks.push((format!("4: {less} < {more}"), left? < other?));
        }
        let failed: Vec<&str> = checks
            .iter()
            .filter(|(_, holds)| !holds)
            .map(|(said, _)| said.as_str())
            .collect();
        let more = match failed.is_empty() {
            true => "all of them hold".to_owned(),
            false => format!(
                "those that do not hold, streams first: {}",
                failed.join("; ")
            ),
        };
        let counted = vec![
            ("orderings".to_owned(), checks.len() as f64),
            ("hold".to_owned(), (checks.len() - failed.len()) as f64),
        ];
        let shape = ShapeVerdict::of(&[failed.is_empty()]);
        Ok(figures(ORDER, counted, self.note(Machine::Paper, &more)).shaped(shape))
    }

    /// The rate that 4 best-effort streams leave under an elevator.
    fn elevator(&self, name: &str) -> Result<f64, Failure> {
        let mut rows = ROWS.into_iter();
        let row = rows.find(|row| matches!(row, AbissRow::Elevator(other, _) if *other == name));
        let row = row.ok_or_else(|| Failure::failed(format!("no row {name}")))?;
        self.left(row, 4)
    }
}

/// The elevators by the rate that 4 best-effort streams leave in the paper: 1.5, 1.8, 1.8, 2.0, 2.7
/// MB/s.
const ELEVATORS: [[&str; 2]; 5] = [
    ["abiss_be", "deadline"],
    ["abiss_be", "cfq"],
    ["deadline", "noop"],
    ["cfq", "noop"],
    ["noop", "anticipatory"],
];
