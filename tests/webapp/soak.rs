//! Nothing leaks. Longer, and on more engines, in the full tier.

use super::held::leaves_nothing_behind;

#[test]
fn twenty_clients_leave_nothing_behind() {
    for connection in ["kept", "per-request"] {
        leaves_nothing_behind("postgres", connection, 20, "300ms", 3);
    }
}
