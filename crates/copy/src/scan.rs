//! Passes over a table before anything is copied: its rows, what its values are in fact, and which will not map.

use crate::catalog::Table;
use crate::classes::kind_of;
use crate::columns::OneTable;
use crate::engines::engine::Engine;
use crate::engines::facts::DocumentLimits;
use crate::engines::queries::expression_of;
use crate::issue::{Issue, IssueKind};
use crate::page::PageSize;
use crate::script::quoted;
use crate::sql::text;
use crate::types::{Class, ColumnTypes, Correction, Kind};
use crate::verify::document::token;
use kurabe_core::{Error, ErrorKind, Result, units};

/// What a pass found in a table.
#[derive(Clone, Debug, Default)]
pub struct Scanned {
    /// The number of rows.
    pub rows: u64,
    /// The kind of values of each column that the target cannot hold, and how many there are.
    pub unfit: Vec<Option<(IssueKind, u64)>>,
    /// Values and indexes that no acceptance changes, and that the target may refuse.
    pub issues: Vec<Issue>,
}

enum What {
    Unfit(IssueKind),
    /// Values of which no copy is made, for this reason.
    Never(String),
    LongEntry(String),
}

impl OneTable<'_> {
    /// What the values of columns are, on an engine whose columns hold values of any type. Passes: what is stored, whether
    /// texts and numbers have the form of the class, and whether those that do not are floating-point numbers. Each column is
    /// corrected at most once in each.
    pub(crate) fn corrections(&mut self, kinds: &[Kind]) -> Result<Vec<Correction>> {
        let (engine, table) = (self.source.engine, self.table);
        let mut found: Vec<Correction> = vec![None; kinds.len()];
        if !engine.is_loose {
            return Ok(found);
        }
        let mut of_type = Vec::new();
        for (at, column) in table.columns.iter().enumerate() {
            let name = quoted(engine, &column.name);
            let classes = ["integer", "real", "text", "blob"];
            of_type.extend(classes.map(|class| (at, format!("typeof({name}) = '{class}'"))));
        }
        let counts = self.count(of_type)?.1;
        for counts in counts.chunks(4) {
            let &[(at, integers), (_, reals), (_, texts), (_, blobs)] = counts else { continue };
            found[at] = stored(&kinds[at], integers, reals, texts, blobs);
        }
        for again in [false, true] {
            let mut asked = Vec::new();
            for (at, column) in table.columns.iter().enumerate() {
                let kind = found[at].map_or_else(|| kinds[at].clone(), |(name, _)| kind_of(engine, name));
                if again && (kind == kinds[at] || kind.class != Class::Float64) {
                    continue;
                }
                let forms = engine.dialect.other_forms(&kind, &quoted(engine, &column.name));
                asked.extend(forms.into_iter().map(|(condition, name)| ((at, name), condition)));
            }
            if asked.is_empty() {
                continue;
            }
            for ((at, name), number) in self.count(asked)?.1 {
                // The first condition that holds decides.
                if number > 0 && (again || found[at].is_none()) {
                    found[at] = Some((name, found[at].map_or(number, |(_, before)| before.max(number))));
                }
            }
        }
        Ok(found)
    }

    /// Counts a table's rows, and the values that will not map.
    pub(crate) fn scan(&mut self, types: &[ColumnTypes]) -> Result<Scanned> {
        let (engine, target, table) = (self.source.engine, self.target, self.table);
        let mut asked = Vec::new();
        for (at, (column, types)) in table.columns.iter().zip(types).enumerate() {
            let (kind, name) = (&types.kind, quoted(engine, &column.name));
            let mut count = |what: What, condition: String| asked.push(((at, what), condition));
            let cannot = target.dialect.cannot_hold(&types.mapped.stored);
            // A server refuses some values of its own.
            let unfit = cannot.filter(|unfit| !types.exact || *unfit == IssueKind::Enum);
            let asked = unfit.and_then(|unfit| Some((unfit, condition_of(engine, kind, unfit, &name)?)));
            if let Some((unfit, condition)) = asked {
                count(What::Unfit(unfit), condition);
            }
            if let Some(longest) = types.longest {
                let length =
                    if kind.class.is_bytes() { (engine.octets)(&name) } else { (engine.characters)(&name) };
                let why =
                    format!("values are longer than {longest}, the longest in an index of {}", target.name);
                count(What::Never(why), format!("{length} > {longest}"));
            }
            if let Some(condition) = engine.dialect.has_no_unicode(column, &name) {
                count(What::Never("texts have characters that Unicode lacks".to_owned()), condition);
            }
            if !types.exact && table.primary.contains(&column.name) && engine.is_loose {
                let why = format!("nulls are in the key, and {} allows none", target.name);
                count(What::Never(why), format!("{name} IS NULL"));
            }
        }
        let long = target.longest_entry.iter().flat_map(|most| entries(engine, table, types, *most));
        asked.extend(long.map(|(name, condition)| ((0, What::LongEntry(name)), condition)));
        let (rows, counts) = self.count(asked)?;
        let mut scanned = Scanned { rows, unfit: vec![None; table.columns.len()], issues: Vec::new() };
        for ((at, what), number) in counts.into_iter().filter(|(_, number)| *number > 0) {
            let (column, rows) = (&table.columns[at].name, units::counted(number, "row"));
            match what {
                What::Unfit(IssueKind::Enum) => {
                    let what = format!("values that are no word of the type, in {rows}");
                    scanned.issues.push(refused(table, column, IssueKind::Enum, &what));
                }
                What::Unfit(kind) => scanned.unfit[at] = Some((kind, number)),
                What::Never(why) => {
                    let what = format!("column {}.{column}: {why}, in {rows}", table.name);
                    return Err(
                        Error::unsupported(what).hint("correct them, or leave the table out with --exclude")
                    );
                }
                What::LongEntry(index) => {
                    let (most, of) = (target.longest_entry.unwrap_or_default(), target.name);
                    let what = format!("entries of more than {most} bytes, in {rows}, which {of} may refuse");
                    let object = format!("{}.{index}", table.name);
                    scanned.issues.push(Issue::new(IssueKind::TextLength, object, what));
                }
            }
        }
        scanned.issues.extend(self.texts(types)?);
        Ok(scanned)
    }

    /// Counts values that the target refuses, and of which only the bytes show it: texts that are not UTF-8, which SQLite has, and
    /// databases of PostgreSQL without an encoding, and documents beyond the limits of the target's server.
    fn texts(&mut self, types: &[ColumnTypes]) -> Result<Vec<Issue>> {
        let (engine, facts, table) = (self.source.engine, self.facts, self.table);
        let (mut list, mut asked) = (Vec::new(), Vec::new());
        let maybe_not_utf8 = engine.dialect.maybe_not_utf8(self.source)?;
        let is_other = |types: &ColumnTypes| !types.exact || !facts.encoding.is_empty();
        for (at, (column, types)) in
            table.columns.iter().zip(types).enumerate().filter(|(_, (_, types))| is_other(types))
        {
            let (name, stored) = (quoted(engine, &column.name), &types.mapped.stored);
            let class = types.kind.class;
            let limits = self.target.dialect.document_limits(stored, &facts.edition);
            let limits = limits.filter(|_| class == Class::Json && !types.exact);
            let is_text = class.is_text() || matches!(class, Class::Json | Class::Native);
            let text = maybe_not_utf8.filter(|_| is_text && !stored.class.is_bytes());
            let Some(read) =
                limits.map(|_| engine.dialect.read(&types.kind, &name)).or(text.map(|text| text(&name)))
            else {
                continue;
            };
            list.push(read);
            asked.push((at, limits, [0_u64; 2]));
        }
        let mut issues = Vec::new();
        if asked.is_empty() {
            return Ok(issues);
        }
        let sql = format!("SELECT {} FROM {}", list.join(", "), engine.rows(table, None));
        self.source.pages(&sql, &[], PageSize::default(), &mut |reply| {
            for row in 0..reply.rows() {
                for (at, (_, limits, counts)) in asked.iter_mut().enumerate() {
                    let Some(bytes) = reply.field_bytes(row, at) else { continue };
                    let is_refused = |text: &str| limits.is_some_and(|limits| exceeds(text, limits));
                    match std::str::from_utf8(bytes) {
                        Err(_) => counts[0] += 1,
                        Ok(text) => counts[1] += u64::from(is_refused(text)),
                    }
                }
            }
            Ok(())
        })?;
        for (at, limits, [texts, documents]) in asked {
            let mut refuse =
                |kind, what: &str| issues.push(refused(table, &table.columns[at].name, kind, what));
            if texts > 0 {
                let rows = units::counted(texts, "row");
                let what = format!("texts that are not UTF-8, in {rows} (--cast to a type of bytes)");
                refuse(IssueKind::StorageClass, &what);
            }
            if let Some(DocumentLimits { depth, has_doubles, has_zero }) = limits.filter(|_| documents > 0) {
                let numbers = if has_doubles { ", numbers beyond those of 64 bits" } else { "" };
                let zero = if has_zero { "" } else { ", \\u0000" };
                let rows = units::counted(documents, "row");
                let what = format!(
                    "documents with half a surrogate pair{zero}{numbers} or more than {depth} levels, in {rows}"
                );
                refuse(IssueKind::Json, &what);
            }
        }
        Ok(issues)
    }

    /// The number of rows, and of those for which each condition holds, each with what it is asked for.
    fn count<T>(&mut self, asked: Vec<(T, String)>) -> Result<(u64, Vec<(T, u64)>)> {
        let (engine, table) = (self.source.engine, self.table);
        let (asked, conditions): (Vec<T>, Vec<String>) = asked.into_iter().unzip();
        let (mut rows, mut counts) = (0, Vec::with_capacity(conditions.len()));
        // Engines limit the number of columns of a query. Without a condition, the rows are counted.
        let chunks: Vec<&[String]> =
            if conditions.is_empty() { vec![&[]] } else { conditions.chunks(200).collect() };
        for chunk in chunks {
            let counted = chunk.iter().map(|condition| format!("COUNT(CASE WHEN {condition} THEN 1 END)"));
            let list: Vec<String> = ["COUNT(*)".to_owned()].into_iter().chain(counted).collect();
            let sql = format!("SELECT {} FROM {}", list.join(", "), engine.rows(table, None));
            let found = self.source.rows(&sql).map_err(|error| match error.kind() {
                ErrorKind::NotPermitted => {
                    error.hint(format!("--exclude {} leaves the table out", table.name))
                }
                _ => error,
            });
            let Some(row) = found?.into_iter().next() else { continue };
            let mut numbers = (0..=chunk.len()).map(|at| text(&row, at).parse().unwrap_or(0));
            rows = numbers.next().unwrap_or(0);
            counts.extend(numbers);
        }
        Ok((rows, asked.into_iter().zip(counts).collect()))
    }
}

