//! Parses pgbench's scripts (PostgreSQL manual, "pgbench", "Custom Scripts") without changes.

use super::declared::{Declared, Described, Program, Relation, Source, Step};
use super::expression::{self, Expr, word};
use super::lines::{Line, Sql, lines, place};
use super::read::name_of;
use super::reads::{asks_for_write, changes_others, check_begin, may_change};
use super::relations;
use super::request::{Execute, Raw, Request, tables};
use super::section::{position, variable};
use super::sql::{self, Naming};
use super::transaction::AS_TEXT;
use super::variables::{CLIENT_ID, Constant, DEFAULT_SEED, RANDOM_SEED, Variables};
use crate::prelude::*;
use kurabe_core::custom::{CustomFile, CustomWorkload, Language};

/// pgbench's built-in scripts, by name.
pub const BUILTIN: &[(&str, &str)] = &[
    ("tpcb-like", include_str!("pgbench/tpcb-like.sql")),
    ("simple-update", include_str!("pgbench/simple-update.sql")),
    ("select-only", include_str!("pgbench/select-only.sql")),
];

/// How to allow a statement that may write, with the tables of the run.
const WRITE: &str = "allow this with --write";
const WRITE_OR_INIT: &str = "allow this with --write, or use --init to create pgbench's tables for the run";

/// Errors after which pgbench tries a transaction again (its manual, "Failures and Serialization/Deadlock Retries"), and
/// MySQL's deadlock.
const RETRIED: [&str; 3] = ["40001", "40P01", "1213"];

/// The variable that holds the scale.
const SCALE: &str = "scale";

/// Whether the scale is that of the existing tables and must be counted. As in pgbench, this is so if a built-in
/// script runs and the user did not define the scale.
pub fn counts_scale(source: &CustomWorkload) -> bool {
    let built_in = |file: &CustomFile| BUILTIN.contains(&(file.name.as_str(), file.text.as_str()));
    source.language == Language::Pgbench
        && !source.init
        && !source.define.contains_key(SCALE)
        && source.files.iter().any(built_in)
}

pub(super) fn read(source: &CustomWorkload) -> Result<Described> {
    let mut described = read_as(source, false)?;
    if described.declared.unpreparable.is_some() {
        described.declared.simple = Some(Arc::new(read_as(source, true)?.declared));
    }
    Ok(described)
}

/// Reads the scripts; pgbench's `-M simple` finds variables within quotes too.
fn read_as(source: &CustomWorkload, in_quotes: bool) -> Result<Described> {
    let mut declared = Declared { in_quotes, ..Declared::default() };
    for name in [CLIENT_ID, DEFAULT_SEED, RANDOM_SEED] {
        declared.variables.slot(name);
    }
    let scale = match source.scale.map(i64::try_from) {
        Some(scale) => Constant::Int(scale.unwrap_or(i64::MAX)),
        // Unknown until the tables have been counted.
        None if counts_scale(source) => Constant::Null,
        None => Constant::Int(1),
    };
    declared.variables.set(SCALE, scale);
    for (name, value) in &source.define {
        declared.variables.set(name, Constant::of(value));
    }
    if source.init {
        declared.relations = pgbench_tables(&mut declared.variables)?;
        let scale = declared.variables.find(SCALE).map(|slot| &declared.variables.initial[slot]);
        if !matches!(scale, Some(Constant::Int(1..=100_000))) {
            return Err(Error::usage("the scale is not a whole number from 1 to 100,000"));
        }
    }
    let scripts: Vec<(&CustomFile, Vec<(usize, Line<'_>)>)> =
        source.files.iter().map(|file| lines(file).map(|lines| (file, lines))).collect::<Result<_>>()?;
    // As in pgbench, all scripts see a variable that one script sets.
    for (_, lines) in &scripts {
        for (_, line) in lines {
            if let Line::Meta("set", rest) = line {
                declared.variables.slot(word(rest));
            }
        }
    }
    for (file, lines) in &scripts {
        let steps = steps(file, lines, &mut declared, source.write)?;
        let asks = steps.iter().any(|step| matches!(step, Step::Execute(_)));
        if !asks {
            return Err(Error::usage(format!(
                "{}: the script sends no statement to the database",
                file.name
            )));
        }
        if file.weight > 0 {
            let stem = file.name.rsplit('/').next().unwrap_or_default();
            let name = name_of(stem.strip_suffix(".sql").unwrap_or(stem));
            let retry =
                if source.max_tries > Some(1) { RETRIED.map(str::to_owned).to_vec() } else { Vec::new() };
            let retries = match source.max_tries {
                Some(CustomWorkload::UNLIMITED) => None,
                tries => Some(tries.unwrap_or(1).saturating_sub(1)),
            };
            declared.programs.push(Program { name, weight: file.weight, steps, retry, retries });
        }
    }
    declared.decide_access(WRITE)?;
    let names: Vec<&str> = declared.programs.iter().map(|program| program.name.as_str()).collect();
    let question = format!("How fast are pgbench's scripts ({}), and where?", names.join(", "));
    let about = "pgbench scripts, unchanged.".to_owned();
    Ok(Described { name: "pgbench".to_owned(), question, about, declared })
}

/// pgbench's own tables, as `pgbench -i` makes and fills them.
fn pgbench_tables(variables: &mut Variables) -> Result<Vec<Relation>> {
    let tables = include_str!("pgbench/tables.toml").parse::<toml::Table>();
    let tables = tables.map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))?;
    let mut relations = relations::collections(&tables, "pgbench", "", variables)?;
    for relation in &mut relations {
        if let Some(made) = &mut relation.made {
            made.place = format!("{}, rows", relation.name);
        }
    }
    Ok(relations)
}

