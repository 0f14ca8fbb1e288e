# Two connections by DBI, one after the other. The arguments: the driver (mysql, MariaDB, Pg), and a statement.
use strict;
use warnings;
use DBI;

my ($driver, $statement) = @ARGV;
my ($host, $port, $database) = @ENV{qw(KURABE_HOST KURABE_PORT KURABE_DATABASE)};
my $name = $driver eq 'Pg' ? 'dbname' : 'database';
for (1 .. 2) {
    my $source = "dbi:$driver:$name=$database;host=$host;port=$port";
    my $connection = DBI->connect($source, $ENV{KURABE_USER}, $ENV{KURABE_PASSWORD} // '', { RaiseError => 1 });
    my ($answer) = $connection->selectrow_array($statement);
    die "the answer is wrong\n" unless $answer == 42;
    $connection->disconnect;
}
