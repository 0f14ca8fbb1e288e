//! Which places of requests have keys that statements of the recording made, found from the recording alone.

use super::bindings::ROWS;
use super::commands::Sent;
use super::traffic::Template;
use super::values::{PARAMETERS, elements, number, values};
use kurabe_protocol::call::Language;
use kurabe_protocol::sql::{Kind, Statement, Token, columns_of_values};
use kurabe_wire::statement::GAP;
use kurabe_wire::view::{moment_like, uuid};
use std::collections::{BTreeMap, HashMap};

/// Requests after which a value that never changed is no key.
const CONSTANT: u32 = 3;

/// The values of a place.
#[derive(Default)]
struct Use {
    /// By source: how many values it has made; `None` for one that made not all of them.
    found: Vec<Option<u32>>,
    last: Option<i128>,
    varies: bool,
}

/// Finds which places of templates have keys that statements of the recording made: a value there is never one that no statement
/// had made before, unless it is older than all of them.
pub(super) fn find(sent: &[Vec<Sent>], templates: &mut [Template], names: &[String], language: Language) {
    if language.sql().is_none() {
        return;
    }
    let given = |sent: &Sent| -> Vec<(usize, i128)> {
        let mut found = Vec::new();
        for (place, value) in values(&sent.request) {
            let value = value.map_or(&[][..], |(value, _)| value);
            let numbers = elements(value).into_iter().filter_map(|at| number(value.get(at)?, language));
            found.extend(numbers.map(|number| (place, number)));
        }
        found
    };
    let mut numbers: HashMap<String, usize> = HashMap::new();
    // By source: when each of its keys was made.
    let mut sources: Vec<BTreeMap<i128, u64>> = Vec::new();
    let made = |sent: &Sent| -> Vec<i128> {
        let is_key = |value: &&Vec<u8>| moment_like(value, 0).is_none() && uuid(value).is_none();
        sent.made.iter().filter(is_key).filter_map(|value| number(value, language)).collect()
    };
    let answered = || sent.iter().flatten().filter(|sent| !sent.made.is_empty());
    // What a statement returns of its own values is not made; once they may be equal by chance.
    let mut is_given: HashMap<(usize, usize), bool> = HashMap::new();
    for sent in answered() {
        let given = given(sent);
        for (n, made) in made(sent).into_iter().enumerate() {
            *is_given.entry((sent.template, n)).or_insert(true) &=
                given.iter().any(|(_, given)| *given == made);
        }
    }
    for sent in answered() {
        let made = made(sent)
            .into_iter()
            .enumerate()
            .filter(|(n, _)| is_given.get(&(sent.template, *n)) != Some(&true));
        let made: Vec<i128> = made.map(|(_, made)| made).collect();
        if made.is_empty() {
            continue;
        }
        let template = &mut templates[sent.template];
        let name = template.tables.first().filter(|_| template.inserts).unwrap_or(&names[template.kind]);
        let next = numbers.len();
        let source = *numbers.entry(name.clone()).or_insert(next);
        template.makes = Some(source);
        sources.resize_with(numbers.len(), BTreeMap::new);
        let at = sent.request.at.saturating_add(sent.request.time.unwrap_or(0));
        let rows = if language.is_mysql() { sent.request.affected.clamp(1, ROWS) } else { 1 };
        for value in made.iter().flat_map(|value| (0..i128::from(rows)).map(move |n| value + n)) {
            let known = sources[source].entry(value).or_insert(at);
            *known = at.min(*known);
        }
    }
    let mut uses: HashMap<(usize, usize), Use> = HashMap::new();
    for sent in sent.iter().flatten().filter(|_| !sources.is_empty()) {
        for (place, value) in given(sent) {
            let known = uses.entry((sent.template, place)).or_default();
            known.varies |= known.last.is_some_and(|last| last != value);
            known.last = Some(value);
            known.found.resize(sources.len(), Some(0));
            for (found, source) in known.found.iter_mut().zip(&sources) {
                let is_older = source.first_key_value().is_none_or(|(least, _)| value < *least);
                match source.get(&value) {
                    Some(at) if *at <= sent.request.at => *found = found.map(|count| count + 1),
                    _ if is_older => {}
                    _ => *found = None,
                }
            }
        }
    }
    let tables: HashMap<usize, &String> = numbers.iter().map(|(name, source)| (*source, name)).collect();
    let mut columns: HashMap<usize, HashMap<usize, String>> = HashMap::new();
    for ((template, place), known) in uses {
        let columns =
            columns.entry(template).or_insert_with(|| columns_of(&templates[template].text, language));
        let column = columns.get(&place).map_or("", String::as_str);
        let name = |source: usize| tables.get(&source).map_or("", |table| table.as_str());
        let own = &templates[template].tables;
        // A column that is named after a table has its keys, and one of all tables those of its own.
        let fits = |source: usize| {
            (is_named_after(column, name(source)), own.iter().any(|table| table == name(source)))
        };
        let best = known.found.iter().enumerate().filter(|(source, _)| {
            KEYS.iter().any(|end| column.ends_with(end)) || is_named_after(column, name(*source))
        });
        let best = best.filter(|(_, count)| count.is_some_and(|count| count > 0));
        let best = best.max_by_key(|(source, count)| (fits(*source), **count));
        if let Some((source, Some(count @ 1..))) = best
            && (known.varies || *count < CONSTANT)
        {
            templates[template].uses.push((place, source));
        }
    }
}

/// Ends of the names of columns that have keys.
const KEYS: [&str; 8] = ["id", "key", "no", "nr", "number", "pk", "ref", "uid"];

