//! The functions of `include/headtime.h` for tasks: a declared set of a volume's bytes, read in gaps and idle time.

#![allow(unsafe_code, reason = "C hands over addresses")]

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use headtime_client::{Client, ListedTask, TaskOrder, TaskPieces, TaskSink, TaskSteer};

use super::{CText, text};

/// `struct headtime_range`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CRange {
    /// The first byte in the volume.
    pub start: u64,
    /// The length in bytes.
    pub length: u64,
}

/// `struct headtime_order`.
#[repr(C)]
#[derive(Debug)]
pub struct COrder {
    /// The volume's name.
    pub volume: *const c_char,
    /// The pieces.
    pub pieces: *const CRange,
    /// Their number.
    pub count: usize,
    /// Any so many of them will do; 0: all are needed.
    pub any: u64,
    /// Seconds until the task should be done; 0: no deadline.
    pub deadline_seconds: u64,
    /// The most bytes a second that the task takes; 0: no limit.
    pub pace: u64,
    /// The priority among tasks; 0 is the highest.
    pub priority: c_int,
    /// The program that receives the bytes, its arguments, and a null; null: a checksum.
    pub command: *const *const c_char,
    /// The file that receives the bytes; null: none.
    pub into: *const c_char,
}

/// `struct headtime_task`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CTask {
    /// The state: 1 active, 2 suspended, 3 finished, 4 aborted.
    pub state: c_int,
    /// Bytes of the set.
    pub asked: u64,
    /// Bytes that were read.
    pub done: u64,
    /// Bytes of those that were read in gaps, in idle time, and in granted time.
    pub free: u64,
    /// See `free`.
    pub idle: u64,
    /// See `free`.
    pub paid: u64,
    /// Bytes that could not be read.
    pub failed: u64,
    /// The pieces that are needed, and those of which all bytes were read.
    pub pieces_needed: u64,
    /// See `pieces_needed`.
    pub pieces_done: u64,
    /// Seconds until the end at the present rate; below 0 if it is unknown.
    pub seconds_left: f64,
}

/// Begins a task. Returns its number; 0 if the service refuses the set.
///
/// # Safety
/// All addresses are as in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headtime_begin_task(
    client: *const Client,
    order: *const COrder,
    problem: CText,
) -> u64 {
    // SAFETY: the caller's promise.
    let (client, order) = unsafe { (client.as_ref(), order.as_ref()) };
    let begun = match (client, order) {
        // SAFETY: the caller's promise.
        (Some(client), Some(order)) => unsafe { understood(order) }
            .and_then(|order| client.begin_task(&order).map_err(|error| error.to_string())),
        _ => Err(String::from("null: expected a connection and an order")),
    };
    begun.unwrap_or_else(|error| {
        // SAFETY: the caller's promise.
        unsafe { problem.say(&error) };
        0
    })
}

/// The progress of a task. Returns 1 with `task` filled in, and in `outcome` its result or the error of its program; 0 if
/// there is no such task, and -1 if the connection is lost.
///
/// # Safety
/// All addresses are as in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headtime_task(
    client: *const Client,
    number: u64,
    task: *mut CTask,
    outcome: CText,
) -> c_int {
    // SAFETY: the caller's promise.
    let client = unsafe { client.as_ref() };
    let listed = client.map(Client::tasks);
    let Some(Ok(tasks)) = listed else {
        return -1;
    };
    let Some(found) = tasks.into_iter().find(|task| task.id == number) else {
        return 0;
    };
    let said = found.problem.as_deref().or(found.outcome.as_deref());
    // SAFETY: the caller's promise.
    unsafe {
        outcome.say(said.unwrap_or_default());
        if !task.is_null() {
            task.write(of(&found));
        }
    }
    1
}

/// Steers a task: `HEADTIME_SUSPEND` and so on. Returns 0, or -1 if no such task is under way.
///
/// # Safety
/// All addresses are as in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headtime_steer_task(
    client: *const Client,
    number: u64,
    steer: c_int,
    priority: c_int,
    problem: CText,
) -> c_int {
    // SAFETY: the caller's promise.
    let client = unsafe { client.as_ref() };
    let client = client.ok_or_else(|| String::from("null: expected a connection"));
    let steered = client.and_then(|client| {
        let action = match steer {
            1 => TaskSteer::Suspend,
            2 => TaskSteer::Resume,
            3 => TaskSteer::Abort,
            4 => TaskSteer::Promote {
                priority: of_tasks(priority)?,
            },
            5 => TaskSteer::Hasten,
            other => {
                return Err(format!(
                    "{other}: expected HEADTIME_SUSPEND, 1, to HEADTIME_HASTEN, 5"
                ));
            }
        };
        let steered = client.steer_task(number, action);
        steered.map_err(|error| error.to_string())
    });
    match steered {
        Ok(()) => 0,
        Err(error) => {
            // SAFETY: the caller's promise.
            unsafe { problem.say(&error) };
            -1
        }
    }
}

fn of_tasks(priority: c_int) -> Result<u8, String> {
    u8::try_from(priority)
        .map_err(|_| format!("priority {priority}: expected 0, the highest, to 255"))
}

fn of(task: &ListedTask) -> CTask {
    CTask {
        state: match task.state.as_str() {
            "active" => 1,
            "suspended" => 2,
            "finished" => 3,
            "aborted" => 4,
            _ => 0,
        },
        asked: task.asked_bytes,
        done: task.done_bytes,
        free: task.free_bytes,
        idle: task.idle_bytes,
        paid: task.paid_bytes,
        failed: task.failed_bytes,
        pieces_needed: task.pieces_needed,
        pieces_done: task.pieces_done,
        seconds_left: task.eta_s.unwrap_or(-1.0),
    }
}

/// # Safety
/// As in the header.
unsafe fn understood(order: &COrder) -> Result<TaskOrder, String> {
    // SAFETY: the caller's promise.
    let volume = unsafe { text(order.volume) };
    let volume = volume.ok_or("no volume: expected its name")?;
    let pieces = match order.pieces.is_null() {
        true => &[],
        // SAFETY: the caller's promise.
        false => unsafe { std::slice::from_raw_parts(order.pieces, order.count) },
    };
    let positive = |number: u64| Some(number).filter(|&number| number > 0);
    // SAFETY: the caller's promise.
    let command = unsafe { words(order.command) };
    // SAFETY: the caller's promise.
    let into = unsafe { text(order.into) };
    Ok(TaskOrder {
        volume: owned(volume),
        set: TaskPieces {
            pieces: pieces.iter().map(|it| (it.start, it.length)).collect(),
            any: positive(order.any),
        },
        priority: of_tasks(order.priority)?,
        deadline_s: positive(order.deadline_seconds),
        pace_bytes_s: positive(order.pace),
        sink: match (command.is_empty(), into) {
            (true, None) => TaskSink::Checksum,
            (false, None) => TaskSink::Command(command),
            (true, Some(file)) => {
                TaskSink::Buffer(PathBuf::from(OsStr::from_bytes(file.to_bytes())))
            }
            (false, Some(_)) => return Err("a command and a file: expected one of them".to_owned()),
        },
    })
}

/// The strings up to a null.
///
/// # Safety
/// `at` is null, or a null ends the strings.
unsafe fn words(at: *const *const c_char) -> Vec<String> {
    if at.is_null() {
        return Vec::new();
    }
    // SAFETY: the caller's promise: nothing behind the first null is read.
    let each = (0..).map(|index| unsafe { text(*at.add(index)) });
    each.map_while(|word| word.map(owned)).collect()
}

fn owned(text: &CStr) -> String {
    text.to_string_lossy().into_owned()
}
