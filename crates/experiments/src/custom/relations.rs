//! The collections that a workload creates, and the existing tables that it uses.

use super::declared::{Made, Relation};
use super::expression::{self, Expr};
use super::rows::Generator;
use super::section::{Section, place, position, variable};
use super::variables::{Constant, Variables, rows_of};
use crate::prelude::*;
use kurabe_core::collection::NAMESPACE_PREFIX;
use toml::{Table, Value};

/// The default maximum length of a generated text.
const LENGTH: usize = 100;
const MAX_LENGTH: i64 = 100_000_000;

/// `[collection.NAME]`.
pub(super) fn collections(
    table: &Table,
    file: &str,
    text: &str,
    variables: &mut Variables,
) -> Result<Vec<Relation>> {
    let mut relations = Vec::new();
    for (name, value) in table {
        let place = place(file, text, "collection", name);
        let table = value.as_table().ok_or_else(|| Error::usage("is not a table").context(&place))?;
        let section = Section::new(table, place, &["rows", "key", "index", "fields"])?;
        section.at(plain(name, 40))?;
        let (fields, mut generators) = fields(&section, true)?;
        let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
        let key = positions(&section, "key", &names)?.unwrap_or_default();
        for (position, generator) in generators.iter_mut().enumerate() {
            let only_key = key == [position];
            let kind = fields[position].kind;
            if generator.is_none() {
                *generator = Some(default_generator(kind, only_key).map_err(|error| {
                    error.context(format!("{}, field {}", section.place, names[position]))
                })?);
            }
        }
        let rows = match section.get("rows") {
            None => Expr::Int(0),
            Some(Value::String(text)) if kurabe_core::units::parse_count(text).is_err() => {
                expression::parse(text, &mut |name| variable(name, variables))
                    .map_err(|error| error.context(format!("{}, rows", section.place)))?
            }
            Some(_) => Expr::Int(section.number("rows")?.unwrap_or(0)),
        };
        let generators = generators.into_iter().flatten().collect();
        let made = Made { rows, generators, place: format!("{}, rows", section.place) };
        let mut relation = Relation::new(name.clone(), fields, key, Some(made));
        relation.indexes = indexes(&section, &relation)?;
        variables.slot(&rows_of(name));
        relations.push(relation);
    }
    Ok(relations)
}

/// `[table.NAME]`.
pub(super) fn tables(table: &Table, file: &str, text: &str, write: bool) -> Result<Vec<Relation>> {
    let mut relations = Vec::new();
    for (name, value) in table {
        let place = place(file, text, "table", name);
        let table = value.as_table().ok_or_else(|| Error::usage("is not a table").context(&place))?;
        let section = Section::new(table, place, &["key", "fields", "write"])?;
        if name.starts_with(NAMESPACE_PREFIX) {
            return Err(
                section.error(format!("names that begin with {NAMESPACE_PREFIX} are reserved for Kurabe"))
            );
        }
        let (fields, _) = fields(&section, false)?;
        let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
        let key = positions(&section, "key", &names)?.ok_or_else(|| section.error("'key' is missing"))?;
        let mut relation = Relation::new(name.clone(), fields, key, None);
        relation.write = section.truth("write")? || write;
        relations.push(relation);
    }
    Ok(relations)
}

/// Lower-case letters, digits and underscores: names that every engine accepts.
fn plain(name: &str, most: usize) -> Result<()> {
    let fits = (1..=most).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if fits {
        return Ok(());
    }
    Err(Error::usage(format!(
        "'{name}' is not a valid name: use lower-case letters, digits and underscores, at most {most}"
    )))
}

type Fields = (Vec<Field>, Vec<Option<Generator>>);

fn fields(section: &Section<'_>, ours: bool) -> Result<Fields> {
    let table = section.table("fields")?.filter(|table| !table.is_empty());
    let table = table.ok_or_else(|| section.error("'fields' is missing"))?;
    let mut fields = Vec::with_capacity(table.len());
    let mut generators = Vec::with_capacity(table.len());
    for (name, value) in table {
        let place = format!("{}, field {name}", section.place);
        let (kind, generator) = match value {
            Value::String(kind) => (kind_of(kind, None).map_err(|error| error.context(&place))?, None),
            Value::Table(table) => field(table, place)?,
            _ => return Err(Error::usage("is neither a type nor a table").context(place)),
        };
        if ours {
            section.at(plain(name, 60))?;
        }
        // The descriptions of collections are static, because those of built-in experiments are.
        fields.push(Field { name: name.clone().leak(), kind });
        generators.push(generator);
    }
    Ok((fields, generators))
}

fn kind_of(name: &str, max: Option<u32>) -> Result<FieldType> {
    position(name, &["int", "text", "bytes", "time"], "type")?;
    Ok(match (name, max) {
        ("int", _) => FieldType::Int,
        ("time", _) => FieldType::Timestamp,
        ("text", Some(max)) => FieldType::Text { max },
        ("text", None) => FieldType::LongText,
        (_, Some(max)) => FieldType::Bytes { max },
        (_, None) => FieldType::LongBytes,
    })
}