struct Open {
    line: usize,
    /// The step that jumps to the next branch.
    unless: Option<usize>,
    /// The steps that jump to the end.
    ends: Vec<usize>,
}

fn steps(
    file: &CustomFile,
    lines: &[(usize, Line<'_>)],
    declared: &mut Declared,
    write: bool,
) -> Result<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    for (line, what) in lines {
        let at = place(file, *line);
        let made = match what {
            Line::Sql(sql) => statement(sql, &at, declared, write)
                .map(|execute| steps.push(Step::Execute(Box::new(execute)))),
            Line::Meta("set", rest) => set(rest, &at, declared).map(|step| steps.push(step)),
            Line::Meta("sleep", rest) => sleep(rest, &at, declared).map(|step| steps.push(step)),
            Line::Meta(name @ ("if" | "elif" | "else" | "endif"), rest) => {
                branch(name, rest, (*line, &at), declared, &mut steps, &mut open)
            }
            Line::Meta(name, _) => Err(unsupported(name)),
        };
        made.map_err(|error| error.context(&at))?;
    }
    match open.last() {
        Some(open) => Err(Error::usage("an \\if without its \\endif").context(place(file, open.line))),
        None => Ok(steps),
    }
}

fn unsupported(name: &str) -> kurabe_core::Error {
    const KNOWN: [&str; 6] = ["set", "sleep", "if", "elif", "else", "endif"];
    const OTHERS: [&str; 7] =
        ["gset", "aset", "setshell", "shell", "startpipeline", "syncpipeline", "endpipeline"];
    let error = Error::usage(format!("\\{name} is not supported"));
    if name == "setrandom" {
        return error.hint("pgbench has none since version 9.6; write \\set name random(1, 10)");
    }
    if OTHERS.contains(&name) {
        return error.hint(format!("there are: \\{}", KNOWN.join(", \\")));
    }
    position(name, &KNOWN, "meta-command").err().unwrap_or(error)
}

fn expr(text: &str, declared: &Declared) -> Result<Expr> {
    expression::parse(text, &mut |name| variable(name, &declared.variables))
}

fn set(rest: &str, place: &str, declared: &Declared) -> Result<Step> {
    let name = word(rest);
    if name.is_empty() {
        return Err(Error::usage("\\set without a variable name").hint("write \\set name expression"));
    }
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        return Err(Error::usage(format!("'{name}' is no name of a variable: it begins with a digit")));
    }
    let slot = variable(name, &declared.variables)?;
    let source = Source::Expression(expr(&rest[name.len()..], declared)?);
    Ok(Step::Set { slot, source, place: place.to_owned() })
}

