//! `kurabe capture --tls terminate`: what is captured of clients and servers that insist on TLS is what is captured without.

use super::from::exchanged;
use super::*;
use crate::servers::common::{has, has_program};
use crate::servers::tls::mysql_client;
use crate::support::with;
use kurabe_testbed::StartOptions;

/// The password of all users.
const PASSWORD: &str = "hunter2";
const TERMINATE: [&str; 2] = ["--tls", "terminate"];

fn secured(options: StartOptions) -> StartOptions {
    options.with_password(PASSWORD).with_tls()
}

/// The server's URL with a user, the password and options.
fn url_of(server: &Server, user: &str, options: &str) -> String {
    let (scheme, rest) = server.url().split_once("://").unwrap();
    let place = rest.rsplit('@').next().unwrap();
    let url = format!("{scheme}://{user}:{PASSWORD}@{place}");
    if options.is_empty() { url } else { with(&url, options) }
}

/// The file of the authority that signed the server's certificate.
fn authority(server: &Server) -> String {
    server.ca().unwrap().display().to_string()
}

/// The file of an authority that signed nothing.
fn stranger(place: &Place) -> String {
    place.file("stranger.pem", kurabe_testbed::sign("Stranger", &["localhost"]).unwrap().ca)
}

/// Neither the password nor an unreadable connection is in a capture.
fn is_clean(path: &str) {
    let records = records(path);
    let all = format!("{records:?}");
    assert!(!all.contains(PASSWORD), "{all}");
    let (about, _) = file::read(Path::new(path), |_, _| {}).unwrap();
    assert!(!format!("{about:?}").contains(PASSWORD), "{about:?}");
    for record in &records {
        assert!(!matches!(record, Record::Close { unreadable: Some(_), .. }), "{record:?}");
    }
}

/// Has PostgreSQL admit clients of this kind only: `host`, or `hostssl`.
fn admit(server: &Server, kind: &str) -> Option<()> {
    let file = sql(server, PASSWORD, "SHOW hba_file")?;
    let rules = format!("local all all scram-sha-256\n{kind} all all 127.0.0.1/32 scram-sha-256\n");
    std::fs::write(file.trim(), rules).unwrap();
    sql(server, PASSWORD, "SELECT pg_reload_conf()").map(drop)
}

#[test]
fn psql_that_verifies_the_server_is_captured_as_without_tls() {
    let Some(server) = testing::server_with("postgres", secured) else { return };
    if !has_program("pgbench") {
        return;
    }
    let place = Place::new();
    place.file("a.sql", "SELECT :n::int + 1, length(:word), NULL::text\n");
    place.file("data", "1\tAlice\n2\t\\N\n".repeat(20_000));
    let script = format!(
        "cd '{}'; pgbench -n -M prepared -t 2 -D n=4711 -D \"word=it's Alice\" -f a.sql; \
         psql -qXc 'SELECT generate_series(1, 20000)' -c 'CREATE TEMP TABLE t (a int, b text)' \
         -c '\\copy t FROM data' -c 'TABLE t ORDER BY a, b' -c \"SELECT 1 / 0\" || true",
        place.home().display()
    );
    let ca = authority(&server);
    let url = url_of(&server, "kurabe", &format!("sslmode=verify-full&sslrootcert={ca}"));
    let Some(()) = admit(&server, "hostssl") else { return };
    let verified = format!("export PGSSLMODE=verify-full; {script}");
    let encrypted = captured(&place, "encrypted", &TERMINATE, &url, &verified);
    is_clean(&encrypted);
    // The URL alone is enough too, and both sides are encrypted.
    let ask = "psql -XAtc 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()'";
    let script_of_url = format!(
        "unset PGCHANNELBINDING PGSSLROOTCERT; {ask} \"$DATABASE_URL\" | grep -qx t; '{KURABE}' doctor \"$KURABE_URL\""
    );
    is_clean(&captured(&place, "url", &TERMINATE, &url, &script_of_url));
    admit(&server, "host").unwrap();
    let plain = captured(&place, "plain", &[], &url_of(&server, "kurabe", ""), &script);
    assert_eq!(exchanged(&encrypted), exchanged(&plain));
    assert!(requests(&plain).len() >= 8, "{:?}", requests(&plain));
    // A client that does not ask for TLS has none, at a relay that would end it.
    let script = format!("export PGSSLMODE=disable; {script}");
    let unasked = captured(&place, "unasked", &TERMINATE, &url, &script);
    assert_eq!(exchanged(&unasked), exchanged(&plain));
}

