//! PHP within Apache (`mod_php`). The application is that of PHP under php-fpm, in `stacks/php`.

use std::path::PathBuf;

use crate::engine::{Engine, Installed, Instance, Launch};
use crate::stack::Stack;
use crate::{TestbedError, apache, php, programs};

const APACHE: &str = include_str!("../stacks/php/apache.conf");

pub(crate) static MOD_PHP: Stack = Stack {
    engine: Engine { prepare, ..apache::engine("mod_php", find, command, |spec| MOD_PHP.check(spec)) },
    variants: php::VARIANTS,
};

/// Apache's module of PHP, and PHP's version in its name, if it has one: `libphp8.2.so`.
fn module() -> Result<(PathBuf, String), String> {
    let module = apache::module("libphp")?;
    let name = module.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let version = name.trim_start_matches("libphp").to_owned();
    php::check_version(&version)?;
    Ok((module, version))
}

fn find() -> Result<Installed, String> {
    let found = apache::find()?;
    module()?;
    Ok(found)
}

fn prepare(instance: &Instance) -> Result<Vec<Launch>, TestbedError> {
    let (_, version) = module().map_err(|what| MOD_PHP.missing(what))?;
    // The command line of the same version has the same extensions in Debian's packages.
    let cli = programs::any(&format!("php{version}")).or_else(|| programs::any("php"));
    let modules = cli.map(|cli| php::modules(&cli)).unwrap_or_default();
    let program = format!("PHP {version} in Apache {}", instance.installed.version);
    php::write_application(&MOD_PHP, instance, &modules, &program, &[])?;
    Ok(Vec::new())
}

fn command(instance: &Instance, _first: bool) -> Launch {
    // If it is gone now, Apache does not start and reports that.
    let module = module().map(|(module, _)| module).unwrap_or_default();
    apache::command(instance, APACHE, &module)
}
