//! The messages for invalid files, and unexpected answers.

use super::{SHOP, run};
use crate::support::Place;

#[test]
fn unexpected_answer_fails_trial() {
    let place = Place::new();
    for (step, part) in [
        ("{ get = 'a', key = 3, rows = 0 }", "the answer has 1 rows, expected 0"),
        ("{ get = 'a', key = 11 }", "the answer has 0 rows, expected 1"),
        ("{ get = 'a', key = ':id', check = { n = 8 } }", "column 1 of row 1 is 7, expected 8"),
        ("{ update = 'a', key = 11, set = { n = 1 } }", "0 rows were changed, expected 1"),
        ("{ sql = 'SELECT 1 WHERE 1 = 0', rows = 1 }", "the answer has 0 rows, expected 1"),
        ("{ sql = \"SELECT n FROM {a} WHERE id = :id\", check = { 1 = 'x' } }", "is 7, expected 'x'"),
        ("{ sql = \"UPDATE {a} SET n = 7 WHERE id > :id\", affected = 11 }", "rows were changed, expected"),
        ("{ sql = \"DELETE FROM {a} WHERE id = :id\", adds = 'a' }", "the server counts"),
        ("{ sql = \"INSERT INTO {a} VALUES (1, 1)\" }", "transaction t, step 1"),
        ("{ sql = 'SELEC 1' }", "transaction t, step 1"),
        ("{ get = 'a', key = ':zero' }", "the answer has 0 rows"),
    ] {
        let text = format!(
            "[collection.a]\nrows = 10\nkey = 'id'\nfields = {{ id = 'int', n = {{ type = 'int', value = 7 }} }}\n\
             [transaction.t]\ndraw = {{ id = {{ row = 'a' }}, zero = ':id - :id' }}\nsteps = [{step}]\n"
        );
        let path = place.file("wrong.toml", &text);
        let answer = run(&place, &path, &["--requests", "20", "--rounds", "1", "sqlite:"]);
        assert_ne!(answer.code, Some(0), "{step}: {answer:?}");
        assert!((answer.out + &answer.err).replace("\n  ", " ").contains(part), "{step}: {part}");
    }
}

#[test]
fn error_in_file_is_reported_with_place_and_suggestion() {
    let place = Place::new();
    let good = "[collection.users]\nrows = 10\nkey = 'id'\nfields = { id = 'int', name = { type = 'text', max = 9 } }\n\
                [transaction.t]\ndraw = { id = { row = 'users' } }\nsteps = [{ get = 'users', key = ':id' }]\n";
    for (from, to, part) in [
        ("rows = 10", "rwos = 10", "collection users: unknown key 'rwos'; did you mean 'rows'?"),
        ("'int'", "'imt'", "field id: unknown type 'imt'; did you mean 'int'?"),
        (
            "get = 'users'",
            "get = 'user'",
            "transaction t, step 1: unknown collection or table 'user'; did you mean 'users'?",
        ),
        ("get =", "gte =", "did you mean 'get'?"),
        ("':id'", "':di'", "unknown variable 'di'"),
        ("row = 'users'", "rwo = 'users'", "draw id: unknown key 'rwo'; did you mean 'row'?"),
        ("{ row = 'users' }", "'randon(1, 10)'", "unknown function 'randon'; did you mean 'random'?"),
        ("{ row = 'users' }", "':id + 1'", "depends on its own value"),
        ("steps = [{ get = 'users', key = ':id' }]", "", "it has no 'steps'"),
        ("key = ':id'", "kye = ':id'", "did you mean 'key'?"),
        ("[transaction.t]", "[transactoin.t]", "unknown key 'transactoin'; did you mean 'transaction'?"),
        ("rows = 10", "rows = 10\nkey = 3", "line"),
        (
            "{ get = 'users', key = ':id' }",
            "{ sql = 'DELETE FROM theirs' }",
            "may change data that Kurabe did not create",
        ),
        ("{ get = 'users', key = ':id' }", "{ sql.mysqll = 'SELECT 1' }", "did you mean 'mysql'?"),
        ("{ get = 'users', key = ':id' }", "{ sql = 'COMMIT' }", "use the step \"commit\""),
        ("max = 9", "max = 9, length = 20", "does not fit 'max' 9"),
        ("draw = { id", "draw = { i_d = 'random(1, 2)', now", "already has a value"),
        ("{ row = 'users' }", "{ uniform = [5, 1] }", "transaction t, draw id: a range from 5 to 1 is empty"),
        ("rows = 10", "rows = '3 - 8'", "collection users, rows: -5 is not a valid number of rows"),
        (
            "{ get = 'users', key = ':id' }",
            "{ sql = 'WITH u AS (DELETE FROM theirs RETURNING 1) SELECT 1 FROM u' }",
            "did not create: a part of it writes",
        ),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good);
        let path = place.file("wrong.toml", &text);
        // Throwaway targets hold nothing that statements must not change.
        let target = format!("sqlite:{}", place.at("mine.db"));
        run(&place, &path, &[&target]).exit_code(2).err_has(part).err_has("wrong.toml");
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "an error left a run behind");
}

#[test]
fn invalid_variable_is_reported_with_place_before_run() {
    let place = Place::new();
    let path = place.file("shop.toml", SHOP);
    place.file("towns.txt", "Kyoto\n");
    run(&place, &path, &["-D", "users=-5", "sqlite:"])
        .exit_code(2)
        .err_has("shop.toml: line 6: collection users, rows: -5 is not a valid number of rows");
    run(&place, &path, &["-D", "users=0", "sqlite:"])
        .exit_code(2)
        .err_has("shop.toml: line 18: transaction browse, draw id: a range from 1 to 0 is empty");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "an error left a run behind");
    // Unreached expressions are not evaluated: pgbench runs this too.
    let script =
        place.file("far.sql", "\\set a 1\n\\if :scale > 10\n\\set a random(11, :scale)\n\\endif\nSELECT :a;");
    let args = ["run", "pgbench", "-f", &script, "--requests", "5", "--rounds", "1", "sqlite:"];
    place.run(&args).success();
}
