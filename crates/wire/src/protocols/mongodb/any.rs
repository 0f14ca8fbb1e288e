//! Any commands, and any bytes.

use super::tests::{V, bytes, int, op_msg, seen, text};
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
