//! What a reader of the pages types, in the pages' order: the tutorial and the how-to of the first question for real, and
//! every other command of every page as far as its plan. What an answer suggests is typed too.

#[cfg(feature = "full")]
mod how_to;

use crate::support::{Answer, KURABE, Place};
use kurabe_testbed::testing;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The folder with the pages.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().find(|folder| folder.join("docs/tutorial.md").exists()).unwrap().to_owned()
}

/// The commands of a page, in order: those of its blocks of code, with what a line goes on with, without comments.
fn commands(page: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(page)).unwrap().replace("\\\n", " ");
    let mut is_code = false;
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("```") {
            is_code = !is_code && (line == "```sh" || line == "```text");
        } else if is_code {
            let line = line.strip_prefix("$ ").unwrap_or(line).replace("cargo run --release -- ", "kurabe ");
            if line.starts_with("kurabe ") && !line.contains('…') {
                found.push(line.split(" #").next().unwrap().trim().to_owned());
            }
        }
    }
    found
}

/// A shell in whose path the program is, in the home directory of a place.
fn shell(place: &Place, line: &str) -> Answer {
    let bin = place.home().join("bin");
    if !bin.exists() {
        std::fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(KURABE, bin.join("kurabe")).unwrap();
    }
    let mut command = std::process::Command::new("sh");
    command.args(["-c", line]).current_dir(place.home()).stdin(Stdio::null());
    place.configure(&mut command);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", bin.display())).env("COLUMNS", "80");
    Answer::of(&command.output().unwrap())
}

/// The commands that an answer suggests.
fn suggested(answer: &Answer) -> Vec<String> {
    let lines = answer.out.lines().chain(answer.err.lines());
    let after = |line: &str| line.split_once(": kurabe ").map(|(_, rest)| format!("kurabe {rest}"));
    lines.filter_map(after).map(|line| line.trim_end_matches('.').to_owned()).collect()
}

/// Types the commands of a page, with the reader's own database in place of the page's, and what the answers suggest.
/// Each run is made short, but for what the page chooses.
fn transcript(page: &str) {
    let own = testing::server("postgres").map(|server| (server.url().to_owned(), server));
    let engines = ["postgres", "mariadb", "memcached", "redis"];
    let is_installed = |(name, found): &(&str, Result<_, _>)| engines.contains(name) && found.is_ok();
    let count = kurabe_testbed::available().into_iter().filter(is_installed).count();
    let Some((url, _server)) = own.filter(|_| count == engines.len()) else {
        testing::skipped(&format!("{page} needs {}", engines.join(", ")));
        return;
    };
    let place = Place::new();
    let commands = commands(page);
    assert!(commands.len() > 2, "{commands:?}");
    for command in commands {
        let command = command.replace("postgres://app@db.example/shop", &format!("'{url}'"));
        let command = command.replace("--store-size 500m", "--store-size 2m");
        let is_run = command.starts_with("kurabe run ");
        // A run until its answers are certain ends sooner with longer trials.
        let trials = if command.contains(" --until ") { ("--budget", "1s") } else { ("--requests", "20") };
        let short = [trials, ("--records", "50"), ("--rounds", "2"), ("--payload", "1k")];
        let new = short.iter().filter(|(option, _)| is_run && !command.contains(option));
        let typed = new.fold(command.clone(), |line, (option, value)| format!("{line} {option} {value}"));
        let answer = shell(&place, &typed);
        assert_eq!(answer.code, Some(0), "{page}: {command}: {answer:?}");
        if is_run {
            let lines = answer.out.lines().count();
            assert!(lines <= 20, "{page}: {command} has {lines} lines:\n{}", answer.out);
            let suggested = suggested(&answer);
            assert!(suggested.iter().any(|one| one.starts_with("kurabe report ")), "{answer:?}");
            for suggested in suggested {
                let next = shell(&place, &suggested);
                assert_eq!(next.code, Some(0), "{page}: {command} suggests {suggested}: {next:?}");
            }
        }
    }
}

