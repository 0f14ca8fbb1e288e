<?php
// Stores with SQL: MySQL, MariaDB and PostgreSQL, through mysqli, PDO and pgsql.
declare(strict_types=1);

// Expressions of a time that is given in microseconds since 1970 UTC, and of the microseconds of a column.
const MYSQL = [
    'time' => "timestampadd(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00')",
    'micros' => "timestampdiff(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', %s)",
];
const POSTGRES = ['time' => 'to_timestamp(? / 1000000.0)', 'micros' => '(extract(epoch FROM %s) * 1000000)::bigint'];

function mysql(array $at, bool $persistent): array
{
    $db = mysqli_init();
    // The handshake says the character set: a statement would cost a round trip.
    $db->options(MYSQLI_SET_CHARSET_NAME, 'utf8mb4');
    $host = ($persistent ? 'p:' : '') . $at['host'];
    // A row that is changed to what it was counts too, as in the other engines.
    $db->real_connect($host, $at['user'], $at['password'], $at['name'], $at['port'], null, MYSQLI_CLIENT_FOUND_ROWS);
    return sql_store(MYSQL, function (string $sql, array $values) use ($db): array {
        $result = $db->execute_query($sql, $values);
        return [$result === true ? [] : $result->fetch_all(MYSQLI_ASSOC), $db->affected_rows];
    });
}

function pdo(string $source, array $at, bool $persistent, array $dialect, array $options = []): array
{
    $source .= "host={$at['host']};port={$at['port']};dbname={$at['name']}";
    $pdo = new PDO($source, $at['user'], $at['password'], $options + [PDO::ATTR_PERSISTENT => $persistent]);
    return sql_store($dialect, function (string $sql, array $values) use ($pdo): array {
        $statement = $pdo->prepare($sql);
        $statement->execute($values);
        return [$statement->fetchAll(PDO::FETCH_ASSOC), $statement->rowCount()];
    });
}

function postgres(array $at, bool $persistent): array
{
    $quoted = fn (string $value): string => "'" . addcslashes($value, "'\\") . "'";
    $source = "host={$quoted($at['host'])} port={$at['port']} dbname={$quoted($at['name'])}"
        . " user={$quoted($at['user'])} password={$quoted($at['password'])}";
    // Without FORCE_NEW, pg_connect returns the connection that this request has already.
    $connection = $persistent ? pg_pconnect($source) : pg_connect($source, PGSQL_CONNECT_FORCE_NEW);
    return sql_store(POSTGRES, function (string $sql, array $values) use ($connection): array {
        // Its placeholders have numbers: $1, $2.
        $sql = vsprintf(str_replace('?', '$%d', $sql), range(1, count($values) + 1));
        $result = pg_query_params($connection, $sql, $values);
        return [pg_fetch_all($result), pg_affected_rows($result)];
    });
}

/** @param Closure $run executes a statement; gives its rows, and the number of rows that it changed */
function sql_store(array $dialect, Closure $run): array
{
    $rows = fn (string $sql, array $values = []): array => $run($sql, $values)[0];
    $change = function (string $sql, array $values) use ($run): void {
        [, $changed] = $run($sql, $values);
        $changed === 1 || throw new RuntimeException("the database acknowledged $changed rows instead of 1");
    };
    return $dialect + [
        'rows' => $rows,
        'change' => $change,
        'read' => fn ($table, $key) => $rows("SELECT data FROM $table WHERE id = ?", [$key])[0]['data'] ?? null,
        'insert' => fn ($table, ...$row) => $change("INSERT INTO $table (id, data) VALUES (?, ?)", $row),
        'count' => fn ($table) => (int) $rows("SELECT count(*) AS n FROM $table")[0]['n'],
        'ping' => fn () => $rows('SELECT 1'),
    ];
}
