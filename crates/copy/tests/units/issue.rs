//! [`kurabe_copy::issue`].

use kurabe_copy::issue::{Accepted, Becomes, IssueKind};

#[test]
fn only_named_differences_are_accepted() {
    let accepted = Accepted::parse(["view", "zero-date:orders.placed", "check:orders"]).unwrap();
    assert!(accepted.has(IssueKind::View, "anything"));
    assert!(accepted.has(IssueKind::ZeroDate, "orders.placed"));
    assert!(!accepted.has(IssueKind::ZeroDate, "orders.paid"));
    assert!(accepted.has(IssueKind::Check, "orders.positive"));
    assert!(!accepted.has(IssueKind::Check, "items.positive"));
    let chosen =
        Accepted::parse(["zero-date=0001-01-01", "zero-date:orders=refuse", "nul-character"]).unwrap();
    assert_eq!(chosen.becomes(IssueKind::ZeroDate, "a.b"), Becomes::Text("0001-01-01".to_owned()));
    assert_eq!(chosen.becomes(IssueKind::ZeroDate, "orders.placed"), Becomes::Itself);
    assert_eq!(chosen.becomes(IssueKind::NulCharacter, "a.b"), Becomes::Usual);
    assert!(Accepted::parse(["view=null1"]).is_err());
    let error = Accepted::parse(["zero-dates"]).unwrap_err().to_string();
    assert!(error.contains("zero-date"), "{error}");
}
