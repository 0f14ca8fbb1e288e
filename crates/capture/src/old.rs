//! Captures of the first two versions: commands of Redis and memcached, and requests of HTTP, have their names in their texts. So have
//! commands of MongoDB without a document.

use crate::record::{Parameter, Record};
use kurabe_protocol::call::Language;
use kurabe_protocol::mongodb::bson::DOCUMENT;
use kurabe_protocol::mongodb::command::{is_setup, plain};
use kurabe_protocol::{command, http};
use kurabe_wire::statement::{filled, fingerprint};
use std::collections::HashMap;

pub(crate) struct Texts {
    language: Language,
    by_number: HashMap<u64, String>,
}

impl Texts {
    pub(crate) fn new(protocol: &str) -> Self {
        Self { language: Language::from_scheme(protocol), by_number: HashMap::new() }
    }

    /// A record as this version writes it.
    pub(crate) fn read(&mut self, mut record: Record) -> Record {
        let is_http = matches!(self.language, Language::Http | Language::Couchdb);
        if self.language.sql().is_some() {
            return record;
        }
        match &mut record {
            Record::Statement { number, template } => {
                let shown = if is_http { fingerprint(template) } else { template.clone() };
                self.by_number.insert(*number, std::mem::replace(template, shown));
            }
            Record::Request(request) => {
                let text = self.by_number.get(&request.statement).map_or("", String::as_str);
                let mut parts = if is_http {
                    let literals = std::mem::take(&mut request.literals);
                    let filled = filled(text, literals.iter().map(String::as_str));
                    let (method, target) = filled.split_once(' ').unwrap_or((&filled, ""));
                    http::parts(method, target, self.language == Language::Couchdb)
                } else if self.language == Language::Documents {
                    // Of set-up commands, and of commands that were cut or are without values, the name is known.
                    let first = request.parameters.first().filter(|one| one.kind == u32::from(DOCUMENT));
                    if first.is_some_and(|one| one.bytes().is_some()) {
                        return record;
                    }
                    request.parameters.retain(|one| one.kind != u32::from(DOCUMENT));
                    let name = text.split(' ').next().unwrap_or_default().as_bytes();
                    request.cut |= !is_setup(name);
                    vec![Parameter::new(DOCUMENT.into(), true, plain(name, None))]
                } else {
                    let name = text.split(' ').filter(|word| !["?", "noreply"].contains(word));
                    command::parts(name, Vec::new(), text.ends_with(" noreply"))
                };
                parts.append(&mut request.parameters);
                request.parameters = parts;
            }
            _ => {}
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Request;

    #[test]
    fn requests_of_earlier_versions_have_the_parts_of_this_one() {
        for (protocol, template, literals, given, shown, parts) in [
            ("redis", "CLIENT SETINFO ?", "", "LIB-NAME x", "CLIENT SETINFO ?", "CLIENT SETINFO LIB-NAME x"),
            ("memcached", "set ? noreply", "", "a 0", "set ? noreply", "set - a 0"),
            ("couchdb", "PUT /a/\0?rev=\0", "17 1-x", "{}", "PUT /a/??rev=?", "PUT  a 17 rev 1-x {}"),
            ("http", "GET /a", "", "", "GET /a", "GET  a"),
            ("mongodb", "hello", "", "", "hello", "\u{10}\0\0\0\u{10}hello\0\u{1}\0\0\0\0"),
            (
                "mongodb",
                "find items {\"filter\": {}}",
                "",
                "",
                "find items {\"filter\": {}}",
                "\u{f}\0\0\0\u{10}find\0\u{1}\0\0\0\0",
            ),
            ("postgres", "SELECT \0", "7", "8", "SELECT \0", "8"),
        ] {
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            let parameter = |word: String| Parameter::new(0, false, word.into_bytes());
            let parameters = words(given).into_iter().map(parameter).collect();
            let request = Request { literals: words(literals), parameters, ..Request::default() };
            let mut texts = Texts::new(protocol);
            let statement = texts.read(Record::Statement { number: 0, template: template.to_owned() });
            assert_eq!(statement, Record::Statement { number: 0, template: shown.to_owned() });
            let Record::Request(found) = texts.read(Record::Request(Box::new(request))) else { panic!() };
            let found: Vec<&str> = found
                .parameters
                .iter()
                .map(|one| if one.bytes().is_some() { one.text() } else { "-" })
                .collect();
            assert_eq!(found.join(" "), parts, "{protocol}");
        }
    }
}
