//! What every format promises, as one function that checks it on any bytes.
//!
//! The property tests and the fuzz targets call it; it panics where a promise is broken.

use super::{ALL, Format, MAX_DEVICES, OnBad, Reason, Record, TraceError, TraceReader};
use block::Instant;
use std::io::Cursor;

/// Reads `bytes` in whichever format they seem to have, and in `format`, refusing and skipping what
/// is bad, then writes the records in every format that can hold them and reads them back.
///
/// # Panics
/// If a reader panics, goes back in time, hands out anything after its end or a device without a
/// name, counts wrongly, or if a written trace does not come back.
pub fn check(format: &'static Format, bytes: &[u8]) {
    read(None, bytes, OnBad::Skip);
    let format = Some(format);
    let Some(refusing) = read(format, bytes, OnBad::Refuse) else {
        return;
    };
    let skipping = read(format, bytes, OnBad::Skip).expect("it was opened before");
    assert!(
        skipping.records.starts_with(&refusing.records),
        "what is good before the first bad line is the same under both policies"
    );
    match &refusing.error {
        None => assert_eq!(refusing.records, skipping.records),
        Some(error) if error.fault.reason.is_skippable() => assert!(skipping.skipped > 0),
        Some(_) => {}
    }
    assert_eq!(refusing.skipped, 0, "refusing skips nothing");
    for other in ALL {
        check_written(other, &skipping);
    }
}

/// What reading came to.
struct Reading {
    records: Vec<Record>,
    names: Vec<String>,
    error: Option<TraceError>,
    skipped: u64,
}

fn read(format: Option<&'static Format>, bytes: &[u8], on_bad: OnBad) -> Option<Reading> {
    let input = Cursor::new(bytes.to_vec());
    let mut reader = match TraceReader::new("memory", input, format, on_bad) {
        Ok(reader) => reader,
        Err(error) => {
            assert!(!error.to_string().contains('\n'), "an error is one line");
            return None;
        }
    };
    let mut records = Vec::new();
    let mut error = None;
    let mut now = Instant::ZERO;
    for item in reader.by_ref() {
        assert!(error.is_none(), "nothing comes after an error");
        match item {
            Ok(record) => {
                assert!(record.at >= now, "time goes forward");
                now = record.at;
                records.push(record);
            }
            Err(bad) => error = Some(bad),
        }
    }
    assert!(reader.next().is_none(), "the end is the end");
    let has_name = |record: &Record| record.device.place() < reader.devices().names().len();
    assert!(records.iter().all(has_name));
    assert!(reader.devices().names().len() <= MAX_DEVICES);
    if let Some(error) = &error {
        assert!(!error.to_string().contains('\n'), "an error is one line");
        assert!(on_bad == OnBad::Refuse || !error.fault.reason.is_skippable());
        assert!(error.fault.reason != Reason::Empty || records.is_empty());
    } else {
        assert!(!records.is_empty(), "an empty trace is an error");
    }
    Some(Reading {
        records,
        names: reader.devices().names().map(String::from).collect(),
        error,
        skipped: reader.skipped().total(),
    })
}

fn check_written(format: &'static Format, original: &Reading) {
    let (Some(encoder), Some(step)) = (format.encoder, format.resolution()) else {
        return;
    };
    let mut encoder = encoder();
    let mut text = Vec::new();
    let mut held = Vec::new();
    for record in &original.records {
        let name = &original.names[record.device.place()];
        if encoder.record(&mut text, record, name).is_ok() {
            held.push(record);
        }
    }
    encoder.end(&mut text);
    if held.is_empty() {
        return;
    }
    let back = read(Some(format), &text, OnBad::Refuse).expect("memory can be read");
    assert_eq!(back.error, None, "{} reads what it wrote", format.name);
    assert_eq!(back.records.len(), held.len());
    for (back, record) in back.records.iter().zip(held) {
        let nanos = record.at.as_nanos();
        let expected = nanos - nanos % step.as_nanos();
        assert_eq!(back.at.as_nanos(), expected, "{}", format.name);
        assert_eq!(back.bytes, record.bytes);
        assert_eq!(back.direction, record.direction);
    }
}
