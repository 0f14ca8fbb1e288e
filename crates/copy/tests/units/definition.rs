//! The words of a `CREATE TABLE` of SQLite. It is a module of the one that reads them.

use super::*;

#[test]
fn definition_is_read_by_its_words() {
    let sql = "CREATE TABLE \"x (y\" (name TEXT DEFAULT ',COLLATE' /* , */, \"na\"\"me\" TEXT COLLATE nocase, -- end,\n\
               n INT CHECK (n IN (1, 2)), UNIQUE (n) ON CONFLICT REPLACE) STRICT, WITHOUT ROWID";
    let read = Definition::read(sql);
    assert_eq!(read.parts.len(), 4, "{:?}", read.parts);
    assert_eq!(read.collation("name"), None);
    assert_eq!(read.collation("NA\"ME").as_deref(), Some("NOCASE"));
    assert!(read.parts_with(&["AUTOINCREMENT"]).is_empty() && read.parts_with(&["default"]).len() == 1);
    assert_eq!(read.parts_with(&["CHECK"]), [("n".to_owned(), "n INT CHECK ( n IN ( 1 , 2 ) )".to_owned())]);
    assert_eq!(read.parts_with(&["ON", "CONFLICT"]).len(), 1);
    // The last text ends within a quote.
    let parts = Definition::read("(a'it''s'[b c]`d`, 'e)").parts;
    assert_eq!(parts, [vec!["a", "'it''s'", "[b c]", "`d`"], vec!["'e)"]]);
}
