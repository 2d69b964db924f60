//! A verify load: writes whole units, reads units anywhere, and compares what it reads with the book.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use block::Durability;
use block::operation::{Ask, OperationError};
use nbd::request::Asked;

use super::book::{Book, Injury, UNIT};
use crate::Failure;
use crate::dice::SplitMix;
use crate::nbd_client::LoadClient;

/// Requests in flight. A choice: enough for a policy to choose from.
const DEPTH: usize = 8;

/// Requests from one flush to the next. A choice.
const FLUSH_EVERY: u64 = 64;

/// The part of the units that the load writes at a time: one of so many. Damage is done to the others.
pub const PARTS: u64 = 4;

/// A connected load.
pub struct VerifyLoad<'a> {
    client: LoadClient,
    book: &'a mut Book,
    dice: &'a mut SplitMix,
    in_flight: BTreeMap<u64, Sent>,
    sent: u64,
    /// Units that were written, the oldest first.
    written: Vec<u64>,
    wrong_bytes: u64,
    failed_reads: u64,
}

/// What loads have found.
#[derive(Clone, Copy, Debug, Default)]
pub struct VerifyCounts {
    /// Bytes that were read and are wrong.
    pub wrong_bytes: u64,
    /// Reads that failed, and not because of a sector that the drive cannot read.
    pub failed_reads: u64,
}

impl VerifyCounts {
    /// Connects a load to a service, runs it, and adds what it found, also if it failed.
    ///
    /// # Errors
    /// If it cannot connect, or fails.
    pub fn add(
        &mut self,
        socket: &Path,
        (book, dice): (&mut Book, &mut SplitMix),
        run: impl FnOnce(&mut VerifyLoad<'_>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let mut load = VerifyLoad::connect(socket, book, dice).map_err(Failure::failed)?;
        let ran = run(&mut load);
        self.wrong_bytes += load.wrong_bytes;
        self.failed_reads += load.failed_reads;
        ran.map_err(|error| Failure::failed(format!("the verify load: {error}")))
    }
}

/// A request in flight.
enum Sent {
    Read { unit: u64, bytes: Vec<u8> },
    Write { unit: u64 },
    Flush,
}

impl<'a> VerifyLoad<'a> {
    /// Connects to the default export.
    fn connect(
        socket: &Path,
        book: &'a mut Book,
        dice: &'a mut SplitMix,
    ) -> io::Result<VerifyLoad<'a>> {
        Ok(VerifyLoad {
            client: LoadClient::connect(socket, DEPTH + 1)?,
            book,
            dice,
            in_flight: BTreeMap::new(),
            sent: 0,
            written: Vec::new(),
            wrong_bytes: 0,
            failed_reads: 0,
        })
    }

    /// The book.
    pub fn book(&mut self) -> &mut Book {
        self.book
    }

    /// Units whose writes were acknowledged, the latest first.
    pub fn written(&self) -> Vec<u64> {
        self.written.iter().rev().copied().collect()
    }

    /// Sends so many requests: half of them reads of any unit, half of them writes of units of a part. Requests
    /// stay in flight.
    pub fn exercise(&mut self, requests: u64, part: u64) -> io::Result<()> {
        for _ in 0..requests {
            self.sent += 1;
            if self.sent.is_multiple_of(FLUSH_EVERY) {
                self.flush()?;
            }
            let units = self.book.units();
            let unit = self.dice.below(units / PARTS) * PARTS + part;
            match self.dice.below(2) == 0 && self.book.is_writable(unit) {
                true => self.write(unit)?,
                false => {
                    let unit = self.dice.below(units);
                    self.read(unit)?;
                }
            }
        }
        Ok(())
    }

    /// Writes a unit.
    pub fn write(&mut self, unit: u64) -> io::Result<()> {
        self.wait_for_room(DEPTH)?;
        let payload = self.book.write_begun(unit);
        let durability = Durability::Volatile;
        let ask = Asked::Of(Ask::Write { durability });
        let cookie = self.client.submit(ask, unit * UNIT, UNIT, &payload)?;
        self.in_flight.insert(cookie, Sent::Write { unit });
        Ok(())
    }

    /// Reads a unit. Reads that overlap a write in flight are left out: they may see either content.
    pub fn read(&mut self, unit: u64) -> io::Result<()> {
        self.wait_for_room(DEPTH)?;
        if self.is_written(unit) {
            return Ok(());
        }
        let ask = Asked::Of(Ask::Read);
        let cookie = self.client.submit(ask, unit * UNIT, UNIT, &[])?;
        let bytes = vec![0; UNIT as usize];
        self.in_flight.insert(cookie, Sent::Read { unit, bytes });
        Ok(())
    }

    /// Asks for a flush.
    pub fn flush(&mut self) -> io::Result<()> {
        self.wait_for_room(DEPTH)?;
        let cookie = self.client.submit(Asked::Of(Ask::Flush), 0, 0, &[])?;
        self.in_flight.insert(cookie, Sent::Flush);
        Ok(())
    }

    /// Waits until everything has ended.
    pub fn settle(&mut self) -> io::Result<()> {
        self.wait_for_room(1)
    }

    fn is_written(&self, unit: u64) -> bool {
        let mut all = self.in_flight.values();
        all.any(|sent| matches!(sent, Sent::Write { unit: of } if *of == unit))
    }

    /// Waits until fewer than so many requests are in flight.
    fn wait_for_room(&mut self, below: usize) -> io::Result<()> {
        while self.in_flight.len() >= below {
            let VerifyLoad {
                client, in_flight, ..
            } = self;
            let ended = client.end_with(&mut |cookie, offset, part| {
                if let Some(Sent::Read { unit, bytes }) = in_flight.get_mut(&cookie) {
                    let at = (offset - *unit * UNIT) as usize;
                    bytes[at..at + part.len()].copy_from_slice(part);
                }
            })?;
            let sent = self.in_flight.remove(&ended.cookie);
            self.account(sent, ended.result)?;
        }
        Ok(())
    }

    fn account(
        &mut self,
        sent: Option<Sent>,
        result: Result<(), OperationError>,
    ) -> io::Result<()> {
        match (sent, result) {
            (Some(Sent::Write { unit }), Ok(())) => {
                self.book.write_ended(unit);
                self.written.push(unit);
            }
            (Some(Sent::Read { unit, bytes }), Ok(())) => {
                self.wrong_bytes += self.book.wrong_bytes(unit, &bytes);
            }
            (Some(Sent::Read { unit, .. }), Err(OperationError::Io)) => {
                let injected = self.book.injected_in(unit);
                let is_latent = injected.is_some_and(|found| found.injury == Injury::Latent);
                self.failed_reads += u64::from(!is_latent);
            }
            (Some(Sent::Flush), Ok(())) => {}
            (_, Err(failed)) => return Err(io::Error::other(failed)),
            (None, Ok(())) => return Err(io::Error::other("an end of what was not sent")),
        }
        Ok(())
    }
}
