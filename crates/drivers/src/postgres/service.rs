//! libpq's connection service file (PostgreSQL manual, "The Connection Service File").

use super::connections::FOREIGN;
use crate::environment::{bytes, text};
use crate::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// libpq's parameters that Kurabe takes, each with the environment variable of the same meaning.
const PARAMETERS: [(&str, &str); 17] = [
    ("host", "PGHOST"),
    ("hostaddr", "PGHOSTADDR"),
    ("port", "PGPORT"),
    ("dbname", "PGDATABASE"),
    ("user", "PGUSER"),
    ("password", "PGPASSWORD"),
    ("passfile", "PGPASSFILE"),
    ("options", "PGOPTIONS"),
    ("application_name", "PGAPPNAME"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("target_session_attrs", "PGTARGETSESSIONATTRS"),
    ("channel_binding", "PGCHANNELBINDING"),
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
    ("sslcrl", "PGSSLCRL"),
];

/// The variables that say where the server is.
const HOSTS: [&str; 2] = ["PGHOST", "PGHOSTADDR"];

/// Reads a setting of the environment.
pub(super) type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The environment variable of a parameter.
pub(super) fn variable_of(parameter: &str) -> &'static str {
    PARAMETERS.iter().find(|(name, _)| *name == parameter).map_or("", |(_, variable)| variable)
}

/// The parameters of a service, by the environment variables that they replace.
pub(super) type Service = BTreeMap<&'static str, String>;

/// The folder of the file for all users, on Debian.
const SYSTEM: &str = "/etc/postgresql-common";

/// Reads a service from the user's file, else from the one for all users.
fn read(name: &str, variable: Variable<'_>) -> Result<Service> {
    let home = || variable("HOME").map(|home| PathBuf::from(home).join(".pg_service.conf"));
    let own = variable("PGSERVICEFILE").map(PathBuf::from).or_else(home);
    let folder = variable("PGSYSCONFDIR").unwrap_or_else(|| SYSTEM.to_owned());
    let files = own.into_iter().chain([PathBuf::from(folder).join("pg_service.conf")]);
    let mut read = Vec::new();
    for file in files {
        let unreadable = |error| Error::new(ErrorKind::NotPermitted, format!("{}: {error}", file.display()));
        let Some(bytes) = bytes(&file).map_err(unreadable)? else { continue };
        if let Some(service) = parse(&bytes, name, &file.display().to_string())? {
            return Ok(service);
        }
        read.push(file.display().to_string());
    }
    let places = if read.is_empty() { "there is no ~/.pg_service.conf".to_owned() } else { read.join(", ") };
    Err(Error::usage(format!("there is no service '{name}' ({places})"))
        .hint("PGSERVICEFILE names another file"))
}

/// The settings of the service that the URL or `PGSERVICE` names, else those of the environment.
pub(super) fn with_service<'a>(
    url: &TargetUrl,
    environment: Variable<'a>,
) -> Result<impl Fn(&str) -> Option<String> + use<'a>> {
    let named = url.option("service").map(ToOwned::to_owned).or_else(|| environment("PGSERVICE"));
    let service = named.map(|name| read(&name, environment)).transpose()?.unwrap_or_default();
    Ok(move |name: &str| match service.get(name) {
        Some(value) => Some(value.clone()),
        None if name == "PGOPTIONS" => None,
        // The host of a service is not led elsewhere.
        None if HOSTS.contains(&name) && HOSTS.iter().any(|host| service.contains_key(host)) => None,
        None => environment(name),
    })
}

/// The section of a service; `None` if there is none. Other sections and comments may be in any encoding.
fn parse(bytes: &[u8], name: &str, file: &str) -> Result<Option<Service>> {
    let mut found = None;
    for (number, line) in
        bytes.split(|byte| *byte == b'\n').enumerate().map(|(n, line)| (n + 1, line.trim_ascii()))
    {
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        if let Some(section) = line.strip_prefix(b"[") {
            if found.is_some() {
                break;
            }
            let is_wanted = section.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"]"));
            found = is_wanted.then(Service::new);
            continue;
        }
        let Some(service) = &mut found else { continue };
        let line = text(line, format_args!("{file}, line {number}"))?;
        let wrong = |what: String| Error::usage(format!("{file}, line {number}: service '{name}': {what}"));
        let (key, value) =
            line.split_once('=').ok_or_else(|| wrong("a line without '=' is no parameter".to_owned()))?;
        let Some((_, variable)) = PARAMETERS.iter().find(|(parameter, _)| *parameter == key) else {
            match ForeignOption::find(FOREIGN, key, value) {
                Some(Meaning::Nothing(_)) => continue,
                Some(Meaning::Refused(hint)) => {
                    return Err(wrong(format!("the parameter '{key}' is not supported")).hint(hint));
                }
                _ => {}
            }
            let known: Vec<&str> = PARAMETERS.iter().map(|(parameter, _)| *parameter).collect();
            let hint = kurabe_core::units::suggestion(key, &known, "supported");
            return Err(wrong(format!("the parameter '{key}' is not supported")).hint(hint));
        };
        // As in libpq, the first line of a parameter counts.
        service.entry(variable).or_insert_with(|| value.to_owned());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# two\nhost=outside\n[shops]\nhost=o\n[shop] # ours\n host=db1,db2\nport=5433\nport=1\n\
                        target_session_attrs=standby\npassword=a=b\n[last]\nuser=l\n";

    #[test]
    fn section_of_the_service_is_read() {
        let shop = parse(FILE.as_bytes(), "shop", "f").unwrap().unwrap();
        let expected = [
            ("PGHOST", "db1,db2"),
            ("PGPASSWORD", "a=b"),
            ("PGPORT", "5433"),
            ("PGTARGETSESSIONATTRS", "standby"),
        ];
        assert!(shop.iter().map(|(name, value)| (*name, value.as_str())).eq(expected), "{shop:?}");
        assert!(parse(FILE.as_bytes(), "none", "f").unwrap().is_none());
        for (line, part) in [("sslcrldir=/c", "'sslcrldir' is not supported"), ("host", "without '='")] {
            let error = parse(format!("[shop]\n{line}\n").as_bytes(), "shop", "f").unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("f, line 2"), "{error}");
        }
        let ignored = b"[shop]\nkeepalives_idle=60\nclient_encoding=UTF8\ntcp_user_timeout=5\nrequirepeer=\n\
                         replication=false\nssl_max_protocol_version=TLSv1.3\nuser=u\n";
        assert_eq!(parse(ignored, "shop", "f").unwrap().unwrap().len(), 1);
        let error = parse(b"[shop]\nclient_encoding=latin1\n", "shop", "f").unwrap_err().to_string();
        assert!(error.contains("client_encoding") && error.contains("UTF-8"), "{error}");
    }

    #[test]
    fn bytes_of_other_encodings_hide_nothing() {
        let file = b"# s\xe9curit\xe9\n[\xe9]\nuser=\xe9\n[shop]\nsslmode=require\nuser=\xe9\n";
        let error = parse(file, "shop", "f").unwrap_err().to_string();
        assert!(error.contains("f, line 6") && error.contains("UTF-8"), "{error}");
        let shop = parse(&file[..file.len() - 7], "shop", "f").unwrap().unwrap();
        assert_eq!(shop.get("PGSSLMODE").map(String::as_str), Some("require"));
    }
}
