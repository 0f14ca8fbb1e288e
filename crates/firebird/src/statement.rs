//! A statement, its values, and the fields of its rows, as the client has them.

use kurabe_driver_common::prelude::*;
use kurabe_driver_common::sql::Shape;
use rsfbclient_core::{Column, ColumnToVal as _, SqlType};

/// A statement and the types of its values.
#[derive(Default)]
pub struct Statement {
    /// The key of the prepared statement; 0 if it is executed once, and numbers are returned as text.
    pub number: u64,
    pub sql: String,
    pub shape: Shape,
    /// Whether it is a custom statement, on columns of any type.
    pub raw: bool,
}

impl Statement {
    /// Whether it gives a row although it is executed like a procedure: `INSERT … RETURNING`, `EXECUTE BLOCK RETURNS (…)`.
    pub fn gives_row(&self) -> bool {
        if !self.raw && self.number > 0 {
            return !self.shape.gives.is_empty();
        }
        let sql = self.sql.trim_start().to_ascii_uppercase();
        sql.contains("RETURN") || sql.starts_with("EXECUTE PROCEDURE")
    }
}

/// A statement that is executed once.
pub fn text(sql: &str) -> Statement {
    Statement { sql: sql.to_owned(), ..Statement::default() }
}

/// The text that the client sends as exactly these bytes.
pub fn latin(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

pub fn bind(value: &Value<'_>, raw: bool) -> Result<SqlType> {
    Ok(match *value {
        Value::Null => SqlType::Null,
        Value::Bool(truth) => SqlType::Boolean(truth),
        Value::Text(text) => SqlType::Text(latin(text.as_bytes())),
        Value::Bytes(bytes) => SqlType::Text(latin(bytes)),
        // Firebird accepts four decimal digits of a second.
        Value::Time(at) if raw => SqlType::Text(DateTime::from_micros(at)?.to_string()[..24].to_owned()),
        Value::Int(number) | Value::Time(number) => SqlType::Integer(number),
    })
}

pub fn push_row(row: &[Column], statement: &Statement, out: &mut Reply) {
    for (at, column) in row.iter().enumerate() {
        let time = statement.shape.gives.get(at) == Some(&FieldType::Timestamp);
        match &column.value {
            SqlType::Null => out.push_null(),
            // The client converts each byte to a character.
            SqlType::Text(text) => out.push_bytes(&text.chars().map(|c| c as u8).collect::<Vec<_>>()),
            SqlType::Binary(bytes) => out.push_bytes(bytes),
            SqlType::Integer(micros) if time => out.push_time(*micros),
            SqlType::Integer(number) if statement.number > 0 => out.push_int(*number),
            _ => out.push_bytes(column.clone().to_val().unwrap_or_else(|_| String::new()).as_bytes()),
        }
    }
    if !row.is_empty() {
        out.end_row();
    }
}