/// The condition that a column of the source has a value of this kind, which a target cannot hold; `None` if it never has.
pub(crate) fn condition_of(engine: &Engine, kind: &Kind, unfit: IssueKind, column: &str) -> Option<String> {
    let class = kind.class;
    let is_date = matches!(class, Class::Date | Class::Timestamp | Class::TimestampTz);
    let name = match unfit {
        IssueKind::ZeroDate if is_date => "zero_date",
        IssueKind::DateRange if is_date => "date_range",
        IssueKind::TimeRange if class == Class::Time => "time_range",
        IssueKind::NotANumber if matches!(class, Class::Float32 | Class::Float64 | Class::Decimal) => {
            "not_a_number"
        }
        // Only an engine whose columns hold values of any type has documents with one.
        IssueKind::NulCharacter if class.is_text() || class == Class::Json && engine.is_loose => {
            "nul_character"
        }
        IssueKind::Enum if kind.declared.starts_with("enum") => "no_word",
        IssueKind::Enum if kind.declared.starts_with("set") => "unknown_words",
        _ => return None,
    };
    expression_of(engine, name, column)
}

/// The type of a column with so many values of each storage class, if it is not the declared one.
fn stored(kind: &Kind, integers: u64, reals: u64, texts: u64, blobs: u64) -> Correction {
    let (numbers, all) = (integers + reals, integers + reals + texts + blobs);
    let is_untyped = kind.declared.trim().is_empty() || kind.declared.eq_ignore_ascii_case("any");
    if is_untyped {
        // The column has no type: the one that all values have, or the one that holds them all.
        return match () {
            () if all == blobs => None,
            () if all == integers => Some(("bigint", 0)),
            () if all == reals => Some(("double", 0)),
            () if all == texts => Some(("text", 0)),
            () if blobs > 0 => Some(("blob", all - blobs)),
            () => Some(("text", numbers)),
        };
    }
    let class = kind.class;
    if class.is_bytes() {
        return match () {
            () if numbers + texts == 0 => None,
            () if blobs == 0 => Some(("text", numbers + texts)),
            () => Some(("blob", numbers + texts)),
        };
    }
    if blobs > 0 {
        return Some(("blob", blobs));
    }
    let others = match class {
        Class::Bool | Class::Int8 | Class::Int16 | Class::Int32 | Class::Int64 => reals + texts,
        // Names of types that say that the text is a number.
        Class::UInt64 | Class::Decimal if kind.declared.to_ascii_lowercase().contains("text") => 0,
        Class::Float32 | Class::Float64 | Class::UInt64 | Class::Decimal => texts,
        _ => numbers,
    };
    (others > 0).then_some(("text", others))
}

