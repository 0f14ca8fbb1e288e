//! What pgbench's own regression tests (PostgreSQL's `src/bin/pgbench/t/001_pgbench_with_server.pl`) check, one script for each behaviour, beside
//! pgbench itself where it is installed. `docs/custom-workloads.md` has the same table.

use super::*;
use std::process::Command;

/// What becomes of the scripts of a behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Both run it.
    Alike,
    /// Both refuse it, or fail while it runs.
    Fails,
    /// pgbench runs it; Kurabe names what it does not take.
    Refused,
    /// Kurabe runs it; pgbench does not.
    More,
}

use Outcome::{Alike, Fails, More, Refused};

impl Outcome {
    /// Its words in the table.
    fn shown(self) -> &'static str {
        match self {
            Alike => "runs alike",
            Fails => "fails alike",
            Refused => "refused by name",
            More => "runs, and not in pgbench",
        }
    }
}

/// A behaviour by its words in the table, and its outcome; then options and a script of each case, and for what fails or is refused a
/// part of the message.
type Case = (&'static str, &'static str, &'static str);
const BEHAVIOURS: &[(&str, Outcome, &[Case])] = &[
    (
        "built-in scripts in each protocol, also by the beginning of their names, with `-C` and `-n`",
        Alike,
        &[
            ("-b t -M simple -C -n", "", ""),
            ("-b si -M extended -c 2", "", ""),
            ("-b se -M prepared -c 2 -j 2", "", ""),
            ("-S", "", ""),
            ("-N", "", ""),
        ],
    ),
    (
        "scripts with values in the text, and as parameters with casts; `:scale`, `:client_id`, `:random_seed`, `-D` of each type",
        Alike,
        &[
            (
                "-M prepared",
                "\\set aid random(1, :scale * 100000)\nSELECT abalance::int AS b FROM pgbench_accounts WHERE aid = :aid;",
                "",
            ),
            (
                "-M prepared",
                "BEGIN;\n\\set foo 1\nSELECT :foo::int + :scale::int * :client_id::int;\nCOMMIT;",
                "",
            ),
            (
                "-M simple -Dn=null -Dt=t -Df=of -Dd=1.0 -Di=+3",
                "\\set a :n IS NULL AND NOT :f AND :t\nSELECT 1 / CASE WHEN :a AND :d = 1 AND :i = 3 THEN 1 ELSE 0 END;",
                "",
            ),
            (
                "-M extended",
                "\\set v0 NULL\n\\set v1 TRUE\n\\set v3 -54.21E-2\nSELECT :v0::text, :v1::bool, :v3::float, :random_seed::bigint;",
                "",
            ),
        ],
    ),
    (
        "expressions: operators, functions, `CASE`, `NULL`, laziness, `\\if`, `\\elif`, `\\else`, lines that go on",
        Alike,
        &[
            (
                "-M simple",
                "\\set a 17 / (4|1) + ( 4 + (7 >> 2))\n\\set b - (3 * 4 - (-(~ 1) + -(~ 0))) / -1 + 3 % -1\n\\set c 64 % (((2 + 1 * 2 + (1 # 2) | 4 * (2 & 11)) - (1 << 2)) + 2)\n\
              SELECT 1 / CASE WHEN (:a, :b, :c) = (8, 9, 12) THEN 1 ELSE 0 END;",
                "",
            ),
            (
                "-M simple",
                "\\set a pow(2.0,10)\n\\set b greatest(5, 4) + least(-5, -4)\n\\set c int(7.3) + abs(-4)\n\\set d CASE \\\n WHEN FALSE THEN 1 ELSE 2 END\n\
              SELECT 1 / CASE WHEN (:a, :b, :c, :d) = (1024, 0, 11, 2) THEN 1 ELSE 0 END;",
                "",
            ),
            (
                "-M simple",
                "\\set a hash(10, 5432) = hash_murmur2(10, 5432) and hash_murmur2(10, 5432) = -5817877081768721676 and hash_fnv1a(10, 5432) = -7793829335365542153\n\
              \\set b permute(0, 3) + permute(1, 3) + permute(2, 3)\nSELECT 1 / CASE WHEN :a AND :b = 3 THEN 1 ELSE 0 END;",
                "",
            ),
            (
                "-M simple",
                "\\set zy 0\n\\set yz case when :zy = 0 then -1 else (1 / :zy) end\n\\if :yz > 0\nSELECT 1/0;\n\\elif :yz = -1\nSELECT 1;\n\\else\nSELECT 1/0;\n\\endif",
                "",
            ),
            (
                "-M simple",
                "\\set z random_zipfian(1, 9, 1.3)\n\\set e random_exponential(100, 199, 10.0)\n\\set g random_gaussian(1000, 1999, 10.0)\n\
              SELECT 1 / CASE WHEN :z BETWEEN 1 AND 9 AND :e BETWEEN 100 AND 199 AND :g BETWEEN 1000 AND 1999 THEN 1 ELSE 0 END;",
                "",
            ),
            ("-M simple", "\\set min -9223372036854775808\n\\set max -(:min + 1)\nSELECT :max;", ""),
        ],
    ),
    (
        "`\\sleep` with a number, a variable and each unit",
        Alike,
        &[(
            "",
            "\\set zero 0\n\\set one 1.0\n\\sleep :one ms\n\\sleep 100 us\n\\sleep 0 s\n\\sleep :zero\nSELECT 1;",
            "",
        )],
    ),
    (
        "`\\;`: several statements in one request (`-M simple`, with `--write`)",
        Alike,
        &[("-M simple", "\\; SELECT 0 AS a \\; SELECT 5 AS b, 6 AS c \\; ;", "")],
    ),
    (
        "types and temporary tables that a script makes and drops, in prepared mode; functions with `BEGIN ATOMIC`",
        Alike,
        &[
            ("-c 3 -M prepared", "CREATE TYPE pg_temp.e AS ENUM ('a', 'b'); DROP TYPE pg_temp.e;", ""),
            (
                "-M extended",
                "BEGIN;\nCREATE TEMP TABLE t1 (a int) ON COMMIT DROP;\nINSERT INTO t1 VALUES (1);\nEND;",
                "",
            ),
            (
                "-M prepared",
                "CREATE OR REPLACE FUNCTION pg_temp.f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 2 END; END;",
                "",
            ),
        ],
    ),
    ("a rate (`-R`), without a limit of the latency", Alike, &[("-S -R 100 -t 30", "", "")]),
    (
        "a transaction that is open at the end of a script; errors of the server",
        Fails,
        &[
            ("", "BEGIN;SELECT 1;", "transaction open at the end"),
            ("-M prepared", "SELECT 1 + ;", "syntax error"),
            ("-M prepared", "SELECT 1 / (random() / 2)::int;", "division by zero"),
        ],
    ),
    (
        "expressions that cannot be read: `\\set i 1 +`, unknown functions and characters, wrong numbers of arguments, `\\set` alone",
        Fails,
        &[
            ("", "\\set 1a 5\nSELECT 1;", "line 1"),
            ("", "\\set i 1 +\nSELECT 1;", "line 1"),
            ("", "\\set i noSuchFunction()\nSELECT 1;", "line 1"),
            ("", "\\set . 1\nSELECT 1;", "line 1"),
            ("", "\\set i ;\nSELECT 1;", "line 1"),
            ("", "\\set i\nSELECT 1;", "line 1"),
            ("", "\\set\nSELECT 1;", "line 1"),
            ("", "\\set i CASE TRUE THEN 1 ELSE 0 END\nSELECT 1;", "line 1"),
            ("", "\\set d ln(1.0, 2.0))\nSELECT 1;", "line 1"),
            ("", "\\set i greatest())\nSELECT 1;", "line 1"),
            ("", "\\set i :nosuchvariable\nSELECT 1;", "nosuchvariable"),
        ],
    ),
    (
        "values out of range: divisors, ranges and parameters of random numbers, overflow of numbers, wrong types",
        Fails,
        &[
            ("", "\\set i 1/0\nSELECT 1;", "division by zero"),
            ("", "\\set i random(5,3)\nSELECT 1;", "empty"),
            (
                "-D minint=-9223372036854775808 -D maxint=9223372036854775807",
                "\\set i random(:minint, :maxint)\nSELECT 1;",
                "line 1",
            ),
            ("", "\\set i random_gaussian(0, 10, 1.0)\nSELECT 1;", "line 1"),
            ("", "\\set i random_exponential(0, 10, 0.0)\nSELECT 1;", "line 1"),
            ("", "\\set i random_zipfian(0, 10, 1)\nSELECT 1;", "line 1"),
            ("", "\\set i random_zipfian(0, 10, 1000000)\nSELECT 1;", "line 1"),
            ("-D foo=bla", "\\set i :foo + 1\nSELECT 1;", "line 1"),
            ("", "\\set b NOT 0.0\nSELECT 1;", "line 1"),
            ("", "\\set i TRUE + 2\nSELECT 1;", "line 1"),
            ("", "\\set d ln(TRUE)\nSELECT 1;", "line 1"),
            ("", "\\set b random(FALSE, TRUE)\nSELECT 1;", "line 1"),
            ("", "\\set i int(1E32)\nSELECT 1;", "line 1"),
            ("", "\\set i (1<<62) + (1<<62)\nSELECT 1;", "line 1"),
            ("", "\\set i 0 - (1<<62) - (1<<62) - (1<<62)\nSELECT 1;", "line 1"),
            ("", "\\set i 2 * (1<<62) * 2\nSELECT 1;", "line 1"),
            ("-D minint=-9223372036854775808", "\\set i :minint / -1\nSELECT 1;", "line 1"),
            ("", "\\set i permute(0, 0)\nSELECT 1;", "line 1"),
            ("-D badtrue=trueXXX", "\\set b :badtrue or true\nSELECT 1;", "line 1"),
        ],
    ),
    (
        "`\\sleep` with other words, meta-commands that there are not, an empty script, `COPY` to the client",
        Fails,
        &[
            ("", "\\sleep :nosuchvariable\nSELECT 1;", "line 1"),
            ("", "\\sleep too many args\nSELECT 1;", "line 1"),
            ("", "\\sleep\nSELECT 1;", "line 1"),
            ("", "\\sleep 1 week\nSELECT 1;", "line 1"),
            ("", "\\nosuchcommand\nSELECT 1;", "line 1"),
            ("", "", "no statement"),
            ("", "COPY pgbench_branches TO STDOUT;", "nor are they by pgbench"),
            ("-t 1 --max-tries 0", "SELECT 1;", "no limit"),
        ],
    ),
    (
        "`\\gset`, `\\aset`, `\\shell`, `\\setshell`, `\\startpipeline`, `\\endpipeline`, and `debug()` in expressions",
        Refused,
        &[
            ("", "SELECT 0 AS i0 \\gset\nSELECT 1;", "\\gset is not supported"),
            ("", "SELECT 0 AS i0 \\aset\nSELECT 1;", "\\aset is not supported"),
            ("", "\\shell echo a\nSELECT 1;", "\\shell is not supported"),
            ("", "\\setshell n echo 1\nSELECT 1;", "\\setshell is not supported"),
            ("-M extended", "\\startpipeline\nselect 1;\n\\endpipeline", "\\startpipeline is not supported"),
            ("", "\\set i debug(1)\nSELECT 1;", "debug"),
        ],
    ),
    (
        "`--latency-limit`, `--log` and its like, `-r`, `--random-seed`, options of tables with `-i`",
        Refused,
        &[
            ("-S -n -L 1000", "", "--slo"),
            ("-S -n --latency-limit=1000", "", "--slo"),
            ("-S -n -r", "", "results of its own"),
            ("-S -n --random-seed=5432", "", "--seed"),
            ("-S -n -l --log-prefix=/nonexistent/a --sampling-rate=0.5", "", "--export-json"),
        ],
    ),
    ("256 arguments of a statement, 17 of a function", More, &[("-M prepared", "MANY", "")]),
];

/// How a program ended, and what it said.
struct Ended {
    succeeded: bool,
    said: String,
}

fn script_of(text: &str) -> String {
    if text == "MANY" {
        return format!("\\set i 0\nSELECT LEAST({}::int);", vec![":i::int"; 256].join(", "))
            .replace("::int::int", "::int");
    }
    text.to_owned()
}

#[test]
fn every_behaviour_of_pgbenchs_regression_tests_is_as_the_table_says() {
    let Some(server) = testing::server("postgres") else { return };
    let place = Place::new();
    let pgbench = crate::servers::common::has_program("pgbench").then_some("pgbench");
    let initialised = pgbench.map(|pgbench| {
        Command::new(pgbench).args(["-i", "-q", "-s", "1", server.url()]).output().unwrap().status.success()
    });
    assert_ne!(initialised, Some(false));
    let table = include_str!("../../docs/custom-workloads.md");
    for (behaviour, outcome, cases) in BEHAVIOURS {
        let row = format!("| {behaviour} | {} |", outcome.shown());
        assert!(table.contains(&row), "docs/custom-workloads.md lacks the row\n{row}");
        for (options, text, part) in *cases {
            let has_script =
                !text.is_empty() || !options.split(' ').any(|word| matches!(word, "-S" | "-N" | "-b"));
            let path = place.file("case.sql", script_of(text));
            let script: &[&str] = if has_script { &["-f", &path] } else { &[] };
            let options: Vec<&str> = options.split_whitespace().collect();
            let ours =
                [&["run", "pgbench"], script, &options[..], &[server.url(), "--write", "--rounds", "1"]]
                    .concat();
            let counted = options.contains(&"-t");
            let ours = if counted { ours } else { [&ours[..], &["--requests", "4"]].concat() };
            let answer = place.run(&ours);
            let ours =
                Ended { succeeded: answer.code == Some(0), said: format!("{}{}", answer.err, answer.out) };
            assert_eq!(ours.succeeded, matches!(outcome, Alike | More), "{behaviour}: {answer:?}");
            assert!(ours.said.contains(part), "{behaviour}: '{part}' is not in {answer:?}");
            let Some(pgbench) = pgbench else { continue };
            let theirs = Command::new(pgbench)
                .args(["-n", "-s", "1"])
                .args(if counted { &[][..] } else { &["-t", "2"] })
                .args(&options)
                .args(script)
                .arg(server.url())
                .current_dir(place.home())
                .output()
                .unwrap();
            let theirs = Ended {
                succeeded: theirs.status.success(),
                said: String::from_utf8_lossy(&theirs.stderr).into_owned(),
            };
            // What it would write is elsewhere.
            let is_alike = outcome != &Refused || options.iter().any(|option| option.starts_with("--log"));
            let expected = matches!(outcome, Alike | Refused);
            assert!(
                theirs.succeeded == expected || outcome == &Refused && is_alike,
                "{behaviour}: pgbench on {text}: {}",
                theirs.said
            );
        }
    }
}
