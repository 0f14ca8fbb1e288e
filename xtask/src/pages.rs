//! `cargo xtask pages`: real pages of the program, each with the command that made it, and the pictures of the README.
//!
//! - `--out target/pages`: the folder of the pages, with an index
//! - `--only query,copy`: these pages only
//!
//! Pictures are written to `docs/`, by headless Chromium. `KURABE_PROGRAM` names a program that is built.

use crate::bench::options::Variables;
use crate::bench::run::{Kurabe, need};
use crate::shell::{self, Outcome};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A page: its name, the command that makes it, and its picture in `docs/` with width and height.
struct Page {
    name: &'static str,
    command: &'static str,
    picture: Option<(&'static str, u32, u32)>,
}

const fn page(name: &'static str, command: &'static str) -> Page {
    Page { name, command, picture: None }
}

const PAGES: [Page; 7] = [
    Page {
        picture: Some(("session-sqlite.png", 1100, 1480)),
        ..page("session", "kurabe run session sqlite: --budget 40s --export-html session.html")
    },
    page("connect", "kurabe run connect up:postgres up:mariadb --export-html connect.html"),
    page("query", "kurabe run query up:postgres --data shop.sql a.sql b.sql --export-html query.html"),
    page(
        "gate",
        "kurabe gate 'up:postgres?setup=shop.sql' 'up:postgres?setup=branch.sql' -f a.sql --export-html gate.html",
    ),
    page(
        "capture",
        "kurabe capture up:postgres -o shop.capture -- sh -c 'psql -qXf shop.sql && for n in $(seq 60); do psql -qXf page.sql; done' \
         && kurabe capture show shop.capture --export-html capture.html",
    ),
    page(
        "copy",
        "sqlite3 shop.db < shop.sql && kurabe copy sqlite:shop.db up:postgres --export-html copy.html",
    ),
    page("claims", "kurabe claims b1 c1 --export-html claims.html"),
];

/// What the commands read.
const FILES: [(&str, &str); 5] = [
    (
        "shop.sql",
        "CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL, total int NOT NULL);\n\
         INSERT INTO orders SELECT n, n % 4000, n % 97 FROM (WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 40000) SELECT n FROM r) s;\n\
         CREATE INDEX by_customer ON orders (customer);\n",
    ),
    (
        "branch.sql",
        "CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL, total int NOT NULL);\n\
         INSERT INTO orders SELECT n, n % 4000, n % 97 FROM (WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 40000) SELECT n FROM r) s;\n",
    ),
    ("a.sql", "SELECT id, total FROM orders WHERE customer = 7 ORDER BY id;\n"),
    ("b.sql", "SELECT id, total FROM orders WHERE customer + 0 = 7 ORDER BY id;\n"),
    (
        "page.sql",
        "SELECT id FROM orders WHERE customer = 7 ORDER BY id;\n\
         SELECT total FROM orders WHERE id = 7;\nSELECT total FROM orders WHERE id = 4007;\n\
         SELECT total FROM orders WHERE id = 8007;\nSELECT total FROM orders WHERE id = 12007;\n\
         SELECT total FROM orders WHERE id = 16007;\nSELECT total FROM orders WHERE id = 20007;\n",
    ),
];

pub fn run(args: &[String]) -> Outcome {
    let options = Variables::read(args, &[("out", "target/pages"), ("only", "")])?;
    let only = options.list("only");
    let chosen: Vec<&Page> =
        PAGES.iter().filter(|page| only.is_empty() || only.iter().any(|name| name == page.name)).collect();
    if chosen.iter().any(|page| page.picture.is_some()) {
        need("chromium", "chromium")?;
    }
    let kurabe = Kurabe::build("pages")?;
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| format!("{path}: {error}")
    };
    let out = PathBuf::from(options.get("out"));
    fs::create_dir_all(&out).map_err(failed(&out))?;
    let bin = kurabe.scratch.join("bin");
    fs::create_dir_all(&bin).map_err(failed(&bin))?;
    let program = fs::canonicalize(&kurabe.program).map_err(failed(&kurabe.program))?;
    std::os::unix::fs::symlink(program, bin.join("kurabe")).map_err(failed(&bin))?;
    for (name, text) in FILES {
        fs::write(kurabe.scratch.join(name), text).map_err(failed(&kurabe.scratch))?;
    }
    let mut index = String::from("# Gallery\n\nPages that the program made, by the command above each.\n");
    for page in chosen {
        println!("{}: {}", page.name, page.command);
        let mut shell = kurabe.shell(None, page.command);
        let path = std::env::var("PATH").unwrap_or_default();
        shell.current_dir(&kurabe.scratch).env("PATH", format!("{}:{path}", bin.display()));
        let ended = shell.status().map_err(|error| format!("{}: {error}", page.command))?;
        let file = format!("{}.html", page.name);
        let made = kurabe.scratch.join(&file);
        // A gate that fails has a page too.
        if !made.exists() {
            return Err(format!("{}: no page was made ({ended})", page.command));
        }
        let kept = out.join(&file);
        fs::copy(&made, &kept).map_err(failed(&kept))?;
        let _ = write!(index, "\n```sh\n{}\n```\n\n[{}]({file})\n", page.command, page.name);
        if let Some((name, width, height)) = page.picture {
            picture(&made, &Path::new("docs").join(name), width, height, &kurabe.scratch)?;
        }
    }
    let index_file = out.join("README.md");
    fs::write(&index_file, index).map_err(failed(&index_file))
}

/// A picture of the top of a page.
fn picture(page: &Path, to: &Path, width: u32, height: u32, scratch: &Path) -> Outcome {
    let mut chromium = Command::new("chromium");
    chromium.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
    ]);
    chromium.arg(format!("--user-data-dir={}", scratch.join("chromium").display()));
    chromium.arg(format!("--window-size={width},{height}"));
    chromium.arg(format!("--screenshot={}", to.display()));
    chromium.arg(format!("file://{}", page.display()));
    shell::run(&mut chromium, "chromium").map(drop)
}
