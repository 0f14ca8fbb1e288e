//! Commands of MongoDB.

use super::{Fields, Translated, name};
use crate::forms::{Value, from_element};
use crate::rows::{KEY, Verb, translated};
use kurabe_protocol::mongodb::bson::{ARRAY, DOCUMENT, Element, element, elements};
use kurabe_protocol::mongodb::command::Command;

/// A command on one document as a statement.
pub(super) fn translate(command: &Command<'_>) -> Translated {
    let table = name(&command.collection().ok_or(NONE)?);
    let field = |field: &str| command.field(field).and_then(|field| field.document());
    let mut columns = Vec::new();
    let (verb, by, fields) = match &*command.name() {
        "find" => {
            if ["sort", "skip", "min", "max", "collation"].iter().any(|part| command.field(part).is_some()) {
                return Err("an order, or a part of what is found");
            }
            for wanted in field("projection").into_iter().flat_map(elements) {
                let value = value_of(&wanted)?;
                let is_wanted = value != Value::Int(0) && value != Value::Text("false".into());
                // Without these, all others come.
                match (is_wanted, wanted.name) {
                    (_, b"_id") => {}
                    (true, _) => columns.push(name(&wanted.name())),
                    (false, _) => break,
                }
            }
            (Verb::Select, by(field("filter"))?, Vec::new())
        }
        "insert" => {
            let document = one(command, "documents")?;
            let id = element(document, "_id").map(|id| value_of(&id)).transpose()?;
            let mut fields = Fields::new();
            push(document, "", false, &mut fields)?;
            (Verb::Insert, id.map(|id| (KEY.to_owned(), id)).into_iter().collect(), fields)
        }
        "update" => {
            let update = one(command, "updates")?;
            let within = |name| element(update, name).and_then(|field| field.document());
            let (verb, fields) = changed(within("u"))?;
            (verb, by(within("q"))?, fields)
        }
        "delete" => {
            let filter = element(one(command, "deletes")?, "q").and_then(|field| field.document());
            (Verb::Delete, by(filter)?, Vec::new())
        }
        _ => return Err(NONE),
    };
    translated(verb, columns, table, by, fields)
}

const NONE: &str = "not a find, insert, update or delete";

/// The only document of a list.
fn one<'a>(command: &Command<'a>, list: &str) -> Result<&'a [u8], &'static str> {
    let list = command.field(list).filter(|list| list.kind == ARRAY).into_iter();
    let mut all = list.flat_map(|list| elements(list.value));
    match (all.next().and_then(|one| one.document()), all.next()) {
        (Some(document), None) => Ok(document),
        _ => Err("several documents at once"),
    }
}

/// What an update does: a document in place of the one that is there, or `$set` and `$inc`.
fn changed(update: Option<&[u8]>) -> Result<(Verb, Fields), &'static str> {
    const OTHER: &str = "a change of a document other than $set and $inc";
    let update = update.ok_or(OTHER)?;
    let mut fields = Fields::new();
    if !elements(update).any(|field| field.name.starts_with(b"$")) {
        push(update, "", false, &mut fields)?;
        return Ok((Verb::Put, fields));
    }
    for operator in elements(update) {
        let is_added = operator.name == b"$inc";
        let document = operator.document().filter(|_| is_added || operator.name == b"$set").ok_or(OTHER)?;
        push(document, "", is_added, &mut fields)?;
    }
    Ok((Verb::Update, fields))
}

/// The fields that a filter compares.
fn by(filter: Option<&[u8]>) -> Result<Vec<(String, Value)>, &'static str> {
    const OTHER: &str = "documents by anything but equal values";
    let filter = filter.ok_or(OTHER)?;
    let one = |field: Element<'_>| {
        let value = match field.document() {
            Some(operators) if elements(operators).count() == 1 => element(operators, "$eq").ok_or(OTHER)?,
            _ => field,
        };
        let is_plain = !field.name.starts_with(b"$") && ![DOCUMENT, ARRAY].contains(&value.kind);
        let column = if field.name == b"_id" { KEY.to_owned() } else { name(&field.name()) };
        if is_plain { Ok((column, value_of(&value)?)) } else { Err(OTHER) }
    };
    let all: Vec<_> = elements(filter).map(one).collect::<Result<_, _>>()?;
    if all.is_empty() { Err(OTHER) } else { Ok(all) }
}

fn value_of(value: &Element<'_>) -> Result<Value, &'static str> {
    match from_element(value) {
        _ if [DOCUMENT, ARRAY].contains(&value.kind) => Err("a document where a value is expected"),
        Value::Verbatim(text) => Ok(Value::Text(text)),
        other => Ok(other),
    }
}

/// The fields of a document but for its key. Those of a document within have its name before theirs.
fn push(document: &[u8], before: &str, is_added: bool, found: &mut Fields) -> Result<(), &'static str> {
    for field in elements(document).filter(|field| !before.is_empty() || field.name != b"_id") {
        let own = format!("{before}{}", field.name());
        match field.kind {
            DOCUMENT => push(field.value, &format!("{own}."), is_added, found)?,
            ARRAY => return Err("a list within a document"),
            _ => found.push((name(&own), value_of(&field)?, is_added)),
        }
    }
    Ok(())
}
