//! Requests of stores of keys and of documents as statements on the rows of a table: `GET session:17` reads the row of `session` with the
//! key 17, so that the rest of a model is the same for all.

mod documents;
mod keys;

use crate::forms::Value;
use crate::record::{Request, Value as Bytes};
use crate::rows::{KEY, Plain};
use kurabe_protocol::call::{Call, Language};

/// A request as a statement, with its values; or why it is none.
pub(crate) type Translated = Result<(Plain, Vec<Value>), &'static str>;
/// The fields that are written, each with its value, and whether that is added.
type Fields = Vec<(String, Value, bool)>;

/// Whether the requests of a protocol are no statements, and can be translated into them.
pub(crate) fn are_translated(language: Language) -> bool {
    matches!(language, Language::Redis | Language::Memcached | Language::Documents)
}

pub(crate) fn translate(call: Option<&Call<'_>>, request: &Request) -> Translated {
    let call =
        call.filter(|_| !request.cut && request.parameters.iter().all(|one| one.value != Bytes::Dropped));
    match call {
        Some(Call::Document(command)) => documents::translate(command),
        Some(Call::Command(command)) => keys::translate(command),
        _ => Err("it was recorded without its values"),
    }
}

/// A name that a collection and a field may have: in lower case, and with underscores for other characters.
fn name(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let name: String = text.chars().map(plain).take(38).collect();
    let name = name.trim_matches('_');
    let begins_well = name.starts_with(|c: char| c.is_ascii_lowercase()) && name != KEY;
    if begins_well { name.to_owned() } else { format!("x_{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Parameter;
    use kurabe_protocol::mongodb::bson;
    use kurabe_protocol::mongodb::command::plain;
    use kurabe_protocol::sql::Dialect;
    use kurabe_wire::registry::of_scheme;
    use kurabe_wire::view::{Event, Exchange};

    /// A statement as it is shown, with its values.
    type Shown = Result<(String, Vec<Value>), &'static str>;

    /// What a client's bytes are as statements, by the view of the protocol.
    fn all_translated(protocol: &str, sent: &[u8]) -> Vec<Shown> {
        let mut view = (of_scheme(protocol).unwrap().view)(Dialect::default());
        let mut events = Vec::new();
        view.sent(sent, std::time::Instant::now(), &mut events);
        view.end(&mut events);
        let exchanges = events.into_iter().filter_map(|event| match event {
            Event::Exchange(exchange) => Some(exchange),
            _ => None,
        });
        let translated = exchanges.map(|exchange| {
            let Exchange { parameters, cut, .. } = *exchange;
            translated(protocol, &Request { parameters, cut, ..Request::default() })
        });
        translated.collect()
    }

    fn translated(protocol: &str, request: &Request) -> Shown {
        let call = Language::from_scheme(protocol).call("", &request.parameters);
        translate(call.as_ref(), request).map(|(plain, values)| (plain.text(), values))
    }

    fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    #[test]
    fn commands_on_one_key_are_statements_on_a_row_and_others_say_why_not() {
        let get = "GET value FROM session WHERE id = ?";
        let put = "PUT INTO session (id, value) VALUES (?)";
        for (line, statement, values) in [
            ("GET session:17", get, vec![Value::Int(17)]),
            ("GET session:0a1f", get, vec![text("0a1f")]),
            ("SETEX session:17 60 abc", put, vec![Value::Int(17), text("abc")]),
            (
                "SET session:17 abc XX",
                "UPDATE session SET value = ? WHERE id = ?",
                vec![text("abc"), Value::Int(17)],
            ),
            ("DEL cart:17:item:5", "DELETE FROM cart_item WHERE id = ?", vec![text("17:5")]),
            (
                "INCR user17",
                "UPDATE user SET value = value + ? WHERE id = ?",
                vec![text("1"), Value::Int(17)],
            ),
            ("HMGET user:7 Name city", "GET name, city FROM user WHERE id = ?", vec![Value::Int(7)]),
            ("HGETALL user:bob", "GET * FROM user WHERE id = ?", vec![text("bob")]),
            ("HSET user:7 name x", "PUT INTO user (id, name) VALUES (?)", vec![Value::Int(7), text("x")]),
            ("GET hits", "GET value FROM keys WHERE id = ?", vec![text("hits")]),
        ] {
            let translated = all_translated("redis", format!("{line}\r\n").as_bytes());
            assert_eq!(translated, [Ok((statement.to_owned(), values))], "{line}");
        }
        for (line, why) in [
            ("MGET a:1 a:2", "several keys at once"),
            ("LPUSH queue x", "a list"),
            ("ZADD rank 1 x", "a sorted set"),
            ("EVAL x 0", "a script"),
            ("EXPIRE session:17 60", "a time to live"),
            ("HSET cart:17 item5 2", "a field of a hash whose name is a value"),
        ] {
            assert_eq!(all_translated("redis", format!("{line}\r\n").as_bytes()), [Err(why)], "{line}");
        }
        let lines = b"set user_5 0 60 3\r\nabc\r\nget user_5\r\nreplace user_5 0 0 1 noreply\r\nx\r\ndelete user_5\r\nincr n_1 4\r\n";
        let found: Vec<String> = all_translated("memcached", lines)
            .into_iter()
            .map(|one| one.map_or_else(str::to_owned, |one| one.0))
            .collect();
        assert_eq!(
            found,
            [
                "PUT INTO user (id, value) VALUES (?)",
                "GET value FROM user WHERE id = ?",
                "UPDATE user SET value = ? WHERE id = ?",
                "DELETE FROM user WHERE id = ?",
                "UPDATE n SET value = value + ? WHERE id = ?",
            ]
        );
    }

    #[test]
    fn commands_on_one_document_are_statements_on_a_row_and_others_say_why_not() {
        let translated = |line: &str, values: &[i32]| {
            let mut words = line.splitn(3, ' ');
            let mut document = plain(words.next().unwrap().as_bytes(), words.next());
            document.pop();
            let (mut rest, mut values) = (words.next().unwrap(), values.iter());
            rest = &rest[1..];
            push_fields(&mut document, &mut rest, &mut values);
            bson::end(&mut document, 0);
            let parameters = vec![Parameter::new(bson::DOCUMENT.into(), true, document)];
            translated("mongodb", &Request { parameters, ..Request::default() })
        };
        let ints = |values: &[i64]| values.iter().map(|n| Value::Int(*n)).collect::<Vec<_>>();
        for (line, values, statement, kept) in [
            (
                r#"find items {"filter": {"_id": ?}, "limit": ?}"#,
                &[7, 1][..],
                "GET * FROM items WHERE id = ?",
                &[7][..],
            ),
            (
                r#"find items {"filter": {"shopCity": ?}, "projection": {"a": ?, "_id": ?}}"#,
                &[7, 1, 0],
                "GET a FROM items WHERE shopcity = ?",
                &[7],
            ),
            (
                r#"insert items {"documents": [{"_id": ?, "at": {"n": ?}}], "ordered": ?}"#,
                &[7, 8, 1],
                "INSERT INTO items (id, at_n) VALUES (?)",
                &[7, 8],
            ),
            (
                r#"update items {"updates": [{"q": {"_id": ?}, "u": {"$inc": {"n": ?}, "$set": {"b": ?}}}]}"#,
                &[7, 8, 9],
                "UPDATE items SET n = n + ?, b = ? WHERE id = ?",
                &[8, 9, 7],
            ),
            (
                r#"update items {"updates": [{"q": {"_id": ?}, "u": {"b": ?}, "upsert": ?}]}"#,
                &[7, 8, 1],
                "PUT INTO items (id, b) VALUES (?)",
                &[7, 8],
            ),
            (
                r#"delete items {"deletes": [{"q": {"_id": ?}, "limit": ?}]}"#,
                &[7, 1],
                "DELETE FROM items WHERE id = ?",
                &[7],
            ),
        ] {
            assert_eq!(translated(line, values), Ok((statement.to_owned(), ints(kept))), "{line}");
        }
        for (line, why) in [
            (r#"find items {"filter": {"n": {"$gt": ?}}}"#, "documents by anything but equal values"),
            (r#"find items {"filter": {"n": [?, ?]}}"#, "documents by anything but equal values"),
            (r#"find items {"filter": {"n": ?}, "sort": {"a": ?}}"#, "an order, or a part of what is found"),
            (r#"insert items {"documents": [{"_id": ?}, {"_id": ?}]}"#, "several documents at once"),
            (
                r#"update items {"updates": [{"q": {"_id": ?}, "u": {"$push": {"b": ?}}}]}"#,
                "a change of a document other than $set and $inc",
            ),
            (r#"insert items {"documents": [{"_id": ?, "tags": [?]}]}"#, "a list within a document"),
            ("aggregate items {}", "not a find, insert, update or delete"),
        ] {
            assert_eq!(translated(line, &[7, 8]), Err(why), "{line}");
        }
    }

    /// Appends the fields of a document in a test, up to its brace, or the elements of a list.
    fn push_fields(out: &mut Vec<u8>, rest: &mut &str, values: &mut std::slice::Iter<'_, i32>) {
        loop {
            *rest = rest.trim_start_matches([',', ' ']);
            if let Some(after) = rest.strip_prefix(['}', ']']) {
                *rest = after;
                return;
            }
            let named = rest.strip_prefix('"').and_then(|named| named.split_once("\": "));
            let name = named.map_or("0", |(name, _)| name);
            let (sign, after) = named.map_or(*rest, |(_, after)| after).split_at(1);
            *rest = after;
            if sign == "?" {
                let value = values.next().unwrap_or(&0).to_le_bytes();
                bson::push(out, bson::INT32, name.as_bytes(), &value);
                continue;
            }
            let kind = if sign == "{" { bson::DOCUMENT } else { bson::ARRAY };
            let start = bson::begin(out, kind, name.as_bytes());
            push_fields(out, rest, values);
            bson::end(out, start);
        }
    }
}
