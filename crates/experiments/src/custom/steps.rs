//! Parses the steps of a transaction: `steps = ["begin", { get = "users", key = ":id" }, …]`.

use super::declared::{Declared, Step};
use super::expression::Expr;
use super::reads::{asks_for_write, changes_others, check_begin, may_change};
use super::request::{Execute, Parameter, Raw, Request, Wanted, tables, variables};
use super::section::{Section, known, position, variable};
use super::sql::{self, Naming};
use super::variables::Constant;
use crate::prelude::*;
use kurabe_core::sort;
use toml::Value;

const VERBS: [&str; 8] = ["get", "find-equal", "insert", "put", "update", "delete", "count", "sql"];
const KEYS: [&str; 9] = ["sleep", "key", "fields", "where", "values", "set", "rows", "affected", "check"];
const ANSWER_KEYS: [&str; 4] = ["keep", "columns", "adds", "removes"];

/// How to allow a statement that may write.
pub(super) const WRITE: &str =
    "set 'write = true' at the top of the file, or --write, or name a collection in braces";

/// Parses one step. `engines` are the valid names of engines; `write` allows statements to change data that are not
/// Kurabe's.
pub(super) fn step(
    value: &Value,
    place: &str,
    declared: &mut Declared,
    write: bool,
    engines: &[&str],
) -> Result<Step> {
    if let Some(word) = value.as_str() {
        known(word, &["begin", "commit", "rollback"], "step").map_err(|error| error.context(place))?;
        return Ok(Step::Execute(Box::new(Execute::plain(Request::control(word), place))));
    }
    let table = value.as_table();
    let table = table.ok_or_else(|| Error::usage("is neither a word nor a table").context(place))?;
    let section = Section::new(table, place, &[&VERBS[..], &KEYS[..], &ANSWER_KEYS[..]].concat())?;
    if let Some(time) = section.text("sleep")? {
        let time = units::parse_duration(time).map_err(|error| error.context(place))?;
        only(&section, &["sleep"])?;
        let time = Expr::Int(time.as_nanos() as i64);
        return Ok(Step::Sleep { time, unit: 1, place: place.to_owned() });
    }
    let asked: Vec<&str> = VERBS.into_iter().filter(|verb| section.has(verb)).collect();
    let [verb] = asked.as_slice() else {
        return Err(section.error(format!("a step has exactly one of: {}", VERBS.join(", "))));
    };
    let execute = match *verb {
        "sql" => raw(&section, declared, write, engines)?,
        verb => named(&section, verb, declared)?,
    };
    Ok(Step::Execute(Box::new(execute)))
}

impl Execute {
    /// A request that must succeed, with no other expectation.
    pub(super) fn plain(request: Request, place: &str) -> Self {
        Self { request, place: place.to_owned(), ..Self::default() }
    }
}

/// Rejects keys that have no meaning together with the others.
fn only(section: &Section<'_>, keys: &[&str]) -> Result<()> {
    match section.table.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(key) => Err(section.error(format!("'{key}' cannot be combined with '{}'", keys[0]))),
        None => Ok(()),
    }
}

/// A step that names a collection or a table.
struct Named<'a> {
    section: &'a Section<'a>,
    verb: &'a str,
    declared: &'a Declared,
    relation: usize,
    names: Vec<&'a str>,
}

