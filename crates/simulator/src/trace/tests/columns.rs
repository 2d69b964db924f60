//! CSV whose columns have names, or the places of a published trace.

use super::{Direction, OnBad, error, reader};

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
        ("headed", "time,offset,size\n1e3,0,512\n", "bad field: time"),
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
