//! Properties of the HTML page for all names from servers and users.

mod common;

use common::{INFO, Scenario, troubled};
use kurabe_core::run::Run;
use kurabe_report::{analyse, html};

fn page(run: &Run) -> String {
    html::render(&analyse(run, Some(&INFO)), &html::Options { published: true })
}

#[test]
fn names_never_become_markup() {
    let mut run = troubled();
    let evil = "</title></script><script>alert('x')</script>\"'><img src=x onerror=alert(1)>";
    run.header.run = evil.into();
    run.header.kurabe = evil.into();
    run.header.machine.cpu = evil.into();
    run.header.machine.system = evil.into();
    for target in &mut run.header.targets {
        target.name = evil.into();
        target.url = evil.into();
        target.facts.engine = evil.into();
        target.facts.version = evil.into();
        target.facts.client = evil.into();
        target.facts.notes = vec![evil.into()];
        target.facts.settings.push(kurabe_core::facts::Setting::new(evil, evil));
        target.facts.durability_settings.push(kurabe_core::facts::Setting::new(evil, evil));
    }
    let page = page(&run);
    assert_eq!(page.matches("<script").count(), 1, "the page's own script only");
    assert_eq!(page.matches("</script").count(), 1);
    assert!(!page.contains("<img"));
    assert!(!page.contains(evil) && page.contains("&lt;script&gt;alert('x')"));
}

#[test]
fn the_page_needs_no_network() {
    for run in [Scenario::default().run(), troubled()] {
        let page = page(&run);
        for part in ["http://", "https://", "src=\"", "@import", "url("] {
            assert!(!page.contains(part), "{part}");
        }
        assert!(page.contains("default-src 'none'"));
    }
}

#[test]
fn every_tag_is_closed() {
    for run in [
        Scenario::default().run(),
        troubled(),
        Scenario { payloads: vec![1_000], ..Scenario::default() }.run(),
    ] {
        let page = page(&run);
        for tag in [
            "section", "ul", "li", "p", "table", "tr", "td", "th", "dl", "figure", "svg", "g", "text", "div",
            "h2", "h3",
        ] {
            let opened =
                page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }
}

#[test]
fn published_figures_stand_beside_their_faults() {
    let page = page(&Scenario::default().run());
    assert!(page.contains("class=\"reference\"") && page.contains("mysql longblob"));
    for part in
        ["about 2007", "every read size read the same rows", "at 1\u{a0}kB it stored nothing", "one run"]
    {
        assert!(page.contains(part), "{part}");
    }
    let without = html::render(&analyse(&Scenario::default().run(), Some(&INFO)), &html::Options::default());
    assert!(!without.contains("longblob"));
}
