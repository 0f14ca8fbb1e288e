<?php
// Answers docs/app.openapi.yaml (kv, connect and webapp). Each request runs this file, in php-fpm or Apache's mod_php.
declare(strict_types=1);

const METHODS = [
    '/health' => 'GET', '/kv' => 'GET', '/kv/read' => 'GET', '/kv/write' => 'POST', '/kv/count' => 'GET',
    '/connect' => 'GET', '/connect/read' => 'GET', '/connect/new' => 'GET', '/webapp' => 'GET',
    '/webapp/request' => 'POST', '/webapp/count' => 'GET', '/webapp/log' => 'GET', '/webapp/user' => 'GET',
];
const TEXT = 'text/plain; charset=utf-8', DATA = 'application/octet-stream', LAST_KEY = '18446744073709551615';

/** An answer that is not 200; its code is the status. */
final class Refusal extends Exception {}

// The extension pgsql raises warnings where the others throw.
set_error_handler(fn ($level, $text, $file, $line) => throw new ErrorException($text, 0, $level, $file, $line));

$config = require __DIR__ . '/config.php';
try {
    [$status, $type, $body] = [200, ...answer($config)];
} catch (Refusal $refusal) {
    [$status, $type, $body] = [$refusal->getCode(), TEXT, $refusal->getMessage() . "\n"];
} catch (Throwable $error) {
    // The database is gone, full or too slow, or refused the statement.
    header('Retry-After: 1');
    [$status, $type, $body] = [503, TEXT, "{$config['engine']}: " . strtr($error->getMessage(), "\r\n", '  ') . "\n"];
}
header("Content-Type: $type", response_code: $status);
header('Content-Length: ' . strlen($body));
echo $body;

/** @return array{string, string} the type and the body */
function answer(array $config): array
{
    $path = strtok($_SERVER['REQUEST_URI'], '?');
    $method = METHODS[$path] ?? throw new Refusal('there is no such page', 404);
    $experiment = explode('/', $path)[1];
    $about = $config['about'][$experiment] ?? null;
    $about || $path === '/health' || throw new Refusal("$experiment is not served: its data is not loaded", 501);
    if ($_SERVER['REQUEST_METHOD'] !== $method) {
        header("Allow: $method");
        throw new Refusal("this page is requested by $method", 405);
    }
    $query = $_SERVER['QUERY_STRING'] ?? '';
    $key = $query === '' || $path === '/webapp/request' ? null : key_of($query);
    $store = fn (): array => connect($config, $config['connection'] === 'kept' && $path !== '/connect/new');
    $prefix = $config['prefix'];
    return match ($path) {
        '/health' => $store()['ping']() ? [TEXT, "ok\n"] : throw new RuntimeException('it does not answer'),
        '/kv', '/connect', '/webapp' => ['application/json', json_encode($about, JSON_THROW_ON_ERROR) . "\n"],
        // Records 1 to `records` are in one table, those that were added in another.
        '/kv/read' => read($store(), $prefix . ($key > $about['records'] ? 'kv_w' : 'kv_r'), $key, $about['records']),
        '/kv/write' => write($store(), "{$prefix}kv_w", $about['seed']),
        '/kv/count' => record($store()['count']("{$prefix}kv_w")),
        '/connect/read', '/connect/new' => read($store(), "{$prefix}connect", $key, $about['records']),
        '/webapp/request' => request($store(), $prefix, $_GET),
        '/webapp/count' => record($store()['count']("{$prefix}webapp_log")),
        '/webapp/log' => lines(['log', ...find($store(), $prefix, 'line', ['id' => $key ?? 0])]),
        '/webapp/user' => lines(['user', ...find($store(), $prefix, 'user', ['id' => $key ?? 0])]),
    };
}

/** The record that a query names. */
function key_of(string $query): int
{
    $is_key = preg_match('/^key=0*(\d{1,20})$/', $query, $found) && sprintf('%020s', $found[1]) <= LAST_KEY;
    $is_key || throw new Refusal('the only parameter is key, a whole number: ?key=17', 400);
    // The databases have signed keys.
    $key = filter_var($found[1], FILTER_VALIDATE_INT);
    return is_int($key) ? $key : throw new Refusal("there is no record $found[1]", 404);
}

