//! The rows of a table, as the engine's own program writes them.

use super::super::common::Place;
use super::Table;
use std::collections::BTreeMap;

/// The values of a column by the engine's own program, in the rows' order; `None` is null.
pub type Cells = Vec<Option<Vec<u8>>>;

/// A table's rows, sorted by the first column.
pub fn dump(place: &Place, engine: &str, table: &Table) -> Result<Vec<Cells>, String> {
    let names: Vec<String> = table.columns.iter().map(|(name, ..)| name.clone()).collect();
    let of = &table.name;
    let ask = |sql: &str| {
        let (done, out, error) = place.try_ask(sql);
        if done { Ok(out) } else { Err(format!("{sql}: {error}")) }
    };
    let unhex = |digits: &str| -> Vec<u8> {
        digits
            .as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    };
    let cell = |text: &str| match text.split_once(':') {
        Some(("h", digits)) => Some(unhex(digits)),
        Some(("v", value)) => Some(value.as_bytes().to_vec()),
        // No version of the program writes every floating-point number exactly.
        Some(("f", digits)) => {
            Some(format!("{:?}", f64::from_bits(u64::from_str_radix(digits, 16).unwrap())).into_bytes())
        }
        _ => None,
    };
    let split = |out: &str| -> Vec<Cells> {
        out.lines().map(|line| line.split(['|', '\t']).map(cell).collect()).collect()
    };
    let expressions =
        |one: &dyn Fn(&str) -> String| names.iter().map(|name| one(name)).collect::<Vec<_>>().join(", ");
    let mut rows = match engine {
        "sqlite" => split(&ask(&format!(
            "SELECT {} FROM {of}",
            expressions(&|c| format!(
                "CASE typeof({c}) WHEN 'null' THEN 'n' WHEN 'real' THEN 'f:' || hex(ieee754_to_blob({c})) \
                 WHEN 'integer' THEN 'v:' || {c} ELSE 'h:' || hex({c}) END"
            ))
        ))?),
        "postgres" => split(&ask(&format!(
            "SET TimeZone = 'UTC'; SELECT {} FROM {of}",
            expressions(&|c| format!(
                "CASE WHEN {c} IS NULL THEN 'n' WHEN pg_typeof({c})::text = 'bytea' THEN 'h:' || substr({c}::text, 3) \
                 ELSE 'h:' || encode(convert_to({c}::text, 'UTF8'), 'hex') END"
            ))
        ))?),
        _ => {
            let types = ask(&format!(
                "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = '{of}'"
            ))?;
            let types: BTreeMap<&str, &str> =
                types.lines().filter_map(|line| line.split_once('\t')).collect();
            split(&ask(&format!(
                "SET time_zone = '+00:00'; SELECT {} FROM {of}",
                expressions(&|c| {
                    let text = match types.get(c).copied().unwrap_or_default() {
                        name if name.ends_with("binary") || name.ends_with("blob") => format!("HEX({c})"),
                        "point" => format!("HEX(ST_AsText({c}))"),
                        "bit" => format!("HEX(CAST({c} + 0 AS CHAR))"),
                        "float" => format!("HEX(CAST({c} * 1e0 AS CHAR))"),
                        name if name.ends_with("text") || name.ends_with("char") => {
                            format!("HEX(CONVERT({c} USING utf8mb4))")
                        }
                        _ => format!("HEX(CAST({c} AS CHAR CHARACTER SET utf8mb4))"),
                    };
                    format!("IF({c} IS NULL, 'n', CONCAT('h:', {text}))")
                })
            ))?)
        }
    };
    rows.sort_by_key(|row| {
        row.first()
            .and_then(|id| String::from_utf8(id.clone()?).ok()?.trim().parse::<i64>().ok())
            .unwrap_or(-1)
    });
    Ok(rows)
}
