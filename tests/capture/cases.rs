//! Conversations that are easily recorded wrongly, by a client that speaks the protocols by hand: what is shown of them, and whether a
//! replay on a restored copy has the recorded answers.

use super::{captured, shown};
use crate::replay::replay;
use crate::servers::common::{has_program, sql};
use crate::support::{Answer, Place, eventually, piped};
use kurabe_core::driver::{ConnectOptions, Session};
use kurabe_core::target::TargetUrl;
use kurabe_testbed::{Server, testing};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};

/// Records what a session does that was opened through the relay.
fn recorded(place: &Place, server: &Server, name: &str, work: impl FnOnce(&mut dyn Session)) -> String {
    let path = place.at(name);
    let mut child = piped(&mut place.command(&["capture", server.url(), "-o", &path]));
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let port = TargetUrl::parse(url.trim()).unwrap().port.unwrap();
    let own = server.url().replacen(&format!(":{}/", server.port()), &format!(":{port}/"), 1);
    let driver = kurabe_drivers::registry::open(&TargetUrl::parse(&own).unwrap()).unwrap();
    {
        let mut session = driver.connect(&ConnectOptions::default()).unwrap();
        work(&mut *session);
        session.close().unwrap();
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert!(eventually(20, || child.try_wait().unwrap()).is_some());
    path
}

fn message(tag: u8, body: &[&[u8]]) -> Vec<u8> {
    let body = body.concat();
    [&[tag][..], &(body.len() as u32 + 4).to_be_bytes(), &body].concat()
}

fn parse(name: &str, text: &str, types: &[u32]) -> Vec<u8> {
    let count = (types.len() as u16).to_be_bytes();
    let types: Vec<u8> = types.iter().flat_map(|kind| kind.to_be_bytes()).collect();
    message(b'P', &[name.as_bytes(), b"\0", text.as_bytes(), b"\0", &count, &types])
}

/// Bind with one parameter in text format, Execute, Sync.
fn execute(name: &str, value: &str) -> Vec<u8> {
    let length = (value.len() as u32).to_be_bytes();
    let bind = message(b'B', &[b"\0", name.as_bytes(), b"\0\0\0\0\x01", &length, value.as_bytes(), b"\0\0"]);
    [bind, message(b'E', &[b"\0\0\0\0\0"]), message(b'S', &[])].concat()
}

/// Sends messages of PostgreSQL, and reads until the server is ready.
fn postgres(session: &mut dyn Session, messages: &[u8]) -> Vec<u8> {
    let mut answer = Vec::new();
    let read = session.raw_messages().unwrap().exchange_raw(messages, &mut |piece, _| {
        answer.extend_from_slice(piece);
        Ok(answer.len() > 5 && answer[answer.len() - 6..].starts_with(b"Z\0\0\0\x05"))
    });
    read.unwrap();
    answer
}

/// Sends commands of MySQL, and reads the payloads of packets until these are enough.
fn mysql(
    session: &mut dyn Session,
    commands: &[&[u8]],
    is_enough: impl Fn(&[Vec<u8>]) -> bool,
) -> Vec<Vec<u8>> {
    let packet = |body: &&[u8]| [&(body.len() as u32).to_le_bytes()[..3], &[0], body].concat();
    let sent: Vec<u8> = commands.iter().flat_map(packet).collect();
    let (mut bytes, mut payloads): (Vec<u8>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
    let read = session.raw_messages().unwrap().exchange_raw(&sent, &mut |piece, _| {
        bytes.extend_from_slice(piece);
        while let Some(&[a, b, c, _]) = bytes.first_chunk::<4>() {
            let length = u32::from_le_bytes([a, b, c, 0]) as usize;
            if bytes.len() < 4 + length {
                break;
            }
            payloads.push(bytes[4..4 + length].to_vec());
            bytes.drain(..4 + length);
        }
        Ok(is_enough(&payloads))
    });
    read.unwrap();
    payloads
}

#[test]
fn error_that_comes_with_the_end_of_a_transaction_is_that_of_its_statement() {
    let Some(server) = testing::server("postgres") else { return };
    let schema = "CREATE TABLE parent (id int PRIMARY KEY); \
                  CREATE TABLE deferred (parent int REFERENCES parent DEFERRABLE INITIALLY DEFERRED);";
    let Some(_) = sql(&server, "", schema) else { return };
    let place = Place::that_starts_servers();
    let path = recorded(&place, &server, "deferred", |session| {
        for _ in 0..3 {
            let parse = parse("", "insert into deferred values ($1)", &[23]);
            let answer = postgres(session, &[parse, execute("", "1")].concat());
            assert!(answer.windows(5).any(|code| code == b"23503"), "{}", answer.escape_ascii());
        }
    });
    assert_eq!(shown(&place, &path)["errors"], 3);
    let dump = place.file("dump.sql", schema);
    replay(&place, &path, &["up:postgres", "--data", &dump]).success();
    let other = place.file("other.sql", format!("{schema} INSERT INTO parent VALUES (1);"));
    let answer = replay(&place, &path, &["up:postgres", "--data", &other]);
    let all = format!("{}{}", answer.out, answer.err);
    assert!(answer.code != Some(0) && all.contains("3 of 3 answers differ"), "{all}");
    assert!(all.contains("no error instead of error 23503"), "{all}");
}

#[test]
fn types_that_the_server_chose_are_left_to_a_server_with_other_numbers() {
    let Some(server) = testing::server("postgres") else { return };
    let schema = "CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE TABLE mooded (m mood); \
                  INSERT INTO mooded VALUES ('sad'), ('glad'), ('sad');";
    let Some(_) = sql(&server, "", schema) else { return };
    let place = Place::that_starts_servers();
    let path = recorded(&place, &server, "moods", |session| {
        for n in 0..3 {
            let name = format!("s{n}");
            let described = message(b'D', &[b"S", name.as_bytes(), b"\0"]);
            let text = "select count(*) from mooded where m = $1";
            postgres(session, &[parse(&name, text, &[]), described, message(b'S', &[])].concat());
            let answer = postgres(session, &execute(&name, "sad"));
            assert!(answer.windows(5).any(|row| row == b"\0\0\0\x012"), "{}", answer.escape_ascii());
        }
    });
    let dump =
        place.file("dump.sql", format!("CREATE TYPE other AS ENUM ('a'); CREATE TABLE u (a int); {schema}"));
    replay(&place, &path, &["up:postgres", "--data", &dump]).success();
}

#[test]
fn transaction_that_repeats_one_statement_is_one_transaction() {
    let Some(server) = testing::server("postgres") else { return };
    let schema = "CREATE TABLE orders (id int, state text); INSERT INTO orders SELECT n, '' FROM generate_series(1, 200) n;";
    let Some(_) = sql(&server, "", schema) else { return };
    let place = Place::new();
    let path = recorded(&place, &server, "loop", |session| {
        let mut query = |text: &str| postgres(session, &message(b'Q', &[text.as_bytes(), b"\0"]));
        for n in 0..10 {
            query("begin");
            for id in 20 * n + 1..=20 * n + 20 {
                query(&format!("update orders set state = 'x' where id = {id}"));
            }
            query("commit");
        }
    });
    let report = shown(&place, &path);
    assert_eq!(
        (&report["units"][0]["calls"], &report["units"][0]["steps"][0]["times"]),
        (&10.into(), &serde_json::json!([20, 20])),
        "{report:#}"
    );
}

#[test]
fn data_in_pieces_that_was_forgotten_is_not_sent_again() {
    for engine in ["mysql", "mariadb"] {
        let Some(server) = testing::server(engine) else { continue };
        let schema = "CREATE TABLE longs (id int, v longtext);";
        let Some(_) = sql(&server, "", schema) else { continue };
        let place = Place::that_starts_servers();
        let path = recorded(&place, &server, "pieces", |session| {
            let has_eof = session.raw_messages().unwrap().flags() & 1 << 24 == 0;
            let prepared = mysql(session, &[b"\x16insert into longs (id, v) values (?, ?)"], |packets| {
                packets.len() == if has_eof { 4 } else { 3 }
            });
            let statement = &prepared[0][1..5];
            // A piece, which is forgotten, and then the whole.
            let piece = [b"\x18", statement, b"\x01\0zzz"].concat();
            mysql(session, &[&piece, &[b"\x1a", statement].concat()], |packets| packets.len() == 1);
            let executed =
                [b"\x17", statement, b"\0\x01\0\0\0\0\x01\x03\0\xfc\0", &3_u32.to_le_bytes(), b"\x05short"]
                    .concat();
            let answer = mysql(session, &[&executed], |packets| packets.len() == 1);
            assert_eq!(answer[0][0], 0, "{answer:?}");
            let ends = if has_eof { 2 } else { 1 };
            let rows = mysql(session, &[b"\x03select id, v from longs"], |packets| {
                packets.iter().skip(1).filter(|packet| packet[0] == 0xfe).count() == ends
            });
            assert!(rows.contains(&b"\x013\x05short".to_vec()), "{rows:?}");
        });
        let dump = place.file("dump.sql", schema);
        replay(&place, &path, &[&format!("up:{engine}"), "--data", &dump]).success();
    }
}

#[test]
fn several_statements_in_one_request_are_sent_again() {
    let Some(server) = testing::server("mariadb") else { return };
    if !has_program("mysql") {
        return;
    }
    let place = Place::new();
    let script = "mysql --no-defaults --protocol=tcp --user=root --delimiter=// -e 'select 1; select 2//' kurabe > out";
    let script = format!("cd '{}'; {script}", place.home().display());
    let path = captured(&place, "several", &[], server.url(), &script);
    replay(&place, &path, &[server.url(), "--write"]).success();
}

#[test]
fn application_does_not_notice_that_the_file_cannot_be_written() {
    let Some(server) = testing::server("postgres") else { return };
    if !has_program("psql") {
        return;
    }
    let place = Place::new();
    let path = place.at("full");
    let numbers: Vec<String> =
        (0..1_500_u32).map(|n| format!("SELECT {};\n", n.wrapping_mul(2_654_435_761))).collect();
    let pause = "SELECT pg_sleep(0.7);\n";
    let script = place.file("numbers.sql", [&numbers.concat(), pause, &numbers.concat(), pause].concat());
    let run = format!("psql -qAtXf '{script}' | wc -l");
    // A file may have 8 KiB, beyond which writing fails as on a full disk.
    let args = ["capture", server.url(), "-o", &path, "--", "sh", "-ec", &run];
    let output = place.command_after("ulimit -f 16", &args).output().unwrap();
    let answer = Answer::of(&output);
    assert!(answer.code != Some(0) && answer.err.contains("\n3002\n"), "{answer:?}");
    assert!(answer.err.contains("could not be written to its end"), "{answer:?}");
    assert!(answer.err.contains("which is 8192 bytes here (ulimit -f)"), "{answer:?}");
    place.run(&["capture", "show", &path]).success();
}
