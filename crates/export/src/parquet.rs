//! The raw windows of all trials as a Parquet file: the rows and columns of [`kurabe_report::windows`].

use kurabe_core::axis::AxisValue;
use kurabe_core::run::Run;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_report::windows::{self, Window};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use std::sync::Arc;

/// A column; missing values are null.
struct Column {
    name: String,
    values: Values,
}

enum Values {
    Text(Vec<Option<ByteArray>>),
    Whole(Vec<Option<i64>>),
    Real(Vec<Option<f64>>),
    Flag(Vec<Option<bool>>),
}

/// The file's bytes, compressed by Zstandard. Times are in the units that the columns' names say.
///
/// # Errors
/// [`Internal`](ErrorKind::Internal) if the file cannot be encoded.
pub fn render(run: &Run) -> Result<Vec<u8>> {
    let columns = columns(run);
    write(run, &columns).map_err(|error| {
        Error::new(ErrorKind::Internal, format!("the windows cannot be written as Parquet: {error}"))
    })
}

fn columns(run: &Run) -> Vec<Column> {
    let rows = windows::rows(run);
    let text = |name: &str, of: &dyn Fn(&Window) -> Option<String>| Column {
        name: name.to_owned(),
        values: Values::Text(
            rows.iter().map(|row| of(row).map(|text| ByteArray::from(text.into_bytes()))).collect(),
        ),
    };
    let whole = |name: &str, of: &dyn Fn(&Window) -> Option<i64>| Column {
        name: name.to_owned(),
        values: Values::Whole(rows.iter().map(of).collect()),
    };
    let real = |name: &str, of: fn(&Window) -> f64| Column {
        name: name.to_owned(),
        values: Values::Real(rows.iter().map(|row| Some(of(row))).collect()),
    };
    let mut all = vec![
        text("run", &|_| Some(run.header.run.clone())),
        whole("round", &|row| Some(i64::from(row.round))),
        text("rerun_reason", &|row| row.rerun_reason.clone()),
        text("target", &|row| Some(row.target.clone())),
    ];
    for axis in windows::axes(run) {
        // An axis whose values are all numbers is a column of numbers.
        let words = rows.iter().any(|row| matches!(row.axes.get(axis), Some(AxisValue::Word(_))));
        all.push(if words {
            text(axis, &|row| {
                row.axes.get(axis).map(|value| match value {
                    AxisValue::Number(number) => number.to_string(),
                    AxisValue::Word(word) => word.clone(),
                })
            })
        } else {
            whole(axis, &|row| match row.axes.get(axis) {
                Some(AxisValue::Number(number)) => i64::try_from(*number).ok(),
                _ => None,
            })
        });
    }
    all.extend([
        Column {
            name: "aa_control".to_owned(),
            values: Values::Flag(rows.iter().map(|row| Some(row.aa_control)).collect()),
        },
        text("operation", &|row| Some(row.operation.clone())),
        whole("trial_start_ms", &|row| i64::try_from(row.trial_start_ms).ok()),
        whole("window", &|row| Some(i64::from(row.window))),
        real("from_s", |row| row.from_s),
        real("to_s", |row| row.to_s),
        whole("completed", &|row| i64::try_from(row.completed).ok()),
        real("ops_per_second", |row| row.ops_per_second),
    ]);
    all
}

fn write(run: &Run, columns: &[Column]) -> std::result::Result<Vec<u8>, ParquetError> {
    let fields = columns.iter().map(|column| column.values.field(&column.name));
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
        column.values.write(&mut group)?;
    }
    group.close()?;
    file.close()?;
    Ok(bytes)
}

impl Values {
    /// The column of the schema.
    fn field(&self, name: &str) -> std::result::Result<Arc<Type>, ParquetError> {
        let (physical, logical) = match self {
            Self::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Self::Whole(_) => (Physical::INT64, None),
            Self::Real(_) => (Physical::DOUBLE, None),
            Self::Flag(_) => (Physical::BOOLEAN, None),
        };
        let field = Type::primitive_type_builder(name, physical).with_logical_type(logical);
        field.with_repetition(Repetition::OPTIONAL).build().map(Arc::new)
    }

    fn write<W: std::io::Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> std::result::Result<(), ParquetError> {
        match self {
            Self::Text(values) => write_column::<ByteArrayType, W>(group, values),
            Self::Whole(values) => write_column::<Int64Type, W>(group, values),
            Self::Real(values) => write_column::<DoubleType, W>(group, values),
            Self::Flag(values) => write_column::<BoolType, W>(group, values),
        }
    }
}

fn write_column<T: DataType, W: std::io::Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[Option<T::T>],
) -> std::result::Result<(), ParquetError> {
    let there: Vec<T::T> = values.iter().flatten().cloned().collect();
    // 1 for a value, 0 for null.
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("the schema has too few columns".to_owned()));
    };
    column.typed::<T>().write_batch(&there, Some(&levels), None)?;
    column.close()
}
