//! The raw windows of all trials as a Parquet file: the columns of [`kurabe_report::windows`].

use kurabe_core::run::Run;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_report::windows::{Column, Values, columns};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use std::sync::Arc;

/// The file's bytes, compressed by Zstandard. Times are in the units that the columns' names say.
///
/// # Errors
/// [`Internal`](ErrorKind::Internal) if the file cannot be encoded.
pub fn render(run: &Run) -> Result<Vec<u8>> {
    write(run, columns(run)).map_err(|error| {
        Error::new(ErrorKind::Internal, format!("the windows cannot be written as Parquet: {error}"))
    })
}

fn write(run: &Run, columns: Vec<Column>) -> std::result::Result<Vec<u8>, ParquetError> {
    let fields = columns.iter().map(field);
    let fields = fields.collect::<std::result::Result<Vec<_>, _>>()?;
    let schema = Type::group_type_builder("windows").with_fields(fields).build()?;
    let about = vec![
        KeyValue::new("kurabe.run".to_owned(), run.header.run.clone()),
        KeyValue::new("kurabe.version".to_owned(), run.header.kurabe.clone()),
    ];
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(concat!("kurabe ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(about))
        .build();
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for column in columns {
        match column.values {
            Values::Text(all) => {
                write_column::<ByteArrayType, _, _>(&mut group, all, |text| Some(text.into_bytes().into()))
            }
            Values::Whole(all) => {
                write_column::<Int64Type, _, _>(&mut group, all, |number| i64::try_from(number).ok())
            }
            Values::Real(all, _) => write_column::<DoubleType, _, _>(&mut group, all, Some),
            Values::Flag(all) => write_column::<BoolType, _, _>(&mut group, all, Some),
        }?;
    }
    group.close()?;
    file.close()?;
    Ok(bytes)
}

/// The column of the schema.
fn field(column: &Column) -> std::result::Result<Arc<Type>, ParquetError> {
    let (physical, logical) = match &column.values {
        Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Values::Whole(_) => (Physical::INT64, None),
        Values::Real(..) => (Physical::DOUBLE, None),
        Values::Flag(_) => (Physical::BOOLEAN, None),
    };
    let field = Type::primitive_type_builder(&column.name, physical).with_logical_type(logical);
    field.with_repetition(Repetition::OPTIONAL).build().map(Arc::new)
}

/// Writes a column; missing values are null.
fn write_column<T: DataType, W: std::io::Write + Send, V>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: Vec<Option<V>>,
    of: impl Fn(V) -> Option<T::T>,
) -> std::result::Result<(), ParquetError> {
    let values: Vec<Option<T::T>> = values.into_iter().map(|value| value.and_then(&of)).collect();
    // 1 for a value, 0 for null.
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let there: Vec<T::T> = values.into_iter().flatten().collect();
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("the schema has too few columns".to_owned()));
    };
    column.typed::<T>().write_batch(&there, Some(&levels), None)?;
    column.close()
}
