//! The text of a statement, divided into what the program wrote and the values in it; and what of a call may be shown and kept.

use crate::conceal;
pub use crate::conceal::{may_name_secret, names_secret};
use crate::view::{Exchange, Parameter};
use kurabe_protocol::call::{Call, Language};
use kurabe_protocol::sql::{Dialect, Kind, Token, tokens};

/// What stands for a literal in a template. No statement of a server that is supported can contain it.
pub const GAP: char = '\0';

/// A statement's text without its literals and comments, and these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split<'a> {
    /// The text, with a [`GAP`] for each literal.
    pub template: String,
    /// The literals with their quotes, in order.
    pub literals: Vec<&'a str>,
}

/// The kind of a statement, from its template: in one line, with `?` for each literal and parameter, and one for a list of
/// them.
pub fn fingerprint(template: &str) -> String {
    let mut shown = String::with_capacity(template.len());
    let (mut in_parameter, mut in_name) = (false, false);
    for c in template.chars() {
        // Names in quotes may have the sign.
        in_name ^= c == '"';
        in_parameter = !in_name && ((in_parameter && c.is_ascii_digit()) || c == '$');
        match c {
            '$' if in_name => shown.push(c),
            GAP | '$' => shown.push('?'),
            _ if in_parameter => {}
            c => shown.push(c),
        }
    }
    let mut words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    // A sign belongs to its number. Lists of values and of rows have any length.
    for operator in ["= ", "(", ", ", "+ ", "- ", "* ", "/ ", "< ", "> "] {
        words = words.replace(&format!("{operator}-?"), &format!("{operator}?"));
    }
    for (list, one) in [("? ?", "?"), ("?, ?", "?"), ("?,?", "?"), ("(?), (?)", "(?)"), ("(?),(?)", "(?)")] {
        while words.contains(list) {
            words = words.replace(list, one);
        }
    }
    let trimmed = words.trim_matches([' ', ';']);
    trimmed.strip_prefix("? ").unwrap_or(trimmed).to_owned()
}

/// Divides a text. Filling the gaps with the literals gives the text again.
pub fn split(text: &str, dialect: Dialect) -> Split<'_> {
    let mut found = Split::default();
    if text.contains(GAP) {
        // No template can be made of it.
        return Split { template: GAP.to_string(), literals: vec![text] };
    }
    for token in tokens(text, dialect) {
        if matches!(token.kind, Kind::Comment | Kind::Number | Kind::Text) {
            found.template.push(GAP);
            found.literals.push(token.text);
        } else {
            found.template.push_str(token.text);
        }
    }
    found
}

/// A template with these literals in its gaps; nothing is in those that are left.
pub fn filled<'a>(template: &str, literals: impl IntoIterator<Item = &'a str>) -> String {
    let mut parts = template.split(GAP);
    let mut text = parts.next().unwrap_or_default().to_owned();
    let mut literals = literals.into_iter();
    for part in parts {
        text.push_str(literals.next().unwrap_or_default());
        text.push_str(part);
    }
    text
}