fn sleep(rest: &str, place: &str, declared: &Declared) -> Result<Step> {
    let bad = || {
        Error::usage(format!("invalid meta-command '\\sleep {rest}'")).hint("write \\sleep 10 ms, or us or s")
    };
    let (number, unit) = rest.split_once(char::is_whitespace).unwrap_or((rest, "s"));
    // The unit may follow the number without a blank: "\sleep 10ms".
    let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
    let (number, unit) =
        if digits > 0 && digits < number.len() { number.split_at(digits) } else { (number, unit.trim()) };
    let unit = match unit {
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(bad()),
    };
    let is_variable = number.strip_prefix(':').is_some_and(|name| !name.is_empty() && word(name) == name);
    if !is_variable && (number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit())) {
        return Err(bad());
    }
    Ok(Step::Sleep { time: expr(number, declared)?, unit, place: place.to_owned() })
}

/// Sets the target of the jump at a step to the next step.
fn land(steps: &mut [Step], at: Option<usize>, here: usize) {
    if let Some(Step::Unless { to, .. } | Step::Jump(to)) = at.and_then(|at| steps.get_mut(at)) {
        *to = here;
    }
}

/// `\if`, `\elif`, `\else`, `\endif`: jumps, which always go forward.
fn branch(
    name: &str,
    rest: &str,
    (line, place): (usize, &str),
    declared: &Declared,
    steps: &mut Vec<Step>,
    open: &mut Vec<Open>,
) -> Result<()> {
    if name == "if" {
        let condition = expr(rest, declared)?;
        open.push(Open { line, unless: Some(steps.len()), ends: Vec::new() });
        steps.push(Step::Unless { condition, to: usize::MAX, place: place.to_owned() });
        return Ok(());
    }
    let Some(last) = open.last_mut() else { return Err(Error::usage(format!("\\{name} without an \\if"))) };
    if name != "endif" {
        if last.unless.is_none() {
            return Err(Error::usage(format!("\\{name} after an \\else")));
        }
        last.ends.push(steps.len());
        steps.push(Step::Jump(usize::MAX));
        let here = steps.len();
        land(steps, last.unless.take(), here);
        if name == "elif" {
            last.unless = Some(steps.len());
            steps.push(Step::Unless {
                condition: expr(rest, declared)?,
                to: usize::MAX,
                place: place.to_owned(),
            });
        }
        return Ok(());
    }
    let here = steps.len();
    for at in last.unless.into_iter().chain(last.ends.iter().copied()) {
        land(steps, Some(at), here);
    }
    open.pop();
    Ok(())
}

fn statement(sql: &Sql<'_>, place: &str, declared: &mut Declared, write: bool) -> Result<Execute> {
    let text = &*sql.text;
    if let Some(word) = sql::control(text).filter(|_| !sql.is_several) {
        return Ok(Execute::plain(Request::control(word), place));
    }
    let find =
        |name: &str| declared.relations.iter().position(|relation| relation.name.eq_ignore_ascii_case(name));
    let known = |name: &str| declared.variables.find(name).is_some();
    let pieces = sql::pieces(text, &Naming::Plain(&find), &|name| declared.in_quotes && known(name))?;
    check_begin(&pieces)?;
    if !declared.in_quotes && declared.unpreparable.is_none() {
        let left = sql::quoted_variable(text, &known);
        let of_variable = left.map(|name| {
            let what = format!("the variable :{name} is within quotes, where a parameter cannot be");
            Error::usage(what).hint(AS_TEXT)
        });
        let of_several = sql.is_several.then(|| {
            let what = "several statements in one request (\\;) cannot be prepared";
            Error::usage(what)
                .hint("send them as text: --statement literal (pgbench's -M simple, its default)")
        });
        declared.unpreparable = of_variable.or(of_several).map(|why| why.context(place));
    }
    let on = tables(&pieces);
    let must_read = on.is_empty() && !write;
    if let Some(why) = asks_for_write(&pieces, None).filter(|_| must_read) {
        let hint = match sql.is_several {
            true => "allow this with --write, as text: -M simple",
            false if declared.relations.is_empty() => WRITE_OR_INIT,
            false => WRITE,
        };
        return Err(Error::usage(format!("this statement may change data: {why}")).hint(hint));
    }
    let is_ours = |relation: usize| declared.relations[relation].write;
    if let Some(why) = changes_others(&pieces, &is_ours, None).filter(|_| !on.is_empty() && !write) {
        let what = "this statement may change what the run did not make";
        return Err(Error::usage(format!("{what}: {why}")).hint(WRITE));
    }
    let may_change = may_change(&pieces, None);
    let writes = may_change.is_some();
    // No other engine executes several statements of one text.
    let engine = sql.is_several.then(|| "postgres".to_owned());
    let raw = Raw { texts: vec![(engine, pieces)], may_change, must_read };
    let mut execute = Execute::plain(Request::Begin, place);
    execute.parameters = raw.parameters(&declared.variables)?;
    // Rows that are added to the history table are counted after each trial.
    let first = text.split_whitespace().next().unwrap_or_default();
    if first.eq_ignore_ascii_case("insert")
        && let [relation] = on.as_slice()
        && declared.relations[*relation].key.is_empty()
    {
        execute.adds = Some(*relation);
        declared.relations[*relation].note_traffic(true);
    } else if writes {
        for relation in on {
            declared.relations[relation].disturbed = true;
            if !first.eq_ignore_ascii_case("update") {
                declared.relations[relation].note_traffic(false);
            }
        }
    }
    execute.request = Request::Raw(raw);
    Ok(execute)
}

