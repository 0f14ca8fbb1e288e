//! The registry of engines and of application stacks: one line each.

use crate::engine::{Engine, Installed, Missing};
use crate::memcached::NONE;
use crate::spec::LOGIN;
use crate::stack::{Stack, Variant};
use crate::{
    TestbedError, couchdb, host, java, mariadb, memcached, mod_php, mongodb, mysql, mysql55, node, perl, php,
    postgres, python, redis, tcp,
};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

static ENGINES: &[&Engine] = &[
    &mysql::MYSQL,
    &mysql55::MYSQL55,
    &mariadb::MARIADB,
    &postgres::POSTGRES,
    &memcached::MEMCACHED,
    &redis::REDIS,
    &redis::VALKEY,
    &mongodb::MONGODB,
    &couchdb::COUCHDB,
    &tcp::TCP,
];

static STACKS: &[&Stack] =
    &[&php::PHP, &java::JAVA, &python::PYTHON, &node::NODE, &mod_php::MOD_PHP, &perl::PERL];

/// The names that [`crate::start`] accepts.
pub fn engines() -> impl Iterator<Item = &'static str> {
    ENGINES.iter().map(|engine| engine.name)
}

/// The engines that can be started as a cache.
pub fn caches() -> impl Iterator<Item = &'static str> {
    ENGINES.iter().filter(|engine| engine.cache.is_some()).map(|engine| engine.name)
}

/// Whether each engine can be started on this machine, in the registry's order, and what is missing.
pub fn available() -> Vec<(&'static str, Result<Installed, Missing>)> {
    ENGINES.iter().map(|engine| (engine.name, look(engine))).collect()
}

/// Whether an engine can be started on this machine, and what is missing; `None` if there is none of this name.
pub fn installed(engine: &str) -> Option<Result<Installed, Missing>> {
    ENGINES.iter().find(|known| known.name == engine).map(|engine| look(engine))
}

/// Like [`installed`], of a stack.
pub fn installed_stack(name: &str) -> Option<Result<Installed, Missing>> {
    stack(name).map(|stack| look(&stack.engine))
}

/// Looks for the program of an engine. A process looks once: the program is started for its version.
fn look(engine: &'static Engine) -> Result<Installed, Missing> {
    static FOUND: Mutex<BTreeMap<&str, Result<Installed, Missing>>> = Mutex::new(BTreeMap::new());
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    found.entry(engine.name).or_insert_with(|| engine.installed()).clone()
}

/// The setting with which a server has clients need no login, if its clients often cannot log in.
pub fn without_login(engine: &str) -> Option<(&'static str, &'static str)> {
    by_name(engine).is_ok_and(|engine| engine.login == Some(NONE)).then_some((LOGIN, NONE))
}

/// Whether an engine can be started on a host of its own, a network namespace (the setting `mtu`).
///
/// # Errors
/// Why not, as a clause.
pub fn has_own_host(engine: &str) -> Result<(), String> {
    if by_name(engine).is_ok_and(|engine| engine.own_host) {
        host::permitted()
    } else {
        Err(format!("Kurabe starts {engine} on this host only"))
    }
}

pub(crate) fn by_name(name: &str) -> Result<&'static Engine, TestbedError> {
    let of_stack = || stack(name).map(|stack| &stack.engine);
    ENGINES.iter().copied().find(|engine| engine.name == name).or_else(of_stack).ok_or_else(|| {
        TestbedError::UnknownEngine {
            engine: name.to_owned(),
            known: engines().collect::<Vec<_>>().join(", "),
        }
    })
}

/// The names of all stacks.
pub fn stacks() -> impl Iterator<Item = &'static str> {
    STACKS.iter().map(|stack| stack.engine.name)
}

/// The variants of a stack; `None` if there is no such stack.
pub fn variants(stack: &str) -> Option<&'static [Variant]> {
    self::stack(stack).map(|stack| stack.variants)
}

fn stack(name: &str) -> Option<&'static Stack> {
    STACKS.iter().copied().find(|stack| stack.engine.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_installed_without_a_task_of_the_source() {
        let stacks = STACKS.iter().map(|stack| &stack.engine);
        assert!(ENGINES.iter().copied().chain(stacks).all(|engine| !engine.how.contains("cargo")));
    }
}
