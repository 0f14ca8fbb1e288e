//! Random tables of each engine, copied to each engine. Source and target are read by the engines' own programs, and compared
//! without the code under test: every value is the same, or the plan listed the difference.
//!
//! `KURABE_COPY_SEED` repeats a run; `KURABE_COPY_PAIRS=postgres-mysql` limits it.

mod draw;

use super::common::{Place, driver, side};
use draw::{Draw, Form, column, hex};
use kurabe_copy::event::Event;
use kurabe_copy::issue::Accepted;
use kurabe_copy::plan::{Plan, Wanted};
use kurabe_copy::rows::PageSize;
use kurabe_copy::run::Copy;
use kurabe_core::{Error, ErrorKind};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

const ENGINES: [&str; 5] = ["sqlite", "postgres", "mysql", "mariadb", "firebird"];

struct Table {
    name: String,
    /// Names, declarations and forms.
    columns: Vec<(String, String, Form)>,
    sql: String,
}

/// A table with random columns, perhaps a key, and random rows.
fn table(engine: &str, name: &str, draw: &mut Draw) -> Table {
    let mut columns = vec![("c0".to_owned(), "INTEGER".to_owned(), Form::Number)];
    let mut literals: Vec<draw::Literal> = Vec::new();
    for at in 1..=1 + draw.below(6) {
        let (declared, form, literal) = column(engine, draw);
        columns.push((format!("c{at}"), declared, form));
        literals.push(literal);
    }
    let (keyed, required) = (!draw.one_in(4), draw.below(columns.len() as u64) as usize);
    let list = columns.iter().enumerate().map(|(at, (name, declared, _))| {
        let null =
            if at == 0 && keyed || at == required && at > 0 && engine == "sqlite" { " NOT NULL" } else { "" };
        format!("{name} {declared}{null}")
    });
    let mut list: Vec<String> = list.collect();
    if keyed {
        list.push("PRIMARY KEY (c0)".to_owned());
    }
    let mut sql = format!("CREATE TABLE {name} ({});\n", list.join(", "));
    if engine == "firebird" {
        sql.push_str("COMMIT;\n");
    } else {
        sql.push_str("BEGIN;\n");
    }
    for row in 0..draw.below(40) {
        let values = literals.iter().enumerate().map(|(at, literal)| {
            let never = at + 1 == required && engine == "sqlite";
            if !never && draw.one_in(9) { "NULL".to_owned() } else { literal(draw) }
        });
        let values: Vec<String> = values.collect();
        writeln!(sql, "INSERT INTO {name} VALUES ({}, {});", row * 3, values.join(", ")).unwrap();
    }
    sql.push_str("COMMIT");
    Table { name: name.to_owned(), columns, sql }
}

/// The values of a column by the engine's own program, in the rows' order; `None` is null.
type Cells = Vec<Option<Vec<u8>>>;

