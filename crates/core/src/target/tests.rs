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
    // Of a URL it is not the programs: messages show their folder.
    assert_eq!(TargetUrl::parse("up:mysql://me:secret@h/db").unwrap().option("programs"), None);
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
