<?php // Two connections by mysqli, one after the other.
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
[$host, $port, $user, $database] = array_map('getenv', ['KURABE_HOST', 'KURABE_PORT', 'KURABE_USER', 'KURABE_DATABASE']);
for ($n = 0; $n < 2; $n++) {
    $connection = new mysqli($host, $user, getenv('KURABE_PASSWORD') ?: '', $database, (int) $port);
    if ((int) $connection->query($argv[1])->fetch_row()[0] !== 42) {
        throw new Exception('the answer is wrong');
    }
    $connection->close();
}
