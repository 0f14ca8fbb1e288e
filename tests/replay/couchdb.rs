//! CouchDB, or its substitute: requests of curl and of a client of its own are recorded as often as the server logs them, and each is
//! answered again.

use super::*;
use crate::servers::common::has_program;
use kurabe_capture::file;

/// What a client of CouchDB does: many documents at once, conflicts, attachments, changes, compressed answers.
const CLIENT: &str = r"
    const PouchDB = require('pouchdb-core').plugin(require('pouchdb-adapter-http'));
    (async () => {
        const db = new PouchDB(process.argv[2] + '/shop'), docs = [], refused = async (of) => {
            try { await of; } catch (e) { return e.status; }
            throw new Error('not refused');
        };
        for (let i = 0; i < 30; i++) docs.push({ _id: 'item' + i, n: i, text: 'some words of an item' });
        await db.bulkDocs(docs);
        for (let i = 0; i < 10; i++) await db.get('item' + i);
        const one = await db.get('item3');
        await db.put({ ...one, n: 7 });
        if (await refused(db.put(one)) != 409 || await refused(db.get('missing')) != 404) throw new Error('another error');
        await db.allDocs({ include_docs: true, keys: ['item1', 'item2', 'nothing'] });
        await db.allDocs({ include_docs: true });
        await db.remove(await db.get('item4'));
        await db.putAttachment('item5', 'a/b.txt', (await db.get('item5'))._rev, Buffer.from('hello'), 'text/plain');
        await db.getAttachment('item5', 'a/b.txt');
        await db.changes({ since: 0, limit: 5 });
    })().catch((error) => { console.error(error); process.exit(1); });
";

const CURL: &str = r#"
    ask() { curl -sS -o answer -H 'Content-Type: application/json' "$@"; }
    ask -X PUT $U/shop
    [ -z "$NODE_PATH" ] || node client.js $U
    ask $U/ $U/_all_dbs
    ask $U/_session -d '{"name":"bob","password":"hunter2"}' || true
    ask -H 'Cookie: hunter2' $U/shop/_find -d '{"selector":{"n":{"$gt":20}}}'
    ask -X PUT $U/shop/_design/x -d '{"views":{"y":{"map":"function(d){emit(d.n)}"}}}'
    ask "$U/shop/_design/x/_view/y?key=7"
    ask -I $U/shop/item7
    ask -H 'Accept-Encoding: gzip' "$U/shop/_all_docs?include_docs=true"
    ask -H 'Accept-Encoding: br' "$U/shop/_all_docs?include_docs=true"
    ask -X PUT $U/shop/big -H 'Expect: 100-continue' -H 'Transfer-Encoding: chunked' -d "{\"a\":\"$(seq -s, 1 900)\"}"
    ask -X PUT $U/shop/p[1-20] -d '{}' &
    curl -sS $U/shop/_all_docs?limit=[1-20] >/dev/null; wait
    ask $U/shop -d '{"n":0}'
    ask $U/shop/_all_docs?limit=100
    ask -X PUT $U/shop/[1-12] -d '{"n":5}'
    ask -X PUT $U/shop/secret -d '{"password":"hunter2"}'
"#;

/// The calls of statements whose text begins so.
fn calls(report: &Json, of: &str) -> u64 {
    let all = report["statements"].as_array().unwrap().iter();
    let found = all.filter(|one| one["text"].as_str().unwrap().starts_with(of));
    found.map(|one| one["calls"].as_u64().unwrap()).sum()
}

