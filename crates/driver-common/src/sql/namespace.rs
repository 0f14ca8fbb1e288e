//! The ownership rules on SQL engines, with one connection and the table `kurabe_marker(name, made_by, made_at)`.

use super::dialect::Dialect;
use super::statement;
use crate::ownership::{self, MADE_BY, MARKER, Words};
use kurabe_core::collection::{Charset, Collection, Field, FieldType};
use kurabe_core::remote::{Link, RemoteCollection, RemoteServer};
use kurabe_core::{Error, ErrorKind, Result};

/// A connection to an SQL engine that manages the namespace.
pub trait SqlNamespaceOps: Send {
    /// The engine's SQL.
    fn dialect(&self) -> &Dialect;

    /// The SQL that creates the ownership table, if Kurabe's tables have special properties, such as that they may lose
    /// their rows.
    fn marker_dialect(&self) -> &Dialect {
        self.dialect()
    }

    /// Checks that a new table has the requested properties, and removes it if not.
    fn made(&mut self, _table: &str) -> Result<()> {
        Ok(())
    }

    /// Changes the character set of a new, empty table.
    fn set_charset(&mut self, _table: &str, _charset: Charset) -> Result<()> {
        Err(Error::unsupported(format!("{} has one character set for all tables", self.dialect().engine)))
    }

    /// Executes a statement without parameters, and discards any rows.
    fn execute(&mut self, sql: &str) -> Result<()>;

    /// The first column, as text, of a statement without parameters.
    fn column(&mut self, sql: &str) -> Result<Vec<String>>;

    /// Whether a table, a view or another object with this name exists where Kurabe would create it.
    fn table_exists(&mut self, name: &str) -> Result<bool>;

    /// Why an existing table is not one that Kurabe made for the session's own role, as a clause: another role owns it, it is
    /// a view, or what others attached to it would run with our rights. The ownership table is checked before it is read,
    /// the table of an entry before it is replaced, emptied or removed.
    fn not_made_by_us(&mut self, _name: &str) -> Result<Option<String>> {
        Ok(None)
    }

    /// Like [`TableStatistics::missing`](kurabe_core::driver::TableStatistics::missing), for a table whose name contains
    /// neither quotes nor backslashes.
    fn unanalysed_table(&mut self, _table: &str) -> Result<Option<String>> {
        Ok(None)
    }

    /// Whether rows stay in the order in which they were inserted; if not, they are stored by their key.
    fn keeps_insertion_order(&self) -> bool {
        true
    }

    /// Creates what the engine needs to read a collection of a remote server by this link, under the name of the
    /// collection. [`SqlNamespaceOps::unlink`] was called before.
    fn link(&mut self, _collection: &Collection, _server: RemoteServer, _link: &Link) -> Result<()> {
        Err(Error::unsupported(format!("{} has no links", self.dialect().engine)))
    }

    /// Removes what [`SqlNamespaceOps::link`] created under this name, in part or as a whole. Does nothing if there is
    /// nothing. An ordinary table with this name is left.
    fn unlink(&mut self, _name: &str) -> Result<()> {
        Ok(())
    }

    /// The statement that stops the server from updating the planner's statistics of a table by itself, for the quoted
    /// name; `None` if it never does.
    fn hold_statistics_of(&self, _table: &str) -> Option<String> {
        None
    }

    /// Removes objects that the engine created for Kurabe's tables, once these are removed and no one else uses them.
    fn swept(&mut self) -> Result<()> {
        Ok(())
    }

    /// Names that no collection may have, besides that of the ownership table.
    fn kept(&self) -> &'static [&'static str] {
        &[]
    }

    /// Takes a lock against other runs, which ends with the connection or the process.
    fn lock(&mut self, run: &str) -> Result<()>;

    /// Takes from others what the database's default privileges gave them on a new ownership table.
    fn keep_to_ourselves(&mut self, _table: &str) -> Result<()> {
        Ok(())
    }
}

/// Refuses an ownership table that Kurabe did not make.
fn check_marker(namespace: &mut impl SqlNamespaceOps) -> Result<()> {
    let Some(why) = namespace.not_made_by_us(MARKER)? else { return Ok(()) };
    Err(ownership::NamespaceOps::words(namespace).foreign_marker(&format!(": {why}")))
}

/// Refuses the table of an entry that Kurabe did not make: an entry alone proves nothing.
fn check_table(namespace: &mut impl SqlNamespaceOps, name: &str) -> Result<()> {
    let Some(why) = namespace.not_made_by_us(name)? else { return Ok(()) };
    let words = ownership::NamespaceOps::words(namespace);
    let message =
        format!("{}: table {name} is an entry of {MARKER} and was not made by Kurabe: {why}", words.engine);
    Err(words.not_ours(message).hint(format!("it is left alone; delete its entry, {}", words.instead)))
}

impl<H: SqlNamespaceOps> ownership::NamespaceOps for H {
    fn words(&self) -> Words {
        let engine = self.dialect().engine;
        Words { engine, thing: "table", instead: "rename it, or use another database", kept: self.kept() }
    }