fn field(table: &Table, place: String) -> Result<(FieldType, Option<Generator>)> {
    const HOW: [&str; 9] =
        ["sequence", "every", "uniform", "special", "length", "template", "list", "value", "null"];
    let section = Section::new(table, place, &[&["type", "max"], &HOW[..]].concat())?;
    let name = section.text("type")?.ok_or_else(|| section.error("'type' is missing"))?;
    let max = section.number("max")?.map(|max| u32::try_from(max).ok().filter(|max| *max > 0));
    if max == Some(None) {
        return Err(section.error("'max' is out of range"));
    }
    let kind = section.at(kind_of(name, max.flatten()))?;
    let is_number = matches!(kind, FieldType::Int | FieldType::Timestamp);
    let ways: Vec<&str> = HOW.into_iter().filter(|key| section.has(key)).collect();
    let generator = match ways.as_slice() {
        [] => return Ok((kind, None)),
        [one] => *one,
        several => {
            return Err(section.error(format!(
                "its values must be generated in one way, not by {}",
                several.join(" and ")
            )));
        }
    };
    if is_number && matches!(generator, "length" | "template") {
        return Err(section.error(format!("'{generator}' does not apply to numbers")));
    }
    if !is_number && matches!(generator, "sequence" | "every" | "uniform" | "special") {
        return Err(section.error(format!("'{generator}' generates only numbers")));
    }
    let made = match generator {
        "sequence" => section.number("sequence")?.map(Generator::Sequence),
        "every" => section.number("every")?.filter(|n| *n > 0).map(|n| Generator::Every(n as u64)),
        "uniform" => section.range("uniform")?.map(|(least, most)| Generator::Uniform(least, most)),
        "special" => section.range("special")?.map(|(least, most)| Generator::Special(least, most)),
        "length" => section
            .counts("length")?
            .filter(|(_, most)| *most <= MAX_LENGTH as u64)
            .map(|(least, most)| Generator::Length(least as usize, most as usize)),
        "template" => section.text("template")?.map(|pattern| Generator::Template(pattern.to_owned())),
        "list" => section.constants("list")?.map(Generator::List),
        "null" => Some(Generator::Always(Constant::Null)),
        _ => {
            let value = section.get("value").map(|value| section.constant("value", value)).transpose()?;
            value.map(Generator::Always)
        }
    };
    let made = made.ok_or_else(|| section.error(format!("'{generator}' is out of range")))?;
    let most = match &made {
        Generator::Length(_, most) => *most,
        Generator::Template(pattern) => pattern.chars().count(),
        _ => 0,
    };
    if let FieldType::Text { max } | FieldType::Bytes { max } = kind
        && most > max as usize
    {
        return Err(section.error(format!("a length of {most} does not fit 'max' {max}")));
    }
    Ok((kind, Some(made)))
}

fn default_generator(kind: FieldType, only_key: bool) -> Result<Generator> {
    Ok(match kind {
        FieldType::Int if only_key => Generator::Sequence(1),
        FieldType::Int => Generator::Uniform(0, 1_000_000_000),
        // Two years from the beginning of 2024.
        FieldType::Timestamp => Generator::Uniform(1_704_067_200, 1_767_225_600),
        FieldType::Text { max } | FieldType::Bytes { max } => {
            let length = (max as usize).min(LENGTH);
            Generator::Length(length, length)
        }
        FieldType::LongText | FieldType::LongBytes => {
            return Err(Error::usage("'max' or 'length' is required"));
        }
    })
}

fn positions(section: &Section<'_>, key: &str, names: &[&str]) -> Result<Option<Vec<usize>>> {
    let Some(list) = section.names(key)? else { return Ok(None) };
    let find = |name: &&str| section.at(position(name, names, "field"));
    list.iter().map(find).collect::<Result<_>>().map(Some)
}

fn indexes(section: &Section<'_>, relation: &Relation) -> Result<Vec<Vec<usize>>> {
    let names = relation.names();
    let find = |name: &str| section.at(position(name, &names, "field"));
    let Some(value) = section.get("index") else { return Ok(Vec::new()) };
    let bad = || section.error("'index' is neither a field nor a list of fields or lists of them");
    if let Some(name) = value.as_str() {
        return Ok(vec![vec![find(name)?]]);
    }
    let list = value.as_array().ok_or_else(bad)?;
    list.iter()
        .map(|entry| match entry {
            Value::String(name) => Ok(vec![find(name)?]),
            Value::Array(names) => names.iter().map(|name| find(name.as_str().ok_or_else(bad)?)).collect(),
            _ => Err(bad()),
        })
        .collect()
}
