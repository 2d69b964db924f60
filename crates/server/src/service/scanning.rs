//! From an order to a task of a drive and who takes its blocks.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::drives::Drive;
use super::{Running, locked, sink};
use crate::control;
use crate::tasks::Scan;

impl Running {
    /// Begins to read a volume; answers the task's number.
    ///
    /// # Errors
    /// Why not, and what was expected.
    pub(super) fn begin_scan(&self, order: &control::Scan) -> Result<u64, String> {
        let found = self.drives.iter().find_map(|drive| {
            let span = drive.volume(&order.volume)?;
            Some((drive, span))
        });
        let Some((drive, (offset, length))) = found else {
            let volumes = self.drives.iter().flat_map(Drive::volumes);
            let volumes: Vec<String> = volumes.collect();
            return Err(format!(
                "no volume {}: expected one of {}",
                order.volume,
                volumes.join(", ")
            ));
        };
        let mut taken = locked(&self.taken);
        taken.retain(|taken| !taken.has_ended());
        if let Some(state) = &order.state
            && let Some(task) = taken.iter().find_map(|taken| taken.uses(&state.file))
        {
            let file = state.file.display();
            return Err(format!(
                "{file}: task {task} uses it: expected its end, or another file"
            ));
        }
        let layout = Self::asked(drive.mailbox(), |event_loop| {
            event_loop.tasks().check()?;
            let belief = event_loop.engine().belief().profile();
            Ok::<_, String>((Arc::clone(&belief.geometry), belief.block_bytes))
        });
        let silent = || "the drive does not answer".to_owned();
        let (geometry, block_bytes) = layout.ok_or_else(silent)??;
        let place = sink::Place {
            drive: drive.name().to_owned(),
            offset,
            length,
            block_bytes,
            geometry,
        };
        let number = self.tasks.fetch_add(1, Ordering::Relaxed);
        let begun = sink::begin(number, order, drive.mailbox().clone(), &place)?;
        taken.push(begun.taken);
        drop(taken);
        let scan = Scan {
            number,
            name: format!("scan {}", order.volume),
            offset,
            length,
            priority: order.priority,
            deadline: order.deadline_s.map(block::Duration::from_secs),
            left: begun.left,
            sink: begun.sink,
        };
        let begun = Self::asked(drive.mailbox(), move |event_loop| {
            event_loop.tasks().begin(scan)
        });
        begun.ok_or_else(silent)??;
        Ok(number)
    }
}