#[test]
fn clients_of_mysql_that_verify_the_server_are_captured_as_without_tls() {
    for engine in ["mysql", "mariadb"] {
        let Some(server) = testing::server_with(engine, StartOptions::with_tls) else { continue };
        if !has_program("mariadb") {
            return;
        }
        let place = Place::new();
        let users = format!(
            "CREATE USER eve@'%' IDENTIFIED BY '{PASSWORD}' REQUIRE SSL; CREATE USER bob@'%' IDENTIFIED BY '{PASSWORD}'; \
             GRANT ALL ON kurabe.* TO eve@'%'; GRANT ALL ON kurabe.* TO bob@'%'"
        );
        sql(&server, "", &users).unwrap();
        let script = "CREATE TEMPORARY TABLE t (a INT, b TEXT); INSERT INTO t VALUES (1, 'Alice'), (2, NULL); \
                      SELECT * FROM t ORDER BY a; PREPARE s FROM 'SELECT b FROM t WHERE a = ?'; SET @a = 1; EXECUTE s USING @a; \
                      SELECT REPEAT('x', 200000); SELECT 1 FROM no_table";
        let client = |options: &str| {
            format!(
                "mariadb --no-defaults -h 127.0.0.1 -P $MYSQL_TCP_PORT -u $MYSQL_USER --skip-auto-rehash {options} \
                 $MYSQL_DATABASE -e \"{script}\" | wc -c || true"
            )
        };
        // Who is not in the server's cache of passwords sends the password itself, once it trusts the server.
        sql(&server, "", "FLUSH PRIVILEGES").unwrap();
        let url = url_of(&server, "eve", &format!("tls=verify&ca={}", authority(&server)));
        let verified = client("--ssl-ca=$KURABE_CA --ssl-verify-server-cert");
        let encrypted = captured(&place, "encrypted", &TERMINATE, &url, &verified);
        is_clean(&encrypted);
        if engine == "mysql"
            && let Some(own) = mysql_client(&server)
        {
            sql(&server, "", "FLUSH PRIVILEGES").unwrap();
            let words: Vec<_> = std::iter::once(own.get_program()).chain(own.get_args()).collect();
            let words: Vec<_> = words.iter().map(|word| format!("'{}'", word.display())).collect();
            let script = format!(
                "{} --no-defaults -h 127.0.0.1 -P $MYSQL_TCP_PORT -u $MYSQL_USER --ssl-mode=VERIFY_IDENTITY \
                 --ssl-ca=$KURABE_CA $MYSQL_DATABASE -e \"SELECT 'of its own client'\"",
                words.join(" ")
            );
            let path = captured(&place, "own", &TERMINATE, &url, &script);
            is_clean(&path);
            assert!(requests(&path).iter().any(|(text, _)| text == "SELECT 'of its own client'"));
        }
        // Whose password is in the server's cache needs no TLS.
        let bob = url_of(&server, "bob", "");
        let native = with(&bob, &format!("tls=verify&ca={}", authority(&server)));
        is_clean(&captured(
            &place,
            "native",
            &TERMINATE,
            &native,
            &format!("'{KURABE}' doctor \"$KURABE_URL\""),
        ));
        let plain = captured(&place, "plain", &[], &bob, &client(""));
        assert_eq!(exchanged(&encrypted), exchanged(&plain), "{engine}");
        assert!(requests(&plain).len() >= 8, "{engine}");
        // A client that does not ask for TLS has none.
        let unasked = captured(&place, "unasked", &TERMINATE, &native, &client("--skip-ssl"));
        assert_eq!(exchanged(&unasked), exchanged(&plain), "{engine}");
    }
}

