//! Streams of all drives.

use std::sync::atomic::Ordering;
use std::sync::mpsc;

use headtime_client::wire;

use super::drives::Drive;
use super::{PATIENCE, Running, locked};
use crate::volume::streams::StreamEvents;
use crate::volume::streams::StreamRequest;

impl Running {
    /// Grants a stream, or says why not.
    pub(super) fn attach_stream(
        &self,
        user: u32,
        attach: wire::Attach,
        events: StreamEvents,
    ) -> Result<wire::Granted, wire::StreamRefused> {
        let mut drives = self.drives.iter().enumerate();
        let found = drives.find(|(_, drive)| {
            drive
                .exports()
                .iter()
                .any(|export| export == attach.export())
        });
        let Some((place, drive)) = found else {
            let names: Vec<String> = self.drives.iter().flat_map(Drive::exports).collect();
            let names = names.join(", ");
            return Err(refused(format!(
                "no export {}: expected one of {names}",
                attach.export()
            )));
        };
        if let Some(why) = drive.no_streams() {
            let name = drive.name();
            return Err(refused(format!("drive {name} promises nothing: {why}")));
        }
        let stream = self.streams_named.fetch_add(1, Ordering::Relaxed);
        let request = StreamRequest {
            stream,
            user,
            attach,
            events,
        };
        let (tell, told) = mpsc::channel();
        let asked = drive.mailbox().call(move |event_loop| {
            let granted = event_loop.streams().attach(request);
            let is_granted = granted.is_ok();
            // Who asked may have given up: nobody would ever close it.
            if tell.send(granted).is_err() && is_granted {
                event_loop.streams().close(stream);
            }
        });
        asked.map_err(|gone| refused(gone.to_string()))?;
        let granted = told.recv_timeout(PATIENCE);
        let granted = granted.map_err(|_| refused("the drive does not answer"))??;
        locked(&self.streams).insert(stream, place);
        Ok(granted)
    }

    /// The drive of a stream.
    fn drive_of(&self, stream: u64) -> Result<&Drive, String> {
        let place = locked(&self.streams).get(&stream).copied();
        let drive = place.and_then(|place| self.drives.get(place));
        drive.ok_or_else(|| format!("no stream {stream}"))
    }

    /// A stream's playout point has moved. This waits for nobody.
    pub(super) fn position_stream(&self, position: wire::Position) -> Result<(), String> {
        let drive = self.drive_of(position.stream)?;
        let told = drive
            .mailbox()
            .call(move |event_loop| event_loop.streams().position(&position));
        told.map_err(|gone| gone.to_string())
    }

    /// A stream's file lies elsewhere.
    pub(super) fn refresh_stream(
        &self,
        refresh: wire::Refresh,
    ) -> Result<wire::FileChange, wire::StreamRefused> {
        let drive = self.drive_of(refresh.stream).map_err(refused)?;
        let asked = Self::asked(drive.mailbox(), move |event_loop| {
            event_loop.streams().refresh(&refresh)
        });
        asked.unwrap_or_else(|| Err(refused("the drive does not answer")))
    }

    /// A stream is over.
    pub(super) fn close_stream(&self, stream: u64) -> Result<(), String> {
        let drive = self.drive_of(stream)?;
        locked(&self.streams).remove(&stream);
        let told = drive
            .mailbox()
            .call(move |event_loop| event_loop.streams().close(stream));
        told.map_err(|gone| gone.to_string())
    }

    /// All streams, by drive.
    pub(super) fn all_streams(&self) -> Vec<wire::Listed> {
        let mut all = Vec::new();
        for drive in &self.drives {
            let told = Self::asked(drive.mailbox(), |event_loop| event_loop.streams().list());
            all.extend(told.into_iter().flatten().map(|listed| wire::Listed {
                drive: drive.name().to_owned(),
                ..listed
            }));
        }
        all
    }
}

fn refused(reason: impl Into<String>) -> wire::StreamRefused {
    wire::StreamRefused {
        reason: reason.into(),
        ..wire::StreamRefused::default()
    }
}
