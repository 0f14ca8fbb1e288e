//! SQL: the tokens of a text in the dialects of engines, what a statement does by these, and what it may change.
//!
//! Nothing here parses: it is known where words are, and which words stand beside each other.

mod columns;
mod effects;
mod lexer;
mod statement;

pub use columns::columns_of_values;
pub use effects::{are_several, verbs};
pub use lexer::{Dialect, Kind, Token, Tokens, tokens};
pub use statement::{Order, Statement, Varies, first_word, order, with_order_keys};