/// Whether a column has a word of a table's name, but for its plural.
fn is_named_after(column: &str, table: &str) -> bool {
    let words = table.split('_').map(|word| word.strip_suffix('s').unwrap_or(word));
    words.filter(|word| word.len() > 2).any(|word| column.contains(word))
}

/// The column of each value of a template, in lower case.
fn columns_of(text: &str, language: Language) -> HashMap<usize, String> {
    let gaps: Vec<usize> = text.match_indices(GAP).map(|(at, _)| at).collect();
    let statement = Statement::read(text, language.dialect());
    let is_value = |token: &Token<'_>| token.is_mark(GAP) || token.kind == Kind::Parameter;
    let mut parameters = PARAMETERS..;
    let place = |(at, column): (usize, &str)| {
        let token = statement.tokens().get(at)?;
        let begin = token.text.as_ptr() as usize - text.as_ptr() as usize;
        let place = match token.text.trim_start_matches('$').parse::<usize>() {
            _ if token.is_mark(GAP) => gaps.binary_search(&begin).ok()?,
            Ok(number) => PARAMETERS + number.checked_sub(1)?,
            Err(_) => parameters.next()?,
        };
        Some((place, column.to_lowercase()))
    };
    columns_of_values(statement.tokens(), is_value).into_iter().filter_map(place).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use kurabe_capture::record::{Parameter, Request};
    use kurabe_protocol::sql::Dialect;
    use kurabe_wire::view::Step;

    const LANGUAGE: Language = Language::Sql(Dialect::POSTGRES);

    fn template(text: &str, kind: usize) -> Template {
        let statement = Statement::read(text, Dialect::POSTGRES);
        let (tables, inserts) = (statement.tables(), text.starts_with("INSERT"));
        Template {
            text: text.to_owned(),
            kind,
            has_values_in_gaps: true,
            inserts,
            tables,
            ..Template::default()
        }
    }

    /// A request of a template with parameters, answered at once.
    pub(in super::super) fn sent(template: usize, at: u64, parameters: &[&str], made: &[&str]) -> Sent {
        let parameter = |text: &&str| Parameter::new(0, false, text.as_bytes());
        let parameters = parameters.iter().map(parameter).collect();
        Sent {
            request: Request { at, time: Some(0), step: Step::Bound, parameters, ..Request::default() },
            template,
            made: made.iter().map(|value| value.as_bytes().to_vec()).collect(),
            ..Sent::default()
        }
    }

    #[test]
    fn places_of_keys_are_those_whose_values_were_made_before() {
        let mut templates = vec![
            template("INSERT INTO orders (buyer_id) VALUES ($1) RETURNING id", 0),
            template("INSERT INTO item (order_id, quantity, shop_no) VALUES ($1, $2, $3)", 1),
            template("UPDATE orders SET views = $2 WHERE id = ANY($1) LIMIT $3", 2),
        ];
        let mut all = Vec::new();
        for n in 0..9 {
            let id = (n + 1).to_string();
            all.push(sent(0, 10 * n, &["7"], &[&id]));
            // The number of a shop is there before an order has it, and views are none by their name.
            all.push(sent(1, 10 * n + 1, &[&id, "1", &(9 - n).to_string()], &[]));
            all.push(sent(2, 10 * n + 2, &[&id, &(n / 2 + 1).to_string(), "1"], &[]));
        }
        let names = ["a", "b", "c"].map(str::to_owned);
        find(&[all], &mut templates, &names, LANGUAGE);
        assert_eq!(templates[0].makes, Some(0));
        assert!(templates[0].uses.is_empty());
        assert_eq!(templates[1].uses, [(PARAMETERS, 0)]);
        assert_eq!(templates[2].uses, [(PARAMETERS, 0)]);
    }

    #[test]
    fn keys_of_two_tables_are_told_apart_by_the_names_of_columns() {
        let mut templates = vec![
            template("INSERT INTO shop_post (title) VALUES ($1) RETURNING id", 0),
            template("INSERT INTO shop_comment (post_id) VALUES ($1) RETURNING id", 1),
            template("SELECT a FROM shop_comment WHERE post_id = $1", 2),
            template("SELECT a FROM shop_post WHERE id = $1", 3),
            template("SELECT a FROM shop_comment WHERE id = $1", 4),
        ];
        let mut all = Vec::new();
        for n in 0..5 {
            let id = (n + 1).to_string();
            all.push(sent(0, 10 * n, &["x"], &[&id]));
            all.push(sent(1, 10 * n + 1, &[&id], &[&(2 * n + 1).to_string()]));
            all.push(sent(1, 10 * n + 2, &[&id], &[&(2 * n + 2).to_string()]));
            all.extend((2..5).map(|template| sent(template, 10 * n + 3, &[&id], &[])));
        }
        let names = ["a", "b", "c", "d", "e"].map(str::to_owned);
        find(&[all], &mut templates, &names, LANGUAGE);
        let (post, comment) = (templates[0].makes.unwrap(), templates[1].makes.unwrap());
        for (template, source) in [(1, post), (2, post), (3, post), (4, comment)] {
            assert_eq!(templates[template].uses, [(PARAMETERS, source)], "{template}");
        }
    }

    #[test]
    fn column_of_a_value_is_known_by_its_place() {
        let text = "INSERT INTO t (a, \"Bb\") VALUES (\0, $2), (\0, lower($1))";
        let mut found: Vec<_> = columns_of(text, LANGUAGE).into_iter().collect();
        found.sort();
        let expected = [(0, "a"), (1, "a"), (PARAMETERS, "lower"), (PARAMETERS + 1, "bb")];
        assert_eq!(found, expected.map(|(place, name)| (place, name.to_owned())));
    }
}
