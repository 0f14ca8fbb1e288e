//! What all pages look like.

use crate::answer::{Response, of_type};
use hyper::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue};
use kurabe_report::{Language, Message};
use maud::{DOCTYPE, Markup, html};

/// Only our own style, script and events; no other site may frame a page.
const POLICY: &str = "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; connect-src 'self'; \
                      frame-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'self'";

/// A page with this heading.
pub(crate) fn layout(language: Language, title: &str, body: &Markup) -> Response {
    let say = |message: Message| message.text(language);
    let page = html! {
        (DOCTYPE)
        html lang=(language.name()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                meta name="generator" content="Kurabe";
                link rel="icon" href="data:,";
                link rel="stylesheet" href="/style.css";
                title { (title) " · Kurabe" }
                script src="/script.js" defer {}
            }
            body {
                nav aria-label=(say(Message::Pages)) {
                    a href="/" { (say(Message::RunList)) } " "
                    a href="/history" { (say(Message::History)) } " "
                    a href="/new" { (say(Message::NewRun)) }
                }
                header { h1 { (title) } }
                main { (body) }
                footer { "kurabe serve " (env!("CARGO_PKG_VERSION")) }
            }
        }
    };
    // Names from servers may contain control characters, which HTML does not allow.
    let text = page.into_string().replace(|c: char| c.is_control() && c != '\n', " ");
    document(text, HeaderValue::from_static(POLICY))
}

/// A message with a placeholder `{code}`.
pub(crate) fn with_code(language: Language, message: Message, code: &str) -> Markup {
    let text = message.text(language);
    let (before, after) = text.split_once("{code}").unwrap_or((text, ""));
    html! { (before) code { (code) } (after) }
}

/// An HTML document with this policy.
pub(crate) fn document(text: String, policy: HeaderValue) -> Response {
    let mut answer = of_type("text/html; charset=utf-8", text);
    let headers: [(HeaderName, HeaderValue); 4] = [
        (CONTENT_SECURITY_POLICY, policy),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        // With no-referrer, a browser would not name the origin of a form.
        (HeaderName::from_static("referrer-policy"), HeaderValue::from_static("same-origin")),
        (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    ];
    answer.headers_mut().extend(headers);
    answer
}

pub(crate) fn style() -> Response {
    of_type("text/css; charset=utf-8", kurabe_report::html::style() + include_str!("style.css"))
}

pub(crate) fn script() -> Response {
    of_type("text/javascript; charset=utf-8", include_str!("script.js").to_owned())
}

/// A name in a URL.
pub(crate) fn in_url(name: &str) -> String {
    form_urlencoded::byte_serialize(name.as_bytes()).collect()
}
