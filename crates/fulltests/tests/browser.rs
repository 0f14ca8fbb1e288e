//! Pages in a real browser: `kurabe serve` and the report, in headless Chromium.

mod chrome;

use crate::page::{Page, TOKEN};
use crate::support::Place;
use chrome::{Chrome, Picture};
use serde_json::json;

/// A throwaway server that is installed, besides SQLite.
fn server() -> Option<String> {
    let engines = ["postgres", "redis", "mariadb", "memcached"];
    let mut found = kurabe_testbed::available().into_iter().filter(|(_, found)| found.is_ok());
    found.find(|(engine, _)| engines.contains(engine)).map(|(engine, _)| format!("up:{engine}"))
}

fn targets() -> Vec<String> {
    std::iter::once("sqlite:".to_owned()).chain(server()).collect()
}

#[test]
fn run_is_started_watched_stopped_and_resumed_in_a_browser() {
    let Some(chrome) = Chrome::open() else { return };
    let place = Place::new();
    let page = Page::start(&place);
    chrome.go(&format!("http://{}/?token={TOKEN}", page.address));
    chrome.wait("document.title.startsWith('Runs')");
    chrome.click("nav a[href='/new']");
    chrome.wait("location.pathname === '/new'");
    chrome.click("a[href='/new/point-read']");
    chrome.wait("location.pathname === '/new/point-read' && document.querySelector('#command')");

    // The form shows the command that it equals, while it is filled.
    for (field, text) in [("rounds", "300"), ("duration", "200ms"), ("clients", "1,2")] {
        chrome.type_into(&format!("#{field}"), text);
    }
    if let Some(server) = server() {
        chrome.type_into("#targets", &format!(" {server}"));
    }
    let command =
        format!("kurabe run point-read {} --clients=1,2 --rounds=300 --duration=200ms", targets().join(" "));
    chrome.wait(&format!("document.querySelector('#command').textContent === {}", json!(command)));
    // The estimate moves the button.
    chrome.wait("document.querySelector('#estimate').textContent.includes('300 rounds')");
    chrome.click("button.go");

    // Live figures appear, and trials join the log while the page stays open.
    chrome.wait("location.pathname.startsWith('/runs/') && document.querySelector('#state')");
    assert_eq!(chrome.js("document.querySelector('#state').textContent"), json!("running"));
    let run = chrome.js("location.pathname").as_str().unwrap().to_owned();
    chrome.wait("/^[\\d,.]+$/.test(document.querySelector('#rate').textContent)");
    chrome.wait("document.querySelector('#rates polyline').getAttribute('points').split(' ').length > 3");
    let drawn = |chart: &str| {
        format!(
            "[...document.querySelectorAll('#{chart} [points]')].some(one => one.getAttribute('points').split(' ').length > 3)"
        )
    };
    for chart in ["times", "processors", "network"] {
        chrome.wait(&drawn(chart));
    }
    // Not every machine has a disk with counters.
    if chrome.js("document.getElementById('busy').textContent") != json!("–") {
        chrome.wait(&drawn("disk"));
    }
    // Not every server reports what its sessions wait for.
    if server().is_some_and(|server| server == "up:postgres" || server == "up:mariadb") {
        chrome.wait(&drawn("waits"));
    }
    let before = chrome.js("document.querySelectorAll('#log tr').length").as_u64().unwrap();
    chrome.wait(&format!("document.querySelectorAll('#log tr').length > {before}"));
    for figure in ["p99", "cpus", "traffic", "done"] {
        let shown = chrome.js(&format!("document.getElementById('{figure}').textContent"));
        assert!(
            shown.as_str().is_some_and(|text| text.contains(|c: char| c.is_ascii_digit())),
            "{figure}: {shown}"
        );
    }

    let picture = chrome.whole_picture();
    for selector in ["h1", "#rate", "#rates", "#times", "#processors", "#log"] {
        let share = picture.ink(&chrome.rectangle(selector));
        assert!(share > 0.002, "{selector} is empty: {share}");
    }
    chrome.fits_a_phone();
    chrome.has_a_dark_mode();

    chrome.click("form[action$='/stop'] button");
    chrome.wait("document.querySelector('#state')?.textContent === 'stopped'");
    let stopped = chrome.js("document.querySelectorAll('#log tr').length").as_u64().unwrap();
    assert!(stopped >= before, "{stopped} trials after {before}");
    chrome.click("form[action$='/resume'] button");
    chrome.wait(&format!(
        "location.pathname === {} && document.querySelector('#state')?.textContent === 'running'",
        json!(run)
    ));
    chrome.wait("document.querySelector('#rates polyline')?.getAttribute('points').split(' ').length > 1");
    chrome.click("form[action$='/stop'] button");
    chrome.wait("document.querySelector('#state')?.textContent === 'stopped'");
    page.end();
}