/// Prepared statements and values in binary format, as many as the server counts.
#[test]
fn prepared_statements_over_tls_are_those_that_the_server_counted() {
    for engine in ["mysql", "mariadb"] {
        let Some(server) = testing::server_with(engine, StartOptions::with_tls) else { continue };
        let count = || executions(&server);
        let (Some(first), Some(before)) = (count(), count()) else { continue };
        let (place, script) = (Place::new(), point_reads());
        let url = with(server.url(), &format!("tls=verify&ca={}", authority(&server)));
        let path = captured(&place, engine, &TERMINATE, &url, &script);
        let after = count().unwrap();
        is_clean(&path);
        let found = requests(&path);
        for (n, verb) in ["INSERT", "SELECT"].iter().enumerate() {
            let is_verb = |text: &str| text.trim_start_matches('(').to_ascii_uppercase().starts_with(verb);
            let runs = found.iter().filter(|(text, request)| request.step != Step::Prepare && is_verb(text));
            // Without what counting itself costs.
            let counted = after[n] - before[n] - (before[n] - first[n]);
            assert_eq!(runs.count() as u64, counted, "{engine} {verb}");
            assert!(counted > 0, "{engine} {verb}");
        }
        let executed: Vec<_> = found.iter().filter(|(_, request)| request.step == Step::Execute).collect();
        assert!(executed.len() >= 100, "{engine}");
        for (text, request) in executed {
            assert_eq!((request.parameters.len(), request.cut), (text.matches('?').count(), false), "{text}");
        }
    }
}

#[test]
fn redis_cli_with_tls_is_captured_as_without() {
    let Some(server) = testing::server_with("redis", secured) else { return };
    let Some(without) = testing::server("redis") else { return };
    if !has_program("redis-cli") {
        return;
    }
    let place = Place::new();
    let commands = "SET a 1\\nINCRBY a 41\\nMGET a b\\nRPUSH l x y z\\nLRANGE l 0 -1\\nGET l\\nSETRANGE big 100000 x\\nGET big\\n";
    let script = |options: &str| {
        format!("printf '{commands}' | redis-cli -h $REDIS_HOST -p $REDIS_PORT {options} | wc -c")
    };
    let url = with(&server.url().replacen("redis://", "rediss://", 1), &format!("ca={}", authority(&server)));
    let url = url.replacen("rediss://", &format!("rediss://default:{PASSWORD}@"), 1);
    let encrypted = captured(&place, "encrypted", &TERMINATE, &url, &script("--tls --cacert $KURABE_CA"));
    is_clean(&encrypted);
    let plain = captured(&place, "plain", &[], without.url(), &script(""));
    let own = |path: &str| -> Vec<Vec<String>> {
        // The login, whose words are not recorded, and what the program asks first, whose answer has no order.
        let own = |one: &String| !one.starts_with("a statement …") && !one.starts_with("COMMAND");
        exchanged(path).into_iter().map(|all| all.into_iter().filter(own).collect()).collect()
    };
    assert_eq!(own(&encrypted), own(&plain));
    assert!(requests(&plain).len() >= 8);
    // The URL in the environment is enough, and a capture of rediss: is one of Redis.
    let native = format!("'{KURABE}' doctor \"$KURABE_URL\"");
    is_clean(&captured(&place, "native", &TERMINATE, &url, &native));
    assert_eq!(file::read(Path::new(&encrypted), |_, _| {}).unwrap().0.protocol, "redis");
}

#[test]
fn memcached_with_tls_is_captured() {
    let Some(server) = testing::server_with("memcached", |options| options.with_tls().set("login", "none"))
    else {
        return;
    };
    if !has_program("openssl") {
        return;
    }
    let place = Place::new();
    let url = with(server.url(), &format!("tls=verify&ca={}", authority(&server)));
    let script = r#"printf 'set a 0 0 5\r\nhello\r\nget a b\r\nquit\r\n' | openssl s_client -quiet -verify_return_error \
        -verify_ip 127.0.0.1 -CAfile "$KURABE_CA" -connect "$MEMCACHED_SERVERS""#;
    let path = captured(&place, "memcached", &TERMINATE, &url, script);
    is_clean(&path);
    let found: Vec<_> = requests(&path).into_iter().map(|(text, request)| (text, request.rows)).collect();
    assert_eq!(found, [("set ?".to_owned(), 0), ("get ?".to_owned(), 1)]);
}

