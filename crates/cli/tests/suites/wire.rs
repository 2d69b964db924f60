//! NBD as bytes, for clients that break its rules: newstyle, `NBD_OPT_EXPORT_NAME`, simple replies.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// The client's flags (fixed newstyle, no zeroes), `IHAVEOPT`, `NBD_OPT_EXPORT_NAME`, no name.
pub const HELLO: &[u8] = b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\0";

/// What the server says before and after it: its greeting; the size and the export's flags.
const GREETING: usize = 18;
const EXPORT: usize = 10;

pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const FLUSH: u16 = 3;

/// How long an answer may take before a test says that there is none.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Wire {
    socket: UnixStream,
    cookie: u64,
}

impl Wire {
    /// Connects and says nothing.
    pub fn connect(path: &Path) -> Self {
        let socket = UnixStream::connect(path).expect("it listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        Wire { socket, cookie: 0 }
    }

    /// Connects and agrees on the export.
    pub fn agree(path: &Path) -> Self {
        let mut wire = Self::connect(path);
        wire.say(HELLO);
        wire.welcome();
        wire
    }

    /// Takes what the server says when it agrees.
    pub fn welcome(&mut self) {
        let greeting = self.hear(GREETING);
        assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
        let export = self.hear(EXPORT);
        assert_eq!(export[..8], (super::served::SIZE as u64).to_be_bytes());
    }

    pub fn say(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("it is taken");
    }

    /// Says it to a server that may have hung up.
    pub fn try_to_say(&mut self, bytes: &[u8]) {
        let _ = self.socket.write_all(bytes);
    }

    pub fn hear(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.socket.read_exact(&mut bytes).expect("an answer");
        bytes
    }

    /// Whether the server hangs up, after whatever it says before.
    pub fn is_hung_up(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.socket.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }

    /// Whether the server hangs up behind its greeting, instead of agreeing.
    pub fn is_hung_up_after_greeting(&mut self) -> bool {
        self.hear(GREETING);
        let mut export = [0; EXPORT];
        self.socket.read_exact(&mut export).is_err()
    }

    /// Sends a request's header; its cookie.
    pub fn ask(&mut self, command: u16, offset: u64, length: u32) -> u64 {
        self.cookie += 1;
        let mut header = Vec::new();
        header.extend(0x2560_9513u32.to_be_bytes());
        header.extend(0u16.to_be_bytes());
        header.extend(command.to_be_bytes());
        header.extend(self.cookie.to_be_bytes());
        header.extend(offset.to_be_bytes());
        header.extend(length.to_be_bytes());
        self.say(&header);
        self.cookie
    }

    /// The error and the cookie of the next reply.
    pub fn reply(&mut self) -> (u32, u64) {
        let reply = self.hear(16);
        assert_eq!(reply[..4], 0x6744_6698u32.to_be_bytes());
        let error = u32::from_be_bytes(reply[4..8].try_into().expect("four bytes"));
        let cookie = u64::from_be_bytes(reply[8..].try_into().expect("eight bytes"));
        (error, cookie)
    }

    pub fn read(&mut self, offset: u64, length: u32) -> Vec<u8> {
        let cookie = self.ask(READ, offset, length);
        assert_eq!(self.reply(), (0, cookie));
        self.hear(length as usize)
    }

    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        let cookie = self.ask(WRITE, offset, bytes.len() as u32);
        self.say(bytes);
        assert_eq!(self.reply(), (0, cookie));
    }
}
