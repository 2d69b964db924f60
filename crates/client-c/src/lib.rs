//! The functions of `include/headtime.h`.
//!
//! The header documents the return value of every function. A panic aborts the process, because it
//! must not cross into C.

#![allow(unsafe_code, reason = "C hands over addresses")]

use std::ffi::{CStr, c_char, c_int};
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use headtime_client::{
    Client, FilePiece, Places, Stream, StreamMode, StreamUpdate, Terms, default_socket,
};

mod tasks;

pub use tasks::{COrder, CRange, CTask, headtime_begin_task, headtime_steer_task, headtime_task};

/// `struct headtime_terms`.
#[repr(C)]
#[derive(Debug)]
pub struct CTerms {
    /// The name of the stream; may be null.
    pub name: *const c_char,
    /// The mode: 0 play, 1 record, 2 record with writes that end on the medium.
    pub mode: c_int,
    /// The rate in bytes a second.
    pub rate: u64,
    /// The largest distance of reads or writes from the playout point, in bytes.
    pub buffer: u64,
    /// The largest memory of the service, in bytes; 0: as much as needed.
    pub memory: u64,
    /// The first byte that is needed.
    pub start: u64,
    /// The export, if the kernel does not know it; may be null.
    pub export_name: *const c_char,
}

/// `struct headtime_piece`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CPiece {
    /// The offset in the file, in bytes.
    pub offset: u64,
    /// The offset on the volume, in bytes.
    pub start: u64,
    /// The length in bytes.
    pub length: u64,
}

/// `struct headtime_event`.
#[repr(C)]
#[derive(Debug)]
pub struct CEvent {
    /// The kind of event, `HEADTIME_*`.
    pub kind: c_int,
    /// The lateness of a late batch, or the first byte that could not be written.
    pub from: u64,
    /// For how long requests over the same blocks held it up, or the byte after the last one that could
    /// not be written.
    pub to: u64,
}

/// The caller's buffer for a message.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CText {
    /// The address of the buffer; may be null.
    pub at: *mut c_char,
    /// The size of the buffer in bytes, with the final zero.
    pub size: usize,
}

impl CText {
    /// Writes as much of the text as fits, and a final zero.
    ///
    /// # Safety
    /// `at` is null or points to `size` writable bytes.
    unsafe fn say(self, text: &str) {
        let Some(room) = self.size.checked_sub(1).filter(|_| !self.at.is_null()) else {
            return;
        };
        let mut count = text.len().min(room);
        while !text.is_char_boundary(count) {
            count -= 1;
        }
        // SAFETY: the caller's promise; `count` and the zero fit.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), self.at.cast(), count);
            *self.at.add(count) = 0;
        }
    }
}

/// A C string; `None` if it is null.
///
/// # Safety
/// `at` is null or ends with a zero.
unsafe fn text<'a>(at: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the caller's promise.
    (!at.is_null()).then(|| unsafe { CStr::from_ptr(at) })
}

/// Connects to the control socket at `path`, or at the default path if that is null. Returns null
/// if no service listens there.
///
/// # Safety
/// `path` is null or ends with a zero; `problem` is as in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headtime_connect(path: *const c_char, problem: CText) -> *mut Client {
    // SAFETY: the caller's promise.
    let path = unsafe { text(path) };
    let path = match path {
        Some(path) => Path::new(std::ffi::OsStr::from_bytes(path.to_bytes())).to_owned(),
        None => default_socket(),
    };
    match Client::connect(&path) {
        Ok(client) => Box::into_raw(Box::new(client)),
        Err(error) => {
            // SAFETY: the caller's promise.
            unsafe { problem.say(&error.to_string()) };
            std::ptr::null_mut()
        }
    }
}

/// Closes a connection, which ends its streams. The streams must still be closed.
///
/// # Safety
/// `client` is null, or was returned by `headtime_connect` and not disconnected.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headtime_disconnect(client: *mut Client) {
    if !client.is_null() {
        // SAFETY: the caller's promise.
        let client = unsafe { Box::from_raw(client) };
        client.hang_up();
    }
}

/// Attaches a stream to an open file. Returns null if the service refuses.
///
/// # Safety
/// All addresses are as in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headtime_attach_file(
    client: *const Client,
    fd: c_int,
    terms: *const CTerms,
    problem: CText,
) -> *mut Stream {
    // SAFETY: the caller's promise.
    unsafe { answer(attached_file(client, fd, terms, None), problem) }
}

