//! [`kurabe_copy::classes`].

use kurabe_copy::classes::{classes, kind_of};

#[test]
fn every_engine_has_types_and_every_class_is_one_of_some_engine() {
    for engine in kurabe_copy::engines::ALL {
        assert!(classes(engine).count() >= 17, "{}", engine.name);
        for (name, class) in classes(engine) {
            assert_eq!(kind_of(engine, name).class, class, "{name}");
        }
    }
}
