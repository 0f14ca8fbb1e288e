//! Access to the page: nobody else's hand.
//!
//! - **Host.** A request must name the page as it was bound: a foreign name that leads here (DNS rebinding) is refused.
//! - **Token.** The first visit has it in its URL, `/?token=…`. The answer sets a cookie and leads to the same page without
//!   the token, so that the browser's history does not hold it. Programs send `Authorization: Bearer TOKEN`. The cookie has
//!   the port in its name, since browsers share cookies among the ports of a host, and does not contain the token.
//! - **Origin.** What changes something must come from a page of this one: by the browser's word (`Origin`,
//!   `Sec-Fetch-Site`), and by a token in each form, which only such a page knows. That holds without a token too. Programs
//!   that send the page's token need no form.

use crate::answer::{Response, redirect, with_status};
use crate::page;
use hyper::header::{AUTHORIZATION, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, SET_COOKIE};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode, Uri};
use kurabe_report::Language;
use maud::{Markup, html};
use ring::hmac;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

pub(crate) const FIELD: &str = "form-token";
/// The browser's word where a request comes from, and what it is for.
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

pub(crate) struct Access {
    token: Option<String>,
    /// Makes the cookie and the tokens of forms.
    key: hmac::Key,
    bound: SocketAddr,
    /// Other names of the page, with their ports.
    hosts: Vec<String>,
}

/// Why a request is refused.
struct Refused(StatusCode, &'static str);

impl Access {
    /// `secret`: what nobody else knows; with a token, that. `hosts`: names by which the page is reached besides its address.
    pub(crate) fn new(token: Option<String>, secret: &str, bound: SocketAddr, hosts: &[String]) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, token.as_deref().unwrap_or(secret).as_bytes());
        let names = |host: &String| {
            let host = host.to_ascii_lowercase();
            match port_of(&host) {
                // Browsers leave out the usual ports of both schemes: those of a proxy in front of the page.
                Some("80" | "443") => vec![host[..host.rfind(':').unwrap_or(host.len())].to_owned(), host],
                Some(_) => vec![host],
                None => vec![format!("{host}:{}", bound.port())],
            }
        };
        Self { token, key, bound, hosts: hosts.iter().flat_map(names).collect() }
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// The hidden field of a form that is sent to this path.
    pub(crate) fn field(&self, action: &str) -> Markup {
        html! { input type="hidden" name=(FIELD) value=(self.sign(&form(action))); }
    }

    fn sign(&self, what: &str) -> String {
        let mut text = String::new();
        for byte in hmac::sign(&self.key, what.as_bytes()).as_ref() {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    fn cookie_name(&self) -> String {
        format!("kurabe-{}", self.bound.port())
    }

    /// Whether this is the page's own host and port.
    fn is_own(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        if self.hosts.contains(&host) {
            return true;
        }
        let (name, port) = match port_of(&host) {
            Some(port) => (&host[..host.len() - port.len() - 1], port.parse().ok()),
            None => (host.as_str(), Some(80)),
        };
        let bound = self.bound.ip().to_canonical();
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let is_named = match bare.parse::<IpAddr>().map(|ip| ip.to_canonical()) {
            // An address is nobody's name: only the machine itself answers there.
            Ok(ip) => bound.is_unspecified() || ip == bound || (ip.is_loopback() && bound.is_loopback()),
            Err(_) => name == "localhost" && (bound.is_loopback() || bound.is_unspecified()),
        };
        port == Some(self.bound.port()) && is_named
    }

    /// Checks the host of a request.
    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refused> {
        let mut given = headers.get_all(HOST).iter();
        let host = given.next().and_then(|host| host.to_str().ok());
        let is_own = given.next().is_none()
            && host.is_some_and(|host| self.is_own(host))
            && uri.authority().is_none_or(|authority| self.is_own(authority.as_str()));
        is_own.then_some(()).ok_or(Refused(
            StatusCode::MISDIRECTED_REQUEST,
            "This page has another address. Open the URL that kurabe serve printed; \
            its option --host names another one.",
        ))
    }

    /// Checks that no other site caused a request.
    fn check_origin(&self, method: &Method, headers: &HeaderMap) -> Result<(), Refused> {
        let changes = changes(method);
        let foreign = Err(Refused(StatusCode::FORBIDDEN, "Another site caused this request."));
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let site = text(SITE);
        let same = site.is_none_or(|site| site == "same-origin" || (!changes && site == "none"));
        // A link of another site may be followed; nothing else of it is answered.
        let link = !changes && text(MODE) == Some("navigate");
        let origin = text(ORIGIN).is_none_or(|origin| {
            let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            // Any address is the page's own where it listens at all of them, but then only the one that was asked.
            let asked = headers.get(HOST).and_then(|host| host.to_str().ok());
            let is_asked = |host: &str| !self.bound.ip().is_unspecified() || asked == Some(host);
            host.is_some_and(|host| {
                self.is_own(host) && (is_asked(host) || self.hosts.iter().any(|own| own == host))
            })
        });
        if (same || link) && (origin || !changes) { Ok(()) } else { foreign }
    }

    /// Whether the headers have the page's token.
    fn has_token(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return false };
        let given = headers.get_all(AUTHORIZATION).into_iter().filter_map(|value| value.to_str().ok());
        given.filter_map(|value| value.strip_prefix("Bearer ")).any(|given| is_equal(given, token))
    }

    /// Whether the headers have the cookie.
    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let (name, own) = (self.cookie_name(), self.sign("cookie"));
        let cookies = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        let mut cookies = cookies.flat_map(|all| all.split(';')).filter_map(|one| one.trim().split_once('='));
        cookies.any(|(given, value)| given == name && is_equal(value, &own))
    }

    /// The answer to a visit with the token in its URL; `None` for others.
    fn visit(&self, uri: &Uri) -> Option<Response> {
        let pairs = form_urlencoded::parse(uri.query()?.as_bytes());
        let (given, rest): (Vec<_>, Vec<_>) = pairs.partition(|(name, _)| name == "token");
        if !given.iter().any(|(_, given)| self.token().is_some_and(|token| is_equal(given, token))) {
            return None;
        }
        // A browser takes such a path for another host.
        if uri.path().starts_with("//") || uri.path().contains('\\') {
            return Some(refuse(&Refused(StatusCode::BAD_REQUEST, "This is no path of this page.")));
        }
        let rest = form_urlencoded::Serializer::new(String::new()).extend_pairs(rest).finish();
        let to = if rest.is_empty() { uri.path().to_owned() } else { format!("{}?{rest}", uri.path()) };
        let (name, value) = (self.cookie_name(), self.sign("cookie"));
        let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000");
        let mut answer = redirect(&to);
        answer.headers_mut().insert(SET_COOKIE, HeaderValue::from_str(&cookie).ok()?);
        Some(answer)
    }

    /// Whether a form has the token of the page that it comes from.
    fn has_field(&self, path: &str, body: &[u8]) -> bool {
        let own = self.sign(&form(path));
        form_urlencoded::parse(body).any(|(name, value)| name == FIELD && is_equal(&value, &own))
    }
}

