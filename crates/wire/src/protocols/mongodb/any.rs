//! Any commands, and any bytes.

use super::tests::{V, bytes, int, of, op_msg, seen, text};
use super::*;
use crate::view::tests::exchanges;
use proptest::prelude::*;

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
    fn message_made_of_a_recorded_command_is_the_one_that_was_sent(
        collection in prop_oneof!["(of|noreply)", "[a-c {?\"]{0,4}"],
        own in any_value(),
        values in prop::collection::vec(any_value(), 0..5),
        is_quiet in any::<bool>(),
    ) {
        let named = |first: V| {
            let mut all = vec![("find".to_owned(), first)];
            all.extend(values.iter().enumerate().map(|(n, value)| (format!("f{n}"), value.clone())));
            all.push(("$db".to_owned(), text("shop")));
            bytes(&V::Document(all))
        };
        for document in [named(V::Text(collection)), named(own), named(int(1))] {
            let flags = if is_quiet { flag::MORE_TO_COME } else { 0 };
            let request = op_msg(5, 0, flags, &[&[0], &document]);
            let events = seen(&[(true, request.clone())], usize::MAX >> 1);
            let one = exchanges(&events)[0];
            prop_assert!(!one.cut, "{}", one.text);
            let command = kurabe_protocol::call::document(&one.parameters).unwrap();
            let again = command.message(5, "shop", kurabe_protocol::call::is_quiet(&one.parameters), &|cursor| cursor);
            prop_assert_eq!(again.as_ref(), Some(&request), "{}", one.text);
            let gaps = one.text.split('"').step_by(2).map(|part| part.matches('?').count()).sum::<usize>();
            prop_assert_eq!(command.values().len(), gaps, "{}", one.text);
        }
    }

    #[test]
    fn any_bytes_are_a_command_that_is_sent_whole_or_none(
        document in prop::collection::vec(any::<u8>(), 0..40),
        (at, lie) in (any::<prop::sample::Index>(), any::<u8>()),
    ) {
        let mut near = bytes(&of(&[("getMore", V::Long(7)), ("a", of(&[("b", V::List(vec![int(1)]))]))]));
        let at = at.index(near.len());
        near[at] = lie;
        for document in [document, near] {
            let parameters = [Parameter::new(DOCUMENT.into(), true, document)];
            let Some(command) = kurabe_protocol::call::document(&parameters) else { continue };
            let again = command.message(1, "d", false, &|cursor| cursor).unwrap();
            let events = seen(&[(true, again)], usize::MAX >> 1);
            let one = exchanges(&events)[0];
            prop_assert!(one.cut || command.is_setup() || one.text == command.text(), "{:?}", one);
        }
    }
}
