//! Perl within Apache (`mod_perl` 2), with DBI. The application is in `stacks/perl`.

use std::process::Command;

use crate::engine::{Engine, Installed, Instance, Launch};
use crate::stack::{MYSQL, POSTGRES, SQL, Stack, Variant};
use crate::{TestbedError, apache, environment, programs};

const APP: &str = include_str!("../stacks/perl/App.pm");
const APACHE: &str = include_str!("../stacks/perl/apache.conf");
const APACHE_DBI: &str = "apache-dbi";
const MEMCACHED: &str = "memcached";

pub(crate) static PERL: Stack = Stack {
    engine: Engine { prepare, ..apache::engine("perl", find, command, |spec| PERL.check(spec)) },
    variants: &[
        Variant::per_request("dbi", "DBD::MariaDB or DBD::Pg, a new connection for each request", SQL),
        Variant::kept(
            "apache-dbi",
            "the same with Apache::DBI, by which each process keeps its connection",
            SQL,
        ),
        Variant::per_request("dbi-mysql", "DBD::mysql, a new connection for each request", MYSQL),
        Variant::kept("apache-dbi-mysql", "the same with Apache::DBI", MYSQL),
        Variant::kept("memcached", "Cache::Memcached::Fast, a connection for each process", &["memcached"])
            .of_kv(),
    ],
};

fn find() -> Result<Installed, String> {
    let found = apache::find()?;
    apache::module("mod_perl")?;
    Ok(found)
}

/// DBI's driver for a variant and a database, or `memcached`.
fn driver(variant: &str, kind: &str) -> &'static str {
    if kind == MEMCACHED {
        MEMCACHED
    } else if POSTGRES.contains(&kind) {
        "Pg"
    } else if variant.ends_with("mysql") {
        "mysql"
    } else {
        "MariaDB"
    }
}

fn prepare(instance: &Instance) -> Result<Vec<Launch>, TestbedError> {
    let variant = PERL.variant(&instance.spec).map_err(|what| PERL.bad(what))?.name;
    let driver = driver(variant, &PERL.application(instance)?.database.kind);
    let perl = programs::any("perl").ok_or_else(|| PERL.missing("no program `perl`".to_owned()))?;
    let own =
        if driver == MEMCACHED { "Cache::Memcached::Fast".to_owned() } else { format!("DBD::{driver}") };
    let more = variant.starts_with(APACHE_DBI).then_some("Apache::DBI");
    // Apache::DBI cannot be loaded outside Apache; its file can be found.
    let check = "my @missing = grep { my $file = s{::}{/}gr . '.pm'; !grep { -e \"$_/$file\" } @INC } @ARGV; \
                 print \"@missing\"; printf ' %vd', $^V;";
    let modules = ["DBI", own.as_str()].into_iter().chain(more);
    let said = environment::without_secrets(Command::new(&perl).args(["-e", check]).args(modules)).output();
    let said = said.map_err(TestbedError::io(format!("running {}", perl.display())))?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let (missing, version) = said.rsplit_once(' ').unwrap_or_default();
    if !missing.trim().is_empty() {
        return Err(PERL.missing(format!("Perl has no module {}", missing.trim().replace(' ', ", "))));
    }
    let program = format!("Perl {version}, mod_perl in Apache {}", instance.installed.version);
    PERL.write(instance, &program, [("driver", driver.into())], &[("App.pm", APP)])?;
    Ok(Vec::new())
}

fn command(instance: &Instance, _first: bool) -> Launch {
    // If the module is gone now, Apache does not start and reports that.
    let module = apache::module("mod_perl").unwrap_or_default();
    let kept = PERL.variant(&instance.spec).is_ok_and(|variant| variant.name.starts_with(APACHE_DBI));
    let configuration = APACHE.replace("@APACHE_DBI@", if kept { "PerlModule Apache::DBI" } else { "" });
    apache::command(instance, &configuration, &module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn driver_fits_variant_and_database() {
        assert_eq!(driver("apache-dbi", "postgres"), "Pg");
        assert_eq!(driver("dbi", "mariadb"), "MariaDB");
        assert_eq!(driver("apache-dbi-mysql", "mysql"), "mysql");
        assert_eq!(driver("memcached", "memcached"), "memcached");
    }
}
