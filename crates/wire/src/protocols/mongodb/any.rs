//! Any commands, and any bytes.

use super::tests::{V, bytes, conversation, int, op_msg, seen, text};
use super::*;
use crate::mongodb::{cursors, message};
use crate::view::tests::exchanges;
use kurabe_protocol::mongodb::frame::LONGEST;
use proptest::prelude::*;

/// Any value of a command.
fn any_value() -> impl Strategy<Value = V> {
    let name = "[a-c$\"\\\\ é{}?\\[\\].]{1,3}";
    let leaf = prop_oneof![
        any::<i32>().prop_map(V::Int),
        any::<i64>().prop_map(V::Long),
        any::<f64>().prop_map(V::Double),
        "[a?\"]{0,3}".prop_map(V::Text),
        Just(V::Null),
        any::<bool>().prop_map(V::Bool),
        any::<[u8; 12]>().prop_map(V::Id),
        prop::collection::vec(any::<u8>(), 0..4).prop_map(V::Binary),
        ("[a-c]{0,2}", "[a-c]{0,2}").prop_map(|(one, two)| V::Regex(one, two)),
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec((name, inner.clone()), 0..4).prop_map(V::Document),
            prop::collection::vec(inner.clone(), 0..4).prop_map(V::List),
            (inner.clone(), inner, 1_usize..5).prop_map(|(one, two, count)| {
                V::List((0..count).flat_map(|_| [one.clone(), two.clone()]).collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn message_made_of_text_and_values_is_the_one_that_was_sent(
        collection in prop_oneof!["(of|noreply)", "[a-c {?\"]{0,4}"],
        own in any_value(),
        values in prop::collection::vec(any_value(), 0..5),
    ) {
        let named = |first: V| {
            let mut all = vec![("find".to_owned(), first)];
            all.extend(values.iter().enumerate().map(|(n, value)| (format!("f{n}"), value.clone())));
            all.push(("$db".to_owned(), text("shop")));
            bytes(&V::Document(all))
        };
        for command in [named(V::Text(collection.clone())), named(own.clone()), named(int(1))] {
            let request = op_msg(5, 0, 0, &[&[0], &command]);
            let events = seen(&[(true, request.clone())], usize::MAX >> 1);
            let one = exchanges(&events)[0];
            prop_assert!(!one.cut, "{}", one.text);
            let again = message(&one.text, &one.parameters, 5, "shop", &|cursor| cursor);
            // A number that is 1 is written as one of 32 bits.
            let is_one = matches!(own, V::Int(1) | V::Long(1) | V::Bool(true)) || matches!(own, V::Double(one) if one as i64 == 1);
            prop_assert!(is_one || again.as_ref() == Some(&request), "{}\n{again:?}\n{request:?}", one.text);
        }
    }

    #[test]
    fn message_of_any_text_and_values_is_bounded(
        text in "(find|getMore|killCursors|\"a\")( a| \"b\"| of| )?[\\[\\]{}?\", a:]{0,20}",
        values in prop::collection::vec((prop_oneof![Just(0_u32), 0_u32..260], prop::option::of("[0-9a]{0,20}")), 0..6),
    ) {
        let value = |(kind, value): (u32, Option<String>)| Parameter::of(kind, true, value.map(String::into_bytes));
        let values: Vec<Parameter> = values.into_iter().map(value).collect();
        let made = message(&text, &values, 1, "d", &|cursor| cursor);
        prop_assert!(made.is_none_or(|made| made.len() <= LONGEST));
        let _ = (fields(&text), cursors(&text, &values));
    }
}

/// The conversation of the other tests is the corpus' first input; this writes it where it is missing.
#[test]
fn corpus_has_the_conversation() {
    let mut input = Vec::new();
    for (is_client, bytes) in conversation() {
        for part in bytes.chunks(0x7f) {
            input.push(part.len() as u8 | if is_client { 0 } else { 0x80 });
            input.extend_from_slice(part);
        }
    }
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/protocols/mongodb/__fuzz__");
    let file = folder.join("view-mongodb/corpus/conversation");
    if std::env::var_os("KURABE_BLESS").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &input).unwrap();
    }
    assert_eq!(std::fs::read(&file).unwrap(), input, "{}: KURABE_BLESS=1 writes it", file.display());
}

mod fuzz {
    use super::*;

    /// Any bytes as a conversation: a byte with the side and the length of what it says, again and again.
    fn conversation_of(input: &[u8]) -> Vec<(bool, Vec<u8>)> {
        let (mut said, mut rest) = (Vec::new(), input);
        while let Some((head, after)) = rest.split_first() {
            let (part, next) = after.split_at(usize::from(head & 0x7f).min(after.len()));
            said.push((head & 0x80 == 0, part.to_vec()));
            rest = next;
        }
        said
    }

    #[test]
    fn any_conversation_of_mongodb_is_recorded_and_its_requests_are_made_again() {
        bolero::check!(name = "view-mongodb").for_each(|input: &[u8]| {
            let conversation = conversation_of(input);
            let whole = seen(&conversation, usize::MAX >> 1);
            assert_eq!(seen(&conversation, 1), whole);
            for one in exchanges(&whole).into_iter().filter(|one| !one.cut) {
                let text = one.text.trim_end_matches(QUIET);
                let made = message(text, &one.parameters, 1, "d", &|cursor| cursor);
                let Some(made) = made else { continue };
                let again = seen(&[(true, made)], usize::MAX >> 1);
                assert_eq!(exchanges(&again)[0].text, text, "{one:?}");
            }
        });
    }
}
