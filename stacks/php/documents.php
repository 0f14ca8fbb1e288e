<?php
// Records in MongoDB, CouchDB and memcached.
declare(strict_types=1);

function mongodb(array $at): array
{
    $login = $at['user'] === '' ? [] : ['username' => $at['user'], 'password' => $at['password']];
    // The extension keeps the connections of this process for its next requests.
    $manager = new MongoDB\Driver\Manager("mongodb://{$at['host']}:{$at['port']}", $login);
    $command = fn (array $command): object =>
        $manager->executeCommand($at['name'], new MongoDB\Driver\Command($command))->toArray()[0];
    return [
        'read' => function (string $table, int $key) use ($manager, $at): ?string {
            $query = new MongoDB\Driver\Query(['_id' => $key], ['projection' => ['data' => 1], 'limit' => 1]);
            return $manager->executeQuery("{$at['name']}.$table", $query)->toArray()[0]->data ?? null;
        },
        'insert' => function (string $table, int $key, string $data) use ($manager, $at): void {
            $write = new MongoDB\Driver\BulkWrite();
            $write->insert(['_id' => $key, 'data' => $data]);
            $added = $manager->executeBulkWrite("{$at['name']}.$table", $write)->getInsertedCount();
            $added === 1 || throw new RuntimeException("the database acknowledged $added records instead of 1");
        },
        'count' => fn (string $table): int => (int) $command(['count' => $table])->n,
        'ping' => fn () => $command(['ping' => 1]),
    ];
}

function couchdb(array $at): array
{
    $request = function (string $path, array $expected, array $options = []) use ($at): array {
        $curl = curl_init("http://{$at['host']}:{$at['port']}$path");
        $header = ['Content-Type: application/json'];
        $login = $at['user'] === '' ? [] : [CURLOPT_USERPWD => "{$at['user']}:{$at['password']}"];
        curl_setopt_array($curl, $options + $login + [CURLOPT_RETURNTRANSFER => true, CURLOPT_HTTPHEADER => $header]);
        $answer = curl_exec($curl) ?: throw new RuntimeException(curl_error($curl));
        $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
        in_array($status, $expected, true) || throw new RuntimeException("$status " . trim($answer));
        return json_decode($answer, true, flags: JSON_THROW_ON_ERROR);
    };
    // Keys are hexadecimal, with the sign bit changed, so that documents are in the order of their keys.
    $path = fn (string $table, int $key): string => "/$table/" . rawurlencode(sprintf('!%016x', $key ^ PHP_INT_MIN));
    return [
        'read' => fn (string $table, int $key): ?string => $request($path($table, $key), [200, 404])['data'] ?? null,
        'insert' => fn (string $table, int $key, string $data) => $request($path($table, $key), [201, 202], [
            CURLOPT_CUSTOMREQUEST => 'PUT',
            CURLOPT_POSTFIELDS => json_encode(['data' => $data], JSON_THROW_ON_ERROR),
        ]),
        'count' => fn (string $table): int => $request("/$table", [200])['doc_count'],
        'ping' => fn () => $request('/', [200]),
    ];
}

function memcached(array $at, array $prefixes, bool $persistent): array
{
    $memcached = new Memcached($persistent ? 'kurabe' : null);
    if ($memcached->getServerList() === []) {
        $memcached->setOption(Memcached::OPT_COMPRESSION, false);
        $memcached->addServer($at['host'], $at['port']);
    }
    $fail = fn (): never => throw new RuntimeException($memcached->getResultMessage());
    return [
        // A value is the byte 3, the length of the data in four bytes, and the data.
        'read' => function (string $table, int $key) use ($memcached, $prefixes, $fail): ?string {
            $value = $memcached->get($prefixes[$table] . $key);
            $value !== false || $memcached->getResultCode() === Memcached::RES_NOTFOUND || $fail();
            return $value === false ? null : substr($value, 5);
        },
        'insert' => fn (string $table, int $key, string $data) =>
            $memcached->add($prefixes[$table] . $key, chr(3) . pack('V', strlen($data)) . $data) || $fail(),
        'count' => fn () => throw new Refusal('memcached does not count its records', 501),
        'ping' => fn () => $memcached->getVersion() ?: $fail(),
    ];
}
