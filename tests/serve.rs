//! `kurabe serve`: who may use it, runs from its form, live events, comparison, history, and its restart.

use crate::page::{Page, TOKEN, bearer};
use crate::recorded::short;
use crate::support::{Place, eventually};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

const BRIEF: &str = "targets=null%3A&rounds=3&duration=100ms";

#[test]
fn page_is_for_who_has_the_token() {
    let place = Place::new();
    let page = Page::start(&place);
    let port = page.address.rsplit_once(':').unwrap().1;
    for head in [
        String::new(),
        format!("Cookie: kurabe-{port}=x\r\n"),
        format!("Cookie: kurabe-{port}={TOKEN}\r\n"),
        "Authorization: Bearer x\r\n".to_owned(),
    ] {
        for path in ["/", "/new/point-read", "/metrics", "/style.css", "/?token=wrong"] {
            assert_eq!(page.ask("GET", path, &head, "").0, 401, "{path} {head}");
        }
        assert_eq!(page.ask("POST", "/new/point-read", &head, BRIEF).0, 401);
    }
    let (status, head, _) = page.ask("GET", &format!("/?q=a%26b&token={TOKEN}"), "", "");
    let lower = head.to_lowercase();
    assert!(status == 303 && lower.contains("location: /?q=a%26b\r\n"), "{head}");
    assert!(lower.contains("; httponly; samesite=strict;") && !lower.contains(TOKEN), "{head}");
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = format!("Cookie: {}\r\n", cookie.split(';').next().unwrap());
    assert!(cookie.starts_with(&format!("Cookie: kurabe-{port}=")), "{cookie}");
    assert_eq!(page.ask("GET", "/", &cookie, "").0, 200);
    // Its cookie alone starts nothing: another page of the machine may have caused the request.
    assert_eq!(page.ask("POST", "/new/point-read", &cookie, BRIEF).0, 403);
    let (status, head, _) = page.ask("GET", &format!("//evil.example/?token={TOKEN}"), "", "");
    assert!(status == 400 && !head.contains("evil"), "{head}");
    let ended = page.end();
    assert!(ended.code == Some(0) && !ended.err.contains("panicked"), "{ended:?}");
}

/// The value of the token in the form of a page.
fn form_token(page: &str, action: &str) -> String {
    let form = page.split_once(&format!("action=\"{action}\"")).unwrap_or_else(|| panic!("{page}")).1;
    let field = form.split_once("name=\"form-token\" value=\"").unwrap_or_else(|| panic!("{page}")).1;
    field.split('"').next().unwrap().to_owned()
}

#[test]
fn page_without_a_token_obeys_no_other_site_and_no_other_name() {
    let place = Place::new();
    let page = Page::with(&place, &["--token", "none", "null:"]);
    let port = page.address.rsplit_once(':').unwrap().1;
    let own = format!("Origin: http://{}\r\nSec-Fetch-Site: same-origin\r\n", page.address);
    let (status, _, form) = page.ask("GET", "/new/point-read", "", "");
    assert_eq!(status, 200);
    let filled = format!("{BRIEF}&form-token={}", form_token(&form, "/new/point-read"));
    let nothing = || {
        assert!(!place.path().join(".jobs").read_dir().unwrap().any(|_| true), "a run was started");
    };
    // Another site sends a form, with and without a browser's word, and even with the token of another form.
    for head in [
        "Origin: http://evil.example\r\n",
        "Origin: null\r\n",
        "Origin: http://127.0.0.1:1\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
        "Origin: http://evil.example\r\nSec-Fetch-Site: same-origin\r\n",
    ] {
        assert_eq!(page.ask("POST", "/new/point-read", head, &filled).0, 403, "{head}");
    }
    for body in
        [BRIEF.to_owned(), format!("{BRIEF}&form-token="), filled.replace("form-token=", "form-token=0")]
    {
        assert_eq!(page.ask("POST", "/new/point-read", &own, &body).0, 403, "{body}");
        assert_eq!(page.ask("POST", "/new/point-read", "", &body).0, 403, "{body}");
    }
    assert_eq!(page.ask("POST", "/new/kv", &own, &filled).0, 403);
    // A foreign name that leads to this machine.
    for host in ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", ""] {
        for (method, body) in [("GET", ""), ("POST", filled.as_str())] {
            let answer = page.ask_as(host, method, "/new/point-read", "", body);
            assert!(answer.0 == 421 || (host.is_empty() && answer.0 == 400), "{host}: {answer:?}");
        }
    }
    assert_eq!(
        page.ask("GET", "/style.css", "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n", "").0,
        403
    );
    nothing();
    // Its own form names no file of its choice.
    let file = place.home().join("chosen.db");
    let chosen =
        filled.replace("null%3A", &format!("sqlite%3A{}", file.display().to_string().replace('/', "%2F")));
    assert_eq!(page.ask("POST", "/new/point-read", &own, &chosen).0, 400);
    assert!(!file.exists());
    nothing();
    // Its own form starts and stops runs, by each name of the loopback interface.
    let long = filled.replace("rounds=3", "rounds=400");
    let (status, head, _) = page.ask_as(&format!("localhost:{port}"), "POST", "/new/point-read", &own, &long);
    assert_eq!(status, 303, "{head}");
    let job = head.lines().find_map(|line| line.strip_prefix("location: ")).unwrap().to_owned();
    let stop = format!("{job}/stop");
    let token = form_token(&page.ask("GET", &job, "", "").2, &stop);
    assert_eq!(
        page.ask("POST", &stop, "Sec-Fetch-Site: cross-site\r\n", &format!("form-token={token}")).0,
        403
    );
    assert_eq!(page.ask("POST", &stop, &own, "").0, 403);
    assert!(page.ask("GET", &job, "", "").2.contains(">running</span>"), "a foreign request stopped it");
    assert_eq!(page.ask("POST", &stop, &own, &format!("form-token={token}")).0, 303);
    let ended = || page.ask("GET", &job, "", "").2.contains(">ended</span>").then_some(());
    eventually(60, ended).expect("its own form does not stop it");
    page.end();
}

