//! The house rules, once for all SQL engines: what Kurabe may make, empty and remove.
//!
//! A marker table, `kurabe_marker(name, made_by, made_at)`, holds the names of the tables that Kurabe made. A table
//! that exists without standing in it was made by someone else, whatever its name, and is left alone.

use super::dialect::Dialect;
use super::statement;
use crate::ours;
use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_core::driver::Namespace;
use kurabe_core::{Error, ErrorKind, Result};
use std::time::{SystemTime, UNIX_EPOCH};

/// The marker's own name; no collection may have it.
pub const MARKER: &str = "kurabe_marker";

/// What the house rules need of an SQL engine: one connection of its own.
pub trait House: Send {
    /// The engine's SQL.
    fn dialect(&self) -> &Dialect;

    /// The SQL by which the marker is made, where our tables are of a kind that may lose their rows or is otherwise
    /// unlike what the server makes by itself.
    fn marker_dialect(&self) -> &Dialect {
        self.dialect()
    }

    /// Sees to it that a table which was just made is what was asked for, and removes it where it is not.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) with what the server made instead, or the server's error.
    fn made(&mut self, _table: &str) -> Result<()> {
        Ok(())
    }

    /// Executes a statement that has no parameters and whose rows, if any, do not matter.
    ///
    /// # Errors
    /// The server's error.
    fn execute(&mut self, sql: &str) -> Result<()>;

    /// The first column, as text, of a statement without parameters.
    ///
    /// # Errors
    /// The server's error.
    fn column(&mut self, sql: &str) -> Result<Vec<String>>;

    /// Whether a table (or a view, or whatever else stands in its way) of this name exists where we would make it.
    ///
    /// # Errors
    /// The server's error.
    fn table_exists(&mut self, name: &str) -> Result<bool>;

    /// As [`Namespace::unanalysed`], of a table whose name holds neither quotes nor backslashes.
    ///
    /// # Errors
    /// The server's error.
    fn unanalysed(&mut self, _table: &str) -> Result<Option<String>> {
        Ok(None)
    }

    /// Removes what the engine made of its own accord for our tables, where these are gone and it is of no use to others.
    ///
    /// # Errors
    /// The server's error.
    fn swept(&mut self) -> Result<()> {
        Ok(())
    }

    /// Takes the lock that keeps a second run out, by a means that ends with the connection or the process.
    ///
    /// # Errors
    /// [`InUse`](ErrorKind::InUse) where another run holds it.
    fn claim(&mut self, run: &str) -> Result<()>;
}

/// The [`Namespace`] of an SQL engine.
#[derive(Debug)]
pub struct SqlNamespace<H> {
    house: H,
}

impl<H: House> SqlNamespace<H> {
    /// The namespace that works through this connection.
    pub fn new(house: H) -> Self {
        Self { house }
    }

    /// Refuses names that are not ours to give.
    fn check_name(name: &str) -> Result<()> {
        ours::check_name(name, &[MARKER])
    }

    /// Whether the marker exists and knows the name; and that nobody else's table of that name exists.
    fn known(&mut self, name: &str) -> Result<bool> {
        Self::check_name(name)?;
        let known = self.list()?.iter().any(|entry| entry == name);
        if !known && self.house.table_exists(name)? {
            let message =
                format!("{}: table {name} exists and was not made by Kurabe", self.house.dialect().engine);
            return Err(Error::new(ErrorKind::NotOurs, message).hint(format!(
                "it is left alone; rename it, or use another database (no entry in {MARKER})"
            )));
        }
        Ok(known)
    }

    /// As [`Self::known`], for what makes no sense on a table that is not there.
    fn must_be_ours(&mut self, name: &str) -> Result<()> {
        if self.known(name)? {
            return Ok(());
        }
        let message = format!("{}: there is no table {name}", self.house.dialect().engine);
        Err(Error::new(ErrorKind::NotFound, message))
    }

    fn enter(&mut self, name: &str) -> Result<()> {
        if !self.house.table_exists(MARKER)? {
            let sql = statement::create_table(self.house.marker_dialect(), &marker())?;
            self.house.execute(&sql).map_err(|e| e.context(format!("cannot make table {MARKER}")))?;
        }
        let sql = insert_into_marker(self.house.dialect(), name);
        self.house.execute(&sql)
    }

    fn strike(&mut self, name: &str) -> Result<()> {
        let d = self.house.dialect();
        let sql = format!("DELETE FROM {} WHERE {} = '{name}'", d.quoted(MARKER), d.quoted("name"));
        self.house.execute(&sql)
    }

