//! Events of `block_rq_issue`, through perf_event_open(2): a ring for each processor, which is read in place.
//!
//! A filter in the kernel passes the events of the export's devices only. Nothing wakes this process: the
//! rings are read when a request arrives. A full ring loses events, which the kernel counts.

#![allow(
    unsafe_code,
    reason = "the filter of an event is an ioctl that no library has"
)]

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;

use perf_event::events::Tracepoint;
use perf_event::{Builder, Clock, SampleFlag, Sampler};
use rustix::ioctl::{IntegerSetter, Opcode, ioctl};

use super::devices::DeviceOver;
use super::format::{EventFormat, IssueEvent, MOST_BYTES};

/// A source of events.
pub trait IssueEvents: Send {
    /// Appends all events that have come, in any order. The answer is how many were lost since the last call.
    fn drain(&mut self, to: &mut Vec<TimedEvent>) -> u64;
}

/// An event and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedEvent {
    /// The time in nanoseconds, of one clock for all processors.
    pub at: u64,
    /// The event.
    pub event: IssueEvent,
}

/// The rings of all processors.
pub struct PerfEvents {
    rings: Vec<Sampler>,
    format: EventFormat,
}

impl PerfEvents {
    /// Opens a ring on each of these processors, for the events of these devices.
    ///
    /// # Errors
    /// If the kernel refuses, and what it expects.
    pub fn open(
        format: &EventFormat,
        devices: &[DeviceOver],
        processors: &[usize],
    ) -> Result<Self, String> {
        let each = devices.iter();
        let filter: Vec<String> = each
            .map(|device| format!("dev == {}", device.number))
            .collect();
        let filter = filter.join(" || ");
        let rings = processors.iter().map(|&processor| {
            let ring = ring(format, &filter, processor);
            ring.map_err(|error| refused(&error))
        });
        Ok(PerfEvents {
            rings: rings.collect::<Result<_, _>>()?,
            format: format.clone(),
        })
    }
}

impl IssueEvents for PerfEvents {
    fn drain(&mut self, to: &mut Vec<TimedEvent>) -> u64 {
        let mut lost = 0;
        for ring in &mut self.rings {
            while let Some(record) = ring.next_record() {
                let mut bytes = [0; RECORD];
                let length = gather(record.data(), &mut bytes);
                match record.ty() {
                    SAMPLE => to.extend(sample(&self.format, &bytes[..length])),
                    LOST => lost += lost_events(&bytes[..length]),
                    _ => (),
                }
            }
        }
        lost
    }
}

/// Copies the parts of a record, as far as there is room. The answer is the number of bytes.
fn gather(parts: &[&[u8]], to: &mut [u8; RECORD]) -> usize {
    let mut length = 0;
    for part in parts {
        let now = part.len().min(RECORD - length);
        to[length..length + now].copy_from_slice(&part[..now]);
        length += now;
    }
    length
}

/// The event of a record: the time, the number of bytes, and the bytes of the tracepoint.
fn sample(format: &EventFormat, record: &[u8]) -> Option<TimedEvent> {
    let at = u64::from_ne_bytes(record.get(..8)?.try_into().ok()?);
    let event = format.event(record.get(BEFORE..)?)?;
    Some(TimedEvent { at, event })
}

/// The count of a record of lost events, behind the number of the event.
fn lost_events(record: &[u8]) -> u64 {
    let count = record.get(8..16).and_then(|bytes| bytes.try_into().ok());
    count.map_or(0, u64::from_ne_bytes)
}

fn ring(format: &EventFormat, filter: &str, processor: usize) -> io::Result<Sampler> {
    let mut builder = Builder::new(Tracepoint::with_id(format.id));
    builder
        .any_pid()
        .one_cpu(processor)
        .include_kernel()
        .sample_period(1)
        .sample(SampleFlag::TIME | SampleFlag::RAW)
        // One clock for all rings.
        .clockid(Clock::MONOTONIC)
        // Never reached: nothing waits for a ring.
        .wakeup_watermark(u32::MAX as usize);
    let mut counter = builder.build()?;
    let text = CString::new(filter)?;
    // SAFETY: the descriptor is the counter's, which outlives the call.
    let descriptor = unsafe { BorrowedFd::borrow_raw(counter.as_raw_fd()) };
    // SAFETY: PERF_EVENT_IOC_SET_FILTER reads a string that ends with a zero (linux/perf_event.h).
    unsafe {
        let address = text.as_ptr().cast_mut().cast();
        ioctl(
            descriptor,
            IntegerSetter::<SET_FILTER>::new_pointer(address),
        )?;
    }
    counter.enable()?;
    counter.sampled(RING)
}

fn refused(error: &io::Error) -> String {
    format!(
        "perf_event_open of block_rq_issue: {error}: expected root, or CAP_PERFMON and a kernel.perf_event_paranoid \
         that allows it"
    )
}

/// The layout of the tracepoint on this machine.
///
/// # Errors
/// If tracefs cannot be read, or has a layout that cannot be used.
pub fn format() -> Result<EventFormat, String> {
    let mut last = String::new();
    for folder in TRACEFS {
        let path = Path::new(folder).join("events/block/block_rq_issue/format");
        match fs::read_to_string(&path) {
            Ok(text) => {
                let read = EventFormat::parse(&text);
                return read.map_err(|error| format!("{}: {error}", path.display()));
            }
            Err(error) => last = format!("{}: {error}", path.display()),
        }
    }
    Err(format!(
        "{last}: expected tracefs to be mounted there and to be readable (root; `mount -t tracefs tracefs {}`)",
        TRACEFS[0]
    ))
}

/// The places of tracefs (Documentation/trace/ftrace.rst).
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Types of records, `PERF_RECORD_*` of linux/perf_event.h.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;

/// Bytes of a sample before the tracepoint's: the time and the number of bytes (perf_event_open(2)).
const BEFORE: usize = 12;

/// The most bytes of a record that are read.
const RECORD: usize = BEFORE + MOST_BYTES;

/// Bytes of a ring. A choice: 1,200 events of 104 bytes, nine times the queue of a loop device.
const RING: usize = 128 << 10;

/// `PERF_EVENT_IOC_SET_FILTER`: _IOW('$', 6, char *) (linux/perf_event.h).
const SET_FILTER: Opcode = 0x4008_2406;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_in_two_parts_are_read_as_one() {
        let whole: Vec<u8> = (0..100).collect();
        for cut in 0..=100 {
            let mut bytes = [0; RECORD];
            let (head, tail) = whole.split_at(cut);
            assert_eq!(gather(&[head, tail], &mut bytes), 100);
            assert_eq!(bytes[..100], whole);
        }
        let long = vec![1; 2 * RECORD];
        assert_eq!(gather(&[&long, &long], &mut [0; RECORD]), RECORD);
    }

    #[test]
    fn short_records_have_neither_events_nor_losses() {
        assert_eq!(lost_events(&[0; 15]), 0);
        let mut record = [0; 16];
        record[8] = 7;
        assert_eq!(lost_events(&record), 7);
    }
}