    fn claim(&mut self, run: &str) -> Result<()> {
        self.lock(run)
    }

    fn entries(&mut self) -> Result<Vec<String>> {
        if !self.table_exists(MARKER)? {
            return Ok(Vec::new());
        }
        check_marker(self)?;
        // Naming all columns makes a foreign table with this name an error. They are qualified with the table, since
        // SQLite reads an unknown quoted name as a string.
        let d = self.dialect();
        let table = d.table(MARKER);
        let [name, by, at] =
            ["name", "made_by", "made_at"].map(|column| format!("{table}.{}", d.quoted(column)));
        // A space and not '': Oracle treats an empty string as null, and no comparison with null is true.
        let sql = format!("SELECT {name} FROM {table} WHERE {by} <> ' ' AND {at} > 0 ORDER BY {name}");
        self.column(&sql).map_err(|error| match error.kind() {
            ErrorKind::Server | ErrorKind::NotFound => self.words().foreign_marker(&format!(" ({error})")),
            _ => error,
        })
    }

    fn in_the_way(&mut self, name: &str) -> Result<Option<String>> {
        Ok(self.table_exists(name)?.then(|| format!("table {name}")))
    }

    fn enter(&mut self, collection: &Collection) -> Result<()> {
        if !self.table_exists(MARKER)? {
            let sql = statement::create_table(self.marker_dialect(), &marker())?;
            self.execute(&sql).map_err(|e| e.context(format!("cannot create table {MARKER}")))?;
            self.keep_to_ourselves(MARKER)?;
        }
        // Somebody else may have made it since the entries were read.
        check_marker(self)?;
        let sql = insert_into_marker(self.dialect(), &collection.name);
        self.execute(&sql)
    }

    fn strike(&mut self, name: &str) -> Result<()> {
        let d = self.dialect();
        let sql = format!("DELETE FROM {} WHERE {} = '{name}'", d.table(MARKER), d.quoted("name"));
        self.execute(&sql)
    }

    fn make(&mut self, collection: &Collection, known: bool) -> Result<()> {
        if known {
            check_table(self, &collection.name)?;
        }
        if let Some(RemoteCollection { server, link: Some(link) }) = &collection.remote {
            self.unlink(&collection.name)?;
            return self.link(collection, *server, link).inspect_err(|_| {
                // Without an entry nothing else would remove a part of it.
                let _ = self.unlink(&collection.name);
            });
        }
        let d = self.dialect();
        // A new name is not removed first: what somebody else has made of it since then makes this fail.
        let mut sql: Vec<String> =
            known.then(|| statement::drop_table(d, &collection.name)).into_iter().collect();
        sql.push(statement::create_table(d, collection)?);
        sql.extend(statement::create_indexes(d, collection)?);
        sql.iter().try_for_each(|sql| self.execute(sql))?;
        if collection.charset != Charset::default() {
            self.set_charset(&collection.name, collection.charset)?;
        }
        self.made(&collection.name)
    }

    fn clear(&mut self, collection: &Collection) -> Result<()> {
        check_table(self, &collection.name)?;
        let sql = statement::clear_table(self.dialect(), &collection.name);
        self.execute(&sql)
    }

    fn destroy(&mut self, name: &str) -> Result<()> {
        check_table(self, name)?;
        self.unlink(name)?;
        let sql = statement::drop_table(self.dialect(), name);
        self.execute(&sql)
    }

    fn remove_marker(&mut self) -> Result<()> {
        self.destroy(MARKER)?;
        self.swept()
    }

    fn keeps_insertion_order(&self) -> bool {
        SqlNamespaceOps::keeps_insertion_order(self)
    }

    fn has_statistics(&self) -> bool {
        true
    }

    fn analyse(&mut self, name: &str) -> Result<()> {
        let Some(analyse) = self.dialect().analyse else { return Ok(()) };
        let sql = format!("{analyse} {}", self.dialect().table(name));
        check_table(self, name)?;
        self.execute(&sql)
    }

    fn hold_statistics(&mut self, name: &str) -> Result<()> {
        let sql = self.hold_statistics_of(&self.dialect().table(name));
        sql.map_or(Ok(()), |sql| self.execute(&sql))
    }

    fn missing_statistics(&mut self, table: &str) -> Result<Option<String>> {
        if table.contains(['\'', '"', '`', '\\', '\0']) {
            return Ok(None);
        }
        self.unanalysed_table(table)
    }
}

/// The ownership table as a collection.
pub fn marker() -> Collection {
    let fields = vec![
        Field { name: "name", kind: FieldType::Text { max: 60 } },
        Field { name: "made_by", kind: FieldType::Text { max: 60 } },
        Field { name: "made_at", kind: FieldType::Int },
    ];
    Collection::new(MARKER, fields, vec![0])
}

/// The statement that adds a name to the ownership table, with the seconds since 1970. The name must not contain
/// quotes.
pub fn insert_into_marker(dialect: &Dialect, name: &str) -> String {
    let now = ownership::now().as_secs();
    format!("INSERT INTO {} VALUES ('{name}', '{MADE_BY}', {now})", dialect.table(MARKER))
}
