//! CSV whose columns have names, or the places of a published trace.

use proptest::prelude::*;

use super::{
    ColumnOptions, Delimiter, Direction, Format, OnBad, SizeUnit, TimeUnit, TraceForm, TraceReader,
    conformance, error, reader,
};

#[test]
fn what_the_columns_do_not_allow_is_refused() {
    for (format, text, message) in [
        (
            "alibaba",
            "1,R,0,512,5\n1,R,0,512,4\n",
            "t:2: time goes backwards: timestamp",
        ),
        ("alibaba", "1,R,0,512,5.5\n", "bad field: timestamp"),
        ("tencent", "5,0,8,2,1\n", "bad field: io_type"),
        ("tencent", "5,0,0,1,1\n", "zero length: size"),
        ("headed", "time,offset\n", "t:1: bad field: header"),
        (
            "headed",
            "time,offset,lba,size\n",
            "found a second column of its kind, \"lba\"",
        ),
        (
            "headed",
            "time,offset,size\n1e,0,512\n",
            "t:2: bad field: time: found \"1e\" in column 1, expected",
        ),
        (
            "headed",
            "op,time,offset,size\nR,1,0x,512\n",
            "t:2: bad field: address: found \"0x\" in column 3, expected",
        ),
        (
            "headed",
            "time,offset\n",
            "found no column of lengths (size or sectors) in \"time,offset\"",
        ),
        (
            "headed",
            "time,offset,size\n1,0\n",
            "wrong number of fields: header",
        ),
        (
            "headed",
            "time,offset,size,op\n1,0,512,x\n",
            "bad field: direction",
        ),
        ("headed", "time,offset,size\n", "empty trace"),
    ] {
        let error = error(format, text);
        assert!(error.contains(message), "{format}: {error}");
    }
}

#[test]
fn lines_that_are_none_of_a_cloud_are_refused() {
    for (format, text, message) in [
        (
            "cloudphysics",
            "1,8,r,4096\n1,8,R,4096\n",
            "t:2: bad field: op",
        ),
        (
            "cloudphysics",
            "1,8,r,4096\n2,8,r,0\n",
            "t:2: zero length: size",
        ),
        (
            "baleen",
            "1 0 1 2.5 2 1 1 1\n1 8388608 1 2.5 2 1 1 1\n",
            "t:2: bad field: io_offset",
        ),
        (
            "baleen",
            "1 0 1 2.5 2 1 1 1\n1 8388607 2 2.5 2 1 1 1\n",
            "t:2: request too long: io_size",
        ),
        (
            "baleen",
            "1 0 1 2.5 2 1 1 1\n1 0 1 2.5 7 1 1 1\n",
            "t:2: bad field: op_name",
        ),
        (
            "baleen",
            "1 0 1 2.5 2 1 1 1\n1 0 1 2.5 2 1 1\n",
            "t:2: wrong number of fields",
        ),
        (
            "baleen",
            "1 0 1 2.5 2 1 1 1\n1 0 1 2.5 2 1 1 1 1 1 1\n",
            "t:2: wrong number of fields",
        ),
        (
            "baleen",
            "1 0 1 2.5 2 1 1 1\n2199023255552 0 1 2.5 2 1 1 1\n",
            "t:2: number too large: block_id",
        ),
    ] {
        let error = error(format, text);
        assert!(error.contains(message), "{format}: {error}");
    }
}

#[test]
fn columns_come_in_any_order_and_with_their_units() {
    for (text, expected) in [
        (
            "size,offset,time\n512,1024,3\n512,0,3.5\n",
            (500_000_000, 0, 512),
        ),
        (
            "ts_ms\tlbn\tblocks\n7\t1\t1\n9\t2\t8\n",
            (2_000_000, 1024, 4096),
        ),
        (
            "Timestamp_ns;Offset_sectors;Len_bytes\n1;1;1\n4;8;4096\n",
            (3, 4096, 4096),
        ),
        (
            ",arrival_us,address,length,response\n0,1,0,1,x\n1,2,512,512,\n",
            (1_000, 512, 512),
        ),
    ] {
        let records = reader(text.as_bytes(), None, OnBad::Refuse);
        let last = records.last().expect("two requests").expect("good");
        let found = (last.at.as_nanos(), last.bytes.offset(), last.bytes.length());
        assert_eq!(found, expected, "{text}");
        assert_eq!(last.direction, Direction::Read, "no column says otherwise");
    }
}

