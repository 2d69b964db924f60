//! The reader of a capture's file, frame by frame.

use std::io::{self, Read};

use serde::de::DeserializeOwned;

use super::event::Event;
use super::setting::EngineSetting;
use super::{FIRST, FRAME, checksum};

/// The reader of a capture.
pub struct CaptureReader<R> {
    frames: Frames<R>,
    setting: EngineSetting,
    /// The bytes of the frame that were read.
    taken: usize,
    is_over: bool,
}

/// The frames of a file.
struct Frames<R> {
    read: R,
    frame: Vec<u8>,
    /// The offset of the frame's payload in the file.
    begins: u64,
}

/// The error of a file that is no capture, or is damaged.
#[derive(Debug, thiserror::Error)]
pub enum Damaged {
    /// Invalid bytes.
    #[error("byte {offset}: expected {expected}")]
    Bytes {
        /// The offset in the file.
        offset: u64,
        /// The expected content.
        expected: String,
    },
    /// Another release wrote the file.
    #[error(
        "byte 0: a capture of version {version}, expected {VERSION}: \
         replay it with the release that wrote it"
    )]
    Version {
        /// The version of the file.
        version: String,
    },
    /// The file cannot be read.
    #[error("byte {offset}: {error}, expected to read on")]
    Unreadable {
        /// The offset up to which it was read.
        offset: u64,
        /// The cause.
        error: io::Error,
    },
}

impl<R: Read> CaptureReader<R> {
    /// Reads up to the first event.
    ///
    /// # Errors
    /// If the file does not begin as a capture.
    pub fn open(read: R) -> Result<Self, Damaged> {
        let mut frames = Frames {
            read,
            frame: Vec::new(),
            begins: 0,
        };
        frames.fill(FIRST.len() as u64)?;
        if let Some(version) = frames.frame.strip_prefix(PREFIX)
            && frames.frame != FIRST
        {
            let version = String::from_utf8_lossy(version).trim().to_owned();
            return Err(Damaged::Version { version });
        }
        if frames.frame != FIRST {
            return frames.damaged(0, "\"headtime capture 3\" and a line break");
        }
        if !frames.next()? {
            return frames.damaged(FIRST.len(), "a frame with what the engine is made of");
        }
        let (setting, taken) = frames.take::<EngineSetting>(0, "what the engine is made of")?;
        if let Some(expected) = setting.unmet_condition() {
            return frames.damaged(0, expected);
        }
        if taken < frames.frame.len() {
            return frames.damaged(taken, "the end of what the engine is made of");
        }
        Ok(CaptureReader {
            frames,
            setting,
            taken,
            is_over: false,
        })
    }

    /// The setting of the engine.
    pub fn setting(&self) -> &EngineSetting {
        &self.setting
    }

    /// The next event and its offset in the file, or `None` after the last.
    ///
    /// # Errors
    /// If the file is damaged or truncated.
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
        let (event, taken) = self.frames.take(at, "an event")?;
        self.taken += taken;
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
    /// Reads the next frame. The answer is whether there is one.
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

    /// Reads exactly `count` bytes.
    fn fill(&mut self, count: u64) -> Result<(), Damaged> {
        self.fill_up_to(count)?;
        let missing = count - self.frame.len() as u64;
        match missing {
            0 => Ok(()),
            _ => self.damaged(self.frame.len(), &format!("{missing} more bytes")),
        }
    }

    /// Reads at most `count` bytes. The frame grows as bytes arrive, because the count may be wrong.
    fn fill_up_to(&mut self, count: u64) -> Result<(), Damaged> {
        let read = self.read.by_ref().take(count).read_to_end(&mut self.frame);
        read.map(drop).map_err(|error| Damaged::Unreadable {
            offset: self.begins + self.frame.len() as u64,
            error,
        })
    }

    /// The value at byte `at` of the frame, and its length in bytes.
    fn take<T: DeserializeOwned>(&self, at: usize, expected: &str) -> Result<(T, usize), Damaged> {
        let bytes = &self.frame[at..];
        match postcard::take_from_bytes(bytes) {
            Ok((value, rest)) => Ok((value, bytes.len() - rest.len())),
            Err(error) => self.damaged(at, &format!("{expected} ({error})")),
        }
    }

    fn damaged<T>(&self, at: usize, expected: &str) -> Result<T, Damaged> {
        Err(Damaged::Bytes {
            offset: self.begins + at as u64,
            expected: expected.to_owned(),
        })
    }
}

/// The begin of the first line of a capture of any version.
const PREFIX: &[u8] = b"headtime capture ";

/// The version of the format.
const VERSION: &str = "3";
