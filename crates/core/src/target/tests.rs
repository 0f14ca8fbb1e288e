use super::*;
use proptest::prelude::*;

fn parse(text: &str) -> TargetUrl {
    TargetUrl::parse(text).unwrap()
}

#[test]
fn option_defaults_to_first_choice_and_rejects_unknown_values() {
    let chosen =
        |text: &str| TargetUrl::parse(text).unwrap().choice("client", &[("lean", false), ("driver", true)]);
    assert_eq!(
        (chosen("a:"), chosen("a:?client=lean"), chosen("a:?client=driver")),
        (Ok(false), Ok(false), Ok(true))
    );
    let error = chosen("a:?client=fast").unwrap_err().to_string();
    assert_eq!(error, "a: client=fast is unknown; one of: lean, driver");
}

#[test]
fn brackets_enclose_only_an_ipv6_address() {
    for text in ["a://]::", "a://[::1]x", "a://[::1", "a://h%5D", "a://[[::1]"] {
        assert!(TargetUrl::parse(text).is_err(), "{text}");
    }
    assert_eq!(parse("a://[::1]:5").to_string(), "a://[::1]:5");
}

#[test]
fn every_part_of_a_url_is_found() {
    let url = parse("MySQL://al%20:p%40ss:w@[::1]:3307/shop?tls=require&socket=/run/x");
    assert_eq!(url.scheme, "mysql");
    assert_eq!(url.user.as_deref(), Some("al "));
    assert_eq!(url.password.as_ref().map(Secret::expose), Some("p@ss:w"));
    assert_eq!((url.host.as_deref(), url.port), (Some("::1"), Some(3307)));
    assert_eq!(url.path, "shop");
    assert_eq!(url.option("tls"), Some("require"));
    assert_eq!(url.option("socket"), Some("/run/x"));
}

#[test]
fn programs_of_a_throwaway_server_may_follow_its_name() {
    let url = TargetUrl::parse("up:postgres@15:/opt/pg/bin?work_mem=4MB").unwrap();
    assert_eq!(url, TargetUrl::parse("up:postgres?programs=/opt/pg/bin&version=15&work_mem=4MB").unwrap());
    let url = TargetUrl::parse("up:redis:/opt/redis").unwrap();
    assert_eq!(
        (url.path.as_str(), url.option("programs"), url.option("version")),
        ("redis", Some("/opt/redis"), None)
    );
    assert_eq!(TargetUrl::parse("up:mysql@5.5").unwrap().path, "mysql@5.5");
    // A URL is not the programs.
    let error = TargetUrl::parse("up:mysql://me:secret@h/db").unwrap_err().to_string();
    assert!(error.contains("no URL") && !error.contains("secret"), "{error}");
    assert_eq!(TargetUrl::parse("sqlite:a:/b").unwrap().path, "a:/b");
}

#[test]
fn scheme_with_plus_several_hosts_and_socket_host_are_unchanged() {
    let url = parse("mongodb+srv://app@cluster.example/shop?w=majority");
    assert_eq!((url.scheme.as_str(), url.host.as_deref()), ("mongodb+srv", Some("cluster.example")));
    for text in [
        "mongodb+srv://app@cluster.example/shop?w=majority",
        "mongodb://a.example:27018,b.example/shop",
        "mongodb://[::1]:27018,b.example/shop",
        "mongodb://%2Frun%2Fmongodb-27017.sock/shop",
    ] {
        assert_eq!(parse(text).to_string(), text);
    }
    assert_eq!(parse("mongodb://a:1,b:2/shop").host.as_deref(), Some("a:1,b:2"));
    assert_eq!(parse("mongodb://%2Frun%2Fa.sock/shop").host.as_deref(), Some("/run/a.sock"));
}