#[test]
fn run_from_the_form_is_measured_compared_and_annotated() {
    let place = Place::new();
    let page = Page::start(&place);
    let (status, command) = page.post("/new/point-read", &format!("{BRIEF}&show=1"));
    assert_eq!((status, command.as_str()), (200, "kurabe run point-read null: --rounds=3 --duration=100ms"));
    let runs = [page.run(BRIEF), page.run(BRIEF)];
    for run in &runs {
        let shown = page.wait_for(run, "complete");
        // It opens on its report.
        assert!(shown.contains("id=\"report\"") && shown.contains("id=\"log\""), "{shown}");
        assert!(shown.find("id=\"report\"") < shown.find("id=\"log\""), "{shown}");
    }
    let [a, b] = &runs;
    let compared = page.get(&format!("/compare?run={a}&run={b}"));
    assert!(compared.0 == 200 && compared.1.contains(a) && compared.1.contains("<table>"), "{compared:?}");
    let report = page.get(&format!("/runs/{a}/report"));
    assert!(report.0 == 200 && report.1.contains("The page needs no network"), "{report:?}");
    assert_eq!(page.post(&format!("/runs/{a}/note"), "note=after+the+%3Cupgrade%3E").0, 303);
    let found = page.get("/?q=upgrade").1;
    assert!(found.contains(a.as_str()) && !found.contains(b.as_str()), "{found}");
    assert!(found.contains("after the &lt;upgrade&gt;"), "{found}");
    page.end();
}

#[test]
fn form_has_choices_says_how_long_it_takes_and_keeps_what_a_link_fills_in() {
    let place = Place::new();
    let page = Page::start(&place);
    let (_, form) = page.get("/new/session?layout=rows&payload=1k,4k&durability=synced&targets=null%3A");
    for part in [
        "type=\"checkbox\" name=\"layout\" value=\"rows\" checked",
        "type=\"checkbox\" name=\"layout\" value=\"blob\">",
        "type=\"radio\" name=\"durability\" value=\"synced\" checked",
        "name=\"payload\" placeholder=\"",
        "value=\"1k,4k\"",
        "value=\"null:\"",
    ] {
        assert!(form.contains(part), "{part} is not in {form}");
    }
    let fields = "targets=null%3A&layout=rows&layout=blob&payload=1k&compress=none";
    let (status, command) = page.post("/new/session", &format!("{fields}&show=1"));
    let equal = "kurabe run session null: --layout=rows,blob --payload=1k --compress=none";
    assert_eq!((status, command.as_str()), (200, equal));
    let estimate = |more: &str| page.post("/new/session", &format!("{fields}{more}&estimate=1"));
    let brief = estimate("&rounds=3&duration=1s");
    assert!(brief.0 == 200 && brief.1.starts_with("session on null: "), "{brief:?}");
    assert!(brief.1.contains("about "), "{brief:?}");
    assert_ne!(brief, estimate("&rounds=9&duration=1s"));
    assert_eq!(estimate("&rounds=0").0, 400);
    assert!(!place.path().join(".jobs").read_dir().unwrap().any(|_| true), "an estimate starts no run");
    page.end();
}