#[test]
fn client_that_does_not_trust_the_relay_is_told_of_once_and_others_go_on() {
    let Some(server) = testing::server_with("postgres", secured) else { return };
    if !has_program("psql") {
        return;
    }
    let place = Place::new();
    let url = url_of(&server, "kurabe", &format!("tls=verify&ca={}", authority(&server)));
    let private = "stat -c %a \"$KURABE_CA\" \"${KURABE_CA%/*}\" | tr '\n' ' ' | grep -qx '600 700 '";
    let distrusts = format!("PGSSLROOTCERT='{}' psql -Xc 'SELECT 1'", stranger(&place));
    let script = format!(
        "{private}; export PGSSLMODE=verify-full; psql -qXc 'SELECT 1' -c \"SELECT pg_sleep(60)\" & \
         n=0; until [ $n -eq 500 ] || psql -qXAtc \"SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_slee_(60)%'\" | grep -qx 2; do n=$((n + 1)); done; \
         ! {distrusts} && ! {distrusts} && psql -qXc 'SELECT 2' && \
         psql -qXc \"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%' AND pid <> pg_backend_pid()\"; \
         wait"
    );
    let path = place.at("some");
    let path_text = &path;
    let args = ["capture", &url, "-o", path_text, "--tls", "terminate", "--", "sh", "-ec", &script];
    let answer = place.run(&args).success();
    let what = "a client does not trust the certificate of this capture";
    assert_eq!(answer.err.matches(what).count(), 1, "{answer:?}");
    assert!(answer.err.contains("PGCHANNELBINDING=disable"), "{answer:?}");
    let file = answer.err.split_whitespace().find(|word| word.ends_with("/ca.pem")).unwrap();
    assert!(!Path::new(file).exists() && !Path::new(file).parent().unwrap().exists(), "{file}");
    let texts: Vec<String> = requests(&path).into_iter().map(|(text, _)| text).collect();
    for text in ["SELECT 1", "SELECT 2", "SELECT pg_sleep(60)"] {
        assert!(texts.iter().any(|one| one == text), "{texts:?}");
    }
}

#[test]
fn server_that_is_not_trusted_is_an_error_that_says_what_to_do() {
    let place = Place::new();
    let stranger = stranger(&place);
    for engine in ["postgres", "mysql", "redis"] {
        let Some(server) = testing::server_with(engine, StartOptions::with_tls) else { continue };
        let path = place.at(engine);
        let output = &path;
        let script = match engine {
            "postgres" => "psql -Xc 'SELECT 1'",
            "mysql" => {
                "mariadb --no-defaults -h 127.0.0.1 -P $MYSQL_TCP_PORT -u root --ssl-ca=$KURABE_CA -e 'SELECT 1'"
            }
            _ => "redis-cli -h $REDIS_HOST -p $REDIS_PORT --tls --cacert $KURABE_CA PING",
        };
        let url = with(&server.url().replacen("redis:", "rediss:", 1), &format!("tls=verify&ca={stranger}"));
        let args = ["capture", &url, "-o", output, "--tls", "terminate", "--", "sh", "-c", script];
        let answer = place.run(&args).exit_code(3).err_has("the server's certificate is not trusted");
        assert!(answer.err.contains("ca=FILE"), "{answer:?}");
        assert!(answer.err.contains(&server.port().to_string()), "{answer:?}");
        assert_eq!(requests(&path).len(), 0, "{engine}");
        // With any certificate accepted, the same works.
        let lenient = with(&server.url().replacen("redis:", "rediss:", 1), "tls=require");
        let path = captured(&place, &format!("{engine}-any"), &TERMINATE, &lenient, script);
        assert!(!requests(&path).is_empty(), "{engine}");
    }
}