#[test]
fn commands_of_the_tutorial_do_what_the_page_says() {
    transcript("docs/tutorial.md");
}

#[test]
fn commands_for_a_session_store_do_what_the_page_says() {
    transcript("docs/how-to/session-store.md");
}

#[test]
fn commands_for_the_choice_between_relational_and_redis_do_what_the_page_says() {
    transcript("docs/how-to/relational-or-redis.md");
}

#[test]
fn commands_for_queries_do_what_the_page_says() {
    let own = testing::server("postgres").map(|server| (server.url().to_owned(), server));
    let Some((url, _server)) = own else { return };
    let place = Place::new();
    let rows = "CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL);\n\
                INSERT INTO orders SELECT n, n % 40 FROM generate_series(1, 400) n;\n";
    let index = "CREATE INDEX by_customer ON orders (customer);\n";
    let query = "SELECT id FROM orders WHERE customer = 7 ORDER BY id";
    for (name, text) in [
        ("shop.sql", format!("{rows}{index}")),
        ("main.sql", format!("{rows}{index}")),
        ("branch.sql", rows.to_owned()),
        ("a.sql", query.to_owned()),
        ("b.sql", query.replace("customer =", "customer + 0 =")),
    ] {
        place.file(name, text);
    }
    let mut shop = crate::copy::side(&url);
    for statement in format!("{rows}{index}").split(";\n").filter(|statement| !statement.is_empty()) {
        shop.run(statement).unwrap();
    }
    let commands = commands("docs/how-to/query.md");
    assert!(commands.len() >= 4, "{commands:?}");
    for command in commands {
        let command = command.replace("postgres://app@db.example/shop", &format!("'{url}'"));
        let answer = shell(&place, &format!("{command} --requests 20 --rounds 2"));
        assert_eq!(answer.code, Some(0), "{command}: {answer:?}");
        assert!(answer.out.contains("Plan of ") && answer.out.lines().count() <= 20, "{command}: {answer:?}");
        let written = answer.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(!written.contains("undefined"), "{written}");
    }
}

fn pages() -> Vec<String> {
    let root = root();
    let mut pages = vec!["README.md".to_owned(), "README.ja.md".to_owned()];
    for folder in ["docs", "docs/how-to"] {
        let files = std::fs::read_dir(root.join(folder)).unwrap().flatten();
        let names = files.map(|file| format!("{folder}/{}", file.file_name().to_string_lossy()));
        pages.extend(names.filter(|name| Path::new(name).extension().is_some_and(|ending| ending == "md")));
    }
    pages.sort();
    pages
}

/// Commands that are not planned here, by a part of them, and why.
const UNPLANNED: [(&str, &str); 10] = [
    (" scale=10", "it wants the model of a capture, which has a scale; a transcript makes one"),
    (" --via ", "its application, or the programs of its stack, must be there"),
    (" --cache ", "a cache must be installed; a transcript runs it"),
    (" --setup ", "it wants throwaway servers"),
    (" query ", "a transcript runs it"),
    ("?setup=", "it wants throwaway servers; a transcript, and other tests, run it"),
    (" replay ", "it wants a capture"),
    (" tcp://", "it wants a listener on another host"),
    (" suites/mission.toml ", "another test runs it"),
    (" --recorded", "it measures nothing, so that it has no plan"),
];

