//! What statements ask of their tables, and the indexes that are proposed for it.

use kurabe_advise::indexes::{Known, Schemas, missing, unused};
use kurabe_advise::shapes::{Part, Shape, shapes};
use kurabe_capture::statements::Asked;
use kurabe_copy::catalog::{Collation, Column, DefaultValue, ForeignKey, Index, Table};
use kurabe_copy::engines;
use kurabe_protocol::sql::Dialect;

fn table(name: &str, columns: &[&str]) -> Table {
    let column = |name: &&str| Column {
        name: (*name).to_owned(),
        declared: "integer".to_owned(),
        nullable: true,
        default: DefaultValue::Null,
        identity: false,
        collation: Collation::Bytes,
        generated: None,
        next: None,
        has_binary: false,
    };
    Table { name: name.to_owned(), columns: columns.iter().map(column).collect(), ..Table::default() }
}

/// Those of the schema in which names are looked up, and one of another.
fn tables() -> [(String, Table); 3] {
    let of = |schema: &str, name: &str, columns: &[&str]| (schema.to_owned(), table(name, columns));
    [
        of("", "item", &["id", "order_id", "state", "at", "name"]),
        of("", "orders", &["id", "customer", "total", "state"]),
        of("sales", "item", &["id", "price", "order_id"]),
    ]
}

fn asked(text: &str) -> Asked {
    let gaps = text.matches('?').count();
    let constants = (0..gaps).map(|gap| Some(gap.to_string())).collect();
    Asked {
        text: text.to_owned(),
        template: text.replace('?', "\0"),
        constants,
        total_ns: 1,
        ..Asked::default()
    }
}

fn read(text: &str) -> Vec<Shape> {
    shapes(&asked(text), Dialect::POSTGRES, &tables())
}

/// The columns: equal ones, `<` ranges, `^` beginnings, order with its direction.
fn shown(shape: &Shape) -> String {
    let part = |part: &Part| match part {
        Part::Call { function, column } => format!("{function}({column})"),
        Part::Beginning(column) => format!("^{column}"),
        other => other.column().to_owned(),
    };
    let equal = shape.equal.iter().map(|one| part(&one.part));
    let range = shape.range.iter().map(|one| format!("<{}", part(one)));
    let order = shape.order.iter().map(|(column, down)| format!("{}{column}", if *down { "-" } else { "+" }));
    equal.chain(range).chain(order).collect::<Vec<_>>().join(" ")
}

#[test]
fn compared_and_ordered_columns_are_found_in_every_clause() {
    for (text, wanted) in [
        ("SELECT * FROM item WHERE order_id = ?", "order_id"),
        (
            "SELECT name FROM item i WHERE i.state = ? AND i.at >= ? ORDER BY i.at DESC LIMIT ?",
            "state <at -at",
        ),
        ("UPDATE item SET name = ? WHERE order_id IN (?) AND id <> ?", "order_id"),
        ("DELETE FROM public.item AS x WHERE ? < x.at", "<at"),
        ("SELECT id FROM item WHERE lower(name) = ? AND at BETWEEN ? AND ?", "lower(name) <at"),
        ("SELECT \"id\" FROM \"item\" WHERE \"item\".\"name\" LIKE ?", "<^name"),
        ("SELECT id FROM item WHERE state IS NULL ORDER BY at + ?, id", "state +id"),
        ("INSERT INTO item (order_id, state) VALUES (?, ?)", ""),
        ("SELECT max(at) FROM item WHERE state = ?", "state +at"),
        ("SELECT state, count(*) FROM item GROUP BY state HAVING count(*) > ?", "+state"),
        ("SELECT price FROM sales.item WHERE price > ?", "<price"),
    ] {
        assert_eq!(shown(&read(text)[0]), wanted, "{text}");
    }
}

#[test]
fn joins_and_subqueries_compare_columns_of_each_table() {
    let shapes = read(
        "SELECT o.id FROM orders o JOIN item i ON i.order_id = o.id WHERE o.customer = ? AND i.state = ?",
    );
    assert_eq!(shapes.iter().map(shown).collect::<Vec<_>>(), ["id customer", "order_id state"]);
    let shapes = read(
        "SELECT total FROM orders WHERE id IN (SELECT order_id FROM item WHERE name = ?) ORDER BY total",
    );
    assert_eq!(shapes.iter().map(shown).collect::<Vec<_>>(), ["id +total", "name"]);
}