#[test]
fn options_that_contradict_each_other_are_errors_of_usage() {
    let place = Place::new();
    let packets = place.file("packets", "");
    let packets = &packets;
    for (url, rest, part) in [
        ("postgres://h/shop", &["--from", packets][..], "--from"),
        ("postgres://h/shop?sslmode=disable", &[], "sslmode= says that there is no TLS"),
        ("mysql://root@h/shop?tls=off", &[], "tls= says that there is no TLS"),
        ("redis://h", &[], "tls=verify"),
        ("mysql://root@h/shop?socket=/run/m.sock", &[], "Unix socket"),
        ("postgres://h/shop?sslmode=verify-full&sslrootcert=/nonexistent", &[], "/nonexistent"),
    ] {
        let path = place.at("none");
        let args = [&["capture", url, "-o", &path, "--tls", "terminate"], rest].concat();
        let answer = place.run(&args).exit_code(2);
        assert!(answer.err.contains(part) && !Path::new(&path).exists(), "{url}: {answer:?}");
    }
    let answer = place.run(&["capture", "postgres://h/shop?sslmode=require", "-o", "none", "--", "true"]);
    assert!(answer.code == Some(2) && answer.err.contains("--tls terminate"), "{answer:?}");
}

#[test]
fn killed_capture_leaves_no_file_of_its_certificate() {
    let Some(server) = testing::server_with("postgres", secured) else { return };
    let place = Place::new();
    let url = url_of(&server, "kurabe", &format!("tls=verify&ca={}", authority(&server)));
    let path = place.at("killed");
    let args = ["capture", &url, "-o", &path, "--tls", "terminate"];
    let mut child = piped(&mut place.command(&args));
    let mut shown = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut shown).unwrap();
    let (_, file) = shown.trim().split_once("sslrootcert=").unwrap();
    let file = std::path::PathBuf::from(file.split('&').next().unwrap().replace("%2F", "/"));
    let folder = file.parent().unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(!text.contains("PRIVATE KEY"), "{text}");
    }
    assert!(file.exists(), "{shown}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(eventually(20, || (!folder.exists()).then_some(())).is_some(), "{folder:?}");
}

#[test]
fn throwaway_server_has_tls_if_its_url_asks_for_it_or_the_url_is_refused() {
    let place = Place::that_starts_servers();
    let script = format!("'{KURABE}' doctor \"$KURABE_URL\"");
    for (engine, option) in [
        ("postgres", "tls=require"),
        ("postgres", "sslmode=require"),
        ("mysql", "ssl-mode=REQUIRED"),
        ("mariadb", "tls=verify"),
        ("redis", "tls=verify"),
        ("memcached", "tls=verify"),
        ("mongodb", "tls=true"),
    ] {
        if !has(engine) {
            continue;
        }
        let url = format!("up:{engine}?{option}");
        let path = place.at("none");
        let refused = place.run(&["capture", &url, "-o", &path, "--", "true"]);
        let what = "has no effect: the client, and not the relay, chooses TLS";
        assert!(refused.code == Some(2) && refused.err.contains(what), "{refused:?}");
        assert!(!Path::new(&path).exists(), "{refused:?}");
        let path = captured(&place, &url.replace([':', '?', '='], "-"), &TERMINATE, &url, &script);
        is_clean(&path);
        assert!(!requests(&path).is_empty(), "{url}");
        let args =
            ["run", "point-read", &url, "--requests", "50", "--records", "20", "--rounds", "1", "--no-html"];
        place.run(&args).success();
    }
    for url in ["up:couchdb?tls=require", "up:postgres?sslmode=verify-full"] {
        let answer = place.run(&["run", "point-read", url, "--rounds", "1", "--no-html"]);
        let is_said = ["neither TLS", "needs an authority", "not installed"]
            .iter()
            .any(|part| answer.err.contains(part));
        assert!(is_said && answer.code != Some(0), "{answer:?}");
    }
}
