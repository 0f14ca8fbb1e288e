//! Nothing leaks while fifty clients use the web application for a while.

use crate::held::leaves_nothing_behind;

#[test]
fn fifty_clients_leave_nothing_behind() {
    for engine in ["postgres", "mysql"] {
        for connection in ["kept", "per-request"] {
            leaves_nothing_behind(engine, connection, 50, "1s", 4);
        }
    }
}