#[test]
fn requests_of_couchdb_are_recorded_and_replayed_as_often_as_the_server_logs() {
    let log = |options: kurabe_testbed::StartOptions| options.set("log.level", "info");
    let Some(server) = testing::own_server_with("couchdb", log) else { return };
    if !has_program("curl") {
        return;
    }
    let place = Place::that_starts_servers();
    place.file("client.js", CLIENT);
    let is_substitute = server.program().ends_with("bin/pouchdb-server");
    // Its packages have a client, which speaks to any server.
    let modules = server.program().ancestors().nth(3).filter(|_| is_substitute);
    let modules = modules.map_or_else(String::new, |path| path.display().to_string());
    let user = format!("{}@", testing::login(&server));
    let begin = format!("U=http://{user}$KURABE_HOST:$KURABE_PORT; export NODE_PATH={modules}\n");
    let captured = |name: &str, script: &str| captured(&place, name, &server, &format!("{begin}{script}"));
    let logged = || {
        let text = std::fs::read_to_string(server.dir().join("requests.log")).unwrap_or_default();
        text.lines().filter(|line| line.contains(" - - ")).count() as u64
    };
    let before = logged();
    let path = captured("shop", CURL);
    let report = shown(&place, &path);
    let all = report["requests"].as_u64().unwrap();
    if is_substitute {
        assert_eq!(
            all,
            eventually(10, || Some(logged() - before).filter(|now| *now >= all)).unwrap(),
            "{report:#}"
        );
        assert!(calls(&report, "GET /shop/?") >= 14, "{report:#}");
        assert!(calls(&report, "POST /shop/_bulk_docs") == 1, "{report:#}");
        // A conflict, a missing document, an unknown user.
        assert_eq!(report["errors"], 3, "{report:#}");
    }
    assert_eq!(
        (calls(&report, "PUT /shop/?"), &report["unanswered"]),
        (if is_substitute { 37 } else { 34 }, &0.into()),
        "{report:#}"
    );
    let mut records = Vec::new();
    file::read(std::path::Path::new(&path), |_, record| records.push(format!("{record:?}"))).unwrap();
    let records = records.concat();
    // The password, and as the header and the log of bytes have it.
    for secret in ["hunter2", "aHVudGVyMg", "104, 117, 110, 116, 101, 114, 50"] {
        assert!(!records.contains(secret), "{records}");
    }

    // The user's own server is left alone, and a throwaway server is empty before each replay.
    replay(&place, &path, &[server.url()]).exit_code(2).err_has("may change documents");
    place.run(&["run", "replay", &path, "up:couchdb", "--rounds", "2", "--no-html"]).success();
    // What is about the server, and what may contain a password.
    let left_out = 4;
    for cell in cells(&place.report()) {
        // What is compressed by gzip is compared, and of what is compressed otherwise it is said that it is not.
        let partial = metric(cell, "answers compared in part").unwrap_or(0.0) as u64;
        assert_eq!(partial, u64::from(is_substitute), "{cell:#}");
        assert_eq!(
            (&cell["status"], &cell["verified"]["answers"]),
            (&"ok".into(), &(2 * (all - left_out - partial)).into()),
            "{cell:#}"
        );
        // The server may order changes that were made at once otherwise. The id that it chose is the recorded one.
        assert!(metric(cell, "volatile answers").unwrap_or(0.0) <= 1.0, "{cell:#}");
    }

    // On data with another history, revisions are refused, and said to be.
    let answer = replay(&place, &path, &[server.url(), "--write"]);
    let said = format!("{}{}", answer.out, answer.err);
    assert!(answer.code != Some(0), "{answer:?}");
    assert!(said.contains("error 409 instead of no error for 'PUT /shop/"), "{answer:?}");

    // A loop, in which each document is asked for; then one of them has changed.
    // Several times, since a client that has to wait for a processor makes a pause.
    let reads = "for i in 1 2 3 4 5; do curl -sS $U/shop/_all_docs $U/shop/[1-12] >all; done";
    let path = captured("reads", reads);
    let report = shown(&place, &path);
    let units = report["units"].as_array().unwrap();
    let is_loop = |unit: &Json| unit["n_plus_one"] == true && unit["draws"]["shop"].is_string();
    assert!(units.iter().any(is_loop), "{report:#}");
    super::report(&place, &path, &[server.url()]);
    let change = "curl -sS -X PUT -H 'Content-Type: application/json' $U/shop/9?rev=$(sed -n 's/.*\"_id\":\"9\",\"_rev\":\"\\([^\"]*\\).*/\\1/p' all) \
                  -d '{\"n\":6}'";
    captured("change", &format!("echo >>all; {change}"));
    let answer = replay(&place, &path, &[server.url()]);
    let said = format!("{}{}", answer.out, answer.err);
    assert!(answer.code != Some(0), "{answer:?}");
    assert!(said.contains("other values in 1 rows for 'GET /shop/9'"), "{answer:?}");

    // Of an application it is shown what it was asked; a replay would need its logins.
    let url = format!("http://127.0.0.1:{}/", server.port());
    let path = place.at("web");
    let script = format!("{begin}curl -sS $U/shop/17 $U/shop/18 >/dev/null");
    place.run(&["capture", &url, "-o", &path, "--", "sh", "-ec", &script]).success();
    assert_eq!(calls(&shown(&place, &path), "GET /shop/?"), 2);
    replay(&place, &path, &["up:couchdb"]).exit_code(2).err_has("logins and cookies");
    place.run(&["capture", "model", &path, "-o", "model.toml"]).exit_code(2).err_has("no model yet");
}
