//! Applications that conform, or lie, or cannot be started. Stacks of other languages run in the full tier
//! (`full/stacks.rs`).

mod lies;

use crate::support::{Answer, Place};
use crate::web::common::App;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;

#[test]
fn application_of_kurabe_conforms() {
    let app = App::start_with("sqlite:", &["--records", "300"]);
    Place::new().run(&["doctor", "--via", &app.url("")]).success().out_has("webapp request: 8 clients");
}

#[test]
fn no_planted_lie_passes() {
    let app = App::start_with("null:", &["--records", "300"]);
    lies::no_lie_passes(app.address, "", 100, false);
}

#[test]
fn truth_through_the_relay_passes() {
    let app = App::start_with("null:", &["--records", "300"]);
    lies::truth_passes(app.address, "", 100);
}

#[test]
fn missing_interpreter_is_named_with_its_installation() {
    // Where APT does not know the packages, the page names what is needed.
    const PAGE: &str = "docs/how-to/stacks.md";
    for (stack, part, how) in [
        ("php", "no program `php-fpm`", "apt-get install php-fpm"),
        ("java", "no program `java`", PAGE),
        ("python", "no program `python3`", "apt-get install gunicorn"),
        ("node", "no program `node`", PAGE),
        ("mod_php", "no program `apache2`", "apt-get install apache2 libapache2-mod-php"),
        ("perl", "no program `apache2`", "apt-get install apache2 libapache2-mod-perl2"),
    ] {
        let place = Place::new();
        let mut command = place.command(&["up", "stack", stack, "--db", "up:mariadb"]);
        // The testbed searches only there.
        let answer = Answer::of(&command.env("KURABE_SERVER_PATH", "/nonexistent").output().unwrap());
        assert_eq!(answer.code, Some(3), "{answer:?}");
        let said = |part: &str| answer.err.contains(part);
        assert!(said(part) && (said(how) || said(PAGE)) && !said("cargo"), "{answer:?}");
    }
}

#[test]
fn doctor_names_what_an_application_does_wrong() {
    // It answers each page of kv with one record, whatever is asked.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        while let Ok((mut client, _)) = listener.accept() {
            thread::spawn(move || {
                let mut lines = BufReader::new(client.try_clone().unwrap()).lines();
                while let Some(Ok(first)) = lines.next() {
                    while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                    let (status, body) = match first.split(' ').nth(1).unwrap_or_default() {
                        "/health" => ("200 OK", "ok\n".to_owned()),
                        "/kv" => ("200 OK", r#"{"seed": 7, "records": 500}"#.to_owned()),
                        "/connect" | "/webapp" => ("404 Not Found", String::new()),
                        _ => ("200 OK", format!("{:020}\n{}", 1, "0".repeat(96))),
                    };
                    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
                    if client.write_all((head + &body).as_bytes()).is_err() {
                        break;
                    }
                }
            });
        }
    });
    let answer = Place::new().run(&["doctor", "--via", &format!("http://{address}")]).exit_code(3);
    for part in [
        "ok      GET /health",
        "ok      GET /kv\n",
        "absent  GET /kv: 'durability'",
        "WRONG   GET /kv/read?key=1: record 1 was returned with wrong content",
        "WRONG   GET /kv/read?key=500: requested record 500, received record 1",
        "WRONG   GET /kv/read?key=0: expected status 404",
        "WRONG   POST /kv/read: expected status 405",
        "WRONG   GET /kv/write: expected status 405",
        "WRONG   kv write: 8 clients at once",
    ] {
        assert!(answer.out.contains(part), "{part}: {}", answer.out);
    }
}