#[test]
fn targets_without_a_host() {
    assert_eq!(parse("sqlite:").path, "");
    assert_eq!(parse("sqlite:/tmp/a b.db?journal_mode=wal").path, "/tmp/a b.db");
    assert_eq!(parse("up:postgres").path, "postgres");
    assert_eq!(parse("postgres:///db?host=/run/postgresql").host, None);
}

#[test]
fn password_is_never_displayed() {
    let url = parse("postgres://bob:hunter2@db.example:5432/shop?sslpassword=hunter2");
    assert_eq!(url.to_string(), "postgres://bob@db.example:5432/shop?sslpassword=***");
    assert!(!format!("{url:?}").replace("\"sslpassword\": \"hunter2\"", "").contains("hunter2"));
    let url = parse("postgres:///d?host=h&password=hunter2&user=u");
    assert_eq!(url.password.as_ref().map(Secret::expose), Some("hunter2"));
    assert!(!url.options.contains_key("password") && !url.to_string().contains("hunter2"), "{url}");
    let error = TargetUrl::parse("postgres://h/d?password=a&hunter2&tls=off").unwrap_err().to_string();
    assert!(error.contains("%26") && !error.contains("hunter2"), "{error}");
    assert_eq!(parse("redis://u:a@h?password=b").password.as_ref().map(Secret::expose), Some("a"));
    let url = parse("postgres://h/d?sslpassword=a&hunter2&tls=off");
    assert!(!url.to_string().contains("hunter2") && url.to_string().contains("tls=off"), "{url}");
    let error = TargetUrl::parse("postgres//bob:hunter2@db").unwrap_err();
    assert!(!error.to_string().contains("hunter2"), "{error}");
    let error = TargetUrl::parse("postgres://bob:hunter2@db:x").unwrap_err();
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[test]
fn password_with_an_unescaped_delimiter_is_refused_and_not_displayed() {
    for text in [
        "postgres://app:123?cret@127.0.0.1/shop",
        "postgres://app:my/cret@127.0.0.1/shop",
        "postgres://app:1/cret@127.0.0.1/shop",
        "mysql://app:p@ss?cret@h/d",
        "mysql://app:1?tls=cret@h/d",
        "redis://:1/x?cret@h",
        "redis://:?cret@h",
        "redis://my/cret@h:x/0",
        "postgres://my/cret@h/d",
    ] {
        let error = TargetUrl::parse(text).unwrap_err().to_string();
        assert!(!error.contains("cret"), "{text}: {error}");
        assert!(error.contains("%3F") && error.contains("%2F"), "{text}: {error}");
        let shown = without_passwords([text.to_owned()].into_iter());
        assert!(!shown[0].contains("cret"), "{shown:?}");
    }
    let url = parse("postgres://app:1%3F%2Fcret@h/d%40?x=a%40b");
    assert_eq!(url.password.as_ref().map(Secret::expose), Some("1?/cret"));
    assert_eq!((&*url.path, url.option("x")), ("d@", Some("a@b")));
    assert_eq!(parse("postgres://h/d?user=me@here").option("user"), Some("me@here"));
    // '#' needs no escape.
    assert_eq!(parse("postgres://a:b#c@h/d").password.as_ref().map(Secret::expose), Some("b#c"));
}

#[test]
fn exposed_url_has_its_password_and_is_read_again() {
    for text in [
        "postgres://kurabe:p%2Fw%3A%40%3F%25@127.0.0.1:5432/kurabe?application_name=x",
        "redis://:secret@127.0.0.1:1",
        "mysql://root:@h/d",
        "sqlite:x.db",
    ] {
        let url = parse(text);
        assert_eq!(url.exposed(), text);
        assert_eq!(parse(&url.exposed()), url);
    }
}

#[test]
fn empty_password_means_no_password_and_is_displayed() {
    for text in ["mysql://root:@127.0.0.1:3307/shop", "redis://:@127.0.0.1:1"] {
        let url = parse(text);
        assert_eq!(url.password.as_ref().map(Secret::expose), Some(""));
        assert_eq!(url.to_string(), text);
    }
    assert_eq!(parse("redis://:@h").user, None);
    assert_eq!(parse("redis://bob@h").password, None);
}

#[test]
fn unknown_option_is_rejected_with_suggestion() {
    let error = parse("sqlite:?jornal_mode=wal").check_options(&["journal_mode", "synchronous"]).unwrap_err();
    assert!(error.to_string().contains("did you mean 'journal_mode'?"), "{error}");
}

/// Targets that cannot be read, each with `SECRET` in it.
fn malformed() -> Vec<String> {
    let pairs = [
        ["host=h", "password=SECRET", "dbname=d", "user=u"],
        ["Server=h", "Pwd=SECRET", "Database=d", "Uid=u"],
        ["Data Source=h", "Password=SECRET", "Initial Catalog=d", "User ID=u"],
        ["DRIVER={PostgreSQL Unicode}", "PASSWORD=SECRET", "SERVER=h", "UID=u"],
        ["Driver={MySQL ODBC 8.0}", "PWD=SECRET", "SERVER=h", "UID=u"],
        ["hostaddr=10.0.0.1", "passwd = SECRET", "port=5432", "sslmode=require"],
        ["password=SECRET", "host=h", "user=u", "dbname=d"],
        ["service=shop", "user=u", "password='SECRET'", "dbname=d"],
        ["DSN=shop", "UID=u", "PWD={SECRET}", "Port=1"],
        ["user=u", "pass=SECRET", "host=h", "db=d"],
    ];
    let mut all = Vec::new();
    for pairs in pairs {
        for (between, wrap) in
            [(" ", ""), (";", ""), ("; ", ""), (";", "pgsql:"), (";", "mysql:"), (";", "odbc:")]
        {
            all.push(format!("{wrap}{}", pairs.join(between)));
        }
    }
    for scheme in [
        "jdbc:postgresql", "jdbc:mysql", "jdbc:mariadb", "r2dbc:postgresql", "jdbc:tc:mysql:8",
        "postgresql+psycopg2", "postgresql+asyncpg", "mysql+pymysql", "mysql+mysqldb",
        "mariadb+mariadbconnector", "oracle+cx_oracle", "redis+unix", "redis+socket", "unix", "mssql+pyodbc",
        "file",
    ] {
        for rest in [
            "//u:SECRET@h/d", "//h/d?user=u&password=SECRET", "//h:1;user=u;password=SECRET", "u:SECRET@h",
            "//u:SECRET@/s",
        ] {
            all.push(format!("{scheme}:{rest}"));
        }
    }
    for scheme in ["postgres", "mysql", "redis", "mongodb", "couchdb", "memcached"] {
        for rest in [
            ":/u:SECRET@h/d", ":///u:SECRET@h/d", ":u:SECRET@h/d", "//u:SECRET@h/d", "://u:SEC/SECRET@h/d",
            "://u:SEC?SECRET@h/d", "://h/d;password=SECRET", "://u:x@h/d;x=1;pwd=SECRET",
            "://u:SECRET@h:port/d", "://u:SECRET@[h/d", "://u:%ff@h/SECRET", ";//u:SECRET@h/d",
        ] {
            all.push(format!("{scheme}{rest}"));
        }
    }
    all.extend(
        [
            "u:SECRET@h/d",
            "u:SECRET@h:5432/d",
            ":SECRET@h",
            ":SECRET",
            "u/SECRET@h:1521/s",
            "u/SECRET@//h/s",
            "u:SECRET@tcp(h:3306)/d?tls=true",
            "u:SECRET@unix(/run/m.sock)/d",
            "SECRET",
            "SECRET@h",
            "u@SECRET",
            "jdbc:oracle:thin:u/SECRET@h:1521:s",
            "jdbc:oracle:thin:@//h/s?password=SECRET",
            "SECRET:@h/d",
            "jdbc:sqlserver://h;databaseName=d;password=SECRET",
            "//u:SECRET@h/d",
            "sqlite:x.db;Password=SECRET",
            "Data Source=x.db;Password=SECRET",
            "file:x.db?key=SECRET",
            "up:postgres://u:SECRET@h/d",
            "=SECRET",
            "?SECRET",
        ]
        .map(str::to_owned),
    );
    all
}

#[test]
fn nothing_of_an_unreadable_target_is_shown() {
    let all = malformed();
    assert!(all.len() > 200, "{}", all.len());
    for text in &all {
        let error = TargetUrl::parse(text).expect_err(text).to_string();
        assert!(!error.contains("SECRET") && !error.contains("SEC/"), "{text}: {error}");
        // As a word of the command line, and in whatever repeats it.
        for word in [text.clone(), format!("--cache={text}"), format!("copy:{text}")] {
            if ["SECRET", "u@SECRET", "SECRET@h", "=SECRET", "?SECRET", ":SECRET"].contains(&text.as_str()) {
                continue;
            }
            let said = format!("error: invalid value '{word}' ({text}) for {word:?}");
            let said = without_words(&said, std::slice::from_ref(&word));
            assert!(!said.contains("SECRET"), "{word}: {said}");
            assert!(!without_passwords([word.clone()].into_iter()).concat().contains("SECRET"), "{word}");
        }
    }
}

#[test]
fn form_of_another_client_is_named_with_the_url_to_write() {
    for (text, name, url) in [
        ("host=h password=x dbname=d", "libpq's keywords", "postgres://user@host"),
        ("Server=h;Database=d;Uid=u;Pwd=x", "ADO.NET", "ENGINE://user@host"),
        ("Driver={MySQL ODBC 8.0};Server=h;Pwd=x", "ODBC", "mysql://user@host"),
        ("jdbc:postgresql://h/d?user=u&password=x", "JDBC", "postgres://user@host"),
        ("jdbc:mysql://h/d", "JDBC", "mysql://user@host"),
        ("postgresql+psycopg2://u:p@h/d", "SQLAlchemy", "postgres://user@host"),
        ("mysql+pymysql://u:p@h/d", "SQLAlchemy", "mysql://user@host"),
        ("redis+unix:///run/r.sock", "Unix socket", "redis://localhost?socket=/PATH"),
        ("file:shop.db", "of a file", "sqlite:PATH"),
        ("pgsql:host=h;dbname=d", "PDO", "postgres://user@host"),
        ("u:p@tcp(h:3306)/d", "Go's driver", "mysql://user@host"),
        ("u:p@h/d", "without a scheme", "postgres://app@"),
    ] {
        let error = TargetUrl::parse(text).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(url), "{text}: {error}");
    }
    let error = TargetUrl::parse("postgers").unwrap_err().to_string();
    assert!(error.contains("'postgers' is not a target"), "{error}");
    // What is readable stays as it is.
    for text in [
        "sqlite:/tmp/a=b.db",
        "sqlite:a;b.db",
        "postgres://h/d?options=-c work_mem=4MB",
        "up:mysql@8:/opt/a=b",
    ] {
        assert!(TargetUrl::parse(text).is_ok(), "{text}");
    }
    for word in ["-D", "a=1", "/home/me@corp/x.sql", "--title=me@corp", "name <me@corp.example>", "x:1"] {
        assert_eq!(without_passwords([word.to_owned()].into_iter()), [word]);
    }
}