#[test]
fn constants_and_given_columns_are_those_of_the_table() {
    let shape = &read("SELECT name, at FROM item WHERE state = ? AND order_id = ? + ?")[0];
    let constants: Vec<_> = shape.equal.iter().map(|one| one.constant.as_deref()).collect();
    assert_eq!(constants, [Some("0"), None]);
    assert_eq!(shape.given.iter().map(String::as_str).collect::<Vec<_>>(), ["at", "name"]);
    assert!(!shape.gives_all && read("SELECT i.* FROM item i WHERE id = ?")[0].gives_all);
}

/// The statements that are proposed by `propose` for these, on tables of which some have indexes and keys.
fn proposed(
    engine: &str,
    texts: &[&str],
    propose: impl Fn(&Known<'_>) -> Vec<kurabe_advise::change::Proposal>,
) -> Vec<String> {
    let mut tables = tables();
    let index = |column: &str, unique| Index {
        name: format!("by_{column}"),
        unique,
        columns: vec![column.to_owned()],
    };
    tables[0].1.indexes =
        vec![index("order_id", false), index("state", false), index("at", false), index("name", true)];
    tables[2].1.indexes = vec![index("price", false)];
    tables[0].1.foreign = vec![ForeignKey {
        name: String::new(),
        columns: vec!["order_id".to_owned()],
        parent: "orders".to_owned(),
        parent_columns: vec!["id".to_owned()],
        on_update: String::new(),
        on_delete: String::new(),
        proven: true,
    }];
    let all: Vec<Asked> = texts.iter().map(|text| asked(text)).collect();
    let shapes: Vec<_> = all.iter().map(|one| shapes(one, Dialect::POSTGRES, &tables)).collect();
    let engine = engines::of_scheme(engine).unwrap();
    let schemas = Schemas { tables: tables.into(), others: vec!["busy".to_owned()] };
    let dialect = Dialect::POSTGRES;
    let known =
        Known { engine, has_expressions: true, dialect, schemas: &schemas, asked: &all, shapes: &shapes };
    propose(&known).iter().map(|one| one.change.sql(engine).unwrap()).collect()
}

#[test]
fn index_that_no_statement_names_is_dropped_unless_a_key_needs_it() {
    let writes = "INSERT INTO item SELECT * FROM sales.item WHERE id = ?";
    let others = "DELETE FROM sales.item WHERE id = ?";
    let drops = |uses: &str| proposed("postgres", &[writes, others, uses], unused);
    // That of a foreign key, and a unique one, never.
    assert_eq!(
        drops("SELECT * FROM item WHERE id = ?"),
        ["DROP INDEX \"by_state\";", "DROP INDEX \"by_at\";", "DROP INDEX \"sales\".\"by_price\";"]
    );
    for uses in [
        "SELECT id FROM item WHERE at <> ?",
        "SELECT max(at) FROM item",
        "SELECT at, count(*) FROM item GROUP BY at",
        "SELECT id FROM item WHERE (id, at) > (?, ?)",
        "SELECT id FROM item ORDER BY id, at",
        "SELECT id FROM orders JOIN item i USING (at)",
    ] {
        assert!(!drops(uses).contains(&"DROP INDEX \"by_at\";".to_owned()), "{uses}");
    }
    assert_eq!(drops("SELECT * FROM busy"), Vec::<String>::new());
    // What is only read costs no write.
    let dropped = proposed("postgres", &[writes], unused);
    assert!(!dropped.contains(&"DROP INDEX \"sales\".\"by_price\";".to_owned()), "{dropped:?}");
    assert_eq!(proposed("postgres", &["SELECT * FROM item WHERE id = ?"], unused), Vec::<String>::new());
    let of_mysql =
        proposed("mysql", &[writes, others, "SELECT id FROM item WHERE at = ? AND state = ?"], unused);
    assert_eq!(of_mysql, ["ALTER TABLE `sales`.`item` DROP INDEX `by_price`;"]);
}

#[test]
fn index_of_a_table_in_another_schema_is_made_there() {
    let made = |engine| proposed(engine, &["SELECT id FROM sales.item WHERE order_id = ?"], missing);
    assert_eq!(
        made("postgres")[0],
        "CREATE INDEX \"item_order_id_idx\" ON \"sales\".\"item\" (\"order_id\");"
    );
    assert_eq!(made("mysql")[0], "CREATE INDEX `item_order_id_idx` ON `sales`.`item` (`order_id`);");
}
