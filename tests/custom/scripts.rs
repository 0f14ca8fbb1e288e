//! pgbench's scripts.

use super::*;

#[test]
fn pgbench_scripts_run_on_every_sql_engine_by_weight() {
    let place = Place::new();
    let servers = sql_servers();
    let mut targets = vec!["sqlite:"];
    targets.extend(servers.iter().map(|server| server.url()));
    let script = place.file(
        "mine.sql",
        "-- a comment; with a semicolon\n\\set aid random(1, \\\n  10 * :scale)\n\\set what 'no' \n",
    );
    let answer = place.run(&["run", "pgbench", "-f", &script, "sqlite:"]).exit_code(2);
    assert!(answer.err.contains("mine.sql: line 4"), "{answer:?}");
    let script = place.file("mine.sql",
        "\\set aid random(1, 10 * :scale)\n\\if :aid > 5 and :client_id < 100\nSELECT abalance FROM pgbench_accounts\n  \
         WHERE aid = :aid AND 'it''s; :unknown' <> '';\n\\elif :aid > 3\n\\sleep 1 us\n\\else\nSELECT :aid + 1;\n\\endif\nSELECT 1",
    );
    let script = format!("{script}@3");
    let rest = "--init --scale 1 -D extra=1 --requests 40 --rounds 1 --clients 1,2".split(' ');
    let args = ["run", "pgbench", "-f", &script, "-b", "tpcb-like@2", "-b", "simple-update"];
    place.run(&args.into_iter().chain(rest).chain(targets.iter().copied()).collect::<Vec<_>>()).success();
    let report = place.report();
    for cell in cells(&report) {
        assert_eq!(cell["status"], "ok", "{cell:#}");
        // Half of the transactions insert into the history; all change rows, which the server does not count.
        assert_eq!(cell["verified"]["how"], "acknowledged", "{cell:#}");
        assert!(cell["verified"]["counted"].as_u64().unwrap() > 5, "{cell:#}");
    }
}

#[test]
fn invalid_script_is_rejected_with_file_and_line() {
    let place = Place::new();
    // Throwaway targets hold nothing that statements must not change.
    let target = format!("sqlite:{}", place.at("mine.db"));
    for (text, part) in [
        ("SELECT 1;\n\\gset\n", "line 2: \\gset is not supported"),
        ("\\setrandom a 1 10\nSELECT :a;", "write \\set name random(1, 10)"),
        ("\\sett a 1\nSELECT 1;", "line 1: unknown meta-command 'sett'; did you mean 'set'?"),
        ("SELECT 1;\n\nSELECT :nothing;", "line 3: unknown variable 'nothing'"),
        ("\\if 1 = 1\nSELECT 1;", "line 1: an \\if without its \\endif"),
        ("\\endif\nSELECT 1;", "line 1: \\endif without an \\if"),
        ("\n\\set a 1 +\nSELECT 1;", "line 2: the expression is incomplete"),
        ("\\sleep soon\nSELECT 1;", "line 1: invalid meta-command '\\sleep soon'"),
        ("UPDATE theirs SET a = 1;", "line 1: this statement may change data"),
        (
            "WITH u AS (UPDATE theirs SET n = 1 RETURNING n) SELECT substring(n FROM 1 FOR 3) FROM u;",
            "line 1: this statement may change data: a part of it writes",
        ),
        ("SELECT 1;\nSET GLOBAL max_connections = 5;", "line 2: this statement may change"),
        ("SELECT nextval('theirs');", "may change data: no read-only transaction stops NEXTVAL"),
        ("\\set a random(5, 1)\nSELECT :a;", "line 1: a range from 5 to 1 is empty"),
        (
            "\\set a 1\n\\set b random_gaussian(1, 5, 1.5)\nSELECT :b;",
            "line 2: the parameter of random_gaussian",
        ),
        ("\\set a 1\n", "sends no statement to the database"),
    ] {
        let script = place.file("mine.sql", text);
        let answer = place.run(&["run", "pgbench", "-f", &script, &target]).exit_code(2);
        assert!(answer.err.contains(part) && answer.err.contains("mine.sql"), "{text}: {answer:?}");
    }
    for (args, part) in [(["-f", "/no/such.sql"], "cannot be read"), (["--scale", "0"], "--write")] {
        place.run(&["run", "pgbench", args[0], args[1], &target]).exit_code(2).err_has(part);
    }
    // At run time an expression may fail too.
    let script = place.file("mine.sql", "\\set a 1 / (:client_id - :client_id)\nSELECT :a;");
    let args = ["run", "pgbench", "-f", &script, "sqlite:", "--requests", "5", "--rounds", "1"];
    place.run(&args).exit_code(4).out_has("line 1: division by zero");
}