#[test]
fn list_of_runs_has_the_verdict_of_each_in_the_language_of_the_browser() {
    let (place, _) = short();
    let run = std::fs::read_dir(place.path()).unwrap().flatten().next().unwrap().file_name();
    let run = run.to_str().unwrap();
    let page = Page::start(&place);
    let said = |language: &str| {
        let head = format!("Authorization: Bearer {TOKEN}\r\nAccept-Language: {language}\r\n");
        let (_, _, text) = page.ask("GET", "/", &head, "");
        let (_, row) = text.split_once(&format!("/runs/{run}\"")).unwrap();
        let verdict = row.split_once("said\" lang=\"").unwrap().1.split('<').next().unwrap().to_owned();
        let (_, _, report) = page.ask("GET", &format!("/runs/{run}/report"), &head, "");
        (verdict, report)
    };
    let ((verdict, english), (said_in_japanese, japanese)) =
        (said("de,en;q=0.5"), said("fr, ja-JP;q=0.9, en"));
    assert!(verdict.starts_with("en\">") && verdict.ends_with('.') && verdict.len() > 20, "{verdict}");
    assert!(said_in_japanese.starts_with("ja\">") && said_in_japanese.ends_with('。'), "{said_in_japanese}");
    assert!(english.contains("<html lang=\"en\">") && japanese.contains("<html lang=\"ja\">"));
    assert_eq!(said("en").0, verdict);
    page.end();
    let page = Page::with(&place, &["--token", TOKEN, "--lang", "ja", "null:"]);
    // Headings, buttons and columns, except names that are the same everywhere.
    for path in ["/", "/new", "/new/session", "/history", &format!("/runs/{run}"), "/nosuch"] {
        let text = page.get(path).1;
        assert!(text.contains("<html lang=\"ja\">"), "{path}");
        for tag in ["h2", "button", "th", "summary", "nav"] {
            let begin = format!("<{tag}");
            for part in text.split(&begin).skip(1).filter(|part| part.starts_with([' ', '>'])) {
                let whole = part.split_once('>').unwrap().1.split(&format!("</{tag}>")).next().unwrap();
                let is_japanese = whole.chars().any(|c| c >= '\u{3000}');
                assert!(is_japanese || ["p50", "p99"].contains(&whole), "{path}: <{tag}> {whole}");
            }
        }
    }
    let page_of = page.get(&format!("/runs/{run}/report")).1;
    assert!(page_of.contains("<html lang=\"ja\">"), "--lang comes before the browser's");
    page.end();
}

#[test]
fn history_shows_the_runs_of_a_suite() {
    let place = Place::new();
    let text = "experiment = 'point-read'\ntargets = ['null:']\nrounds = 3\nrequests = 500\nrecords = 100\n";
    let suite = place.file("small.toml", text);
    for _ in 0..3 {
        assert_eq!(place.run(&["run", "-f", &suite, "--no-html"]).code, Some(0));
    }
    let page = Page::start(&place);
    assert!(page.get("/history").1.contains("href=\"/history/small\""));
    let (status, shown) = page.get("/history/small");
    assert!(status == 200 && shown.contains("3 complete runs") && shown.contains("<circle"), "{shown}");
    assert_eq!(page.get("/history/nosuch").0, 404);
    page.end();
}

