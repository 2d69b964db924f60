//! Files hold the table, and the same table gives the same bytes.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_ipc::reader::FileReader;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;

use super::*;

fn table(rows: &[(Option<String>, Option<u64>, Option<f64>)]) -> ColumnTable {
    ColumnTable {
        name: "example",
        version: 3,
        columns: vec![
            Column::text("word", "a word", rows.iter().map(|row| row.0.clone())),
            Column::count("count", "a count", rows.iter().map(|row| row.1)),
            Column::number("share", "a share", rows.iter().map(|row| row.2)),
        ],
    }
}

/// The rows of a file, and what its schema says.
fn read(format: TableFormat, bytes: Vec<u8>) -> (SchemaRef, Vec<RecordBatch>) {
    match format {
        TableFormat::Arrow => {
            let reader = FileReader::try_new(std::io::Cursor::new(bytes), None).expect("a file");
            (
                reader.schema(),
                reader.map(|batch| batch.expect("a batch")).collect(),
            )
        }
        TableFormat::Parquet => {
            let mut file = tempfile::tempfile().expect("a file");
            file.write_all(&bytes).expect("written");
            let builder = ParquetRecordBatchReaderBuilder::try_new(file);
            let builder = builder.expect("a file");
            let schema = Arc::clone(builder.schema());
            let reader = builder.build().expect("a reader");
            (
                schema,
                reader.map(|batch| batch.expect("a batch")).collect(),
            )
        }
    }
}

proptest! {
    #[test]
    fn a_file_has_the_rows_that_were_written(
        rows in prop::collection::vec((
            prop::option::of("[a-zé,\"]{0,5}"),
            prop::option::of(any::<u64>()),
            prop::option::of(-1e300..1e300f64),
        ), 1..20),
    ) {
        for format in [TableFormat::Parquet, TableFormat::Arrow] {
            let table = table(&rows);
            let bytes = table.write(format, Vec::new()).expect("memory takes it");
            prop_assert_eq!(&bytes, &table.write(format, Vec::new()).expect("memory takes it"));
            let (schema, batches) = read(format, bytes);
            prop_assert_eq!(schema.metadata()[TABLE].as_str(), "example 3");
            prop_assert_eq!(schema.field(1).metadata()[WHAT].as_str(), "a count");
            let mut found = Vec::new();
            for batch in batches {
                let words = batch.column(0).as_string::<i32>();
                let counts = batch.column(1).as_primitive::<UInt64Type>();
                let shares = batch.column(2).as_primitive::<Float64Type>();
                let cells = words.iter().zip(counts).zip(shares);
                found.extend(cells.map(|((word, count), share)| (word.map(str::to_owned), count, share)));
            }
            prop_assert_eq!(&found, &rows);
        }
    }
}

#[test]
fn a_name_tells_the_format() {
    for (name, format) in [
        ("a.parquet", Some(TableFormat::Parquet)),
        ("out/a.b.arrow", Some(TableFormat::Arrow)),
        ("a.csv", None),
        ("parquet", None),
    ] {
        assert_eq!(TableFormat::of(Path::new(name)), format, "{name}");
    }
    let refused = TableFormat::named("--out", Path::new("a.csv")).expect_err("no format");
    assert_eq!(
        refused,
        Failure::input("--out a.csv: expected a name that ends in .parquet or .arrow")
    );
}
