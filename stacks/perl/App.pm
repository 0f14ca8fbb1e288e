# A small application that answers docs/app.openapi.yaml (kv, connect and webapp), in Apache with mod_perl 2: DBI, with or
# without Apache::DBI; and kv with Cache::Memcached::Fast.
package App;

use strict;
use warnings;

use APR::Table ();
use Apache2::Const -compile => qw(OK);
use Apache2::RequestIO ();
use Apache2::RequestRec ();
use DBI ();
use Digest::MD5 qw(md5_hex);
use Encode qw(decode_utf8 encode_utf8);
use JSON::PP ();
use Time::HiRes ();

my ($dir) = $INC{'App.pm'} =~ m{^(.*)/};
my $config = do {
    open my $file, '<:raw', "$dir/config.json" or die "config.json: $!";
    local $/;
    JSON::PP->new->utf8->decode(<$file>);
};
my %about = map { $_ => JSON::PP->new->utf8->encode($config->{about}{$_}) . "\n" } keys %{ $config->{about} };
my $prefix = $config->{prefix};
my $memcached;
if ($config->{driver} eq 'memcached') {
    require Cache::Memcached::Fast;
    # Each process opens its connection with its first request, and keeps it.
    $memcached = Cache::Memcached::Fast->new({ servers => ["$config->{database}{host}:$config->{database}{port}"] });
}
my $postgres = $config->{database}{kind} eq 'postgres';
# Expressions of a time from microseconds since 1970 UTC, and back.
my $time_of = $postgres ? 'to_timestamp(? / 1000000.0)' : q{timestampadd(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00')};
my $micros = $postgres
    ? '(extract(epoch FROM %s) * 1000000)::bigint'
    : q{timestampdiff(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', %s)};
my $fields_of_user = 'id, name, full_name, email, postal_code, address, version, ' . sprintf $micros, 'updated';
my $fields_of_line = 'id, user_id, ip, ' . sprintf $micros, 'at';

my %pages = (
    '/health' => [GET => \&health],
    '/kv' => [GET => sub { json($about{kv}) }],
    '/kv/read' => [GET => \&read_kv],
    '/kv/write' => [POST => \&write_kv],
    '/kv/count' => [GET => sub { count_rows('kv_w') }],
    '/connect' => [GET => sub { json($about{connect}) }],
    '/connect/read' => [GET => sub { read_row(open_database(), 'connect', 'connect', $_[0]) }],
    '/connect/new' => [GET => sub { read_row(open_database(1), 'connect', 'connect', $_[0]) }],
    '/webapp' => [GET => sub { json($about{webapp}) }],
    '/webapp/request' => [POST => \&webapp],
    '/webapp/count' => [GET => sub { count_rows('webapp_log') }],
    '/webapp/log' => [GET => sub { show('log', 'webapp_log', $fields_of_line, $_[0]) }],
    '/webapp/user' => [GET => sub { show('user', 'webapp_users', $fields_of_user, $_[0]) }],
);

sub handler {
    my $request = shift;
    my ($type, $body) = eval { answer($request) };
    my $status = 200;
    if (ref $@) {
        ($status, $type, $body) = ($@->{status}, 'text/plain; charset=utf-8', "$@->{reason}\n");
        $request->err_headers_out->set(Allow => $@->{allow}) if $@->{allow};
    } elsif ($@) {
        # The database is gone, full or too slow, or refused the statement.
        ($status, $type, $body) = (503, 'text/plain; charset=utf-8', "$config->{engine}: " . $@ =~ s/[\r\n]+/ /gr . "\n");
        utf8::encode($body) if utf8::is_utf8($body);
        $request->err_headers_out->set('Retry-After' => 1);
    }
    $request->status($status);
    $request->content_type($type);
    $request->headers_out->set('Content-Length' => length $body);
    $request->print($body);
    return Apache2::Const::OK;
}

# The type and the body, as bytes.
sub answer {
    my $request = shift;
    my ($path, $query) = ($request->uri, $request->args // '');
    my $page = $pages{$path} or refuse(404, 'there is no such page');
    my ($method, $make) = @$page;
    my $experiment = (split m{/}, $path)[1];
    refuse(501, "$experiment is not served: its data is not loaded") if $path ne '/health' && !$about{$experiment};
    refuse(405, "this page is requested by $method", $method) if $request->method ne $method;
    return $make->($path eq '/webapp/request' ? $query : key_of($query));
}

sub refuse {
    my ($status, $reason, $allow) = @_;
    die +{ status => $status, reason => $reason, allow => $allow };
}

# The record that a query names, as decimal digits; undef where it names none.
sub key_of {
    my $query = shift;
    return undef if $query eq '';
    my ($key) = $query =~ /\Akey=0*([0-9]+)\z/;
    refuse(400, 'the only parameter is key, a whole number: ?key=17')
        if !defined $key || length $key > 20 || length $key == 20 && $key gt '18446744073709551615';
    return $key;
}

# The key as the database has it: keys are signed there.
sub signed {
    my $key = shift;
    refuse(404, "there is no record $key") if length $key > 19 || length $key == 19 && $key gt '9223372036854775807';
    return $key;
}

# Opens a connection. Apache::DBI, if it is loaded, returns the one that this process has; not if it must be new.
sub open_database {
    my $anew = shift;
    return undef if $memcached;
    my ($at, $driver) = ($config->{database}, $config->{driver});
    my $name = $driver eq 'Pg' ? 'dbname' : 'database';
    my %attributes = (RaiseError => 1, PrintError => 0, AutoCommit => 1);
    $attributes{mysql_enable_utf8mb4} = 1 if $driver eq 'mysql';
    local $DBI::connect_via = $anew ? 'connect' : $DBI::connect_via;
    return DBI->connect("DBI:$driver:$name=$at->{name};host=$at->{host};port=$at->{port}",
        $at->{user}, $at->{password}, \%attributes);
}

# Executes a statement that adds or changes one row.
sub change {
    my ($database, $sql, @parameters) = @_;
    my $rows = $database->do($sql, undef, @parameters);
    die "the database acknowledged $rows rows instead of 1\n" if $rows != 1;
}

sub json { return ('application/json', $_[0]) }

sub data { return ('application/octet-stream', encode_utf8($_[0])) }

# All answers are equally long: ab counts an answer of another length as a failure.
sub record {
    my ($key, $data) = @_;
    return data('0' x (20 - length $key) . "$key\n$data");
}

sub tabbed { return join("\t", @_) . "\n" }

sub health {
    if ($memcached) {
        %{ $memcached->server_versions } or die "it does not answer\n";
    } else {
        open_database()->selectrow_array('SELECT 1');
    }
    return ('text/plain; charset=utf-8', "ok\n");
}

# Reads the row that the key names, or one that is drawn uniformly.
sub read_row {
    my ($database, $experiment, $table, $key) = @_;
    $key = signed($key // 1 + int rand $config->{experiments}{$experiment}{records});
    my ($data) = $memcached
        ? unpack 'x V/a', $memcached->get(memcached_key($table, $key)) // refuse(404, "there is no record $key")
        : $database->selectrow_array("SELECT data FROM $prefix$table WHERE id = ?", undef, $key);
    refuse(404, "there is no record $key") if !defined $data;
    return record($key, $data);
}

# Records 1 to `records` are in one table, those that were added in another.
sub read_kv {
    my $key = shift;
    my $added = defined $key && (length $key > 18 || $key > $config->{experiments}{kv}{records});
    return read_row(open_database(), 'kv', $added ? 'kv_w' : 'kv_r', $key);
}

# A key that no other process makes: microseconds, which rise, and the number of the process.
sub new_key {
    my ($seconds, $micros) = Time::HiRes::gettimeofday();
    return ($seconds * 1_000_000 + $micros) << 10 | $$ & 1023;
}

sub write_kv {
    my $key = new_key();
    my $data = join '', map { md5_hex("$config->{experiments}{kv}{seed}:$key:$_") } 1 .. 3;
    if ($memcached) {
        # The byte 3, the length of the data in four bytes, and the data.
        $memcached->add(memcached_key('kv_w', $key), pack 'C V/a', 3, $data) or die "the record was not stored\n";
    } else {
        change(open_database(), "INSERT INTO ${prefix}kv_w (id, data) VALUES (?, ?)", $key, $data);
    }
    return record($key, $data);
}

sub memcached_key {
    my ($table, $key) = @_;
    return $config->{key_prefixes}{"$prefix$table"} . $key;
}

sub count_rows {
    refuse(501, 'memcached does not count its records') if $memcached;
    my ($rows) = open_database()->selectrow_array("SELECT count(*) FROM $prefix$_[0]");
    return record($rows, '');
}

sub show {
    my ($what, $table, $fields, $key) = @_;
    my @row = open_database()->selectrow_array("SELECT $fields FROM $prefix$table WHERE id = ?", undef, signed($key // 0));
    refuse(404, 'there is no record ' . ($key // 0)) if !@row;
    return data(tabbed($what, @row));
}

# Logs a user in and writes the log; changes the user and searches the postal codes if the input says so.
sub webapp {
    my %input = map { decode_utf8(s/\+/ /gr =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ger) } map { split /=/, $_, 2 } split /&/, $_[0];
    for my $name (qw(name password ip at)) {
        refuse(400, "the parameter $name is missing") if !defined $input{$name};
    }
    my $database = open_database();
    my @user = $database->selectrow_array("SELECT $fields_of_user FROM ${prefix}webapp_users WHERE name = ? AND password = ?",
        undef, @input{qw(name password)});
    refuse(403, 'no user has this name and password') if !@user;
    my @line = (new_key(), $user[0], @input{qw(ip at)});
    change($database, "INSERT INTO ${prefix}webapp_log (id, user_id, ip, at) VALUES (?, ?, ?, $time_of)", @line);
    my $answer = tabbed('user', @user) . tabbed('log', @line);
    if (defined $input{version}) {
        change($database,
            "UPDATE ${prefix}webapp_users SET email = ?, postal_code = ?, address = ?, version = ?, updated = $time_of WHERE id = ?",
            @input{qw(email postal_code address version updated)}, $user[0]);
        $answer .= tabbed('changed', $input{version});
    }
    if (defined $input{prefix}) {
        # Codes have seven digits.
        my $towns = $database->selectall_arrayref(
            "SELECT code, prefecture, city, town, kana FROM ${prefix}webapp_codes WHERE code BETWEEN ? AND ? ORDER BY code, number",
            undef, "$input{prefix}00", "$input{prefix}99");
        $answer .= tabbed('found', $input{prefix}, scalar @$towns) . join '', map { tabbed(@$_) } @$towns;
    }
    return data($answer);
}

1;
