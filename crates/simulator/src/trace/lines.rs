//! The lines of a file, read through one fixed buffer.

use super::MAX_LINE_BYTES;
use std::io::{self, Read};

/// The size of the buffer: many lines of the longest kind, and efficient to read. A choice.
const BUFFER_BYTES: usize = 16 * MAX_LINE_BYTES;

/// The lines of `R`.
pub(super) struct Lines<R> {
    input: R,
    buffer: Box<[u8]>,
    /// `buffer[start..end]` has been read and not yet returned.
    start: usize,
    end: usize,
    /// Number of returned lines.
    number: u64,
    ended: bool,
    /// An error of [`Lines::head`], reported after the last line.
    failed: Option<io::Error>,
}

/// The next item of a file.
#[derive(Debug)]
pub(super) enum NextLine<'a> {
    /// A line, without its newline.
    Line(&'a [u8]),
    /// The last line, without a newline.
    Unended(&'a [u8]),
    /// A line of more than [`MAX_LINE_BYTES`], which is skipped.
    TooLong,
    /// The end of the file.
    End,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Lines {
            input,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            number: 0,
            ended: false,
            failed: None,
        }
    }

    /// The number of the last line, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The complete lines at the beginning of the file that fit into the buffer; the whole file if
    /// it fits. [`Lines::next`] reports an error of this call.
    pub(super) fn head(&mut self) -> &[u8] {
        while self.end < self.buffer.len() && !self.ended && self.failed.is_none() {
            self.failed = self.fill().err();
        }
        let held = &self.buffer[self.start..self.end];
        match memchr::memrchr(b'\n', held) {
            Some(last) if !self.ended => &held[..last],
            _ => held,
        }
    }

    /// The error that ended [`Lines::head`] early.
    pub(super) fn failure(&self) -> Option<&io::Error> {
        self.failed.as_ref()
    }

    /// The next line.
    pub(super) fn next(&mut self) -> io::Result<NextLine<'_>> {
        let mut searched = 0;
        loop {
            let held = &self.buffer[self.start..self.end];
            if let Some(newline) = memchr::memchr(b'\n', &held[searched..]) {
                let length = searched + newline;
                return Ok(self.hand_out(length));
            }
            searched = held.len();
            if searched > MAX_LINE_BYTES + 1 {
                return self.pass_over();
            }
            if self.ended {
                return Ok(self.hand_out_last());
            }
            if let Err(error) = self.fill() {
                self.number += 1;
                return Err(error);
            }
        }
    }

    fn hand_out(&mut self, length: usize) -> NextLine<'_> {
        let from = self.start;
        self.start += length + 1;
        self.number += 1;
        match without_return(&self.buffer[from..from + length]) {
            line if line.len() > MAX_LINE_BYTES => NextLine::TooLong,
            line => NextLine::Line(line),
        }
    }

    fn hand_out_last(&mut self) -> NextLine<'_> {
        let from = self.start;
        self.start = self.end;
        match without_return(&self.buffer[from..self.end]) {
            [] if from == self.end => NextLine::End,
            line => {
                self.number += 1;
                match line.len() > MAX_LINE_BYTES {
                    true => NextLine::TooLong,
                    false => NextLine::Unended(line),
                }
            }
        }
    }

    /// Skips everything up to the next newline.
    fn pass_over(&mut self) -> io::Result<NextLine<'_>> {
        self.number += 1;
        loop {
            let held = &self.buffer[self.start..self.end];
            if let Some(newline) = memchr::memchr(b'\n', held) {
                self.start += newline + 1;
                return Ok(NextLine::TooLong);
            }
            self.start = self.end;
            if self.ended {
                return Ok(NextLine::TooLong);
            }
            self.fill()?;
        }
    }

    /// Moves the held bytes to the front, and reads once into the free part of the buffer.
    fn fill(&mut self) -> io::Result<()> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(read) => self.end += read,
                Err(again) if again.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }
}

/// The line without the carriage return before a Windows newline.
pub(super) fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Hands out at most `step` bytes at a time.
    struct Dribble<'a> {
        rest: &'a [u8],
        step: usize,
    }

    impl Read for Dribble<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.step.min(into.len()).min(self.rest.len());
            into[..count].copy_from_slice(&self.rest[..count]);
            self.rest = &self.rest[count..];
            Ok(count)
        }
    }

    fn all(bytes: &[u8], step: usize) -> Vec<(u64, Option<Vec<u8>>)> {
        let mut lines = Lines::new(Dribble { rest: bytes, step });
        lines.head();
        let mut found = Vec::new();
        loop {
            let text = match lines.next().expect("no error in memory") {
                NextLine::Line(line) | NextLine::Unended(line) => Some(line.to_vec()),
                NextLine::TooLong => None,
                NextLine::End => return found,
            };
            found.push((lines.number(), text));
        }
    }

    /// What the standard library makes of the same bytes.
    fn oracle(bytes: &[u8]) -> Vec<(u64, Option<Vec<u8>>)> {
        let whole = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        if bytes.is_empty() {
            return Vec::new();
        }
        (1..)
            .zip(whole.split(|&byte| byte == b'\n'))
            .map(|(number, line)| {
                let line = without_return(line);
                (
                    number,
                    (line.len() <= MAX_LINE_BYTES).then(|| line.to_vec()),
                )
            })
            .collect()
    }

    #[test]
    fn a_line_too_long_is_passed_over_and_the_next_is_whole() {
        for length in [
            MAX_LINE_BYTES,
            MAX_LINE_BYTES + 1,
            MAX_LINE_BYTES + 2,
            BUFFER_BYTES,
            3 * BUFFER_BYTES + 5,
        ] {
            let mut bytes = b"first\n".to_vec();
            bytes.resize(bytes.len() + length, b'x');
            bytes.extend_from_slice(b"\nlast\n");
            for step in [1000, 4096, usize::MAX] {
                assert_eq!(all(&bytes, step), oracle(&bytes), "{length} {step}");
            }
        }
    }

    proptest! {
        #[test]
        fn lines_are_those_of_the_standard_library(
            bytes in prop::collection::vec(
                prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'x')], 0..200),
            step in 1_usize..50,
        ) {
            prop_assert_eq!(all(&bytes, step), oracle(&bytes));
        }
    }
}
