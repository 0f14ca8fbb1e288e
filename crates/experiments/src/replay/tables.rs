//! The tables that a statement names, found by the words before them. Statements are not parsed: names that are no tables may
//! be among them.

/// Words before a table.
const BEFORE: [&str; 8] = ["from", "update", "into", "table", "truncate", "copy", "view", "using"];
/// Those of them before a list.
const LISTS: [&str; 5] = ["from", "update", "table", "truncate", "using"];
/// Words between such a word and the table.
const BETWEEN: [&str; 11] = [
    "only", "if", "not", "exists", "table", "lateral", "concurrently", "ignore", "low_priority", "quick",
    "into",
];
/// Words after a list.
const AFTER: [&str; 13] = [
    "where", "set", "group", "order", "having", "limit", "values", "value", "select", "returning", "window",
    "union", "for",
];

/// The names, without schemas and quotes. The statement is in lower case.
pub(super) fn tables(text: &str) -> Vec<String> {
    let text = without_comments(text);
    let mut found: Vec<String> = Vec::new();
    let (mut expected, mut in_list, mut outer) = (false, false, Vec::new());
    for token in tokens(&text) {
        match token {
            "(" => {
                outer.push(in_list);
                (expected, in_list) = (false, false);
            }
            ")" => (expected, in_list) = (false, outer.pop().unwrap_or(false)),
            "," => expected = in_list,
            ";" | "=" => expected = false,
            word if AFTER.contains(&word) => (expected, in_list) = (false, false),
            word if expected && BETWEEN.contains(&word) => {}
            word if expected => {
                expected = false;
                let name = plain(word);
                if !found.contains(&name) {
                    found.push(name);
                }
            }
            // A list may go on after it.
            "join" => expected = true,
            word if BEFORE.contains(&word) => (expected, in_list) = (true, LISTS.contains(&word)),
            _ => {}
        }
    }
    found
}

/// A table's name without its schema and quotes.
pub(super) fn plain(name: &str) -> String {
    name.rsplit('.').next().unwrap_or_default().replace(['"', '`'], "")
}

/// Words, and the signs that divide them.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let is_sign = |c: char| "(),;=".contains(c);
    text.split_whitespace().flat_map(move |word| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let end = match rest.find(is_sign)? {
                0 => 1,
                at => at,
            };
            let (token, after) = rest.split_at(end);
            rest = after;
            Some(token)
        })
        .chain(word.rsplit(is_sign).next().filter(|last| !last.is_empty()))
    })
}

fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let next = [("/*", "*/"), ("--", "\n")]
            .into_iter()
            .filter_map(|(begin, end)| Some((rest.find(begin)?, end)))
            .min();
        let Some((at, end)) = next else { break };
        out.push_str(&rest[..at]);
        out.push(' ');
        rest = rest[at..].split_once(end).map_or("", |(_, after)| after);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_in_lists_joins_and_statements_of_every_kind() {
        for (text, expected) in [
            ("select i.v, o.v from item i, other o where i.id = o.id", &["item", "other"][..]),
            ("select a, b from x join y on x.a = y.a, z where c in (1, 2)", &["x", "y", "z"]),
            ("select 1 from (select v from a, b) s, c as d order by e, f", &["a", "b", "c"]),
            ("copy item from stdin", &["item", "stdin"]),
            ("truncate item, \"public\".\"other\"", &["item", "other"]),
            ("truncate table only item", &["item"]),
            ("update/*hint*/item set v = 1, w = 2 where k = 3", &["item"]),
            ("insert into s.t (a, b) values (1, 2), (3, 4) on conflict do update set a = 1", &["t"]),
            ("create table if not exists newt as select 1", &["newt"]),
            ("drop table if exists a, b", &["a", "b"]),
            ("refresh materialized view concurrently mv", &["mv"]),
            ("delete from a using b where a.k = b.k", &["a", "b"]),
            ("select v from t -- from u\nwhere k = 1", &["t"]),
            ("select v from `t`", &["t"]),
            ("select 1", &[]),
        ] {
            assert_eq!(tables(text), expected, "{text}");
        }
    }
}