#[test]
fn foreign_page_starts_and_stops_nothing_in_a_browser() {
    let Some(chrome) = Chrome::open() else { return };
    let place = Place::new();
    let page = Page::with(&place, &["--token", "none", "null:"]);
    let own = format!("http://{}", page.address);
    // A run of the user's own, so that there is one to stop.
    chrome.go(&format!("{own}/new/point-read"));
    chrome.wait("document.querySelector('#command')");
    chrome.js("document.querySelector('#targets').value = 'null:'");
    for (field, text) in [("rounds", "300"), ("duration", "200ms")] {
        chrome.type_into(&format!("#{field}"), text);
    }
    chrome.click("button.go");
    chrome.wait("location.pathname.startsWith('/runs/') && document.querySelector('#state')?.textContent === 'running'");
    let run = chrome.js("location.pathname").as_str().unwrap().to_owned();
    let jobs = || std::fs::read_dir(place.path().join(".jobs")).unwrap().count();
    assert_eq!(jobs(), 1);
    // A page of another site sends forms, as a click and as a script.
    let foreign = tempfile::tempdir().unwrap();
    let file = foreign.path().join("foreign.html");
    for (action, fields) in [
        ("/new/point-read", "<input name='targets' value='null:'><input name='rounds' value='300'>"),
        (&*format!("{run}/stop"), ""),
    ] {
        let text = format!(
            "<title>foreign</title><form method='post' action='{own}{action}'>{fields}<button>go</button></form>
             <script>fetch('{own}{action}', {{ method: 'POST', mode: 'no-cors', credentials: 'include',
             body: new URLSearchParams('targets=null:') }}).finally(() => document.title = 'sent')</script>"
        );
        std::fs::write(&file, text).unwrap();
        chrome.go(&format!("file://{}", file.display()));
        chrome.wait("document.title === 'sent'");
        chrome.click("button");
        chrome.wait("document.body.innerText.includes('Another site caused this request')");
    }
    assert_eq!(jobs(), 1, "a foreign page started a run");
    chrome.go(&format!("{own}{run}"));
    chrome.wait("document.querySelector('#state')?.textContent === 'running'");
    chrome.click("form[action$='/stop'] button");
    chrome.wait("document.querySelector('#state')?.textContent === 'stopped'");
    page.end();
}

/// Two complete runs, the newest first.
fn two_runs(place: &Place) -> Vec<String> {
    let mut args = vec!["run", "session"];
    let targets = targets();
    args.extend(targets.iter().map(String::as_str));
    // Separate trials have a course, and enough rounds an interval.
    args.extend(["--payload", "1k,4k", "--layout", "blob,rows", "--compress", "none", "--rounds", "3"]);
    args.extend(["--duration", "250ms", "--interleave=off", "--records", "200"]);
    for _ in 0..2 {
        let answer = place.run(&args);
        assert_eq!(answer.code, Some(0), "{answer:?}");
    }
    let mut names: Vec<String> = std::fs::read_dir(place.path())
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names.reverse();
    names
}

#[test]
fn runs_are_compared_and_their_report_is_explored_in_a_browser() {
    let Some(chrome) = Chrome::open() else { return };
    let place = Place::new();
    let runs = two_runs(&place);
    let page = Page::start(&place);
    chrome.go(&format!("http://{}/?token={TOKEN}", page.address));
    for run in &runs {
        chrome.click(&format!("input[name='run'][value='{run}']"));
    }
    chrome.click("form[action='/compare'] button");
    chrome.wait("location.pathname === '/compare' && document.querySelectorAll('table tr').length > 4");
    for run in &runs {
        assert_eq!(chrome.js(&format!("document.body.innerText.includes('{run}')")), json!(true), "{run}");
    }
    assert!(chrome.picture().ink(&chrome.rectangle("table")) > 0.01);
    chrome.fits_a_phone();

    let report = format!("http://{}/runs/{}/report", page.address, runs[0]);
    chrome.go(&report);
    chrome.wait("document.documentElement.classList.contains('live')");
    paints_at_once(&chrome, &report);
    explore(&chrome, &report);
    charts_are_saved(&chrome);
    chrome.fits_a_phone();
    rates_are_in_view_on_a_phone(&chrome);
    chrome.has_a_dark_mode();
    fits_paper(&chrome);
    needs_no_script(&chrome, &report);
    japanese_page_has_the_same_content(&chrome, &place, &runs[0]);
    page.end();
}

