//! The minimum cost of serving on this machine: a program that reads any request and answers it, with as few system
//! calls as possible.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use crate::shell::Outcome;

/// The first argument of a child that serves, and the second for kept connections.
pub const ARGUMENT: &str = "floor";
pub const KEPT: &str = "kept";

/// As long as the answers of `kurabe up app`, so that the kernel copies as much.
const BODY: usize = 117;

/// Serves until it is killed.
pub fn serve(kept: bool) -> Outcome {
    let failed = |error: std::io::Error| format!("the floor cannot serve: {error}");
    let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
    println!("http://{}", listener.local_addr().map_err(failed)?);
    let answer = answer(kept);
    loop {
        let Ok((mut client, _)) = listener.accept() else { continue };
        if !kept {
            // A thread that accepts, answers and closes one connection after another.
            once(&mut client, &answer);
            continue;
        }
        let answer = answer.clone();
        thread::spawn(move || {
            while once(&mut client, &answer) {}
            // The kernel discards the CPU time of a thread when it ends.
            drop(client);
            loop {
                thread::park();
            }
        });
    }
}

fn once(client: &mut TcpStream, answer: &[u8]) -> bool {
    // ab sends a request in one piece.
    let mut request = [0; 2048];
    matches!(client.read(&mut request), Ok(1..)) && client.write_all(answer).is_ok()
}

fn answer(kept: bool) -> Vec<u8> {
    let stays = if kept { "keep-alive" } else { "close" };
    let head = format!(
        "HTTP/1.1 200 OK\r\nServer: floor\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
         Content-Type: application/octet-stream\r\nContent-Length: {BODY}\r\nConnection: {stays}\r\n\r\n"
    );
    [head.as_bytes(), &[b'0'; BODY]].concat()
}
