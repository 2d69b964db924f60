//! A back end in memory, for tests and for measurements of the service's own cost.
//!
//! Pages are allocated when they are written, and freed when they are trimmed. The content ends with the
//! service.

#![allow(
    unsafe_code,
    reason = "the device is one mapping, read and written by address"
)]

use std::collections::VecDeque;
use std::io;
use std::ptr::NonNull;

use block::{Action, Command, Instant};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use super::{BackEnd, Ended, Punch, Shape, Span};
use crate::arena::{Memory, PAGE};
use crate::ring::Ring;
use block::operation::OperationError;

/// A device in memory.
pub struct Ram {
    base: NonNull<u8>,
    shape: Shape,
    ended: VecDeque<Ended>,
    punched: VecDeque<u32>,
}

/// Bytes of a block. A choice: the smallest that any client uses.
const BLOCK: u32 = 512;

/// Bytes of memory of this machine.
fn memory_of_machine() -> u64 {
    let system = rustix::system::sysinfo();
    system
        .totalram
        .saturating_mul(u64::from(system.mem_unit.max(1)))
}

impl Ram {
    /// A device of `bytes` bytes, all zero.
    ///
    /// # Errors
    /// If the number is zero or no multiple of 512, the machine has less memory, or the address space has no
    /// room.
    pub fn new(bytes: u64) -> io::Result<Self> {
        let length = usize::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
        if length == 0 || !bytes.is_multiple_of(u64::from(BLOCK)) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{bytes} bytes: expected a multiple of {BLOCK}, not zero"),
            ));
        }
        let machine = memory_of_machine();
        if bytes > machine {
            return Err(io::Error::new(
                io::ErrorKind::OutOfMemory,
                format!("{bytes} bytes: expected at most {machine}, the memory of this machine"),
            ));
        }
        // SAFETY: a new private mapping touches no memory that anybody has.
        let base = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )?
        };
        Ok(Ram {
            base: NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?,
            shape: Shape {
                block_bytes: BLOCK,
                blocks: bytes / u64::from(BLOCK),
                trims: true,
                zeroes_fast: true,
                rotational: false,
            },
            ended: VecDeque::new(),
            punched: VecDeque::new(),
        })
    }

    fn whole(&self) -> Memory {
        Memory {
            at: self.base.as_ptr(),
            length: self.shape.bytes() as usize,
        }
    }
}

impl BackEnd for Ram {
    fn shape(&self) -> Shape {
        self.shape
    }

    unsafe fn start(&mut self, _: Instant, command: &Command, memory: &[Memory], _: &mut Ring) {
        if let Action::Read { extent, .. } | Action::Write { extent, .. } = command.action {
            let mut offset = extent.start().0 as usize * BLOCK as usize;
            for &piece in memory {
                let here = self.whole().part(offset, piece.length);
                offset += piece.length;
                // SAFETY: `here` is inside the mapping, as `part` has checked; `piece` is the
                // command's alone, as the caller promises, and never inside the mapping where the
                // command writes.
                unsafe {
                    match command.action {
                        Action::Write { .. } => here.bytes_mut().copy_from_slice(piece.bytes()),
                        // Where the reply is sent from the mapping, that is the memory.
                        _ if here.at == piece.at => (),
                        _ => piece.bytes_mut().copy_from_slice(here.bytes()),
                    }
                }
            }
        }
        self.ended.push_back(Ended {
            id: command.id,
            result: Ok(()),
            account: None,
        });
    }

    fn ring_ended(&mut self, _: Instant, _: u32, _: i32, _: &mut Ring) {}

    fn poll(&mut self, _: Instant) -> Option<Ended> {
        self.ended.pop_front()
    }

    fn punch(&mut self, key: u32, _: Punch, span: Span, _: &mut Ring) {
        let here = self
            .whole()
            .part(span.offset as usize, span.length as usize);
        // SAFETY: inside the mapping, which nobody else writes to.
        let bytes = unsafe { here.bytes_mut() };
        // Whole pages are given back, and read as zeroes afterwards; the rest is filled.
        let head = (here.at.align_offset(PAGE)).min(bytes.len());
        let (before, rest) = bytes.split_at_mut(head);
        let whole = rest.len() / PAGE * PAGE;
        let (pages, after) = rest.split_at_mut(whole);
        before.fill(0);
        after.fill(0);
        if !pages.is_empty() {
            // SAFETY: whole pages of a private anonymous mapping become zeroes.
            let advised = unsafe {
                madvise(
                    pages.as_mut_ptr().cast(),
                    pages.len(),
                    Advice::LinuxDontNeed,
                )
            };
            if advised.is_err() {
                pages.fill(0);
            }
        }
        self.punched.push_back(key);
    }

    fn poll_punched(&mut self) -> Option<(u32, Result<(), OperationError>)> {
        Some((self.punched.pop_front()?, Ok(())))
    }

    fn mapped(&self) -> Option<Memory> {
        Some(self.whole())
    }
}

impl Drop for Ram {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; the event loop that sends from it has ended.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.shape.bytes() as usize) };
        debug_assert!(unmapped.is_ok());
    }
}

// SAFETY: the mapping belongs to the device alone.
unsafe impl Send for Ram {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_larger_than_the_machine_is_refused() {
        let problem = Ram::new(1 << 50).err().map(|error| error.to_string());
        assert!(problem.is_some_and(|text| text.contains("the memory of this machine")));
        Ram::new(1 << 20).expect("a mebibyte");
    }
}