/// Attaches a stream to an open file, with a best-effort priority of the file.
///
/// # Safety
/// All addresses are as in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headtime_attach_file_with_priority(
    client: *const Client,
    fd: c_int,
    terms: *const CTerms,
    priority: c_int,
    problem: CText,
) -> *mut Stream {
    // SAFETY: the caller's promise.
    unsafe { answer(attached_file(client, fd, terms, Some(priority)), problem) }
}

/// Attaches a stream to bytes of an export's volume. Returns null if the service refuses.
///
/// # Safety
/// All addresses are as in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headtime_attach_pieces(
    client: *const Client,
    pieces: *const CPiece,
    count: usize,
    length: u64,
    terms: *const CTerms,
    problem: CText,
) -> *mut Stream {
    let pieces = (pieces, count, length);
    // SAFETY: the caller's promise.
    unsafe { answer(attached_pieces(client, pieces, terms, None), problem) }
}

/// Attaches a stream to bytes of an export's volume, with a best-effort priority of the bytes.
///
/// # Safety
/// All addresses are as in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headtime_attach_pieces_with_priority(
    client: *const Client,
    pieces: *const CPiece,
    count: usize,
    length: u64,
    terms: *const CTerms,
    priority: c_int,
    problem: CText,
) -> *mut Stream {
    let pieces = (pieces, count, length);
    // SAFETY: the caller's promise.
    unsafe {
        let attached = attached_pieces(client, pieces, terms, Some(priority));
        answer(attached, problem)
    }
}

/// Reports the playout point: `offset` in the file. Returns 0, or -1 if the connection is lost.
///
/// # Safety
/// `stream` was returned by an attach function and not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headtime_position(stream: *const Stream, offset: u64) -> c_int {
    // SAFETY: the caller's promise.
    let stream = unsafe { stream.as_ref() };
    let told = stream.map(|stream| stream.position(offset));
    if let Some(Ok(())) = told { 0 } else { -1 }
}

/// Locates the file again. Returns 0 if its location is unchanged and 1 if it changed. Returns -1
/// if the file cannot be located or the stream has ended.
///
/// # Safety
/// All addresses are as in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headtime_refresh(
    stream: *const Stream,
    fd: c_int,
    problem: CText,
) -> c_int {
    // SAFETY: the caller's promise.
    let stream = unsafe { stream.as_ref() }.ok_or_else(|| String::from("no stream"));
    let changed = stream.and_then(|stream| {
        let file = borrowed(fd)?;
        stream.refresh(&file).map_err(|error| error.to_string())
    });
    match changed {
        Ok(headtime_client::FileChange::Same) => 0,
        Ok(_) => 1,
        Err(error) => {
            // SAFETY: the caller's promise.
            unsafe { problem.say(&error) };
            -1
        }
    }
}

/// Waits up to `milliseconds` for the stream's next event. Returns 1 with the event in `event` and
/// its reason in `reason`, or 0 if there was none.
///
/// # Safety
/// All addresses are as in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headtime_next_event(
    stream: *const Stream,
    milliseconds: u32,
    event: *mut CEvent,
    reason: CText,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some(stream) = (unsafe { stream.as_ref() }) else {
        return 0;
    };
    let happened = match milliseconds {
        0 => stream.next_event(),
        some => stream.wait_event(Duration::from_millis(some.into())),
    };
    let Some(happened) = happened else {
        return 0;
    };
    let (kind, from, to, why) = match happened {
        StreamUpdate::Serving => (1, 0, 0, String::new()),
        StreamUpdate::Lapsed => (2, 0, 0, String::new()),
        StreamUpdate::Behind => (3, 0, 0, String::new()),
        StreamUpdate::Late { us, held_up_us } => (4, us, held_up_us, String::new()),
        StreamUpdate::WriteFailed { from, to } => (5, from, to, String::new()),
        StreamUpdate::Unguaranteed(refused) => (6, 0, 0, refused.reason),
        StreamUpdate::Aside { reason } => (7, 0, 0, reason),
        StreamUpdate::Ended { reason } => (8, 0, 0, reason),
    };
    // SAFETY: the caller's promise.
    unsafe {
        reason.say(&why);
        if !event.is_null() {
            event.write(CEvent { kind, from, to });
        }
    }
    1
}

