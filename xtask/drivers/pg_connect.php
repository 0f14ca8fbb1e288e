<?php // Two connections by pg_connect, one after the other; libpq's variables name the server.
for ($n = 0; $n < 2; $n++) {
    $connection = pg_connect('', PGSQL_CONNECT_FORCE_NEW) ?: throw new Exception('no connection');
    if ((int) pg_fetch_result(pg_query($connection, $argv[1]), 0, 0) !== 42) {
        throw new Exception('the answer is wrong');
    }
    pg_close($connection);
}
