//! The blocks that a volume's file system uses, read through the service itself.

use std::sync::mpsc::channel;

use block::operation::Ask;
use block::{Class, Owner};

use super::{Scrub, locked};
use crate::checksums::report::UsedReport;
use crate::control::ScrubBlocks;
use crate::event_loop::mailbox::Mailbox;
use crate::file_systems::{self, Source};
use crate::volume::exports::Export;
use crate::volume::posted::{Contents, Posted};

/// The class of reads of metadata: the last of those that do not wait for gaps. Clients go first.
const CLASS: Class = Class::BestEffort(6);

/// The bytes of a volume, as a client of the drive's loop.
struct VolumeReader {
    mailbox: Mailbox,
    /// The index of the export in the loop.
    export: usize,
}

impl Source for VolumeReader {
    fn read(&mut self, offset: u64, length: usize) -> Result<Vec<u8>, String> {
        let (tell, told) = channel();
        self.mailbox.submit(Posted {
            export: self.export,
            ask: Ask::Read,
            offset,
            length: length as u64,
            contents: Contents::Owned(Vec::new()),
            owner: Owner::service(self.export as u64),
            reply: Box::new(move |answer| {
                let _ = tell.send(answer.map(<[u8]>::to_vec));
            }),
        });
        let answer = told
            .recv()
            .map_err(|_| "the drive does not answer".to_owned())?;
        answer.map_err(|error| format!("{length} bytes at {offset}: {error}"))
    }
}

impl Scrub {
    /// Leaves out what the file system does not use, if the order says so.
    pub(super) fn leave_out_unused(&mut self) -> Result<(), String> {
        if self.order.blocks == ScrubBlocks::All {
            return Ok(());
        }
        let export = Export {
            name: format!("scrub {}", self.order.volume),
            offset: self.offset,
            length: self.length,
            class: CLASS,
        };
        let export = self.ask(move |event_loop| event_loop.add_export(export))?;
        let mut reader = VolumeReader {
            mailbox: self.mailbox.clone(),
            export,
        };
        let used = file_systems::used(&mut reader, self.length);
        let used = used.map_err(|problem| format!("volume {}: {problem}", self.order.volume))?;
        let map = used.map.clone();
        self.of_pass(move |keeper| {
            keeper.pass_mut()?.narrow(|chunk| map.has(chunk));
            Some(())
        })?;
        let mut report = locked(&self.report);
        report.asked_bytes = used.map.bytes();
        report.used = Some(UsedReport {
            file_system: used.kind.to_owned(),
            used_bytes: used.map.bytes(),
            distrusted_groups: used.distrusted_groups,
        });
        drop(report);
        self.used = Some(used.map);
        Ok(())
    }
}