/// Closes a stream. The service still writes recorded data that it holds.
///
/// # Safety
/// `stream` is null, or was returned by an attach function and not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headtime_close(stream: *mut Stream) {
    if !stream.is_null() {
        // SAFETY: the caller's promise.
        let stream = unsafe { Box::from_raw(stream) };
        // A lost connection has closed the stream already.
        let _ = stream.close();
    }
}

/// # Safety
/// As in the header.
unsafe fn attached_file(
    client: *const Client,
    fd: c_int,
    terms: *const CTerms,
    priority: Option<c_int>,
) -> Result<Stream, String> {
    // SAFETY: the caller's promise.
    let (client, terms) = unsafe { understood(client, terms, priority) }?;
    let file = borrowed(fd)?;
    let attached = client.attach_file(&file, &terms);
    attached.map_err(|error| error.to_string())
}

/// `pieces` is the address and the number of pieces, and the length of the file.
///
/// # Safety
/// As in the header.
unsafe fn attached_pieces(
    client: *const Client,
    (pieces, count, length): (*const CPiece, usize, u64),
    terms: *const CTerms,
    priority: Option<c_int>,
) -> Result<Stream, String> {
    // SAFETY: the caller's promise.
    let (client, terms) = unsafe { understood(client, terms, priority) }?;
    let export = terms
        .export
        .clone()
        .ok_or("no export_name: expected one for pieces")?;
    // SAFETY: the caller's promise.
    let places = unsafe { places(pieces, count, length) };
    let attached = client.attach_places(&export, places, &terms);
    attached.map_err(|error| error.to_string())
}

/// # Safety
/// As in the header.
unsafe fn understood<'a>(
    client: *const Client,
    terms: *const CTerms,
    priority: Option<c_int>,
) -> Result<(&'a Client, Terms), String> {
    // SAFETY: the caller's promise.
    let (client, terms) = unsafe { (client.as_ref(), terms.as_ref()) };
    let (Some(client), Some(terms)) = (client, terms) else {
        return Err(String::from("null: expected a connection and terms"));
    };
    // SAFETY: the caller's promise.
    let (name, export) = unsafe { (text(terms.name), text(terms.export_name)) };
    let owned = |text: &CStr| text.to_string_lossy().into_owned();
    let mode = match terms.mode {
        0 => StreamMode::Play,
        1 => StreamMode::Record,
        2 => StreamMode::RecordSync,
        other => return Err(format!("mode {other}: expected 0, 1 or 2")),
    };
    // The service checks that the priority exists.
    let priority = priority.map(|priority| {
        u8::try_from(priority)
            .map_err(|_| format!("priority {priority}: expected 0, the highest, to 6"))
    });
    Ok((
        client,
        Terms {
            name: name.map(owned).unwrap_or_default(),
            mode,
            rate: terms.rate,
            buffer: terms.buffer,
            memory: Some(terms.memory).filter(|&memory| memory > 0),
            start: terms.start,
            priority: priority.transpose()?,
            export: export.map(owned),
        },
    ))
}

/// The file of a descriptor that the caller keeps.
fn borrowed(fd: c_int) -> Result<ManuallyDrop<File>, String> {
    match fd {
        // SAFETY: it is never closed here, and used only within the call; if it is no descriptor the
        // kernel says so.
        0.. => Ok(ManuallyDrop::new(unsafe { File::from_raw_fd(fd) })),
        _ => Err(format!("descriptor {fd}: expected an open file")),
    }
}

/// # Safety
/// There are `count` pieces.
unsafe fn places(pieces: *const CPiece, count: usize, length: u64) -> Places {
    let pieces = match pieces.is_null() {
        true => &[],
        // SAFETY: the caller's promise.
        false => unsafe { std::slice::from_raw_parts(pieces, count) },
    };
    let each = pieces.iter();
    Places {
        length,
        pieces: each
            .map(|it| FilePiece(it.offset, it.start, it.length))
            .collect(),
    }
}

/// # Safety
/// `problem` is as in the header.
unsafe fn answer(attached: Result<Stream, String>, problem: CText) -> *mut Stream {
    match attached {
        Ok(stream) => Box::into_raw(Box::new(stream)),
        Err(error) => {
            // SAFETY: the caller's promise.
            unsafe { problem.say(&error) };
            std::ptr::null_mut()
        }
    }
}
