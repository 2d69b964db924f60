//! A capture's file, read frame by frame.

use std::io::{self, Read};

use block::Instant;

use super::event::Event;
use super::numbers::{In, Wrong};
use super::setting::Setting;
use super::{FIRST, FRAME, checksum};

/// Reads a capture.
pub struct Reader<R> {
    frames: Frames<R>,
    setting: Setting,
    /// How much of the frame has been taken.
    taken: usize,
    /// When the last input happened.
    last: Instant,
    is_over: bool,
}

/// The frames of a file.
struct Frames<R> {
    read: R,
    frame: Vec<u8>,
    /// Where the frame's payload begins in the file.
    begins: u64,
}

/// Why a file is no capture, or no whole one.
#[derive(Debug, thiserror::Error)]
pub enum Damaged {
    /// Its bytes.
    #[error("byte {offset}: expected {expected}")]
    Bytes {
        /// Where in the file.
        offset: u64,
        /// What should be there.
        expected: String,
    },
    /// It cannot be read.
    #[error("byte {offset}: {error}, expected to read on")]
    Unreadable {
        /// Up to where it could be.
        offset: u64,
        /// Why.
        error: io::Error,
    },
}

impl<R: Read> Reader<R> {
    /// Reads up to the first event.
    ///
    /// # Errors
    /// If it does not begin as a capture does.
    pub fn open(read: R) -> Result<Self, Damaged> {
        let mut frames = Frames {
            read,
            frame: Vec::new(),
            begins: 0,
        };
        frames.fill(FIRST.len() as u64)?;
        if frames.frame != FIRST {
            return frames.damaged(0, "\"headtime capture 1\" and a line break");
        }
        if !frames.next()? {
            return frames.damaged(FIRST.len(), "a frame with what the engine is made of");
        }
        let mut from = In::new(&frames.frame);
        let setting = Setting::decode(&mut from).or_else(|wrong| frames.wrong(0, wrong))?;
        let taken = from.at();
        if !from.is_empty() {
            return frames.damaged(taken, "the end of what the engine is made of");
        }
        Ok(Reader {
            frames,
            setting,
            taken,
            last: Instant::ZERO,
            is_over: false,
        })
    }

    /// What the engine was made of.
    pub fn setting(&self) -> &Setting {
        &self.setting
    }

    /// The next event and where it is in the file; `None` after the last.
    ///
    /// # Errors
    /// If the file is damaged or ends too early.
    pub fn next_event(&mut self) -> Result<Option<(u64, Event)>, Damaged> {
        if self.is_over {
            return Ok(None);
        }
        while self.taken == self.frames.frame.len() {
            let end = self.taken;
            if !self.frames.next()? {
                return self
                    .frames
                    .damaged(end, "more events, or the capture's end");
            }
            self.taken = 0;
        }
        let at = self.taken;
        let mut from = In::new(&self.frames.frame[at..]);
        let event = Event::decode(&mut from, self.last);
        let event = event.or_else(|wrong| self.frames.wrong(at, wrong))?;
        self.taken += from.at();
        self.last = event.now().unwrap_or(self.last);
        let offset = self.frames.begins + at as u64;
        if let Event::End(_) = event {
            self.is_over = true;
            let is_last = self.taken == self.frames.frame.len();
            if !is_last || self.frames.next()? {
                return self.frames.damaged(0, "nothing after the capture's end");
            }
        }
        Ok(Some((offset, event)))
    }
}

impl<R: Read> Frames<R> {
    /// Reads the next frame; whether there is one.
    fn next(&mut self) -> Result<bool, Damaged> {
        self.begins += self.frame.len() as u64;
        self.frame.clear();
        self.fill_up_to(FRAME as u64)?;
        if self.frame.is_empty() {
            return Ok(false);
        }
        let Some(&[a, b, c, d, ref sum @ ..]) = self.frame.first_chunk::<FRAME>() else {
            return self.damaged(0, "12 bytes before a frame");
        };
        let (length, sum) = (u32::from_le_bytes([a, b, c, d]), u64::from_le_bytes(*sum));
        self.begins += FRAME as u64;
        self.frame.clear();
        self.fill(u64::from(length))?;
        if checksum(&self.frame) != sum {
            return self.damaged(0, "a frame with the checksum that is before it");
        }
        Ok(true)
    }

    /// Reads exactly so many bytes.
    fn fill(&mut self, count: u64) -> Result<(), Damaged> {
        self.fill_up_to(count)?;
        let missing = count - self.frame.len() as u64;
        match missing {
            0 => Ok(()),
            _ => self.damaged(self.frame.len(), &format!("{missing} more bytes")),
        }
    }

    /// Nothing is allocated by a length that the file names: the frame grows as bytes come.
    fn fill_up_to(&mut self, count: u64) -> Result<(), Damaged> {
        let read = self.read.by_ref().take(count).read_to_end(&mut self.frame);
        read.map(drop).map_err(|error| Damaged::Unreadable {
            offset: self.begins + self.frame.len() as u64,
            error,
        })
    }

    fn wrong<T>(&self, from: usize, wrong: Wrong) -> Result<T, Damaged> {
        self.damaged(from + wrong.at, wrong.expected)
    }

    fn damaged<T>(&self, at: usize, expected: &str) -> Result<T, Damaged> {
        Err(Damaged::Bytes {
            offset: self.begins + at as u64,
            expected: expected.to_owned(),
        })
    }
}