#[test]
fn secret_in_an_option_is_not_displayed() {
    for (url, shown) in [
        ("postgres://h/d?PWD=SECRET", "postgres://h/d?PWD=***"),
        ("up:redis?requirepass=SECRET", "up:redis?requirepass=***"),
        ("stack:php?db=mysql://u:SECRET@h/d", "stack:php?db=mysql://u%40h/d"),
        ("stack:php?db=u:SECRET@h/d", "stack:php?db=***"),
    ] {
        assert_eq!(parse(url).to_string(), shown);
    }
    let error = parse("postgres://u@h/d?sslpassword=a&SECRET").check_options(&["sslpassword"]).unwrap_err();
    assert!(!error.to_string().contains("SECRET"), "{error}");
}

#[test]
fn url_says_whether_the_environment_is_ignored() {
    let url = parse("postgres://h/d?environment=ignore&tls=off");
    assert!(url.ignores_environment && url.option("environment").is_none());
    assert_eq!(parse(&url.to_string()), url);
    assert!(!parse("postgres://h/d").ignores_environment);
    assert!(TargetUrl::parse("postgres://h/d?environment=no").is_err());
}

proptest! {
    #[test]
    fn parsing_never_panics_and_display_parses_to_the_same(text in "[a-z]{1,6}:(//)?[ -~]{0,40}") {
        if let Ok(url) = TargetUrl::parse(&text)
            && url.password.is_none()
            && !url.path.starts_with('/')
            && url.options.keys().all(|name| name.bytes().all(|b| b.is_ascii_alphanumeric()) && !name.is_empty())
        {
            let again = TargetUrl::parse(&url.to_string());
            prop_assert!(again.is_ok(), "{}", url);
        }
    }
}