    fn make(&mut self, collection: &Collection) -> Result<()> {
        let d = self.house.dialect();
        let mut sql =
            vec![statement::drop_table(d, &collection.name), statement::create_table(d, collection)?];
        sql.extend(statement::create_indexes(d, collection)?);
        sql.iter().try_for_each(|sql| self.house.execute(sql))?;
        self.house.made(&collection.name)
    }
}

impl<H: House> Namespace for SqlNamespace<H> {
    fn claim(&mut self, run: &str) -> Result<()> {
        self.house.claim(run)
    }

    fn create(&mut self, collection: &Collection) -> Result<()> {
        let known = self.known(&collection.name)?;
        // The marker first: whoever dies in between leaves an entry without a table, which the next run clears
        // away, and not a table without an entry, which no run would dare to touch.
        if !known {
            self.enter(&collection.name)?;
        }
        self.make(collection).map_err(|error| {
            // Best effort: an entry that stays behind is harmless.
            if !known && self.house.table_exists(&collection.name) == Ok(false) {
                let _ = self.strike(&collection.name);
            }
            error.context(format!("cannot make table {}", collection.name))
        })
    }

    fn clear(&mut self, collection: &Collection) -> Result<()> {
        self.must_be_ours(&collection.name)?;
        let sql = statement::clear_table(self.house.dialect(), &collection.name);
        self.house.execute(&sql)
    }

    fn analyse(&mut self, collection: &Collection) -> Result<()> {
        let Some(analyse) = self.house.dialect().analyse else { return Ok(()) };
        self.must_be_ours(&collection.name)?;
        let sql = format!("{analyse} {}", self.house.dialect().quoted(&collection.name));
        self.house.execute(&sql)
    }

    fn unanalysed(&mut self, table: &str) -> Result<Option<String>> {
        if table.contains(['\'', '"', '`', '\\', '\0']) {
            return Ok(None);
        }
        self.house.unanalysed(table)
    }

    fn remove(&mut self, name: &str) -> Result<()> {
        if !self.known(name)? {
            return Ok(());
        }
        let sql = statement::drop_table(self.house.dialect(), name);
        self.house.execute(&sql)?;
        self.strike(name)
    }

    fn list(&mut self) -> Result<Vec<String>> {
        if !self.house.table_exists(MARKER)? {
            return Ok(Vec::new());
        }
        // The columns of our marker are all named, so that a foreign table of its name gives an error; with the
        // table, since SQLite takes a quoted name that it does not know for a text.
        let d = self.house.dialect();
        let table = d.quoted(MARKER);
        let [name, by, at] =
            ["name", "made_by", "made_at"].map(|column| format!("{table}.{}", d.quoted(column)));
        // A space and not '': to Oracle an empty text is no value, and nothing differs from no value.
        let sql = format!("SELECT {name} FROM {table} WHERE {by} <> ' ' AND {at} > 0 ORDER BY {name}");
        self.house.column(&sql).map_err(|error| match error.kind() {
            ErrorKind::Server | ErrorKind::NotFound => Error::new(
                ErrorKind::NotOurs,
                format!("table {MARKER} is not the one that Kurabe makes ({error})"),
            )
            .hint("it is left alone; rename it, or use another database"),
            _ => error,
        })
    }

    fn finish(&mut self) -> Result<()> {
        let left = self.list()?;
        if !left.is_empty() {
            let message = format!("{MARKER} still holds {}", left.join(", "));
            return Err(Error::new(ErrorKind::Internal, message));
        }
        let sql = statement::drop_table(self.house.dialect(), MARKER);
        self.house.execute(&sql)?;
        self.house.swept()
    }
}

/// The marker as a collection.
pub fn marker() -> Collection {
    let fields = vec![
        Field { name: "name", kind: FieldType::Text { max: 60 } },
        Field { name: "made_by", kind: FieldType::Text { max: 60 } },
        Field { name: "made_at", kind: FieldType::Int },
    ];
    Collection::new(MARKER, fields, vec![0])
}

/// The statement that enters a name (one of ours, which holds no quotes) in the marker, with the seconds since 1970.
pub fn insert_into_marker(dialect: &Dialect, name: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs());
    let by = concat!("kurabe ", env!("CARGO_PKG_VERSION"));
    format!("INSERT INTO {} VALUES ('{name}', '{by}', {now})", dialect.quoted(MARKER))
}