/// The first paint takes less than 200 ms from the first byte on; the fastest of a few counts, on a busy machine.
fn paints_at_once(chrome: &Chrome, report: &str) {
    const PAINT: &str = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime";
    let paint = || {
        chrome.go("about:blank");
        chrome.go(report);
        chrome.wait(&format!("{PAINT} > 0 && document.documentElement.classList.contains('live')"));
        let after = format!("{PAINT} - performance.getEntriesByType('navigation')[0].responseStart");
        chrome.js(&after).as_f64().unwrap()
    };
    let times: Vec<f64> = (0..5).map(|_| paint()).collect();
    assert!(times.iter().any(|time| *time < 200.0), "first paints after {times:?} ms");
}

/// Charts, cells, links, keyboard and filter of a report.
fn explore(chrome: &Chrome, report: &str) {
    let picture = chrome.whole_picture();
    for selector in [".ranking", ".ranking .plot svg", ".charts svg"] {
        let share = picture.ink(&chrome.rectangle(selector));
        assert!(share > 0.002, "{selector} is empty: {share}");
    }
    let open = "!document.querySelector('#cell').hidden";
    let heading = "document.querySelector('#cell h2').textContent";

    // A click on a point shows its cell, a second one on another point compares both. Reads are fast enough to have a
    // course on a busy machine.
    let points = ".charts figure:nth-of-type(2) .rate .pt";
    chrome.click(&format!("{points} .hit"));
    chrome.wait(&format!("{open} && {heading} === 'One result' && location.hash.startsWith('#cells=')"));
    let captions = "[...document.querySelectorAll('#cell figcaption')].map(one => one.textContent)";
    let shown = chrome.js(captions).to_string();
    for part in [
        "Times by percentile",
        "Histogram",
        "All rounds",
        "Throughput over the time of a trial",
        "p99 over the time of a trial",
        "Processors in use",
    ] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    let tables = "[...document.querySelectorAll('#cell figure')].every(one => one.querySelectorAll('tbody tr').length > 0)";
    assert_eq!(chrome.js(tables), json!(true), "each picture has its values as a table");
    let picture = chrome.whole_picture();
    for n in 1..=6 {
        let share = picture.ink(&chrome.rectangle(&format!("#cell .panels figure:nth-of-type({n}) svg")));
        assert!(share > 0.005, "picture {n} is empty: {share}");
    }
    let first = chrome.js("location.hash.match(/cells=(\\d+)/)[1]").as_str().unwrap().to_owned();
    chrome.click(&format!("{points}:not([data-c='{first}']) .hit"));
    chrome.wait(&format!("{heading} === 'Two results' && /cells=\\d+,\\d+/.test(location.hash)"));
    let said = chrome.js("document.querySelector('#cell .body p:nth-of-type(2)').textContent");
    let said = said.as_str().unwrap();
    assert!(said.starts_with("Verdict: ") || said.starts_with("The ranking has no comparison"), "{said}");

    // The link to what is seen.
    let hash = chrome.js("location.hash").as_str().unwrap().to_owned();
    chrome.go("about:blank");
    chrome.go(&format!("{report}{hash}"));
    chrome.wait(&format!("{open} && {heading} === 'Two results'"));
    chrome.press("Escape");
    chrome.wait("document.querySelector('#cell').hidden && location.hash === ''");

    // The keyboard.
    chrome.js("document.querySelector('tr[data-c]').focus()");
    chrome.press("Enter");
    chrome.wait(open);
    chrome.press("Escape");
    chrome.wait("document.querySelector('#cell').hidden && document.activeElement.matches('tr[data-c]')");

    // The filter.
    let rows = "[...document.querySelectorAll('tr[data-c]')].filter(row => row.offsetParent).length";
    let all = chrome.js(rows).as_u64().unwrap();
    chrome.click("#filter button");
    chrome.wait(&format!("{rows} < {all} && location.hash.startsWith('#without=')"));
    chrome.click("#filter .reset");
    chrome.wait(&format!("{rows} === {all} && location.hash === ''"));
}

