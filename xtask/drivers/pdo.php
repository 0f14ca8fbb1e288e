<?php // Two connections by PDO, one after the other. The arguments: mysql or pgsql, and a statement.
[$host, $port, $user, $database] = array_map('getenv', ['KURABE_HOST', 'KURABE_PORT', 'KURABE_USER', 'KURABE_DATABASE']);
for ($n = 0; $n < 2; $n++) {
    $connection = new PDO("$argv[1]:host=$host;port=$port;dbname=$database", $user, getenv('KURABE_PASSWORD') ?: '');
    $rows = $connection->query($argv[2]);
    if ((int) $rows->fetchColumn() !== 42) {
        throw new Exception('the answer is wrong');
    }
    unset($rows, $connection);
}