#[test]
fn running_run_is_shown_live_and_survives_the_restart_of_the_page() {
    let place = Place::new();
    let page = Page::start(&place);
    let run = page.run("targets=null%3A&rounds=400&duration=300ms");
    page.wait_for(&run, "running");
    place.wait_for_trials(2);
    let metrics = page.get("/metrics").1;
    assert!(metrics.contains("\nkurabe_running_runs 1"), "{metrics}");
    assert!(metrics.contains("operation=\"read\""), "{metrics}");
    // Events arrive while the run goes on, at each of several viewers.
    let viewers: Vec<TcpStream> = (0..3)
        .map(|_| {
            let mut stream = TcpStream::connect(&page.address).unwrap();
            write!(stream, "GET /runs/{run}/events HTTP/1.1\r\nHost: {}\r\n{}\r\n", page.address, bearer())
                .unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            stream
        })
        .collect();
    let next_trial = |stream: TcpStream| {
        let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
        lines.find(|line| line == "event: trial").unwrap();
        lines.find(|line| line.starts_with("data: ")).unwrap()
    };
    let mut viewers = viewers.into_iter();
    // What is used comes once a second, whatever is measured.
    let mut lines = BufReader::new(viewers.next().unwrap()).lines().map(Result::unwrap);
    let used = lines.find(|line| line.contains("\"event\":\"resources\"")).unwrap();
    for part in ["client_cpu", "host_cpu", "disk_busy", "network"] {
        assert!(used.contains(part), "{part}: {used}");
    }
    let seen: Vec<String> = viewers.map(next_trial).collect();
    assert!(
        seen.iter().all(|trial| trial.contains("\"operation\"") && trial.contains("\"rate\"")),
        "{seen:?}"
    );
    assert_eq!(page.end().code, Some(0));
    let page = Page::start(&place);
    page.wait_for(&run, "running");
    assert!(page.get("/").1.contains("Started here and running"));
    assert_eq!(page.post(&format!("/runs/{run}/stop"), "").0, 303);
    let stopped = page.wait_for(&run, "stopped");
    assert!(stopped.contains("Resume at the next trial"), "{stopped}");
    // What was measured stays.
    let metrics = page.get("/metrics").1;
    assert!(metrics.contains("\nkurabe_running_runs 0\n"), "{metrics}");
    assert!(metrics.contains(&format!("run=\"{run}\",experiment=\"point-read\"")), "{metrics}");
    page.end();
}

#[test]
fn nonsense_is_answered_with_a_reason() {
    let place = Place::new();
    let page = Page::start(&place);
    for (path, status) in [
        ("/nosuch", 404),
        ("/runs/nosuch", 404),
        ("/runs/..%2F..%2Fetc", 404),
        ("/jobs/..%2Fx", 404),
        ("/new/nosuch", 400),
        ("/compare", 400),
        ("/compare?run=a&run=b", 404),
    ] {
        let answer = page.get(path);
        assert!(answer.0 == status && answer.1.contains("That did not work"), "{path}: {answer:?}");
    }
    for form in [
        "targets=--runs-dir%3D%2F",
        "targets=sqlite%3A%2Ftmp%2Fx.db",
        "payload=much",
        "clients=-1",
        "%ff=%ff",
    ] {
        assert_eq!(page.post("/new/point-read", form).0, 400, "{form}");
    }
    page.end();
}

#[test]
fn password_in_a_target_of_the_form_is_no_argument_of_its_run() {
    let place = Place::new();
    let page = Page::with(&place, &["--token", TOKEN, "--allow-any-target"]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let form = format!("targets=redis%3A%2F%2F%3Asesame43%40127.0.0.1%3A{port}&rounds=1");
    let (status, job) = page.post("/new/point-read", &form);
    assert_eq!(status, 303, "{job}");
    // The run logs in, and waits for an answer.
    let (mut client, _) = listener.accept().unwrap();
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut received = String::new();
    while !received.contains("sesame43") {
        let mut bytes = [0; 256];
        let read = client.read(&mut bytes).unwrap();
        assert!(read > 0, "it sent no password: {received}");
        received.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    let all: Vec<String> = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .flat_map(|entry| ["cmdline", "environ"].map(|name| entry.path().join(name)))
        .filter_map(|path| std::fs::read(path).ok())
        .map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "))
        .collect();
    let runs =
        |words: &String| words.contains(place.path().to_str().unwrap()) && words.contains(" point-read - ");
    assert!(all.iter().any(runs), "the run has ended");
    assert!(!all.iter().any(|words| words.contains("sesame43")));
    drop(client);
    assert_eq!(page.post(&format!("{job}/stop"), "").0, 303);
    page.end();
}

#[test]
fn password_in_a_target_of_the_form_is_in_no_page_and_no_file() {
    let place = Place::new();
    let page = Page::with(&place, &["--token", TOKEN, "--allow-any-target"]);
    let form = "targets=redis%3A%2F%2F%3Asesame42%40127.0.0.1%3A1&rounds=1";
    assert!(!page.post("/new/point-read", &format!("{form}&show=1")).1.contains("sesame42"));
    let job = page.post("/new/point-read", form).1;
    let ended = || Some(page.get(&job).1).filter(|shown| shown.contains(">ended</span>"));
    let shown = eventually(120, ended).unwrap();
    assert!(shown.contains("127.0.0.1") && !shown.contains("sesame42"), "{shown}");
    let found =
        std::process::Command::new("grep").args(["-r", "sesame42"]).arg(place.path()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    page.end();
}