/// The records of a text in a form: nanoseconds, offset, length.
fn read(form: TraceForm, text: &str) -> Result<Vec<(u64, u64, u64)>, String> {
    let input = std::io::Cursor::new(text.as_bytes().to_vec());
    let reader = TraceReader::new("t", input, form, OnBad::Refuse).expect("a form");
    let plain = reader.map(|record| {
        let record = record.map_err(|error| error.to_string())?;
        let bytes = record.bytes;
        Ok((record.at.as_nanos(), bytes.offset(), bytes.length()))
    });
    plain.collect()
}

fn stated(options: ColumnOptions) -> TraceForm {
    TraceForm::new(None, &options).expect("good options")
}

fn columns(names: &str) -> ColumnOptions {
    ColumnOptions {
        columns: Some(names.to_owned()),
        ..ColumnOptions::default()
    }
}

/// Columns are named with commas, and may be separated otherwise: the first line shows it.
#[test]
fn stated_columns_are_separated_as_in_the_first_line() {
    for mark in [";", "\t", ","] {
        for header in ["lba;bytes;op;when\n", ""] {
            let text = format!("{header}63;8192;read;0.5\n8;512;write;2.5\n").replace(';', mark);
            let found = read(stated(columns("lba,bytes,op,time_ms")), &text);
            let expected = vec![(0, 63 * 512, 8192), (2_000_000, 8 * 512, 512)];
            assert_eq!(found, Ok(expected), "{text}");
        }
    }
    // Whoever states the separator is believed.
    let options = ColumnOptions {
        delimiter: Some(Delimiter::Byte(b',')),
        ..columns("time,offset,size")
    };
    assert!(read(stated(options), "1;0;512\n").is_err());
}

