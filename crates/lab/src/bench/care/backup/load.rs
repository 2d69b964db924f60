//! The verify load of backups: writes whole units, and reads units back.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use block::Durability;
use block::operation::{Ask, OperationError};
use nbd::request::Asked;

use super::moments::{Diary, UNIT};
use crate::dice::SplitMix;
use crate::nbd_client::LoadClient;

/// Requests in flight. A choice: enough for a policy to choose from.
const DEPTH: usize = 8;

/// A connected load.
pub struct DiaryLoad<'a> {
    client: LoadClient,
    diary: &'a mut Diary,
    dice: &'a mut SplitMix,
    in_flight: BTreeMap<u64, Sent>,
    /// Bytes that were read and are wrong.
    pub wrong_bytes: u64,
}

/// A request in flight.
enum Sent {
    Read(u64, Vec<u8>),
    Write(u64),
    Flush,
}

impl Sent {
    fn unit(&self) -> Option<u64> {
        match self {
            Sent::Read(unit, _) | Sent::Write(unit) => Some(*unit),
            Sent::Flush => None,
        }
    }
}

impl<'a> DiaryLoad<'a> {
    /// Connects to the default export.
    pub fn connect(
        socket: &Path,
        diary: &'a mut Diary,
        dice: &'a mut SplitMix,
    ) -> io::Result<DiaryLoad<'a>> {
        Ok(DiaryLoad {
            client: LoadClient::connect(socket, DEPTH + 1)?,
            diary,
            dice,
            in_flight: BTreeMap::new(),
            wrong_bytes: 0,
        })
    }

    /// The diary.
    pub fn diary(&self) -> &Diary {
        self.diary
    }

    /// Sends so many requests for units of which none is in flight: a third of them reads. They stay in flight.
    pub fn exercise(&mut self, requests: u64) -> io::Result<()> {
        for _ in 0..requests {
            self.wait_for_room(DEPTH)?;
            let unit = self.dice.below(self.diary.units());
            match self.dice.below(3) {
                _ if self.is_in_flight(unit) => (),
                0 => self.read(unit)?,
                _ => self.write(unit)?,
            }
        }
        Ok(())
    }

    /// Writes a unit, and waits for room before.
    pub fn write(&mut self, unit: u64) -> io::Result<()> {
        self.wait_for_room(DEPTH)?;
        let payload = self.diary.sent(unit);
        let durability = Durability::Volatile;
        let ask = Asked::Of(Ask::Write { durability });
        let cookie = self.client.submit(ask, unit * UNIT, UNIT, &payload)?;
        self.in_flight.insert(cookie, Sent::Write(unit));
        Ok(())
    }

    /// Asks for a flush.
    pub fn flush(&mut self) -> io::Result<()> {
        self.wait_for_room(DEPTH)?;
        let cookie = self.client.submit(Asked::Of(Ask::Flush), 0, 0, &[])?;
        self.in_flight.insert(cookie, Sent::Flush);
        Ok(())
    }

    fn read(&mut self, unit: u64) -> io::Result<()> {
        let ask = Asked::Of(Ask::Read);
        let cookie = self.client.submit(ask, unit * UNIT, UNIT, &[])?;
        let bytes = vec![0; UNIT as usize];
        self.in_flight.insert(cookie, Sent::Read(unit, bytes));
        Ok(())
    }

    fn is_in_flight(&self, unit: u64) -> bool {
        let mut all = self.in_flight.values();
        all.any(|sent| sent.unit() == Some(unit))
    }

    /// Waits until everything has ended.
    pub fn settle(&mut self) -> io::Result<()> {
        self.wait_for_room(1)
    }

    /// Waits until fewer than so many requests are in flight.
    fn wait_for_room(&mut self, below: usize) -> io::Result<()> {
        while self.in_flight.len() >= below {
            let DiaryLoad {
                client, in_flight, ..
            } = self;
            let ended = client.end_with(&mut |cookie, offset, part| {
                if let Some(Sent::Read(unit, bytes)) = in_flight.get_mut(&cookie) {
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
        result.map_err(io::Error::other)?;
        match sent {
            Some(Sent::Write(unit)) => self.diary.acknowledged(unit),
            Some(Sent::Read(unit, bytes)) => {
                self.wrong_bytes += self.diary.wrong_bytes(unit, &bytes);
            }
            Some(Sent::Flush) => (),
            None => return Err(io::Error::other("an end of what was not sent")),
        }
        Ok(())
    }
}
