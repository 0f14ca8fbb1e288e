//! `kurabe capture --from`: packets of tcpdump and logs of servers make the capture that the relay made.

use super::*;

/// tcpdump of the loopback packets of a port, until it is ended.
fn tcpdump(port: u16, to: &str) -> Option<(Child, impl Iterator<Item = String>)> {
    let mut command = Command::new("tcpdump");
    // Without immediate mode, packets take no more of the buffer than they are long, and are given after a second at most.
    command.args(["-i", "lo", "-B", "65536", "-s", "0", "-Z", "root", "-U", "-w"]);
    command.arg(to).args(["port", &port.to_string()]).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        skip("tcpdump is not installed");
        return None;
    };
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mut said = String::new();
    while let Some(line) = lines.next() {
        if line.contains("listening on") {
            return Some((child, lines));
        }
        said += &line;
    }
    let _ = child.wait();
    skip(&format!("tcpdump may not capture here: that takes root, or CAP_NET_RAW: {said}"));
    None
}

/// What was asked and answered, without times, in no order of connections.
pub(super) fn exchanged(path: &str) -> Vec<Vec<String>> {
    let mut by_connection: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for (text, request) in requests(path) {
        let Request {
            connection,
            step,
            parameters,
            limit,
            cut,
            rows,
            affected,
            error,
            digest,
            transaction,
            ..
        } = request;
        let shown = format!(
            "{text} {step:?} {parameters:?} {limit} {cut} {rows} {affected} {error:?} {digest} {transaction:?}"
        );
        by_connection.entry(connection).or_default().push(shown);
    }
    let mut all: Vec<_> = by_connection.into_values().collect();
    all.sort();
    all
}

/// The packets between the relay and its server are the same conversation, which the kernel saw.
#[test]
fn packets_of_tcpdump_make_the_capture_that_the_relay_made() {
    for (engine, script) in [
        (
            "postgres",
            "pgbench -i -q -s 1 2>/dev/null; pgbench -n -M prepared -c 3 -t 20; psql -qXc 'SELECT 1 / 0' || true",
        ),
        (
            "mysql",
            "s='sysbench oltp_read_write --mysql-host=127.0.0.1 --mysql-user=root --mysql-db=kurabe --mysql-ssl=off --table-size=3000'; \
             s=\"$s --mysql-port=$MYSQL_TCP_PORT --mysql-password=$MYSQL_PWD --threads=2 --events=40 --time=0\"; $s prepare >/dev/null; $s run >/dev/null",
        ),
        (
            "redis",
            "redis-benchmark -h $REDIS_HOST -p $REDIS_PORT -a $REDISCLI_AUTH -q -t set,get,incr -d 20000 -n 200 -c 3 -P 4 >/dev/null",
        ),
        (
            "memcached",
            "memcslap --servers=$MEMCACHED_SERVERS --concurrency=2 --execute-number=50 --test=get --initial-load=60",
        ),
        (
            "couchdb",
            "u=http://$KURABE_HOST:$KURABE_PORT/traced; curl -s -o /dev/null -X PUT $u; curl -s -o /dev/null $u $u/[1-120]",
        ),
        (
            "mongodb",
            "$KURABE run point-read $KURABE_URL --clients 2 --requests 100 --records 50 --rounds 1 --no-html --interleave=off --quiet",
        ),
    ] {
        // Its client program cannot log in.
        let open = |options: kurabe_testbed::StartOptions| match engine {
            "memcached" => options.set("login", "none"),
            _ => options,
        };
        let Some(server) = testing::server_with(engine, open) else { continue };
        let place = Place::new();
        let packets = place.at("packets");
        let Some((mut dump, said)) = tcpdump(server.port(), &packets) else { return };
        let script = script.replace("$KURABE ", &format!("'{KURABE}' "));
        let relayed = captured(&place, "relayed", &[], server.url(), &script);
        std::thread::sleep(Duration::from_millis(1_500));
        kill_process(Pid::from_child(&dump), Signal::INT).unwrap();
        dump.wait().unwrap();
        let said: Vec<String> = said.collect();
        assert!(said.iter().any(|line| line.starts_with("0 packets dropped")), "{engine}: {said:?}");
        let traced = place.at("traced");
        let answer = place.run(&["capture", server.url(), "--from", &packets, "-o", &traced]);
        assert!(answer.code == Some(0) && !answer.err.contains("warning"), "{answer:?}");
        let (relayed, mut traced) = (exchanged(&relayed), exchanged(&traced));
        // The connection by which the recorder read the catalogue.
        let is_own = |line: &String| line.starts_with("SHOW TABLES") || line.contains("string_agg(a.attname");
        traced.retain(|one| !one.iter().any(is_own));
        let requests = relayed.iter().map(Vec::len).sum::<usize>();
        assert!(requests > 100, "{engine}: {requests}");
        // The relay looks whether the server answers before it begins: a connection without a request.
        let different = relayed.iter().zip(&traced).find(|(one, other)| one != other);
        assert!(relayed == traced, "{engine}: {} and {}: {different:?}", relayed.len(), traced.len());
    }
}