impl Named<'_> {
    fn field(&self, name: &str) -> Result<usize> {
        self.section.at(position(name, &self.names, "field"))
    }

    fn parameter(&self, position: usize, key: &str, value: &Value) -> Result<Parameter> {
        let operand = self.section.operand(key, value, &self.declared.variables)?;
        let kind = self.declared.relations[self.relation].fields[position].kind;
        Ok(Parameter { operand, kind: Some(kind) })
    }

    /// Fields with their values.
    fn assigned(&self, key: &str) -> Result<Vec<(usize, Parameter)>> {
        let table = self.section.table(key)?.filter(|table| !table.is_empty());
        let table = table.ok_or_else(|| self.section.error(format!("'{}' needs '{key}'", self.verb)))?;
        let each = |(name, value): (&String, &Value)| {
            let at = self.field(name)?;
            Ok((at, self.parameter(at, name, value)?))
        };
        table.iter().map(each).collect()
    }

    fn by_key(&self) -> Result<Vec<Parameter>> {
        let relation = &self.declared.relations[self.relation];
        let (section, name) = (self.section, &relation.name);
        if relation.key.is_empty() {
            return Err(section.error(format!("{name} has no key")));
        }
        let value = section.get("key");
        let value = value.ok_or_else(|| section.error(format!("'{}' needs 'key'", self.verb)))?;
        let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        if values.len() != relation.key.len() {
            let wants = relation.key.iter().map(|at| self.names[*at]).collect::<Vec<_>>().join(", ");
            let what = format!("'key' has the wrong number of values: the key of {name} is ({wants})");
            return Err(section.error(what));
        }
        relation.key.iter().zip(values).map(|(at, value)| self.parameter(*at, "key", value)).collect()
    }

    /// The requested fields: all but the key's if none are named.
    fn wanted(&self) -> Result<(Vec<usize>, Vec<String>)> {
        let key = &self.declared.relations[self.relation].key;
        let fields: Vec<usize> = match self.section.names("fields")? {
            Some(list) if !list.is_empty() => {
                list.into_iter().map(|name| self.field(name)).collect::<Result<_>>()?
            }
            _ => (0..self.names.len()).filter(|at| !key.contains(at)).collect(),
        };
        let columns = fields.iter().map(|at| self.names[*at].to_owned()).collect();
        Ok((fields, columns))
    }

    /// The request of a step with its parameters and its columns, before its expectations.
    fn asked(&self) -> Result<(Request, Vec<Parameter>, Vec<String>)> {
        let (relation, columns) = (self.relation, Vec::new());
        let only = |keys: &[&str]| only(self.section, &[&[self.verb][..], keys].concat());
        Ok(match self.verb {
            "get" => {
                only(&["key", "fields", "rows", "check", "keep"])?;
                let (fields, columns) = self.wanted()?;
                (Request::Get(relation, fields), self.by_key()?, columns)
            }
            "find-equal" => {
                only(&["where", "fields", "rows", "check", "keep"])?;
                let (by, parameters) = self.assigned("where")?.into_iter().unzip();
                let (fields, columns) = self.wanted()?;
                (Request::FindEqual(relation, by, fields), parameters, columns)
            }
            "insert" | "put" => {
                only(&["values", "affected"])?;
                let mut values = self.assigned("values")?;
                sort::by_key(&mut values, |(at, _)| *at);
                let lacks = |at: &usize| values.get(*at).is_none_or(|(found, _)| found != at);
                if let Some(missing) = (0..self.names.len()).find(lacks) {
                    let what = format!("'values' lacks field '{}'", self.names[missing]);
                    return Err(self.section.error(what));
                }
                let parameters = values.into_iter().map(|(_, value)| value).collect();
                let insert = self.verb == "insert";
                (if insert { Request::Insert(relation) } else { Request::Put(relation) }, parameters, columns)
            }
            "update" => {
                only(&["key", "set", "affected"])?;
                let (fields, mut parameters): (Vec<usize>, Vec<Parameter>) =
                    self.assigned("set")?.into_iter().unzip();
                parameters.extend(self.by_key()?);
                (Request::Update(relation, fields), parameters, columns)
            }
            "delete" => {
                only(&["key", "affected"])?;
                (Request::Delete(relation), self.by_key()?, columns)
            }
            _ => {
                only(&["check", "keep"])?;
                (Request::Count(relation), Vec::new(), vec!["count".to_owned()])
            }
        })
    }
}

fn named(section: &Section<'_>, verb: &str, declared: &mut Declared) -> Result<Execute> {
    let name = section.text(verb)?.unwrap_or_default();
    let relation = section.at(declared.relation(name, "collection or table"))?;
    let names = declared.relations[relation].names();
    let (request, parameters, columns) = Named { section, verb, declared, relation, names }.asked()?;
    if request.writes() && !declared.relations[relation].write {
        return Err(section
            .error(format!("{name} is an existing table and is read-only"))
            .hint("set 'write = true' in its section"));
    }
    let one = Some(Wanted::Range(1, 1));
    let (rows, affected) = (wanted(section, "rows", declared)?, wanted(section, "affected", declared)?);
    let execute = Execute::plain(request, &section.place);
    let mut execute = Execute {
        parameters,
        rows: match execute.request {
            Request::Get(..) | Request::Count(..) => rows.or(one),
            _ => rows,
        },
        // Engines differ in how they count a replaced row.
        affected: match execute.request {
            Request::Insert(..) | Request::Update(..) | Request::Delete(..) => affected.or(one),
            _ => affected,
        },
        adds: matches!(execute.request, Request::Insert(..)).then_some(relation),
        removes: matches!(execute.request, Request::Delete(..)).then_some(relation),
        ..execute
    };
    answers(section, &columns, declared, &mut execute)?;
    Ok(execute)
}

/// A number of rows, two, or a variable that holds it.
fn wanted(section: &Section<'_>, key: &str, declared: &Declared) -> Result<Option<Wanted>> {
    match section.get(key).and_then(Value::as_str).and_then(|text| text.strip_prefix(':')) {
        Some(name) => {
            section.at(variable(name, &declared.variables)).map(|slot| Some(Wanted::Variable(slot)))
        }
        None => Ok(section.counts(key)?.map(|(least, most)| Wanted::Range(least, most))),
    }
}