#[cfg(test)]
mod tests {
    use super::super::rows::Generator;
    use super::super::variables::rows_of;
    use super::*;

    #[test]
    fn init_is_advised_only_without_it() {
        for (init, advised) in [(false, true), (true, false)] {
            let file =
                CustomFile { name: "a".to_owned(), text: "UPDATE dl SET v = 1;".to_owned(), weight: 1 };
            let source = CustomWorkload {
                language: Language::Pgbench,
                files: vec![file],
                define: std::collections::BTreeMap::new(),
                scale: None,
                max_tries: None,
                init,
                write: false,
            };
            let error = read(&source).err().unwrap().to_string();
            assert!(error.contains("--write") && error.contains("--init") == advised, "{error}");
        }
    }

    #[test]
    fn tables_are_those_of_pgbench() {
        let mut variables = Variables::default();
        variables.set(SCALE, Constant::Int(3));
        let made = pgbench_tables(&mut variables).unwrap();
        let shown = |relation: &Relation| {
            let fields: Vec<String> =
                relation.fields.iter().map(|f| format!("{} {:?}", f.name, f.kind)).collect();
            (relation.name.clone(), relation.key.clone(), fields.join(", "))
        };
        let table =
            |name: &str, key: &[usize], fields: &str| (name.to_owned(), key.to_vec(), fields.to_owned());
        let expected = [
            table("pgbench_branches", &[0], "bid Int, bbalance Int, filler Text { max: 88 }"),
            table("pgbench_tellers", &[0], "tid Int, bid Int, tbalance Int, filler Text { max: 84 }"),
            table("pgbench_accounts", &[0], "aid Int, bid Int, abalance Int, filler Text { max: 84 }"),
            table(
                "pgbench_history",
                &[],
                "tid Int, bid Int, aid Int, delta Int, mtime Timestamp, filler Text { max: 22 }",
            ),
        ];
        assert_eq!(made.iter().map(shown).collect::<Vec<_>>(), expected);
        let declared = Declared { relations: made, variables, ..Declared::default() };
        let known = super::super::known::Known::of(&declared, &declared.variables.initial);
        let sequence = Generator::Sequence(1);
        let (zero, null) = (Generator::Always(Constant::Int(0)), Generator::Always(Constant::Null));
        let blank = Generator::Always(Constant::Text(" ".repeat(84)));
        let expected = [
            (3, vec![sequence.clone(), zero.clone(), null.clone()]),
            (30, vec![sequence.clone(), Generator::Every(10), zero.clone(), null.clone()]),
            (300_000, vec![sequence, Generator::Every(100_000), zero, blank]),
            (0, vec![null; 6]),
        ];
        for (relation, (rows, generators)) in declared.relations.iter().zip(expected) {
            let made = relation.made.as_ref().unwrap();
            assert_eq!((known.rows(&made.rows), &made.generators), (Ok(rows), &generators));
            assert_eq!(made.place, format!("{}, rows", relation.name));
            assert!(relation.write && relation.indexes.is_empty());
        }
        let names: Vec<&str> = declared.variables.names.iter().map(String::as_str).collect();
        let rows = ["pgbench_branches", "pgbench_tellers", "pgbench_accounts", "pgbench_history"];
        assert_eq!(names, [&["scale".to_owned()][..], &rows.map(rows_of)].concat());
    }
}
