//! The ioctl `SG_IO` (the kernel's documentation, scsi-generic; the SCSI generic HOWTO, version 3 of the
//! interface).

#![allow(
    unsafe_code,
    reason = "the ioctl takes the addresses of command, bytes and sense"
)]

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use super::ScsiCommand;
use super::target::{CommandBytes, Completion, ScsiTarget};

/// The structure `sg_io_hdr` of `scsi/sg.h`.
#[repr(C)]
struct Header {
    interface: i32,
    direction: i32,
    command_length: u8,
    sense_room: u8,
    pieces: u16,
    length: u32,
    bytes: *mut c_void,
    command: *const u8,
    sense: *mut u8,
    patience_ms: u32,
    flags: u32,
    pack: i32,
    user: *mut c_void,
    status: u8,
    masked_status: u8,
    message_status: u8,
    sense_length: u8,
    host: u16,
    driver: u16,
    residual: i32,
    duration: u32,
    remarks: u32,
}

/// The number of the ioctl, the letter of the interface, and the directions, from `scsi/sg.h`.
const SG_IO: libc::c_ulong = 0x2285;
const INTERFACE: i32 = b'S' as i32;
const NOTHING: i32 = -1;
const TO_DRIVE: i32 = -2;
const FROM_DRIVE: i32 = -3;

/// Bytes for sense data. No drive sends more (SPC-4 4.5.1).
const SENSE_ROOM: u8 = 252;

/// A device node that takes SCSI commands: `/dev/sgN` or `/dev/sdX`.
impl ScsiTarget for File {
    fn carry_out(
        &self,
        command: &ScsiCommand,
        transfer: CommandBytes<'_>,
        patience: Duration,
    ) -> io::Result<Completion> {
        carry_out(self, command, transfer, patience)
    }
}

fn carry_out(
    file: &File,
    command: &ScsiCommand,
    transfer: CommandBytes<'_>,
    patience: Duration,
) -> io::Result<Completion> {
    let mut sense = vec![0; usize::from(SENSE_ROOM)];
    let (direction, bytes, length) = match transfer {
        CommandBytes::None => (NOTHING, std::ptr::null_mut(), 0),
        CommandBytes::From(bytes) => (FROM_DRIVE, bytes.as_mut_ptr(), bytes.len()),
        CommandBytes::To(bytes) => (TO_DRIVE, bytes.as_ptr().cast_mut(), bytes.len()),
    };
    let words = command.bytes();
    let mut header = Header {
        interface: INTERFACE,
        direction,
        command_length: words.len() as u8,
        sense_room: SENSE_ROOM,
        pieces: 0,
        length: u32::try_from(length).map_err(|_| io::ErrorKind::InvalidInput)?,
        bytes: bytes.cast(),
        command: words.as_ptr(),
        sense: sense.as_mut_ptr(),
        patience_ms: u32::try_from(patience.as_millis()).unwrap_or(u32::MAX),
        flags: 0,
        pack: 0,
        user: std::ptr::null_mut(),
        status: 0,
        masked_status: 0,
        message_status: 0,
        sense_length: 0,
        host: 0,
        driver: 0,
        residual: 0,
        duration: 0,
        remarks: 0,
    };
    loop {
        // SAFETY: the header is what the ioctl wants; command, bytes and sense are borrowed or owned
        // here until it has returned, and it writes to bytes only if they come from the drive.
        let answer = unsafe { libc::ioctl(file.as_raw_fd(), SG_IO, &raw mut header) };
        if answer == 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    sense.truncate(usize::from(header.sense_length));
    let residual = usize::try_from(header.residual).unwrap_or(0);
    Ok(Completion {
        status: header.status,
        host: header.host,
        driver: header.driver,
        missing: residual.min(length),
        sense,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    #[cfg(target_pointer_width = "64")]
    #[test]
    fn the_header_is_laid_out_as_the_kernel_has_it() {
        assert_eq!(size_of::<Header>(), 88);
        assert_eq!(offset_of!(Header, bytes), 16);
        assert_eq!(offset_of!(Header, patience_ms), 40);
        assert_eq!(offset_of!(Header, user), 56);
        assert_eq!(offset_of!(Header, status), 64);
        assert_eq!(offset_of!(Header, residual), 72);
    }
}
