//! Scans: from an order of a user to a task of a drive and its sink.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::drives::Drive;
use super::{Running, locked};
use crate::tasks::TaskRequest;
use crate::tasks::scan::Scan;
use crate::tasks::sink::{self, ScanSource, SinkEvent, SinkEvents};

impl Running {
    /// Begins to read a volume. The answer is the number of the task.
    ///
    /// # Errors
    /// The reason, and what was expected.
    pub(super) fn begin_scan(&self, order: &Scan) -> Result<u64, String> {
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
        let mut sinks = locked(&self.sinks);
        sinks.retain(|sink| !sink.has_ended());
        if let Some(state) = &order.state
            && let Some(task) = sinks.iter().find_map(|sink| sink.uses(&state.file))
        {
            let file = state.file.display();
            return Err(format!(
                "{file}: task {task} uses it: expected its end, or another file"
            ));
        }
        let layout = Self::asked(drive.mailbox(), |event_loop| {
            event_loop.tasks().check()?;
            let belief = event_loop.engine().profile();
            Ok::<_, String>((Arc::clone(&belief.geometry), belief.block_bytes))
        });
        let silent = || "the drive does not answer".to_owned();
        let (geometry, block_bytes) = layout.ok_or_else(silent)??;
        let set = order.declared((offset, length), u64::from(block_bytes))?;
        let place = ScanSource {
            drive: drive.name().to_owned(),
            offset,
            length,
            block_bytes,
            set: set.clone(),
            geometry,
        };
        let number = self.tasks.fetch_add(1, Ordering::Relaxed);
        let events = self.sink_events(drive, number);
        let begun = sink::begin(number, order, events, &place)?;
        sinks.push(begun.thread);
        drop(sinks);
        let scan = TaskRequest {
            number,
            name: match &order.set {
                None => format!("scan {}", order.volume),
                Some(set) => format!("{} pieces of {}", set.pieces.len(), order.volume),
            },
            set,
            priority: order.priority,
            deadline: order.deadline_s.map(block::Duration::from_secs),
            left: begun.left,
            sink: begun.sink,
        };
        let pace_bytes_s = order.pace_bytes_s;
        let begun = Self::asked(drive.mailbox(), move |event_loop| {
            let mut tasks = event_loop.tasks();
            tasks.check_terms(&scan, pace_bytes_s)?;
            tasks.begin(scan)
        });
        begun.ok_or_else(silent)??;
        Ok(number)
    }

    /// What a task hears of its sink. The hook of its end is run by that.
    fn sink_events(&self, drive: &Drive, number: u64) -> SinkEvents {
        let (mailbox, hooks) = (drive.mailbox().clone(), self.hooks.clone());
        Arc::new(move |event| {
            let hooks = hooks.clone();
            // A loop that has ended has no tasks.
            let _ = mailbox.call(move |event_loop| match event {
                SinkEvent::CaughtUp => event_loop.tasks().caught_up(number),
                SinkEvent::Ended => {
                    event_loop.tasks().sink_gone(number);
                    if let Some(end) = event_loop.tasks().end_of(number) {
                        hooks.run_for(end);
                    }
                }
            });
        })
    }
}