/// What may be kept of a statement that may contain a password: `None` if nothing speaks for one, else its kind.
pub fn concealed(text: &str, template: &str) -> Option<String> {
    let shown = conceal::sql(text);
    if shown == text.trim() {
        return None;
    }
    let is_first =
        |token: &Token<'_>| token.kind != Kind::Space && !token.is_mark('(') && !token.is_mark(GAP);
    let first = tokens(template, Dialect::ANY).find(is_first);
    // What reads and changes tables has values only as literals; other statements have them anywhere.
    let plain = ["select", "insert", "update", "delete", "with", "copy"];
    let is_plain = first.is_some_and(|first| first.is_one_of(&plain));
    Some(if is_plain { fingerprint(template) } else { shown })
}

/// Kept text of a call that is no statement, without its secret; `None` if it has none.
pub fn concealed_call(call: &Call<'_>) -> Option<String> {
    match call {
        Call::Sql(..) => None,
        Call::Command(command) => {
            let words = command.names().map(str::as_bytes).chain(command.words());
            // Longer words are bulk data.
            let has_secret =
                |word: &[u8]| names_secret(word) || word.starts_with(b"{") && conceal::http(word);
            words.filter(|word| word.len() <= LOOKED_AT).any(has_secret).then(|| command.text())
        }
        Call::Document(command) => {
            let is_named = command.collection().is_some_and(names_secret);
            (is_named || command.any(&mut |field| names_secret(field.name))).then(|| command.text())
        }
        Call::Http(request) => {
            let is_secret = |part: &str| conceal::http(part.as_bytes());
            conceal::http(&request.target()).then(|| request.text_before(is_secret))
        }
    }
}

/// The maximum length of a word of a command in which names of secrets are looked for, in bytes.
const LOOKED_AT: usize = 16 << 10;

/// Paths by which clients of `CouchDB` ask about the server.
const PATHS: [&str; 4] = ["/", "/_session", "/_up", "/_all_dbs"];

/// A request for people, without anything that may be a password, and whether it sets up the connection or asks about the server.
pub(crate) fn shown(request: &Exchange, language: Language) -> (String, bool) {
    match language.call(&request.text, &request.parameters) {
        Some(call @ Call::Sql(text, _)) => {
            (conceal::sql(text), call.is_setup() && !OWN_COMMANDS.contains(&text))
        }
        Some(Call::Command(command)) => {
            // The first word says most: others are values.
            let names: Vec<&str> = command.names().collect();
            let count = if names == ["CLIENT", "SETINFO"] { 2 } else { 1 };
            let words =
                command.values().take(count).filter_map(Parameter::bytes).map(String::from_utf8_lossy);
            let shown = words.fold(names.join(" "), |text, word| format!("{text} {word}"));
            (shown, command.is_setup())
        }
        Some(Call::Document(command)) => {
            // Other names and all values may be passwords.
            let collection = command.collection().map(|name| format!(" {name}")).unwrap_or_default();
            (format!("{}{collection}", command.name()), command.is_setup())
        }
        Some(Call::Http(request)) => {
            // The query may contain passwords.
            let (path, has_query) = (request.path_text(), request.has_query());
            let is_setup = language == Language::Couchdb && !has_query && PATHS.contains(&path.as_str());
            let query = if has_query { "?…" } else { "" };
            (format!("{} {path}{query}", request.method()), is_setup)
        }
        None => ("a request that was not kept".to_owned(), false),
    }
}

/// Commands of MySQL that do not set up a connection: they are what it is for.
const OWN_COMMANDS: [&str; 7] = [
    "COM_BINLOG_DUMP", "COM_BINLOG_DUMP_GTID", "COM_CREATE_DB", "COM_DROP_DB", "COM_SHUTDOWN",
    "COM_STMT_FETCH", "COM_TABLE_DUMP",
];

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_protocol::{command, http};
    use proptest::prelude::*;

    #[test]
    fn literals_and_comments_are_gaps_and_names_are_not() {
        let text = "SELECT a1, $1 FROM \"t 'x'\" WHERE b = 'it''s' AND c > -1.5e+3 /* d */";
        let found = split(text, Dialect::POSTGRES);
        assert_eq!(found.template, "SELECT a1, $1 FROM \"t 'x'\" WHERE b = \0 AND c > -\0 \0");
        assert_eq!(found.literals, ["'it''s'", "1.5e+3", "/* d */"]);
        let executed = "/*!40101 SET NAMES utf8 */";
        assert_eq!(split(executed, Dialect::MYSQL).template, executed);
    }

    #[test]
    fn statements_that_differ_in_values_only_have_one_kind() {
        let kind = |text: &str| fingerprint(&split(text, Dialect::POSTGRES).template);
        assert_eq!(kind("SELECT *\n FROM t WHERE id IN (1, 2,3) ;"), "SELECT * FROM t WHERE id IN (?)");
        assert_eq!(kind("INSERT INTO t VALUES (1, 'a'), (2, 'b') -- x"), "INSERT INTO t VALUES (?) ?");
        assert_eq!(kind("/* trace 7 */ SELECT 1"), "SELECT ?");
        assert_eq!(kind("UPDATE t SET a = a + -5 WHERE b = $12"), "UPDATE t SET a = a + ? WHERE b = ?");
    }

    #[test]
    fn passwords_are_concealed_and_the_kind_of_statement_is_not() {
        let kept = |text: &str| concealed(text, &split(text, Dialect::POSTGRES).template);
        assert_eq!(kept("SELECT 1"), None);
        assert_eq!(
            kept("SELECT id FROM u WHERE password = 'hunter2'").unwrap(),
            "SELECT id FROM u WHERE password = ?"
        );
        for text in ["ALTER ROLE u PASSWORD 'hunter2'", "SET my.password = hunter2", "hunter2 password"] {
            assert!(!kept(text).unwrap().contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn call_with_a_secret_is_known_by_its_names_and_shown_without_its_values() {
        let command = |words: &[&str]| {
            command::parts(
                words.iter().copied().take(1),
                words.iter().skip(1).map(|word| word.as_bytes().to_vec()),
                false,
            )
        };
        let shown =
            |language: Language, parts: &[Parameter]| concealed_call(&language.call("", parts).unwrap());
        for (words, expected) in [
            (&["AUTH", "hunter2"][..], Some("AUTH ?")),
            (&["HSET", "user:1", "password", "hunter2"], Some("HSET ?")),
            (&["SET", "a", "{\"token\":\"hunter2\"}"], Some("SET ?")),
            (&["SET", "a", "token of thanks"], None),
        ] {
            assert_eq!(shown(Language::Redis, &command(words)).as_deref(), expected, "{words:?}");
        }
        for (target, expected) in [
            ("/a?q=1", None),
            ("/a?access_token=hunter2&b=1", Some("GET /a?access_token=?&b=?")),
            ("/reset-p%61ssword/hunter2", Some("GET /reset-p%61ssword/…")),
            ("/fetch?url=http://bob:hunter2@h/", Some("GET /fetch?url=?")),
            ("/a?pwd=hunter2&hunter2", Some("GET /a?pwd=?")),
            ("/a?{\"password\":\"hunter2\",\"sig\":\"x=\"}", Some("GET /a")),
            ("/a?token:hunter2=1&b=1", Some("GET /a?b=?")),
        ] {
            let parts = http::parts("GET", target, false);
            assert_eq!(shown(Language::Http, &parts).as_deref(), expected, "{target}");
        }
    }

    proptest! {
        #[test]
        fn gaps_filled_with_literals_are_the_text(text in "[aAeExX1-9 .$'\"`/*#\n\\\\é;-]{0,60}") {
            for dialect in [Dialect::POSTGRES, Dialect::MYSQL] {
                let found = split(&text, dialect);
                prop_assert_eq!(found.template.matches(GAP).count(), found.literals.len());
                prop_assert_eq!(filled(&found.template, found.literals), text.as_str());
            }
        }
    }
}