/// What the token of a form signs.
fn form(action: &str) -> String {
    format!("form {action}")
}

/// The port that a host names.
fn port_of(host: &str) -> Option<&str> {
    let (name, port) = host.rsplit_once(':')?;
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    // Colons of an IPv6 address are in brackets.
    (is_port && (!name.contains(':') || name.ends_with(']'))).then_some(port)
}

fn changes(method: &Method) -> bool {
    ![Method::GET, Method::HEAD].contains(method)
}

/// Compares in a time that does not tell how many characters are right.
fn is_equal(given: &str, own: &str) -> bool {
    let differences = given.bytes().zip(own.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == own.len() && differences == 0
}

fn refuse(Refused(status, why): &Refused) -> Response {
    with_status(*status, page::layout(Language::English, "Not allowed", &html! { p { (why) } }))
}

/// Lets a request in by its head; whether it also needs the token of a form.
///
/// # Errors
/// The answer to one that is not let in, or that is a visit with the token in its URL.
pub(crate) fn check(access: &Access, head: &Parts) -> Result<bool, Box<Response>> {
    access
        .check_host(&head.uri, &head.headers)
        .and_then(|()| access.check_origin(&head.method, &head.headers))
        .map_err(|refused| Box::new(refuse(&refused)))?;
    let changes = changes(&head.method);
    if let Some(answer) = access.visit(&head.uri).filter(|_| !changes) {
        return Err(Box::new(answer));
    }
    let is_program = access.has_token(&head.headers);
    if access.token.is_some() && !is_program && !access.has_cookie(&head.headers) {
        let body = html! {
            p { "This page needs the token that " code { "kurabe serve" } " printed." }
            p { "Open the URL that it printed, or send the header " code { "Authorization: Bearer TOKEN" } "." }
        };
        return Err(Box::new(with_status(
            StatusCode::UNAUTHORIZED,
            page::layout(Language::English, "Not allowed", &body),
        )));
    }
    Ok(changes && !is_program)
}

/// Lets a form in that comes from a page of this one.
///
/// # Errors
/// The answer to another.
pub(crate) fn check_form(access: &Access, path: &str, body: &[u8]) -> Result<(), Box<Response>> {
    if access.has_field(path, body) {
        return Ok(());
    }
    Err(Box::new(refuse(&Refused(
        StatusCode::FORBIDDEN,
        "This form is not of this page, or of one that has ended. Reload the page that it is on.",
    ))))
}

/// The answer to a form that is larger than any of this page.
pub(crate) fn too_large() -> Response {
    refuse(&Refused(StatusCode::PAYLOAD_TOO_LARGE, "This form is too large."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::LOCATION;

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    fn access(token: Option<&str>, bound: &str, hosts: &[&str]) -> Access {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        Access::new(token.map(str::to_owned), "secret", bound.parse().unwrap(), &hosts)
    }

    #[test]
    fn only_the_token_and_its_cookie_give_access() {
        let access = access(Some("0123"), "127.0.0.1:8096", &[]);
        assert!(access.has_token(&headers(&[(AUTHORIZATION, "Bearer 0123")])));
        for value in ["Basic 0123", "Bearer ", "Bearer 012", "Bearer 01234", "Bearer 0124"] {
            assert!(!access.has_token(&headers(&[(AUTHORIZATION, value)])), "{value}");
        }
        let visited = access.visit(&"/?token=0123".parse().unwrap()).unwrap();
        let cookie = visited.headers()[SET_COOKIE].to_str().unwrap();
        let (pair, settings) = cookie.split_once(';').unwrap();
        assert!(settings.contains("HttpOnly") && settings.contains("SameSite=Strict"), "{cookie}");
        assert!(pair.starts_with("kurabe-8096=") && !pair.contains("0123="), "{cookie}");
        assert!(!pair.ends_with("=0123"), "the cookie is the token");
        assert!(access.has_cookie(&headers(&[(COOKIE, &format!("a=b; {pair}"))])));
        let other_port = pair.replace("8096", "8097");
        for value in ["kurabe-8096=", "kurabe-8096=0123", "kurabe-token=0123", &other_port] {
            assert!(!access.has_cookie(&headers(&[(COOKIE, value)])), "{value}");
        }
    }

    #[test]
    fn visit_keeps_its_other_parameters_and_leads_to_no_other_host() {
        let access = access(Some("0123"), "127.0.0.1:8096", &[]);
        let to = |uri: &str| {
            let answer = access.visit(&uri.parse().unwrap())?;
            Some(answer.headers().get(LOCATION).map(|to| to.to_str().unwrap().to_owned()))
        };
        assert_eq!(to("/?token=0123"), Some(Some("/".to_owned())));
        assert_eq!(
            to("/compare?run=a&token=0123&run=b%26"),
            Some(Some("/compare?run=a&run=b%26".to_owned()))
        );
        assert_eq!(to("//evil.example/?token=0123"), Some(None));
        assert_eq!(to("/?token=012"), None);
        assert_eq!(to("/?tokens=0123"), None);
    }

    #[test]
    fn host_must_be_what_was_bound() {
        let access_at = |bound: &str| access(None, bound, &["bench.example", "proxy.example:443"]);
        for (bound, own, foreign) in [
            (
                "127.0.0.1:8096",
                &[
                    "127.0.0.1:8096", "localhost:8096", "LOCALHOST:8096", "[::1]:8096", "bench.example:8096",
                    "proxy.example:443", "proxy.example",
                ][..],
                &[
                    "bench.example", "evil.example:8096", "evil.example", "127.0.0.1", "127.0.0.1:80",
                    "localhost:8097", "192.0.2.1:8096", "", ":8096", "127.0.0.1.evil.example:8096",
                    "localhost.evil.example:8096", "bench.example:80", "[::1]", "127.0.0.1:8096:8096",
                    "evil@127.0.0.1:8096",
                ][..],
            ),
            (
                "[::1]:8096",
                &["[::1]:8096", "localhost:8096"],
                &["::1:8096", "[::2]:8096", "evil.example:8096"],
            ),
            (
                "192.0.2.1:8096",
                &["192.0.2.1:8096"],
                &["localhost:8096", "127.0.0.1:8096", "evil.example:8096"],
            ),
            (
                "0.0.0.0:8096",
                &["192.0.2.9:8096", "localhost:8096", "[::1]:8096"],
                &["evil.example:8096", "192.0.2.9:80"],
            ),
            ("127.0.0.1:80", &["127.0.0.1", "localhost", "localhost:80"], &["localhost:8080"]),
        ] {
            let access = access_at(bound);
            for host in own {
                assert!(access.is_own(host), "{bound} {host}");
            }
            for host in foreign {
                assert!(!access.is_own(host), "{bound} {host}");
            }
        }
        let access = access_at("127.0.0.1:8096");
        let check = |uri: &str, pairs: &[(HeaderName, &str)]| {
            access.check_host(&uri.parse().unwrap(), &headers(pairs)).is_ok()
        };
        assert!(check("/", &[(HOST, "localhost:8096")]));
        assert!(!check("/", &[]) && !check("http://evil.example/", &[(HOST, "localhost:8096")]));
        let mut two = headers(&[(HOST, "localhost:8096")]);
        two.append(HOST, "evil.example".parse().unwrap());
        assert!(access.check_host(&"/".parse().unwrap(), &two).is_err());
    }

    #[test]
    fn requests_that_other_sites_cause_are_refused() {
        let page = access(None, "127.0.0.1:8096", &[]);
        let check = |method: Method, pairs: &[(HeaderName, &str)]| {
            page.check_origin(&method, &headers(pairs)).is_ok()
        };
        let own = "http://127.0.0.1:8096";
        assert!(check(Method::POST, &[]) && check(Method::POST, &[(ORIGIN, own), (SITE, "same-origin")]));
        for origin in
            ["http://evil.example", "null", "http://127.0.0.1:8097", "http://127.0.0.1", "", "file://"]
        {
            assert!(!check(Method::POST, &[(ORIGIN, origin)]), "{origin}");
            assert!(!check(Method::POST, &[(ORIGIN, origin), (SITE, "same-origin")]), "{origin}");
        }
        for site in ["cross-site", "same-site", "none", "x"] {
            assert!(!check(Method::POST, &[(ORIGIN, own), (SITE, site)]), "{site}");
            assert!(check(Method::GET, &[(SITE, site), (MODE, "navigate")]), "{site}");
        }
        let everywhere = access(None, "0.0.0.0:8096", &["proxy.example:443"]);
        let check_there = |host: &str, origin: &str| {
            everywhere.check_origin(&Method::POST, &headers(&[(HOST, host), (ORIGIN, origin)])).is_ok()
        };
        assert!(check_there("192.0.2.9:8096", "http://192.0.2.9:8096"));
        assert!(check_there("127.0.0.1:8096", "https://proxy.example"));
        for origin in ["http://192.0.2.66:8096", "http://localhost:8096", "http://[::1]:8096"] {
            assert!(!check_there("192.0.2.9:8096", origin), "{origin}");
        }
        for method in [Method::PUT, Method::DELETE, Method::OPTIONS] {
            assert!(!check(method, &[(SITE, "cross-site")]));
        }
        assert!(check(Method::GET, &[(SITE, "same-origin"), (MODE, "cors")]));
        assert!(!check(Method::GET, &[(SITE, "same-site"), (MODE, "no-cors")]));
    }

    #[test]
    fn token_of_a_form_is_of_its_own_path_only() {
        let access = access(None, "127.0.0.1:8096", &[]);
        let field = |path: &str| {
            let field = access.field(path).into_string();
            let value = field.split_once("value=\"").unwrap().1.split('"').next().unwrap();
            format!("a=b&{FIELD}={value}")
        };
        assert!(access.has_field("/jobs/1/stop", field("/jobs/1/stop").as_bytes()));
        for body in [field("/jobs/2/stop"), format!("{FIELD}="), String::new()] {
            assert!(!access.has_field("/jobs/1/stop", body.as_bytes()), "{body}");
        }
        let other = Access::new(None, "another", access.bound, &[]);
        assert!(!other.has_field("/jobs/1/stop", field("/jobs/1/stop").as_bytes()));
    }
}