/// A table's rows, sorted by the first column.
fn dump(place: &Place, engine: &str, table: &Table) -> Result<Vec<Cells>, String> {
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
        "firebird" => firebird_rows(&names, of, &ask, &unhex)?,
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

/// The rows of a table of Firebird, whose program takes a second to start: it is asked once for the names, and once for all
/// values.
fn firebird_rows(
    names: &[String],
    of: &str,
    ask: &dyn Fn(&str) -> Result<String, String>,
    unhex: &dyn Fn(&str) -> Vec<u8>,
) -> Result<Vec<Cells>, String> {
    let spelled = ask(&format!(
        "SELECT TRIM(RDB$RELATION_NAME) || '.' || TRIM(RDB$FIELD_NAME) FROM RDB$RELATION_FIELDS \
         WHERE UPPER(RDB$RELATION_NAME) = UPPER('{}')",
        of.trim_matches('"')
    ))?;
    let select = |name: &String| {
        let is_it =
            |line: &&str| line.split_once('.').is_some_and(|(_, field)| field.eq_ignore_ascii_case(name));
        let (table, field) = spelled.lines().map(str::trim).find(is_it)?.split_once('.')?;
        Some(format!(
            "SELECT '=' FROM RDB$DATABASE; SELECT COALESCE(x'01' || CAST(\"{field}\" AS VARCHAR(900) CHARACTER SET OCTETS), \
             x'00') FROM \"{table}\""
        ))
    };
    let selects: Option<Vec<String>> = names.iter().map(select).collect();
    let out = ask(&selects.ok_or_else(|| format!("{of}: a column is missing: {spelled}"))?.join("; "))?;
    let lines = out.lines().map(str::trim).filter(|line| !line.is_empty());
    let (mut rows, mut at): (Vec<Cells>, usize) = (Vec::new(), 0);
    for line in lines {
        if line == "=" {
            at = 0;
            continue;
        }
        if rows.len() <= at {
            rows.push(Vec::new());
        }
        rows[at].push(line.strip_prefix("01").map(unhex));
        at += 1;
    }
    Ok(rows)
}

/// Whether two texts are one value.
fn same(form: Form, from: &[u8], to: &[u8], firebird: bool) -> bool {
    if from == to {
        return true;
    }
    let (Ok(a), Ok(b)) = (std::str::from_utf8(from), std::str::from_utf8(to)) else { return false };
    let float = |text: &str| match text.trim() {
        "Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        text => text.parse::<f64>().ok(),
    };
    let close = |a: f64, b: f64, error: f64| (a - b).abs() <= a.abs() * error;
    let floats = |error: f64| {
        let (Some(a), Some(b)) = (float(a), float(b)) else { return false };
        (a + 0.0).to_bits() == (b + 0.0).to_bits()
            || a.is_nan() && b.is_nan()
            || firebird && close(a, b, error)
    };
    let number = |text: &str| -> Option<(bool, String, String)> {
        let text = text.trim();
        let (minus, digits) =
            text.strip_prefix('-').map_or((false, text.trim_start_matches('+')), |rest| (true, rest));
        let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
        let right = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        let (whole, part) = (whole.trim_start_matches('0'), right(part).then(|| part.trim_end_matches('0'))?);
        let zero = whole.is_empty() && part.is_empty();
        (right(whole) && !digits.is_empty()).then(|| (minus && !zero, whole.to_owned(), part.to_owned()))
    };
    let time = |text: &str| {
        let text = text.replace('T', " ");
        let text = text.trim_end_matches("+00");
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
        text.trim_end_matches(" 00:00:00").to_owned()
    };
    let truth = |text: &str| match text.trim() {
        "t" | "true" | "TRUE" | "1" => Some(true),
        "f" | "false" | "FALSE" | "0" => Some(false),
        _ => None,
    };
    let truths = || truth(a).is_some() && truth(a) == truth(b);
    let numbers = || number(a).is_some() && number(a) == number(b);
    match form {
        Form::Number => numbers(),
        Form::Float64 => floats(1e-14),
        Form::Float32 => {
            let (Some(x), Some(y)) = (float(a), float(b)) else { return false };
            (x as f32 + 0.0).to_bits() == (y as f32 + 0.0).to_bits() || floats(1e-6)
        }
        Form::Bool => truths(),
        Form::Bytes => false,
        Form::Padded => a.trim_end_matches(' ') == b.trim_end_matches(' '),
        Form::Time => time(a) == time(b),
        Form::Uuid => a.trim().eq_ignore_ascii_case(b.trim()),
        Form::Json => json(a) == json(b),
        Form::Any => {
            numbers()
                || floats(1e-14)
                || truths()
                || time(a) == time(b)
                || a.trim().eq_ignore_ascii_case(b.trim()) && a.len() == 36
                || a.starts_with(['{', '[', '"']) && json(a) == json(b)
        }
    }
}

/// A document without spaces, its keys sorted, and its numbers as decimal numbers.
fn json(text: &str) -> String {
    fn value(rest: &mut &str) -> String {
        *rest = rest.trim_start();
        let first = rest.chars().next().unwrap_or(' ');
        match first {
            '[' | '{' => {
                *rest = &rest[1..];
                let mut parts = Vec::new();
                loop {
                    *rest = rest.trim_start_matches([' ', ',', '\n', '\t']);
                    if rest.is_empty() || rest.starts_with([']', '}']) {
                        *rest = rest.get(1..).unwrap_or("");
                        break;
                    }
                    let mut part = value(rest);
                    *rest = rest.trim_start();
                    if first == '{' {
                        *rest = rest.strip_prefix(':').unwrap_or(rest);
                        part = format!("{part}:{}", value(rest));
                    }
                    parts.push(part);
                }
                if first == '{' {
                    parts.sort();
                }
                format!("{first}{}", parts.join(","))
            }
            '"' => {
                let mut end = 1;
                while !rest[end..].starts_with('"') {
                    end += if rest[end..].starts_with('\\') {
                        2
                    } else {
                        rest[end..].chars().next().map_or(1, char::len_utf8)
                    };
                }
                let (word, after) = rest.split_at(end + 1);
                *rest = after;
                format!("{:?}", serde_json::from_str::<String>(word).unwrap_or_default())
            }
            _ => {
                let end = rest.find([',', ']', '}', ' ', '\n']).unwrap_or(rest.len()).max(1);
                let (word, after) = rest.split_at(end.min(rest.len()));
                *rest = after;
                word.parse::<f64>().map_or(word.to_owned(), |number| {
                    let whole = word.trim_end_matches('0').trim_end_matches('.');
                    if word.contains(['e', 'E']) {
                        format!("{number:?}")
                    } else if word.contains('.') {
                        whole.to_owned()
                    } else {
                        word.to_owned()
                    }
                })
            }
        }
    }
    value(&mut &*text)
}

/// Whether the plan listed that this value becomes another one.
fn listed(kinds: &BTreeSet<&str>, from: &[u8], to: Option<&[u8]>) -> bool {
    let text = String::from_utf8_lossy(from).to_lowercase();
    let has = |kind: &str| kinds.contains(kind);
    let Some(to) = to else {
        let zero = text.starts_with("0000") || text.get(5..7) == Some("00") || text.get(8..10) == Some("00");
        let far = text.contains("bc")
            || text.contains("infinity")
            || text.split('-').next().is_some_and(|year| year.len() > 4);
        let clock = text.starts_with('-')
            || text.split(':').next().is_some_and(|hours| hours.parse::<u32>().is_ok_and(|h| h > 23));
        let number = matches!(text.trim(), "nan" | "infinity" | "-infinity" | "inf" | "-inf");
        return has("zero-date") && zero
            || has("date-range") && (far || zero)
            || has("time-range") && clock
            || has("not-a-number") && number;
    };
    let bytes: Vec<u8> = from.iter().copied().filter(|byte| *byte != 0).collect();
    let target = String::from_utf8_lossy(to);
    has("nul-character") && bytes == to
        || has("fraction")
            && text.split_once('.').is_some_and(|(clock, part)| {
                let cut = format!("{clock}.{}", &part[..part.len().min(4)]);
                same(Form::Time, cut.as_bytes(), target.as_bytes(), false)
            })
}

/// Compares a table of both sides. `None` if it is the same, or what differs was listed.
fn compare(from: &[Cells], to: &[Cells], table: &Table, plan: &Plan, firebird: bool) -> Option<String> {
    if from.len() != to.len() {
        return Some(format!("{} rows became {}", from.len(), to.len()));
    }
    for (at, (name, declared, form)) in table.columns.iter().enumerate() {
        let object = format!("{}.{name}", table.name).to_lowercase();
        let kinds: BTreeSet<&str> = plan
            .issues
            .iter()
            .filter(|issue| issue.object.to_lowercase() == object)
            .map(|issue| issue.kind.name())
            .collect();
        for (from, to) in from.iter().zip(to) {
            let (Some(from), Some(to)) = (from.get(at), to.get(at)) else {
                return Some(format!("{name} is missing"));
            };
            let right = match (from, to) {
                (None, None) => true,
                (Some(from), Some(to)) => same(*form, from, to, firebird) || listed(&kinds, from, Some(to)),
                (Some(from), None) => listed(&kinds, from, None),
                (None, Some(_)) => false,
            };
            if !right {
                let shown = |cell: &Option<Vec<u8>>| {
                    cell.as_ref().map(|bytes| format!("{:?} {}", String::from_utf8_lossy(bytes), hex(bytes)))
                };
                return Some(format!(
                    "{name} {declared}: {:?} became {:?}; listed {kinds:?}",
                    shown(from),
                    shown(to)
                ));
            }
        }
    }
    None
}

/// What came out of a copy: its plan, and tables that were left out, each with the reason.
#[derive(Default)]
struct Copied {
    plan: Plan,
    refused: Vec<(String, String)>,
    failed: Vec<(String, String)>,
}

/// A copy with all differences accepted, stopped after some events and continued. Tables that the plan refuses are left out, and
/// those that fail.
fn copied(from: &Place, to: &Place, tables: &[&Table], draw: &mut Draw) -> Result<Copied, Error> {
    let fold = from.url().starts_with("firebird");
    let named = |table: &&Table| if fold { table.name.to_uppercase() } else { table.name.clone() };
    let mut wanted = Wanted {
        tables: tables.iter().map(named).collect(),
        accepted: Accepted::all(),
        page: PageSize { rows: 1 + draw.below(20) as usize, bytes: 100 + draw.below(3_000) as usize },
        ..Wanted::default()
    };
    let mut out = Copied::default();
    let mut restart = false;
    let mut left = draw.below(40);
    loop {
        let stop = AtomicBool::new(false);
        let mut copy = Copy { source: side(&from.url()), target: side(&to.url()), stop: &stop, begun: false };
        let plan = match copy.plan(&wanted) {
            Ok(plan) => plan,
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                leave_out(&mut wanted.tables, error, &mut out.refused)?;
                continue;
            }
            Err(error) => return Err(error),
        };
        let driver = driver(&to.url());
        let mut namespace = driver.namespace()?;
        namespace.claim("copy")?;
        let done = copy.run(&plan, &mut *namespace, std::mem::take(&mut restart), &mut |event| {
            if matches!(event, Event::Progress { .. }) {
                left = left.saturating_sub(1);
                stop.store(left == 1, Ordering::Relaxed);
            }
        });
        match done {
            Ok(_) => {
                out.plan = plan;
                return Ok(out);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => left = 0,
            Err(error) => {
                leave_out(&mut wanted.tables, error, &mut out.failed)?;
                restart = true;
            }
        }
        if wanted.tables.is_empty() {
            return Ok(out);
        }
    }
}

/// Leaves out the table that an error names.
fn leave_out(tables: &mut Vec<String>, error: Error, out: &mut Vec<(String, String)>) -> Result<(), Error> {
    let text = error.to_string();
    let is_named = |name: &String| {
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        words.into_iter().any(|word| word == name)
    };
    let Some(at) = tables.iter().position(is_named) else { return Err(error) };
    out.push((tables.remove(at).to_lowercase(), text));
    Ok(())
}

/// Makes `count` tables of each engine, and copies them between the chosen pairs. Returns how many arrived.
///
/// # Panics
/// With each table that is another one, and whose difference was not listed.
pub fn check(seed: u64, count: usize, pair: &dyn Fn(usize, usize) -> bool) -> usize {
    let folder = match kurabe_testbed::testing::memory() {
        Some(memory) => tempfile::tempdir_in(memory),
        None => tempfile::tempdir(),
    };
    let folder = folder.unwrap();
    let pairs = std::env::var("KURABE_COPY_PAIRS").unwrap_or_default();
    let at = |name: &str| ENGINES.iter().position(|known| *known == name).unwrap();
    let chosen = |from: &str, to: &str| {
        if pairs.is_empty() {
            pair(at(from), at(to))
        } else {
            pairs.split(',').any(|pair| {
                pair == format!("{from}-{to}") || pair == from || pair.strip_prefix('-') == Some(to)
            })
        }
    };
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for from in ENGINES {
        if !ENGINES.iter().any(|to| chosen(from, to)) {
            continue;
        }
        let Some(source) = Place::new(from, folder.path()) else { continue };
        let mut draw = Draw(seed);
        draw.0 ^= from.bytes().map(u64::from).sum::<u64>() << 32;
        let tables: Vec<Table> = (0..count).map(|at| table(from, &format!("t{at}"), &mut draw)).collect();
        let mode = if from.starts_with('m') { "SET sql_mode = 'NO_ENGINE_SUBSTITUTION';" } else { "" };
        let mut kept = Vec::new();
        for table in tables {
            let (is_there, _, error) = source.try_ask(&format!("{mode}{}", table.sql));
            if is_there {
                kept.push(table);
            } else {
                wrong.push(format!("seed {seed}: {from} refuses {}: {error}", table.sql));
            }
        }
        let rows: Vec<_> = kept.iter().map(|table| dump(&source, from, table).unwrap()).collect();
        for to in ENGINES.iter().filter(|to| chosen(from, to)) {
            let Some(target) = Place::new(to, folder.path()) else { continue };
            let pair = format!("seed {seed}, {from} to {to}");
            // Firebird's driver reads numbers from text, exactly up to some 15 digits, as docs/copy.md says.
            let is_exact = |table: &&Table| {
                from == "firebird"
                    || *to != "firebird"
                    || !table
                        .columns
                        .iter()
                        .any(|(_, _, form)| matches!(form, Form::Float32 | Form::Float64 | Form::Any))
            };
            let tables: Vec<&Table> = kept.iter().filter(is_exact).collect();
            if tables.is_empty() {
                continue;
            }
            let done = match copied(&source, &target, &tables, &mut draw) {
                Ok(done) => done,
                Err(error) => {
                    wrong.push(format!("{pair}: {error}"));
                    continue;
                }
            };
            for (name, why) in &done.failed {
                let of = kept.iter().find(|table| table.name == *name);
                let sql = of.and_then(|table| table.sql.lines().next()).unwrap_or_default();
                wrong.push(format!("{pair}: {why}\n    {sql}"));
            }
            for (table, rows) in kept.iter().zip(&rows).filter(|(table, _)| is_exact(table)) {
                if done.refused.iter().chain(&done.failed).any(|(name, _)| *name == table.name) {
                    continue;
                }
                checked += 1;
                let differs = match dump(&target, to, &of_target(table, from, to)) {
                    Ok(found) => {
                        compare(rows, &found, table, &done.plan, from == "firebird" || *to == "firebird")
                    }
                    Err(error) => Some(error),
                };
                wrong.extend(differs.map(|what| format!("{pair}, {}: {what}", table.name)));
            }
        }
    }
    assert!(wrong.is_empty(), "KURABE_COPY_SEED={seed}\n{}", wrong.join("\n"));
    checked
}

/// The table's names as the target's program writes them: Firebird has them in capital letters.
fn of_target(table: &Table, from: &str, to: &str) -> Table {
    let name = |name: &str| match (from, to) {
        ("firebird", "postgres") => format!("\"{}\"", name.to_uppercase()),
        ("firebird", _) => name.to_uppercase(),
        _ => name.to_owned(),
    };
    let columns =
        table.columns.iter().map(|(column, declared, form)| (name(column), declared.clone(), *form));
    Table { name: name(&table.name), columns: columns.collect(), sql: String::new() }
}
