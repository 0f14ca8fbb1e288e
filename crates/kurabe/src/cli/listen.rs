//! `kurabe up tcp`.

use super::arguments::flag;
use clap::{Arg, Command};

/// The engine of this listener among throwaway servers: `up:tcp`.
pub(super) const NAME: &str = "tcp";
/// This host only, at the port that targets without one name.
const DEFAULT: &str = "127.0.0.1:7007";

pub(super) fn command() -> Command {
    Command::new(NAME)
        .about("Listens for experiment net of another host, and prints the URL to name it by; Ctrl-C ends it")
        .long_about(
            "Listens for experiment net of another host, and prints the URL to name it by; Ctrl-C ends it. It \
             receives bytes, compares them with what they should be, and sends messages back. It has two ports: that \
             of the address, and one that the system chooses for connections with fixed socket buffers. Whoever may \
             connect occupies up to 8 MB for each of 512 connections; nothing that arrives is kept. On this machine, your \
             account and root may connect. An address that other machines can reach needs --allow-remote, and is open to \
             everybody there.",
        )
        .arg(
            Arg::new("address")
                .value_name("ADDRESS[:PORT]")
                .default_value(DEFAULT)
                .help("The address of this host at which others reach it; an IPv6 address in brackets if a port follows; port 0: any free one"),
        )
        .arg(flag("allow-remote", "Allow an address that other machines can reach; there is no authentication"))
        .arg(flag("allow-other-users", "Let clients of other accounts of this machine connect"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn default_address_has_the_default_port() {
        let port = super::DEFAULT.rsplit_once(':').map(|(_, port)| port.to_owned());
        assert_eq!(port, Some(kurabe_tcp::protocol::PORT.to_string()));
    }
}