/// Values of a column that the target refuses, of this kind.
fn refused(table: &Table, column: &str, kind: IssueKind, what: &str) -> Issue {
    let detail = format!("{what}: the target refuses them (--reject)");
    Issue::new(kind, format!("{}.{column}", table.name), detail)
}

/// The indexes with text or bytes, which the target makes as they are, and the condition that a row's entry is longer than this.
fn entries(engine: &Engine, table: &Table, types: &[ColumnTypes], most: u64) -> Vec<(String, String)> {
    let long = |column: &String| {
        let at = table.position(column).filter(|at| !types[*at].exact)?;
        let stored = &types[at].mapped.stored;
        let may_be = stored.class.is_text() || stored.class.is_bytes() || stored.class == Class::Native;
        let octets = (engine.octets)(&quoted(engine, column));
        may_be.then(|| format!("COALESCE({octets}, 0)"))
    };
    let all = table.indexes.iter().map(|index| (&index.name, &index.columns));
    let sums = all.map(|(name, columns)| (name, columns.iter().filter_map(long).collect::<Vec<_>>()));
    let sums = sums.filter(|(_, sum)| !sum.is_empty());
    sums.map(|(name, sum)| (name.clone(), format!("{} > {most}", sum.join(" + ")))).collect()
}

/// Whether a document, which is well formed, has what a server refuses.
fn exceeds(document: &str, limits: DocumentLimits) -> bool {
    let (mut depth, mut rest) = (0_usize, document);
    while let Some(first) = rest.bytes().next() {
        let (token, after) = rest.split_at(token(rest));
        rest = after;
        let is_refused = match first {
            // What is no text of Unicode is no string of Rust either.
            b'"' => serde_json::from_str::<String>(token)
                .map_or(true, |text| !limits.has_zero && text.contains('\0')),
            b'-' | b'0'..=b'9' => limits.has_doubles && token.parse::<f64>().is_ok_and(f64::is_infinite),
            b'[' | b'{' => {
                depth += 1;
                depth > limits.depth
            }
            _ => {
                depth = depth.saturating_sub(usize::from(matches!(first, b']' | b'}')));
                false
            }
        };
        if is_refused {
            return true;
        }
    }
    false
}
