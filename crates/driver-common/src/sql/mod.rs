//! Shared code of the SQL drivers: dialects, the text of every statement, and the namespace's ownership rules.

mod dialect;
mod literal;
mod namespace;
mod raw;
mod shape;
pub mod sqlstate;
mod statement;
mod statistics;
mod template;
mod transfer;

pub use crate::ownership::MARKER;
pub use dialect::{Casts, Dialect, LinkedStatements, OwnStatements, plain_operator};
pub use literal::{
    Literals, Read, hex, quoted, quoted_hex, read_int, read_micros, read_rows, standard, unfit,
};
pub use namespace::SqlNamespaceOps;
pub use namespace::{insert_into_marker, marker};
pub use raw::{ENGINES, fill, parts, supports};
pub use shape::{Shape, shape};
pub use statement::{
    clear_table, columns, count, create_indexes, create_table, drop_table, find_range, insert, joined,
    on_conflict_do_update, text,
};
pub use statistics::outgrown;
pub use template::{Template, with_gaps};
pub use transfer::RowsText;
