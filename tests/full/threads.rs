//! Hundreds of clients that share two threads.

use crate::shared_threads::{NATIVE, every_answer_is_verified};
use kurabe_testbed::testing;

#[test]
fn hundreds_of_clients_on_two_threads_have_every_answer_verified() {
    for engine in NATIVE {
        let connections = |options: kurabe_testbed::StartOptions| match engine {
            "mysql" | "mariadb" | "postgres" => options.set("max_connections", "400"),
            _ => options,
        };
        let Some(server) = testing::server_with(engine, connections) else { continue };
        for experiment in ["point-read", "point-write"] {
            // Closed and open, and with connections that open inside tasks.
            let open = ["--rate", "2000", "--duration", "1s", "--rounds", "1"];
            for rest in [&["--requests", "5000", "--rounds", "2"][..], &open] {
                every_answer_is_verified(experiment, server.url(), 256, rest);
            }
        }
    }
}
