//! Commands of MongoDB.

use super::statement::{Change, Fields, KEY, Translated, name, statement};
use crate::forms::{Value, parameter};
use crate::record::{Request, Value as Bytes};
use kurabe_wire::statement::Dialect;
use serde_json::{Map, Value as Json};

type Document = Map<String, Json>;

/// A command, whose text has a `?` for each of its first values.
pub(super) fn translate(text: &str, request: &Request) -> Translated {
    let (head, body) = text.split_once(" {").ok_or(NONE)?;
    let (command, collection) = head.split_once(' ').ok_or(NONE)?;
    let body: Document = serde_json::from_str(&numbered(&format!("{{{body}"))).map_err(|_| NONE)?;
    // A list of one shape may have several elements, of which only the first is in the text.
    let is_several = |at: &Bytes| *at != Bytes::Bytes(b"0x1".to_vec());
    if request.parameters.iter().any(|one| one.kind == 0 && is_several(&one.value)) {
        return Err("several documents at once");
    }
    let values = Values(request);
    let table = name(collection.trim_matches('"'));
    let one = |list: &str| -> Result<Document, &'static str> {
        let elements = body.get(list).and_then(Json::as_array).map(Vec::as_slice);
        match elements {
            Some([Json::Object(one)]) => Ok(one.clone()),
            _ => Err("several documents at once"),
        }
    };
    let (change, by, fields) = match command {
        "find" => {
            if ["sort", "skip", "min", "max", "collation"].iter().any(|part| body.contains_key(*part)) {
                return Err("an order, or a part of what is found");
            }
            let wanted = body.get("projection").and_then(Json::as_object);
            let mut columns = Vec::new();
            for (column, slot) in wanted.into_iter().flatten() {
                let is_wanted =
                    values.of(slot)? != Value::Int(0) && values.of(slot)? != Value::Text("false".into());
                // Without these, all others come.
                match (is_wanted, column.as_str()) {
                    (_, "_id") => {}
                    (true, _) => columns.push(name(column)),
                    (false, _) => break,
                }
            }
            (Change::Get(columns), by(body.get("filter"), &values)?, Vec::new())
        }
        "insert" => {
            let mut document = one("documents")?;
            let id = document.remove("_id").map(|id| values.of(&id)).transpose()?;
            let by = id.map(|id| (KEY.to_owned(), id)).into_iter().collect();
            let mut fields = Fields::new();
            values.fields(&document, "", false, &mut fields)?;
            (Change::Insert, by, fields)
        }
        "update" => {
            let update = one("updates")?;
            let (change, fields) = changed(update.get("u"), &values)?;
            (change, by(update.get("q"), &values)?, fields)
        }
        "delete" => (Change::Delete, by(one("deletes")?.get("q"), &values)?, Vec::new()),
        _ => return Err(NONE),
    };
    Ok(statement(&change, &table, by, fields))
}

const NONE: &str = "not a find, insert, update or delete";

/// What an update does: a document in place of the one that is there, or `$set` and `$inc`.
fn changed(update: Option<&Json>, values: &Values<'_>) -> Result<(Change, Fields), &'static str> {
    const OTHER: &str = "a change of a document other than $set and $inc";
    let update = update.and_then(Json::as_object).ok_or(OTHER)?;
    let mut fields = Fields::new();
    if !update.keys().any(|name| name.starts_with('$')) {
        let own: Document =
            update.iter().filter(|(name, _)| *name != "_id").map(|(k, v)| (k.clone(), v.clone())).collect();
        values.fields(&own, "", false, &mut fields)?;
        return Ok((Change::Put, fields));
    }
    for (operator, document) in update {
        let (document, is_added) = match (operator.as_str(), document.as_object()) {
            ("$set", Some(document)) => (document, false),
            ("$inc", Some(document)) => (document, true),
            _ => return Err(OTHER),
        };
        values.fields(document, "", is_added, &mut fields)?;
    }
    Ok((Change::Update, fields))
}

/// The fields that a filter compares.
fn by(filter: Option<&Json>, values: &Values<'_>) -> Result<Vec<(String, Value)>, &'static str> {
    const OTHER: &str = "documents by anything but equal values";
    let filter = filter.and_then(Json::as_object).filter(|filter| !filter.is_empty()).ok_or(OTHER)?;
    let one = |(field, value): (&String, &Json)| {
        let value = match value.as_object() {
            Some(operators) if operators.len() == 1 => operators.get("$eq").ok_or(OTHER)?,
            _ => value,
        };
        let is_plain = !field.starts_with('$') && value.is_number();
        let column = if field == "_id" { KEY.to_owned() } else { name(field) };
        is_plain.then(|| Ok((column, values.of(value)?))).ok_or(OTHER)?
    };
    filter.iter().map(one).collect()
}

/// The values of a request, by their numbers.
struct Values<'a>(&'a Request);

impl Values<'_> {
    fn of(&self, slot: &Json) -> Result<Value, &'static str> {
        let number = slot.as_u64().ok_or("a document where a value is expected")?;
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let value =
            self.0.parameters.get(number).map_or(Value::Unknown, |one| parameter(one, Dialect::Mongodb));
        Ok(match value {
            Value::Verbatim(text) => Value::Text(text),
            other => other,
        })
    }

    /// The fields of a document. Those of a document within have its name before theirs.
    fn fields(
        &self,
        document: &Document,
        before: &str,
        is_added: bool,
        found: &mut Fields,
    ) -> Result<(), &'static str> {
        for (field, value) in document {
            let field = format!("{before}{field}");
            match value {
                Json::Object(within) => self.fields(within, &format!("{field}."), is_added, found)?,
                Json::Array(_) => return Err("a list within a document"),
                slot => found.push((name(&field), self.of(slot)?, is_added)),
            }
        }
        Ok(())
    }
}

/// A text of JSON in which each `?` outside of names is its number.
fn numbered(text: &str) -> String {
    let (mut out, mut in_name, mut number) = (String::with_capacity(text.len()), false, 0);
    for c in text.chars() {
        in_name ^= c == '"';
        if c == '?' && !in_name {
            out.push_str(&number.to_string());
            number += 1;
        } else {
            out.push(c);
        }
    }
    out
}