/// What the server wrote down is the conversation that the relay saw, and errors and values are those that were sent.
#[test]
fn log_of_the_server_makes_the_capture_that_the_relay_made() {
    let place = Place::new();
    let at = |name: &str| place.at(name);
    for (engine, script, folder, log) in [
        (
            "postgres",
            "pgbench -i -q -s 1 2>/dev/null; for m in simple extended prepared; do pgbench -n -M $m -c 3 -t 20; done; \
             psql -qXc 'SELECT 1 / 0' -c \"SELECT 'it''s', \\\"a\\\" FROM (SELECT 1 AS \\\"a\\\") AS x\" || true",
            "SHOW data_directory",
            "log/one.EXT",
        ),
        (
            "mysql",
            "s='sysbench oltp_read_write --mysql-host=127.0.0.1 --mysql-user=root --mysql-db=kurabe --mysql-ssl=off --table-size=3000'; \
             s=\"$s --mysql-port=$MYSQL_TCP_PORT --mysql-password=$MYSQL_PWD --threads=2 --events=40 --time=0\"; $s --db-ps-mode=disable prepare >/dev/null; \
             $s --db-ps-mode=disable run >/dev/null",
            "SELECT @@datadir",
            "slow.EXT",
        ),
    ] {
        let options = |options: kurabe_testbed::StartOptions| {
            let set = |options: kurabe_testbed::StartOptions, all: &[(&str, &str)]| {
                all.iter().fold(options, |options, (name, value)| options.set(*name, *value))
            };
            match engine {
                "postgres" => set(
                    options,
                    &[
                        ("logging_collector", "on"),
                        ("log_destination", "csvlog,jsonlog,stderr"),
                        ("log_line_prefix", "%m [%p] %q%u@%d "),
                        ("log_filename", "one.log"),
                        ("log_min_duration_statement", "0"),
                    ],
                ),
                _ => set(
                    options,
                    &[
                        ("slow_query_log", "ON"),
                        ("slow_query_log_file", "slow.log"),
                        ("long_query_time", "0"),
                        ("log_slow_admin_statements", "ON"),
                        ("log_slow_extra", "ON"),
                    ],
                ),
            }
        };
        let Some(server) = testing::own_server_with(engine, options) else { continue };
        let folder = sql(&server, "", folder).unwrap();
        let log = format!("{}/{log}", folder.trim());
        if engine == "postgres" {
            assert_log_is_replayed(&place, &server, &log.replace("EXT", "csv"));
        }
        let relayed = captured(&place, engine, &[], server.url(), script);
        for ext in if engine == "postgres" { &["csv", "json", "log"][..] } else { &["log"] } {
            let (to, log) = (at(&format!("{engine}.{ext}")), log.replace("EXT", ext));
            logged(&place, server.url(), &log, &to);
            let (mut relayed, logged) = (executed(&relayed), executed(&to));
            if (engine, *ext) == ("postgres", "log") {
                // That something failed is in this format, and not with which code.
                for line in relayed.iter_mut().flatten() {
                    *line = line.replace("Some(\"22012\")", "Some(\"unknown\")");
                }
            }
            let requests = relayed.iter().map(Vec::len).sum::<usize>();
            assert!(requests > 100, "{engine}: {requests}");
            let missing: Vec<_> = relayed.iter().filter(|one| !logged.contains(one)).collect();
            assert!(missing.is_empty(), "{ext}: {missing:#?} of {logged:#?}");
        }
    }
}

