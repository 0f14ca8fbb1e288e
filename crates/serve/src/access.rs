//! Access to the page: a user needs its token.
//!
//! The first visit has it in its URL, `/?token=…`. The answer sets a cookie and leads to the same page without the
//! token, so that the browser's history and `Referer` do not hold it. Programs send `Authorization: Bearer TOKEN`. The
//! cookie is not sent with requests that other sites cause (`SameSite`), so that they cannot start or stop runs.

use crate::{Shared, page};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, COOKIE, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use maud::html;
use std::sync::Arc;

/// The name of the cookie.
const NAME: &str = "kurabe-token";

pub(crate) struct Access {
    token: Option<String>,
}

impl Access {
    pub(crate) fn new(token: Option<String>) -> Self {
        Self { token }
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    fn allows(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return true };
        let text = |name| headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        let bearer = text(AUTHORIZATION).filter_map(|value| value.strip_prefix("Bearer "));
        let cookies = text(COOKIE).flat_map(|all| all.split(';')).filter_map(|one| {
            let (name, value) = one.trim().split_once('=')?;
            (name == NAME).then_some(value)
        });
        bearer.chain(cookies).any(|given| is_equal(given, token))
    }
}

/// Compares in a time that does not tell how many characters are right.
fn is_equal(given: &str, token: &str) -> bool {
    let differences = given.bytes().zip(token.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == token.len() && differences == 0
}

pub(crate) async fn check(State(shared): State<Arc<Shared>>, request: Request<Body>, next: Next) -> Response {
    let given = request.uri().query().and_then(|query| {
        form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "token").map(|(_, value)| value)
    });
    if let (Some(given), Some(token)) = (given, shared.access.token())
        && is_equal(&given, token)
    {
        let cookie = format!("{NAME}={token}; Path=/; HttpOnly; SameSite=Lax; Max-Age=2592000");
        let path = request.uri().path().to_owned();
        return (StatusCode::SEE_OTHER, [(SET_COOKIE, cookie), (LOCATION, path)]).into_response();
    }
    if shared.access.allows(request.headers()) {
        return next.run(request).await;
    }
    let body = html! {
        p { "This page needs the token that " code { "kurabe serve" } " printed." }
        p { "Open the URL that it printed, or send the header " code { "Authorization: Bearer TOKEN" } "." }
    };
    (StatusCode::UNAUTHORIZED, page::layout("Not allowed", &body)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: axum::http::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn only_the_token_gives_access() {
        let access = Access::new(Some("0123".to_owned()));
        assert!(access.allows(&headers(AUTHORIZATION, "Bearer 0123")));
        assert!(access.allows(&headers(COOKIE, "a=b; kurabe-token=0123")));
        for value in
            ["kurabe-token=", "kurabe-token=012", "kurabe-token=01234", "kurabe-token=0124", "x=0123"]
        {
            assert!(!access.allows(&headers(COOKIE, value)), "{value}");
        }
        assert!(!access.allows(&headers(AUTHORIZATION, "Basic 0123")) && !access.allows(&HeaderMap::new()));
        assert!(Access::new(None).allows(&HeaderMap::new()));
    }
}
