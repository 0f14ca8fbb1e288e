//! Pages that the program writes to files: each has a policy that allows nothing but its own style and its own script.

use crate::capture::captured;
use crate::servers::common::skip;
use crate::support::Place;
use kurabe_testbed::testing;
use std::fs;

/// Checks the policy of a page, and that nothing in it needs more.
pub(crate) fn assert_policy(page: &str) {
    let (before, rest) = page.split_once("<meta http-equiv=\"Content-Security-Policy\" content=\"").unwrap();
    let (policy, after) = rest.split_once('"').unwrap();
    // Nothing precedes it that it would not govern.
    assert!(
        !before.contains("<script") && !before.contains("<style") && !before.contains("<link"),
        "{before}"
    );
    let directives: Vec<&str> = policy.split("; ").collect();
    for directive in [
        "default-src 'none'", "style-src 'unsafe-inline'", "img-src data:", "base-uri 'none'",
        "form-action 'none'",
    ] {
        assert!(directives.contains(&directive), "{directive}: {policy}");
    }
    assert_eq!(directives.len(), 6, "{policy}");
    let scripts = directives.iter().find_map(|directive| directive.strip_prefix("script-src ")).unwrap();
    let written: Vec<&str> = after.split("<script").skip(1).collect();
    match written[..] {
        [] => assert_eq!(scripts, "'none'"),
        [script] => {
            let (code, _) = script.strip_prefix('>').unwrap().split_once("</script>").unwrap();
            let digest = ring::digest::digest(&ring::digest::SHA256, code.as_bytes());
            assert_eq!(scripts, format!("'sha256-{}'", base64(digest.as_ref())));
        }
        _ => panic!("{} scripts", written.len()),
    }
    let markup = after.split("<script").next().unwrap();
    for tag in
        markup.split('<').skip(1).filter_map(|rest| rest.split_once('>')).map(|(tag, _)| tag.to_lowercase())
    {
        let handler = tag.split_whitespace().find(|word| word.starts_with("on") && word.contains('='));
        assert!(handler.is_none(), "{tag}");
    }
    for tag in
        ["<img", "<iframe", "<object", "<embed", "<base", "<form", "<link rel=\"stylesheet", "javascript:"]
    {
        assert!(!markup.contains(tag), "{tag}");
    }
}

fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |part: &[u8]| {
        let number = (0..3).fold(0_u32, |all, at| all << 8 | u32::from(part.get(at).copied().unwrap_or(0)));
        let sign = |at: usize| char::from(SIGNS[(number >> (18 - 6 * at) & 63) as usize]);
        (0..4).map(|at| if at <= part.len() { sign(at) } else { '=' }).collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

#[test]
fn every_page_that_is_written_has_the_policy() {
    assert_eq!((base64(b"Man"), base64(b"Ma"), base64(b"M")), ("TWFu".into(), "TWE=".into(), "TQ==".into()));
    let place = Place::new();
    place
        .run(&["run", "point-read", "null:", "--requests", "300", "--rounds", "3", "--records", "100"])
        .success();
    let report = place.run_file().with_file_name("report.html");
    let text = fs::read_to_string(report).unwrap();
    assert!(text.contains("<script>"));
    assert_policy(&text);

    let (from, to) = (place.at("from.db"), place.at("to.db"));
    let table = "CREATE TABLE \"<b onclick=x>\" (id INTEGER PRIMARY KEY)";
    let Ok(made) = std::process::Command::new("sqlite3").arg(&from).arg(table).status() else {
        skip("there is no program sqlite3");
        return;
    };
    assert!(made.success());
    let page = place.at("copy.html");
    place.run(&["copy", &format!("sqlite:{from}"), &format!("sqlite:{to}"), "--export-html", &page]);
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.contains("<h1>Copy of") && !text.contains("<script"), "{text}");
    assert_policy(&text);

    let Some(server) = testing::server("redis") else { return };
    let path = captured(
        &place,
        "a.capture",
        &[],
        server.url(),
        "printf 'PING\\nSET \"<b onclick=x>\" 1\\n' | redis-cli -h $REDIS_HOST -p $REDIS_PORT",
    );
    let page = place.at("capture.html");
    place.run(&["capture", "show", &path, "--export-html", &page]).success();
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.contains("<polyline") && !text.contains("<script"), "{text}");
    assert_policy(&text);
}