#[test]
fn scripts_run_as_pgbench_runs_them_if_asked() {
    let Some(server) = kurabe_testbed::testing::server("postgres") else { return };
    let place = Place::new();
    let run = |name: &str, text: &str, rest: &[&str]| {
        let script = place.file(name, text);
        let usual =
            ["run", "pgbench", "-f", &script, server.url(), "--requests", "40", "--rounds", "1", "--write"];
        place.run(&[&usual[..], rest].concat())
    };
    let text = "/* outer /* inner; */ still; outer */\n\\set h random(1, 300000)\n\\if :h > 0\n\
                SELECT E'it\\'s; :fine' AS t, upper(to_hex(:h));\n\\endif\nSELECT relname FROM pg_class WHERE oid = :h;\n";
    let refused = run("hex.sql", text, &[]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    let said = format!("{}{}", refused.out, refused.err);
    assert!(said.contains("--statement literal") && said.contains("is executed"), "{said}");
    for simple in [["-M", "simple"], ["--statement", "literal"]] {
        run("hex.sql", text, &simple).success();
    }
    // pgbench puts values between quotes too, but for a name that it does not know.
    let text = "\\set h random(10, 59)\nSELECT 1 / CASE WHEN extract(second FROM ('12:30:' || ':h')::time) = :h \
                AND $$:h$$ || ':unknown' = ':h' || chr(58) || 'unknown' THEN 1 ELSE 0 END; -- ':h'\n";
    run("quoted.sql", text, &[]).exit_code(2).err_has(":h is within quotes").err_has("-M simple");
    run("quoted.sql", text, &["-M", "simple"]).success();
    let text = "BEGIN ISOLATION LEVEL SERIALIZABLE;\nSELECT sum(bbalance) FROM pgbench_branches;\n\
                UPDATE pgbench_branches SET bbalance = bbalance + 1;\nEND;\n";
    let usual = ["--init", "--scale", "1", "--clients", "4"];
    run("serial.sql", text, &usual).exit_code(4);
    run("serial.sql", text, &[&usual[..], &["--max-tries", "1000"]].concat()).success();
}

#[test]
fn gate_judges_scripts_on_two_targets_or_against_the_last_run_and_suites_name_scripts() {
    let place = Place::new();
    let read = place.file("read.sql", "SELECT abalance FROM pgbench_accounts WHERE aid = 7;");
    let change = place.file("change.sql", "UPDATE pgbench_accounts SET abalance = 1 WHERE aid = 7;");
    let scripts = [format!("{read}@3"), change.clone()];
    let gate = |targets: &[&str]| {
        let rest = ["--init", "--requests", "60", "--rounds", "3", "--interleave=off"];
        let words = ["gate", &scripts[0], &scripts[1]].into_iter().chain(targets.iter().copied()).chain(rest);
        place.run(&words.collect::<Vec<_>>())
    };
    let both = gate(&["sqlite:", "sqlite:"]);
    assert!(matches!(both.code, Some(0 | 6 | 7)), "{both:?}");
    assert!(both.out.starts_with("• The gate ") && both.out.lines().count() <= 20, "{both:?}");
    for kind in ["\nread ", "\nread p99 ", "\nchange ", "\nchange p99 ", "\ntransaction throughput "] {
        assert!(both.out.contains(kind), "{kind}: {both:?}");
    }
    // One target: the first run is the base of the next.
    let other = Place::new();
    let alone = |place: &Place| {
        place.run(&[
            "gate", &scripts[0], "sqlite:", "--init", "--requests", "60", "--rounds", "3", "--interleave=off",
        ])
    };
    alone(&other).success().err_has("the base of the next");
    alone(&other).exit_code(7).out_has("Nothing is decided");
    // Another script of this name is another workload, which has no run yet; one that is named is not judged.
    place.file("read.sql", "SELECT bbalance FROM pgbench_branches WHERE bid = 1;");
    let words =
        ["gate", &scripts[0], "sqlite:", "--init", "--requests", "60", "--rounds", "3", "--interleave=off"];
    other.run(&words).success().err_has("no earlier run of this workload");
    let names = other.run(&["runs", "ls", "--format", "json"]).success().out;
    let first: serde_json::Value = serde_json::from_str(names.lines().last().unwrap()).unwrap();
    let against = ["--against", first["run"].as_str().unwrap()];
    let text = other.run(&[&words[..], &against].concat()).exit_code(7).out;
    assert!(text.contains("text of scripts differs") && text.contains("read.sql@3 changed"), "{text}");
    place.file("read.sql", "SELECT abalance FROM pgbench_accounts WHERE aid = 7;");
    // A suite names the scripts, relative to itself, and pgbench's own.
    let text = "pgbench = [\"read.sql@3\", \"tpcb-like\"]\ninit = true\nrequests = 60\nrounds = 1\n";
    let suite = place.file("alone.toml", text);
    run(&place, &suite, &["sqlite:"]).success();
    let suite = place.file("several.toml", format!("targets = \"sqlite:\"\n[[run]]\n{text}"));
    run(&place, &suite, &[]).success().out_has("read");
    let wrong = place.file("wrong.toml", "pgbench = [\"nofile.sql\"]\n");
    run(&place, &wrong, &["sqlite:"]).exit_code(2).err_has("nofile.sql cannot be read");
}

#[test]
fn statement_is_prepared_when_it_is_executed_if_the_server_cannot_before() {
    let place = Place::new();
    let made = "CREATE TEMPORARY TABLE t1 (a int)";
    for server in sql_servers() {
        let drop = if server.url().starts_with("postgres") {
            ("BEGIN;\n", " ON COMMIT DROP;\n", "END;")
        } else {
            ("", ";\n", "DROP TEMPORARY TABLE t1;")
        };
        let text =
            format!("{}{made}{}INSERT INTO t1 VALUES (1);\nSELECT a FROM t1;\n{}", drop.0, drop.1, drop.2);
        let script = place.file("made.sql", text);
        let usual =
            ["run", "pgbench", "-f", &script, server.url(), "--requests", "20", "--rounds", "1", "--write"];
        for how in [&["-M", "prepared"][..], &["-M", "extended"], &["-M", "prepared", "-C"]] {
            place.run(&[&usual[..], how].concat()).success();
        }
        // What is never there is an error with its place, as before.
        let script = place.file("never.sql", "SELECT 1;\nSELECT a FROM t2;");
        let usual =
            ["run", "pgbench", "-f", &script, server.url(), "--requests", "20", "--rounds", "1", "--write"];
        place.run(&usual).exit_code(4).out_has("never.sql: line 2");
    }
}

#[test]
fn tries_without_a_limit_need_an_end_and_retries_are_shown() {
    let Some(server) = kurabe_testbed::testing::server("postgres") else { return };
    let place = Place::new();
    let text = "BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT sum(bbalance) FROM pgbench_branches;\n\\sleep 1 ms\n\
                UPDATE pgbench_branches SET bbalance = bbalance + 1;\nEND;\n";
    let script = place.file("meet.sql", text);
    let usual = [
        "run",
        "pgbench",
        "--init",
        "-f",
        &script,
        server.url(),
        "-c",
        "4",
        "--rounds",
        "1",
        "--max-tries",
        "0",
    ];
    place
        .run(&[&usual[..], &["--requests", "40"]].concat())
        .exit_code(2)
        .err_has("--max-tries 0 has no limit");
    place.run(&[&usual[..], &["-T", "1"]].concat()).success().out_has("retries/op");
    let page = place.at("page.html");
    place.run(&["report", "last", "--format", "html", "-o", &page]).success();
    assert!(std::fs::read_to_string(page).unwrap().contains("retries/op"));
    let gauges = place.run(&["report", "--format", "openmetrics"]).success().out;
    let gauge = gauges.lines().find(|line| line.starts_with("kurabe_retries_per_operation{"));
    let retries: f64 = gauge.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    assert!(retries > 0.0, "{gauges}");
    // Without a success, a transaction ends with the time limit.
    let script = place.file("never.sql", "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$;");
    let args = [
        "run",
        "pgbench",
        "-f",
        &script,
        server.url(),
        "-T",
        "1",
        "--rounds",
        "1",
        "--max-tries",
        "0",
        "--write",
    ];
    place.run(&[&args[..], &["--timeout", "300ms"]].concat()).exit_code(4).out_has("the limit of --timeout");
}

#[test]
fn quoted_and_qualified_names_mean_the_tables_of_the_run_and_a_byte_order_mark_means_nothing() {
    let place = Place::new();
    let servers = sql_servers();
    let text = "\u{feff}\\set a random(1, 1000)\nSELECT abalance FROM \"pgbench_accounts\" WHERE aid = :a;\n\
                UPDATE public.pgbench_tellers SET tbalance = tbalance + 1 WHERE tid = 1;\n";
    let script = place.file("quoted.sql", text);
    let targets = ["sqlite:"].into_iter().chain(servers.iter().map(|server| server.url()));
    let usual =
        ["run", "pgbench", "--init", "-f", &script, "--requests", "20", "--rounds", "1", "--interleave=off"];
    place.run(&usual.into_iter().chain(targets).collect::<Vec<_>>()).success();
}

#[test]
fn statements_of_one_request_are_text_for_postgresql() {
    let place = Place::new();
    let script = place.file("joined.sql", "SELECT 1\\; SELECT 2, 3;");
    let args = ["run", "pgbench", "-f", &script, "--requests", "20", "--rounds", "1", "--write"];
    let refused = place.run(&[&args[..], &["sqlite:"]].concat());
    refused.exit_code(2).err_has("cannot be prepared").err_has("-M simple");
    let answer = place.run(&[&args[..], &["sqlite:", "-M", "simple"]].concat());
    assert!(answer.code != Some(0) && answer.err.contains("has no statement for SQLite"), "{answer:?}");
}

#[test]
fn option_of_pgbench_that_is_not_taken_is_refused_with_what_to_write() {
    let place = Place::new();
    let script = place.file("one.sql", "SELECT 1;");
    for (command, words, part) in [
        ("run pgbench -f", "-nL 100", "--slo"),
        ("run pgbench -f", "-d shop", "postgres://user@host:port/database"),
        ("run pgbench -f", "--fillfactor=90", "pgbench -i"),
        ("gate", "-r", "results of its own"),
    ] {
        let words: Vec<&str> =
            command.split(' ').chain([&*script]).chain(words.split(' ')).chain(["sqlite:"]).collect();
        place.run(&words).exit_code(2).err_has("pgbench's option").err_has(part);
    }
}