/// Each chart becomes a file of its own, as SVG and as PNG: complete, and with the colours that it has on the page.
fn charts_are_saved(chrome: &Chrome) {
    chrome.js("(window.saved = [], HTMLAnchorElement.prototype.click = function () { saved.push([this.download, this.href]); }, true)");
    let charts = "[...document.querySelectorAll('.charts figure .save, #courses figure .save')].length";
    assert!(chrome.js(charts).as_u64().is_some_and(|charts| charts > 2), "a chart cannot be saved");
    // The figures of one, and the plots of the ranking with their labels.
    for (of, shapes, words) in [(".charts .save", "polyline, .m", 0), (".plotted + .save", ".bar, .dot", 8)] {
        chrome.js("saved.length = 0");
        for button in 1..=2 {
            chrome.click(&format!("{of} button:nth-of-type({button})"));
        }
        chrome.wait("saved.length === 2");
        assert_eq!(chrome.js("saved.map(([name]) => name.split('.').pop())"), json!(["svg", "png"]));
        let svg = "new DOMParser().parseFromString(decodeURIComponent(saved[0][1].split(',').slice(1).join(',')), 'image/svg+xml')";
        assert_eq!(chrome.js(&format!("{svg}.querySelectorAll('parsererror, .hit').length")), json!(0));
        for (part, least) in [(shapes, 4), ("text", words)] {
            let count = chrome.js(&format!("{svg}.querySelectorAll('{part}').length"));
            assert!(count.as_u64().is_some_and(|count| count > least), "{count} of {part} in {of}");
        }
        let colours = format!(
            "[...{svg}.querySelectorAll('polyline, .bar')].every(one => one.style.stroke.startsWith('rgb'))"
        );
        assert_eq!(chrome.js(&colours), json!(true), "{of}");
        let bytes = chrome.js("Array.from(atob(saved[1][1].split(',')[1]), one => one.charCodeAt(0))");
        let bytes: Vec<u8> = serde_json::from_value(bytes).unwrap();
        assert!(Picture::of(&bytes).whole_ink() > 0.01, "the saved picture of {of} is empty");
    }
}

/// The rate of each row of the ranking is seen on a phone without moving the page sideways.
fn rates_are_in_view_on_a_phone(chrome: &Chrome) {
    chrome.viewport(375, 800, true);
    let rates =
        "[...document.querySelectorAll('.ranking td:nth-child(2)')].map(one => one.getBoundingClientRect())";
    let seen = format!(
        "{rates}.length > 3 && {rates}.every(one => one.width > 0 && one.left >= 0 && one.right <= 375)"
    );
    assert_eq!(chrome.js(&seen), json!(true), "a rate is out of view");
    chrome.viewport(1280, 900, false);
}

/// On paper nothing is folded, and no table is wider than the page.
fn fits_paper(chrome: &Chrome) {
    // The width of A4 without margins, at 96 pixels an inch.
    chrome.viewport(688, 970, false);
    chrome.media("print", "light");
    let folded = "[...document.querySelectorAll('main details:not(figure details)')].filter(one => one.lastElementChild.getBoundingClientRect().height === 0).length";
    assert_eq!(chrome.js(folded), json!(0), "folded on paper");
    let wide = "[...document.querySelectorAll('main table')].map(one => one.getBoundingClientRect()).filter(one => one.height > 0 && one.right > 700).map(one => Math.round(one.right))";
    assert_eq!(chrome.js(wide), json!([]), "right ends of tables that are wider than the paper");
    let sections = "[...document.querySelectorAll('main > section')].filter(one => getComputedStyle(one).contentVisibility !== 'visible').length";
    assert_eq!(chrome.js(sections), json!(0), "sections that may be left out of a picture");
    assert!(chrome.pages_on_paper() <= 8, "{} pages", chrome.pages_on_paper());
    chrome.media("screen", "light");
    chrome.viewport(1280, 900, false);
}

/// The page in Japanese has the figures, charts and plots of the one in English, on a phone and in the dark too.
fn japanese_page_has_the_same_content(chrome: &Chrome, place: &Place, run: &str) {
    let shown = ["en", "ja"].map(|language| {
        let file = place.home().join(format!("{language}.html"));
        let file = file.to_str().unwrap();
        let answer = place.run(&["report", run, "--format", "html", "-o", file, "--lang", language]);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        chrome.go(&format!("file://{file}"));
        chrome.wait("document.documentElement.classList.contains('live')");
        assert_eq!(chrome.js("document.documentElement.lang"), json!(language));
        chrome.fits_a_phone();
        rates_are_in_view_on_a_phone(chrome);
        chrome.has_a_dark_mode();
        fits_paper(chrome);
        let figures = "[...document.querySelectorAll('.ranking tbody td')].map(one => one.textContent).filter(one => /^[≥~ ]*[\\d,.]+( [µnm]?s)?$/.test(one))";
        let shapes = "['.ranking tbody tr', '.ranking .plot svg', 'main figure', '.charts .pt', '.save', 'main section'].map(one => document.querySelectorAll(one).length)";
        (chrome.js(figures), chrome.js(shapes))
    });
    assert!(shown[0].0.as_array().is_some_and(|figures| figures.len() > 8), "{shown:?}");
    assert_eq!(shown[0], shown[1]);
}

/// Findings, plots and tables are there without the script.
fn needs_no_script(chrome: &Chrome, report: &str) {
    chrome.scripts(false);
    chrome.go(report);
    let picture = chrome.whole_picture();
    for selector in [".ranking", ".ranking .plot svg", ".charts svg"] {
        let share = picture.ink(&chrome.rectangle(selector));
        assert!(share > 0.002, "{selector} is empty without the script: {share}");
    }
    chrome.scripts(true);
}