fn names_of(urls: &[&str]) -> Vec<String> {
    names(&urls.iter().map(|url| TargetUrl::parse(url).unwrap()).collect::<Vec<_>>())
}

#[test]
fn targets_get_short_unique_names() {
    assert_eq!(names_of(&["sqlite:", "up:postgres"]), ["sqlite", "postgres"]);
    assert_eq!(names_of(&["sqlite:", "sqlite:"]), ["sqlite", "sqlite#2"]);
    assert_eq!(names_of(&["sqlite:", "sqlite:?synchronous=off"]), ["sqlite", "sqlite synchronous=off"]);
    assert_eq!(
        names_of(&["up:mysql@9:/opt/mysql/bin?x=1", "up:mysql@9:/opt/mysql/bin?x=2", "up:redis?y=3"]),
        ["mysql x=1", "mysql x=2", "redis"]
    );
    assert_eq!(
        names_of(&["mysql://a@one/x", "mysql://a@two:3307/x", "mysql://a@two:3307/y", "redis://one"]),
        ["mysql one x", "mysql two x", "mysql two y", "redis"]
    );
    assert_eq!(names_of(&["postgres://h/shop", "postgres://h/shop2"]), ["postgres shop", "postgres shop2"]);
    assert_eq!(names_of(&["postgres://a@h/x", "postgres://b@h/x"]), ["postgres a@", "postgres b@"]);
    assert_eq!(
        names_of(&["postgres://a@h:6432/x", "postgres://b@h:5432/x", "postgres://b@h:5432/y", "up:postgres"]),
        ["postgres a@ x", "postgres b@ x", "postgres b@ y", "postgres throwaway"]
    );
    assert_eq!(
        names_of(&["postgres://a@h:6432/x", "postgres://b@i:5432/x", "postgres://a@h:5432/x"]),
        ["postgres h:6432", "postgres i:5432", "postgres h:5432"]
    );
    assert_eq!(names_of(&["sqlite:", "sqlite:/old/a.db"]), ["sqlite", "sqlite a.db"]);
    assert_eq!(
        names_of(&["sqlite:/old/a.db", "sqlite:/new/a.db", "sqlite:b.db"]),
        ["sqlite /old/a.db", "sqlite /new/a.db", "sqlite b.db"]
    );
    assert_eq!(
        names_of(&["up:mysql@8.4:/opt/8/bin", "up:mysql@9.7:/opt/9/bin?x=2", "up:mysql:/opt/own/bin"]),
        ["mysql@8.4", "mysql@9.7 x=2", "mysql programs=/opt/own/bin"]
    );
}