/** Opens a connection; a persistent one stays with this process and is reused by its next request. */
function connect(array $config, bool $persistent): array
{
    ['api' => $api, 'database' => $at] = $config;
    require __DIR__ . (in_array($api, ['mongodb', 'curl', 'memcached'], true) ? '/documents.php' : '/sql.php');
    return match ($api) {
        'mongodb' => mongodb($at),
        'curl' => couchdb($at),
        'memcached' => memcached($at, $config['key_prefixes'], $persistent),
        'mysqli' => mysql($at, $persistent),
        'pdo_mysql' => pdo('mysql:charset=utf8mb4;', $at, $persistent, MYSQL, [PDO::MYSQL_ATTR_FOUND_ROWS => true]),
        'pdo_pgsql' => pdo('pgsql:', $at, $persistent, POSTGRES),
        'pgsql' => postgres($at, $persistent),
    };
}

/** Reads the row that the key names, or one that is drawn uniformly. */
function read(array $store, string $table, ?int $key, int $records): array
{
    $key ??= random_int(1, $records);
    return record($key, $store['read']($table, $key) ?? throw new Refusal("there is no record $key", 404));
}

function write(array $store, string $table, int $seed): array
{
    $key = new_key();
    $data = md5("$seed:$key:1") . md5("$seed:$key:2") . md5("$seed:$key:3");
    $store['insert']($table, $key, $data);
    return record($key, $data);
}

/** All answers are equally long: ab counts an answer of another length as a failure. */
function record(int $key, string $data = ''): array
{
    return [DATA, sprintf("%020d\n", $key) . $data];
}

/** A key that no other process makes: microseconds, which rise, and the number of the process. */
function new_key(): int
{
    return (int) (microtime(true) * 1e6) << 10 | getmypid() & 1023;
}

/** Logs a user in and writes the log; changes the user and searches the postal codes if the input says so. */
function request(array $store, string $prefix, array $input): array
{
    foreach (['name', 'password', 'ip', 'at'] as $name) {
        is_string($input[$name] ?? null) || throw new Refusal("the parameter $name is missing", 400);
    }
    ['rows' => $rows, 'change' => $change, 'time' => $time] = $store;
    $user = find($store, $prefix, 'user', ['name' => $input['name'], 'password' => $input['password']], 403);
    $line = [new_key(), $user['id'], $input['ip'], $input['at']];
    $change("INSERT INTO {$prefix}webapp_log (id, user_id, ip, at) VALUES (?, ?, ?, $time)", $line);
    $answer = [['user', ...$user], ['log', ...$line]];
    if (isset($input['version'])) {
        $new = [$input['email'], $input['postal_code'], $input['address'], $input['version'], $input['updated']];
        $set = "email = ?, postal_code = ?, address = ?, version = ?, updated = $time";
        $change("UPDATE {$prefix}webapp_users SET $set WHERE id = ?", [...$new, $user['id']]);
        $answer[] = ['changed', $input['version']];
    }
    if (isset($input['prefix'])) {
        // Codes have seven digits.
        $towns = $rows("SELECT code, prefecture, city, town, kana FROM {$prefix}webapp_codes"
            . ' WHERE code BETWEEN ? AND ? ORDER BY code, number', ["{$input['prefix']}00", "{$input['prefix']}99"]);
        array_push($answer, ['found', $input['prefix'], count($towns)], ...$towns);
    }
    return lines(...$answer);
}

/** The user, or the line of the log, that has these values. */
function find(array $store, string $prefix, string $what, array $values, int $status = 404): array
{
    [$table, $columns, $time] = match ($what) {
        'user' => ['webapp_users', 'id, name, full_name, email, postal_code, address, version', 'updated'],
        'line' => ['webapp_log', 'id, user_id, ip', 'at'],
    };
    $condition = implode(' = ? AND ', array_keys($values)) . ' = ?';
    $sql = "SELECT $columns, " . sprintf($store['micros'], $time) . " AS $time FROM $prefix$table WHERE $condition";
    return $store['rows']($sql, array_values($values))[0]
        ?? throw new Refusal("there is no $what of this " . implode(' and ', array_keys($values)), $status);
}

function lines(array ...$lines): array
{
    return [DATA, implode(array_map(fn (array $fields): string => implode("\t", $fields) . "\n", $lines))];
}
