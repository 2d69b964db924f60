//! Results as columns: Arrow tables, and their files in Parquet and Arrow.
//!
//! ```text
//!   figures --> ColumnTable: columns with names, types, descriptions --batch--> RecordBatch --> TableFile
//!                                                                                   '--> Python
//! ```
//!
//! The schema of a file has the key `headtime.table` with the table's name and version, and each column has its
//! description. The same table gives the same bytes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::Failure;

/// The columns of a result.
#[derive(Clone, Debug)]
pub struct ColumnTable {
    /// The name of the table.
    pub name: &'static str,
    /// The version of its columns. A new column is the same version; any other change is a new one.
    pub version: u32,
    /// The columns, of equal lengths.
    pub columns: Vec<Column>,
}

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// The name, with its unit at the end.
    pub name: String,
    /// The description.
    pub what: String,
    /// The cells, from the first row.
    pub cells: Cells,
}

/// The cells of a column; `None` is null.
#[derive(Clone, Debug)]
pub enum Cells {
    /// Words.
    Text(Vec<Option<Cow<'static, str>>>),
    /// Counts, 64 bits without sign.
    Count(Vec<Option<u64>>),
    /// Numbers, 64 bits of floating point.
    Number(Vec<Option<f64>>),
}

impl Column {
    /// A column of words.
    pub fn text<T: Into<Cow<'static, str>>>(
        name: impl Into<String>,
        what: impl Into<String>,
        cells: impl IntoIterator<Item = Option<T>>,
    ) -> Self {
        let cells = cells.into_iter().map(|cell| cell.map(Into::into));
        Column {
            name: name.into(),
            what: what.into(),
            cells: Cells::Text(cells.collect()),
        }
    }

    /// A column of counts.
    pub fn count(
        name: impl Into<String>,
        what: impl Into<String>,
        cells: impl IntoIterator<Item = Option<u64>>,
    ) -> Self {
        Column {
            name: name.into(),
            what: what.into(),
            cells: Cells::Count(cells.into_iter().collect()),
        }
    }

    /// A column of numbers.
    pub fn number(
        name: impl Into<String>,
        what: impl Into<String>,
        cells: impl IntoIterator<Item = Option<f64>>,
    ) -> Self {
        Column {
            name: name.into(),
            what: what.into(),
            cells: Cells::Number(cells.into_iter().collect()),
        }
    }

    fn field(&self) -> Field {
        let what = HashMap::from([(WHAT.to_owned(), self.what.clone())]);
        Field::new(&self.name, self.cells.data_type(), true).with_metadata(what)
    }
}

impl Cells {
    /// The word for the type in the reference.
    pub fn word(&self) -> &'static str {
        match self {
            Cells::Text(_) => "text",
            Cells::Count(_) => "uint64",
            Cells::Number(_) => "float64",
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Cells::Text(_) => DataType::Utf8,
            Cells::Count(_) => DataType::UInt64,
            Cells::Number(_) => DataType::Float64,
        }
    }

    fn array(&self) -> ArrayRef {
        match self {
            Cells::Text(cells) => {
                Arc::new(cells.iter().map(Option::as_deref).collect::<StringArray>())
            }
            Cells::Count(cells) => Arc::new(cells.iter().copied().collect::<UInt64Array>()),
            Cells::Number(cells) => Arc::new(cells.iter().copied().collect::<Float64Array>()),
        }
    }
}

impl ColumnTable {
    /// The names, types and descriptions.
    pub fn schema(&self) -> SchemaRef {
        let fields: Vec<Field> = self.columns.iter().map(Column::field).collect();
        let version = format!("{} {}", self.name, self.version);
        let version = HashMap::from([(TABLE.to_owned(), version)]);
        Arc::new(Schema::new(fields).with_metadata(version))
    }

    /// The table in Arrow's memory format.
    ///
    /// # Panics
    /// If the columns differ in length.
    pub fn batch(&self) -> RecordBatch {
        let arrays = self.columns.iter().map(|column| column.cells.array());
        RecordBatch::try_new(self.schema(), arrays.collect()).expect("columns of equal lengths")
    }

    /// Writes the whole table.
    ///
    /// # Errors
    /// If `to` refuses.
    pub fn write<W: Write + Send>(&self, format: TableFormat, to: W) -> Result<W, Failure> {
        let batch = self.batch();
        let mut file = TableFile::begin(to, format, &batch.schema())?;
        file.write(&batch)?;
        file.finish()
    }
}

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// Apache Parquet, compressed with zstd.
    Parquet,
    /// Arrow's file format (Feather, version 2), which programs map into memory.
    Arrow,
}

impl TableFormat {
    /// The format that the end of a name means.
    pub fn of(path: &Path) -> Option<TableFormat> {
        match path.extension()?.to_str()? {
            "parquet" => Some(TableFormat::Parquet),
            "arrow" => Some(TableFormat::Arrow),
            _ => None,
        }
    }

    /// The format of a file of `flag`.
    ///
    /// # Errors
    /// If the end of the name means none.
    pub fn named(flag: &str, path: &Path) -> Result<TableFormat, Failure> {
        TableFormat::of(path).ok_or_else(|| {
            let path = path.display();
            Failure::input(format!(
                "{flag} {path}: expected a name that ends in .parquet or .arrow"
            ))
        })
    }
}

/// A file of batches with one schema.
pub struct TableFile<W: Write + Send>(Writer<W>);

enum Writer<W: Write + Send> {
    Parquet(Box<ArrowWriter<W>>),
    Arrow(Box<FileWriter<W>>),
}

impl<W: Write + Send> TableFile<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// If `to` refuses.
    pub fn begin(to: W, format: TableFormat, schema: &SchemaRef) -> Result<Self, Failure> {
        Ok(TableFile(match format {
            TableFormat::Parquet => {
                let zstd = Compression::ZSTD(ZstdLevel::default());
                let properties = WriterProperties::builder().set_compression(zstd).build();
                let writer = ArrowWriter::try_new(to, Arc::clone(schema), Some(properties));
                Writer::Parquet(Box::new(writer.map_err(Failure::failed)?))
            }
            TableFormat::Arrow => {
                let writer = FileWriter::try_new(to, schema).map_err(arrow)?;
                Writer::Arrow(Box::new(writer))
            }
        }))
    }

    /// Appends a batch.
    ///
    /// # Errors
    /// If the file refuses.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        match &mut self.0 {
            Writer::Parquet(writer) => writer.write(batch).map_err(Failure::failed),
            Writer::Arrow(writer) => writer.write(batch).map_err(arrow),
        }
    }

    /// Completes the file.
    ///
    /// # Errors
    /// If the file refuses.
    pub fn finish(self) -> Result<W, Failure> {
        match self.0 {
            Writer::Parquet(writer) => writer.into_inner().map_err(Failure::failed),
            Writer::Arrow(writer) => writer.into_inner().map_err(arrow),
        }
    }
}

fn arrow(error: ArrowError) -> Failure {
    match error {
        // Its text repeats that of the system's error.
        ArrowError::IoError(_, error) => Failure::failed(error),
        error => Failure::failed(error),
    }
}

/// The key of the table's name and version.
const TABLE: &str = "headtime.table";

/// The key of a column's description.
const WHAT: &str = "description";

#[cfg(test)]
mod tests;