fn raw<'a>(section: &Section<'a>, declared: &mut Declared, write: bool, engines: &[&str]) -> Result<Execute> {
    only(section, &["sql", "columns", "rows", "affected", "check", "keep", "adds", "removes"])?;
    let own = |(engine, text): (&String, &'a Value)| {
        section.at(known(engine, engines, "engine with SQL"))?;
        let text = text.as_str().ok_or_else(|| section.error(format!("sql.{engine} is not a text")))?;
        Ok((Some(engine.clone()), text))
    };
    let texts: Vec<(Option<String>, &str)> = match section.get("sql") {
        Some(Value::String(text)) => vec![(None, text.as_str())],
        Some(Value::Table(table)) => table.iter().map(own).collect::<Result<_>>()?,
        _ => return Err(section.error("'sql' is neither a text nor a table with one for each engine")),
    };
    if texts.is_empty() {
        return Err(section.error("'sql' has no text"));
    }
    let mut made = Raw::default();
    for (engine, text) in texts {
        let text = text.trim().trim_end_matches(';');
        if let Some(word) = sql::control(text) {
            return Err(section.error(format!("use the step \"{word}\", which works on each engine")));
        }
        let find = |name: &str| declared.relation(name, "collection or table");
        let pieces = section.at(sql::pieces(text, &Naming::Braces(&find), &|_| false))?;
        section.at(check_begin(&pieces))?;
        let on = tables(&pieces);
        let allowed = write || on.iter().any(|relation| declared.relations[*relation].write);
        if let Some(why) = asks_for_write(&pieces, engine.as_deref()).filter(|_| !allowed) {
            return Err(section
                .error(format!("this statement may change data that Kurabe did not create: {why}"))
                .hint(WRITE));
        }
        let is_ours = |relation: usize| declared.relations[relation].write;
        let others = changes_others(&pieces, &is_ours, engine.as_deref()).filter(|_| allowed && !write);
        if let Some(why) = others {
            let what = format!(
                "this statement may change what neither the run made nor 'write = true' allows: {why}"
            );
            return Err(section.error(what).hint(WRITE));
        }
        let why = may_change(&pieces, engine.as_deref());
        if why.is_some() {
            for relation in on {
                declared.relations[relation].disturbed = true;
            }
        }
        made.may_change = made.may_change.or(why);
        made.must_read |= !allowed;
        made.texts.push((engine, pieces));
    }
    let own: Vec<&str> = made.variables();
    if made.texts.iter().any(|(_, pieces)| variables(pieces) != own) {
        return Err(section.error("the texts for all engines must have the same variables in the same order"));
    }
    let mut execute = Execute::plain(Request::Count(0), &section.place);
    execute.parameters = section.at(made.parameters(&declared.variables))?;
    execute.rows = wanted(section, "rows", declared)?;
    execute.affected = wanted(section, "affected", declared)?;
    for (key, into) in [("adds", &mut execute.adds), ("removes", &mut execute.removes)] {
        let find = |name: &str| section.at(declared.relation(name, "collection or table"));
        *into = section.text(key)?.map(find).transpose()?;
    }
    execute.request = Request::Raw(made);
    let columns: Vec<String> =
        section.names("columns")?.unwrap_or_default().into_iter().map(str::to_owned).collect();
    answers(section, &columns, declared, &mut execute)?;
    Ok(execute)
}

fn answers(
    section: &Section<'_>,
    columns: &[String],
    declared: &mut Declared,
    execute: &mut Execute,
) -> Result<()> {
    let names: Vec<&str> = columns.iter().map(String::as_str).collect();
    // A column is named by its number, from 1, or by its name.
    let column = |name: &str| match name.parse::<usize>() {
        Ok(number @ 1..) => Ok(number - 1),
        _ => section.at(position(name, &names, "column")),
    };
    if let Some(table) = section.table("check")? {
        for (name, value) in table {
            let operand = section.operand(name, value, &declared.variables)?;
            execute.fields.push((column(name)?, operand));
        }
    }
    if let Some(table) = section.table("keep")? {
        for (name, value) in table {
            let from =
                value.as_str().ok_or_else(|| section.error(format!("'keep.{name}' is not a column name")))?;
            if declared
                .variables
                .find(name)
                .is_some_and(|slot| declared.variables.initial[slot] != Constant::Null)
            {
                return Err(section.error(format!("the variable '{name}' already has a value")));
            }
            execute.keep.push((column(from)?, declared.variables.slot(name)));
        }
    }
    Ok(())
}