/// Makes a capture of a log, once the server has written it.
fn logged(place: &Place, url: &str, log: &str, to: &str) {
    let mut size = None;
    let is_whole = || {
        let now = std::fs::metadata(log).map(|log| log.len()).ok().filter(|size| *size > 0);
        (now.is_some() && std::mem::replace(&mut size, now) == now).then_some(()).or_else(|| {
            std::thread::sleep(Duration::from_millis(500));
            None
        })
    };
    assert!(eventually(20, is_whole).is_some(), "{log}");
    place.run(&["capture", url, "--from", log, "-o", to]).success();
}

/// A log does not say what was answered, but what failed: only that is compared.
fn assert_log_is_replayed(place: &Place, server: &kurabe_testbed::Server, log: &str) {
    let path = place.at("reads");
    place.file("a.sql", "SELECT :n::int + count(*) FROM pg_class\n");
    let script = format!(
        "cd '{}'; pgbench -n -M prepared -c 2 -t 5 -D n=7 -f a.sql '{}'; psql -qXc 'SELECT n FROM later' '{1}' || true",
        place.home().display(),
        server.url()
    );
    assert!(
        Command::new("sh")
            .args(["-ec", &script])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .success()
    );
    logged(place, server.url(), log, &path);
    let shown = place.run(&["capture", "show", &path]);
    assert!(shown.out.contains("From a log: times are the server's"), "{shown:?}");
    let replay = || place.run(&["run", "replay", &path, server.url(), "--rounds", "1", "--no-html"]);
    replay().success();
    let report = place.report();
    let verified = &report["cells"][0]["verified"];
    assert_eq!((&verified["answers"], &verified["how"]), (&0.into(), &"nothing".into()), "{report:#}");
    sql(server, "", "CREATE TABLE later (n int)").unwrap();
    let answer = replay();
    let said = format!("{}{}", answer.out, answer.err);
    assert!(answer.code != Some(0) && said.contains("no error instead of error 42P01"), "{answer:?}");
}

/// What each connection executed: the statement with its values, and the error.
fn executed(path: &str) -> Vec<Vec<String>> {
    let mut found = BTreeMap::<u64, Vec<String>>::new();
    for (text, request) in requests(path) {
        let values: Vec<_> = request.parameters.iter().map(|one| &one.value).collect();
        let is_statement = !text.starts_with("COM_") && request.step != Step::Prepare;
        if is_statement && !text.to_ascii_lowercase().starts_with("copy") {
            let line = format!(
                "{} {values:?} {:?} {}",
                text.trim_end_matches([';', ' ', '\n']),
                request.error,
                request.cut
            );
            found.entry(request.connection).or_default().push(line);
        }
    }
    let mut all: Vec<_> = found.into_values().collect();
    all.sort();
    all
}

#[test]
fn what_is_no_trace_of_the_server_is_refused_and_leaves_no_file() {
    let place = Place::new();
    let at = |name: &str| place.at(name);
    std::fs::write(at("text"), "SELECT 1").unwrap();
    std::fs::write(at("packed"), [0x1f, 0x8b, 8, 0, 0]).unwrap();
    let header = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
    std::fs::write(at("empty"), header).unwrap();
    std::fs::write(at("long"), [&header[..], &[0; 8], &[255; 8]].concat()).unwrap();
    for (target, from, why) in [
        ("redis://127.0.0.1:1", "text", "is no file of packets"),
        ("postgres://127.0.0.1:1", "text", "it is no log of PostgreSQL"),
        ("mysql://127.0.0.1:1", "text", "it is no slow or general query log"),
        ("postgres://127.0.0.1:1", "packed", "unpack it"),
        ("postgres://127.0.0.1:1", "missing", "cannot be read"),
        ("postgres://127.0.0.1:1", "empty", "has no packets of 127.0.0.1:1"),
        ("postgres://db:1", "empty", "has no packets of port 1"),
        ("postgres://127.0.0.1:1", "long", "longer than any"),
        ("up:postgres", "empty", "of a server that there was"),
    ] {
        let answer = place.run(&["capture", target, "--from", &at(from), "-o", &at("out")]);
        assert!(answer.code != Some(0) && answer.err.contains(why), "{from}: {answer:?}");
        assert!(!Path::new(&at("out")).exists(), "{from}");
    }
}