/// A first line of words is a header: what its columns may be called is said.
#[test]
fn a_header_with_unknown_names_is_told_as_one() {
    let error = read(
        TraceForm::default(),
        "lba;bytes;op;when_ms\n63;8192;read;0.5\n",
    );
    let error = error.expect_err("no column of times");
    for part in [
        "found no column of times",
        "--columns names those of a file",
    ] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn stated_columns_and_units_are_those_of_the_trace() {
    for (options, text, expected) in [
        (
            columns("time,offset,size,op"),
            "5,0,512,R\n6,4096,8,W\n",
            (1_000_000_000, 4096, 8),
        ),
        (
            ColumnOptions {
                delimiter: Some(Delimiter::Blanks),
                block_bytes: Some(4096),
                ..columns("-,time_us,lba,sectors")
            },
            "x  1 0 1\nx 3\t2   2\n",
            (2000, 8192, 8192),
        ),
        (
            ColumnOptions {
                delimiter: Some(Delimiter::Byte(b'|')),
                size_unit: Some(SizeUnit::Kibibytes),
                time_unit: Some(TimeUnit::FileTimes),
                ..columns("time,offset,size")
            },
            "1|0|1\n4|512|2\n",
            (300, 512, 2048),
        ),
        (
            ColumnOptions {
                size_unit: Some(SizeUnit::Blocks),
                time_unit: Some(TimeUnit::Milliseconds),
                ..ColumnOptions::default()
            },
            "time,lba,size\n1,0,1\n3,1,2\n",
            (2_000_000, 512, 1024),
        ),
        // Only a header of the trace itself has the units of a published one.
        (
            columns("ts,lba,op,size"),
            "1,0,r,512\n4,1,w,512\n",
            (3_000_000_000, 512, 512),
        ),
        // A header that is there all the same is passed over.
        (
            columns("time,offset,size"),
            "when,where,what\n1,0,1\n2,2,2\n",
            (1_000_000_000, 2, 2),
        ),
    ] {
        let records = read(stated(options), text).expect("good");
        assert_eq!(records.len(), 2, "{text}");
        assert_eq!(records[1], expected, "{text}");
    }
}

#[test]
fn a_line_that_the_stated_columns_do_not_fit_is_told_with_its_column() {
    let form = || stated(columns("time,offset,size,op"));
    // In the format canonical the line is good: the user says that it is none.
    for (text, message) in [
        (
            "1,0,1,R\n2,x,1,R\n",
            "t:2: bad field: address: found \"x\" in column 2",
        ),
        (
            "1,0,1,R\n2,0,1,Q\n",
            "t:2: bad field: direction: found \"Q\" in column 4",
        ),
        ("1,0,1,R\n0.000,0,R,0,1\n", "t:2: wrong number of fields"),
        ("1,0,1,R\nwhen,where,what,how\n", "t:2: bad field: time"),
    ] {
        let error = read(form(), text).expect_err("an error");
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn headers_of_published_traces_have_their_units() {
    for (text, expected) in [
        (
            "device_id,opcode,offset,length,timestamp\n1,R,0,512,7\n1,W,512,512,9\n",
            (2_000, 512, 512),
        ),
        (
            "Timestamp,Offset,Size,IOType,VolumeID\n1,0,1,0,5\n3,2,8,1,5\n",
            (2_000_000_000, 1024, 4096),
        ),
        (
            "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n5,h,0,Read,0,512,1\n8,h,0,Write,512,512,1\n",
            (300, 512, 512),
        ),
        ("ts,lba,op,size\n1,0,r,512\n4,1,w,512\n", (3_000, 512, 512)),
    ] {
        let records = read(TraceForm::default(), text).expect("good");
        assert_eq!(records[1], expected, "{text}");
    }
}

#[test]
fn numbers_are_read_as_pandas_writes_them() {
    let text = ",time,offset,size\n0,0.0,0.0,512.0\n1,5e-05,4096.0,512.0\n2,1.25e-04,8192,512\n3,1.5E+01,0,1\n";
    let records = read(TraceForm::default(), text).expect("good");
    let times: Vec<u64> = records.iter().map(|record| record.0).collect();
    assert_eq!(times, [0, 50_000, 125_000, 15_000_000_000]);
    assert_eq!(records[1].1, 4096);
    for time in ["1e", "e5", "1e21", "-1e3", "1.2.3e1", "1e1.5", "0x1e5"] {
        let text = format!("time,offset,size\n{time},0,512\n");
        assert!(read(TraceForm::default(), &text).is_err(), "{time}");
    }
}

#[test]
fn stated_columns_keep_the_promises_of_a_format() {
    conformance::check_columns(b"time,offset,size,op;,;512;s\n1,0,1,R\n2,x,1,R\n3,0,1,W\n");
    conformance::check_columns(b"time,offset,size;space;4096;ms\n1 0 1\n2 1e400 1\n");
    conformance::check_columns(b"no line");
    assert!(Format::named("headed").is_some());
}

/// Columns, delimiter, bytes of a block and unit of times, and a trace of them.
const STATED: [&str; 4] = [
    "time,offset,size,op;,;512;s\n1,0,1,R\n2.5e-01,512.0,1,W\n",
    "-,time_us,lba,sectors;space;4096;us\nx  1 0 1\nx 3\t2   2\n",
    ";;;ms\ntime,lba,size\n1,0,1\n3,1,2\n",
    "device,ts,lbn,len,rw;|;1;100ns\nd|9|8|7|read\nd|10|8|7|1\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn mutated_columns_and_lines_break_no_promise(
        which in 0..STATED.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8, any::<u8>()), 0..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = STATED[which].as_bytes().to_vec();
        for (place, what, byte) in &changes {
            let place = place.index(bytes.len());
            match what {
                0 => bytes[place] = *byte,
                1 => bytes.insert(place, b"0123456789,.eE \n-|;\"+"[usize::from(byte % 21)]),
                _ => drop(bytes.remove(place)),
            }
        }
        conformance::check_columns(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        conformance::check_columns(&bytes);
    }
}