/// The first block of a page in this language.
fn block(page: &str, language: &str) -> String {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let (_, rest) = text.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

/// The files that the pages' commands name, as the pages show them.
fn files(place: &Place) {
    let suites = place.home().join("suites");
    std::fs::create_dir(&suites).unwrap();
    for suite in std::fs::read_dir(root().join("suites")).unwrap().flatten() {
        std::fs::copy(suite.path(), suites.join(suite.file_name())).unwrap();
    }
    let workload = block("docs/custom-workloads.md", "toml");
    let claims = block("docs/testing-claims.md", "toml");
    for (name, text) in [
        (
            "suites/shop.toml",
            &block("docs/how-to/suite.md", "toml")
                .replace("up:postgres", "sqlite:")
                .replace("up:mariadb", "sqlite:"),
        ),
        ("shop.toml", &workload),
        ("mine.toml", &workload),
        ("cache.toml", &workload),
        ("made.toml", &workload),
        ("orders.toml", &workload),
        ("ours.toml", &claims),
        ("mine.sql", &"SELECT 1;\n".to_owned()),
        ("other.sql", &"SELECT 2;\n".to_owned()),
        ("browse.sql", &"SELECT 3;\n".to_owned()),
        ("order.sql", &"SELECT 4;\n".to_owned()),
        ("one.sql", &"SELECT 5;\n".to_owned()),
        ("a.sql", &"SELECT 6;\n".to_owned()),
        ("b.sql", &"SELECT 6;\n".to_owned()),
    ] {
        place.file(name, text);
    }
}

/// A command with a database in a file for each of its databases.
fn on_sqlite(command: &str) -> String {
    let schemes = ["up:", "postgres://", "mysql://", "mongodb://", "oracle://"];
    let word = |word: &str| {
        let url = word.trim_matches('\'');
        if schemes.iter().any(|scheme| url.starts_with(scheme)) { "sqlite:" } else { word }.to_owned()
    };
    command.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_command_of_every_page_is_one_that_the_program_understands() {
    let place = Place::new();
    files(&place);
    let all: BTreeMap<String, String> = pages()
        .into_iter()
        .flat_map(|page| commands(&page).into_iter().map(move |one| (one, page.clone())))
        .collect();
    assert!(all.len() > 60, "{} commands", all.len());
    let planned = |command: &str| {
        let planned = ["run", "gate", "claims"].map(|name| format!("kurabe {name} "));
        planned.iter().any(|start| format!("{command} ").starts_with(start))
            && !UNPLANNED.iter().any(|(part, _)| command.contains(part))
    };
    for (part, why) in UNPLANNED {
        assert!(all.keys().any(|command| command.contains(part)), "no command has {part}: {why}");
    }
    let check = |(command, page): &(String, String)| {
        // What comes after `--` is another program, and what follows a pipe too.
        let (own, _) = command.split_once(" -- ").unwrap_or((command, ""));
        let mut quote = None;
        let end = own.find(|c| {
            match c {
                '\'' | '"' if quote.is_none() => quote = Some(c),
                _ if quote == Some(c) => quote = None,
                _ => {}
            }
            quote.is_none() && matches!(c, ';' | '|' | '>' | '&')
        });
        let own = &own[..end.unwrap_or(own.len())];
        let is_of_full = ["--fleet", "kurabe agent", "lmdb:"].iter().any(|part| own.contains(part));
        if is_of_full && !cfg!(feature = "full") {
            return;
        }
        if planned(own) {
            let answer = shell(&place, &format!("{} --dry-run", on_sqlite(&own.replace(" --dry-run", ""))));
            // What SQLite cannot do was planned all the same.
            let is_planned = answer.code == Some(0) || answer.err.contains("nothing can be measured:");
            assert!(is_planned, "{page}: {command}: {answer:?}");
        } else {
            // Options and their values are read before the help is printed.
            // `-` is the next line of standard input.
            let answer = shell(&place, &format!("printf 'sqlite:\\nsqlite:\\n' | {own} --help"));
            assert_eq!(answer.code, Some(0), "{page}: {command}: {answer:?}");
        }
    };
    let all: Vec<(String, String)> = all.into_iter().collect();
    // It makes the folder of programs, which two threads would make at once.
    shell(&place, "true");
    std::thread::scope(|scope| {
        for some in all.chunks(all.len().div_ceil(2)) {
            scope.spawn(|| some.iter().for_each(check));
        }
    });
}

#[test]
fn answer_page_and_errors_are_in_japanese_where_the_user_is() {
    let (place, _) = crate::recorded::short();
    let japanese = |text: &str| text.chars().any(|c| ('\u{3040}'..'\u{30ff}').contains(&c));
    let said = |locale: &str, args: &[&str]| {
        let output = place.command(args).env("LANG", locale).env("COLUMNS", "80").output().unwrap();
        Answer::of(&output)
    };
    for (locale, more, is_japanese) in [
        ("ja_JP.UTF-8", &[][..], true),
        ("C.UTF-8", &["--lang", "ja"], true),
        ("ja_JP.UTF-8", &["--lang", "en"], false),
        ("C.UTF-8", &[], false),
    ] {
        let answer = said(locale, &[&["report", "last"][..], more].concat());
        assert_eq!(japanese(&answer.out), is_japanese, "{locale} {more:?}: {answer:?}");
        // Warnings of who can read the run are beside it.
        assert!(answer.out.contains("none") && answer.out.lines().count() <= 20, "{answer:?}");
        let error = said(locale, &[&["report", "nosuch"][..], more].concat()).err;
        assert_eq!(japanese(&error), is_japanese, "{error}");
        let page = said(locale, &[&["report", "last", "--format", "html", "-o", "-"][..], more].concat()).out;
        assert!(page.contains(if is_japanese { "<html lang=\"ja\">" } else { "<html lang=\"en\">" }));
        assert_eq!(japanese(page.split_once("<script").unwrap().0), is_japanese, "{locale} {more:?}");
    }
}

#[test]
fn pages_in_japanese_have_the_commands_of_those_in_english() {
    let japanese: Vec<String> = pages().into_iter().filter(|page| page.ends_with(".ja.md")).collect();
    assert!(japanese.len() > 1);
    for page in japanese {
        let (own, english) = (commands(&page), commands(&page.replace(".ja.md", ".md")));
        assert_eq!(own, english, "{page}");
    }
    // And the front page has the same pages, in Japanese where there are some.
    let links = |page: &str| -> Vec<String> {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        let ends = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        ends.filter(|link| link.starts_with("docs/")).map(str::to_owned).collect()
    };
    let own = links("README.ja.md");
    for link in links("README.md") {
        let japanese = link.replace(".md", ".ja.md");
        let wanted = if root().join(&japanese).exists() { japanese } else { link };
        assert!(own.contains(&wanted), "{wanted}");
    }
}

#[path = "../crates/report/tests/common/latin.rs"]
mod latin;

#[test]
fn reports_and_list_in_japanese_of_runs_on_the_first_page_have_no_english_word() {
    let engines = ["postgres", "mariadb", "redis", "memcached"].map(testing::server);
    let targets =
        ["sqlite:".to_owned()].into_iter().chain(engines.iter().flatten().map(|one| one.url().to_owned()));
    let targets: Vec<String> = targets.collect();
    let short = ["--payload", "1k", "--requests", "60", "--records", "60", "--rounds", "2", "--no-html"];
    let limit = ["--rate", "300", "--slo", "50ms", "--operation", "request"];
    for (experiment, more) in [("session", &[][..]), ("session", &limit), ("connect", &[])] {
        let own = if experiment == "session" { &short[..] } else { &short[2..] };
        let words = targets.iter().map(String::as_str).chain(own.iter().copied()).chain(more.iter().copied());
        let args: Vec<&str> = ["run", experiment].into_iter().chain(words).collect();
        let place = Place::new();
        place.run(&args).success();
        let run = kurabe_record::read(&kurabe_record::RunPath::at(&place.run_file()).unwrap()).unwrap().run;
        let info = kurabe_experiments::registry::of(&run.header.spec).unwrap().info;
        let shown = |args: &[&str]| {
            let last = ["report", "last", "--lang", "ja"];
            place.run(&[&last[..], args].concat()).success().out
        };
        let names = latin::names(&run, info, &latin::SENTENCES);
        let page = latin::visible(&shown(&["--format", "html", "-o", "-"]));
        let listed = place.run(&["runs", "ls", "--lang", "ja"]).success().out;
        for text in [shown(&[]), shown(&["--verbose"]), page, listed] {
            let found = latin::foreign(&text, &names);
            assert!(found.is_empty(), "{experiment} {more:?}: {found:#?}");
        }
    }
}
