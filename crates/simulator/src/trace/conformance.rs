//! What every format promises, as one function that checks it on any bytes.
//!
//! The property tests and the fuzz targets call it; it panics where a promise is broken.

use super::{
    ALL, ColumnOptions, Delimiter, Format, MAX_DEVICES, OnBad, Reason, Record, TimeUnit,
    TraceError, TraceForm, TraceReader,
};
use block::Instant;
use std::io::Cursor;

/// Reads `bytes` in whichever format they seem to have, and in `format`, refusing and skipping what
/// is bad, then writes the records in every format that can hold them and reads them back.
///
/// # Panics
/// If a reader panics, goes back in time, hands out anything after its end or a device without a
/// name, counts wrongly, or if a written trace does not come back.
pub fn check(format: &'static Format, bytes: &[u8]) {
    read(&TraceForm::default(), bytes, OnBad::Skip);
    check_form(&Some(format).into(), bytes);
}

/// The same of stated columns. The first line of `bytes` has them, the delimiter, the bytes of a block and the unit of
/// times between semicolons; the other lines are the trace.
///
/// # Panics
/// As [`check`].
pub fn check_columns(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |&byte| byte == b'\n');
    let options = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let mut words = options.split(';');
    let mut next = || words.next().unwrap_or_default();
    let (columns, delimiter, block, unit) = (next(), next(), next(), next());
    let stated = ColumnOptions {
        columns: (!columns.is_empty()).then(|| columns.to_owned()),
        delimiter: Delimiter::parse(delimiter).ok(),
        block_bytes: block.parse().ok(),
        size_unit: None,
        time_unit: TimeUnit::ALL
            .iter()
            .find(|(name, _)| *name == unit)
            .map(|(_, unit)| *unit),
    };
    match TraceForm::new(None, &stated) {
        Ok(form) => check_form(&form, parts.next().unwrap_or_default()),
        Err(error) => assert!(!error.to_string().contains('\n'), "an error is one line"),
    }
}

fn check_form(form: &TraceForm, bytes: &[u8]) {
    let Some(refusing) = read(form, bytes, OnBad::Refuse) else {
        return;
    };
    let skipping = read(form, bytes, OnBad::Skip).expect("it was opened before");
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

fn read(form: &TraceForm, bytes: &[u8], on_bad: OnBad) -> Option<Reading> {
    let input = Cursor::new(bytes.to_vec());
    let mut reader = match TraceReader::new("memory", input, form.clone(), on_bad) {
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
    let back = read(&Some(format).into(), &text, OnBad::Refuse).expect("memory can be read");
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
