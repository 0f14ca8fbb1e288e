"""A small application that answers docs/app.openapi.yaml (kv, connect and webapp): WSGI for gunicorn, with psycopg 3 or
mysqlclient. Each worker serves one request at a time."""

import hashlib
import json
import os
import random
import re
import time
from pathlib import Path
from urllib.parse import parse_qs

CONFIG = json.loads(Path(__file__).with_name("config.json").read_text())
DATABASE, PREFIX, ABOUT = CONFIG["database"], CONFIG["prefix"], CONFIG["about"]
GETS = {"/health", "/kv", "/kv/read", "/kv/count", "/connect", "/connect/read", "/connect/new", "/webapp", "/webapp/count",
        "/webapp/log", "/webapp/user"}
POSTS = {"/kv/write", "/webapp/request"}
DATA = "application/octet-stream"
TEXT = "text/plain; charset=utf-8"
REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
           421: "Misdirected Request", 501: "Not Implemented", 503: "Service Unavailable"}

if DATABASE["kind"] == "postgres":
    import psycopg

    # Expressions of a time from microseconds since 1970 UTC, and back.
    TIME_OF = "to_timestamp(%s / 1000000.0)"
    MICROS = "(extract(epoch FROM {}) * 1000000)::bigint"

    def connect():
        return psycopg.connect(host=DATABASE["host"], port=DATABASE["port"], user=DATABASE["user"],
                               password=DATABASE["password"], dbname=DATABASE["name"], autocommit=True)
else:
    import MySQLdb
    import MySQLdb.constants.CLIENT

    TIME_OF = "timestampadd(MICROSECOND, %s, TIMESTAMP'1970-01-01 00:00:00')"
    MICROS = "timestampdiff(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', {})"

    def connect():
        # A row that is changed to what it was counts too, as in the other engines.
        return MySQLdb.connect(host=DATABASE["host"], port=DATABASE["port"], user=DATABASE["user"],
                               passwd=DATABASE["password"], db=DATABASE["name"], charset="utf8mb4", autocommit=True,
                               client_flag=MySQLdb.constants.CLIENT.FOUND_ROWS)

USER = "id, name, full_name, email, postal_code, address, version, " + MICROS.format("updated")
LINE = "id, user_id, ip, " + MICROS.format("at")


class Refusal(Exception):
    """An answer that is not 200."""

    def __init__(self, status, reason, fields=()):
        super().__init__(reason)
        self.status, self.fields = status, list(fields)


class Connection:
    """A connection for a request: the one that this worker keeps, or a new one."""

    kept = None

    def __init__(self, keep):
        self.keep = keep

    def __enter__(self):
        if not self.keep:
            self.open = connect()
        else:
            Connection.kept = self.open = Connection.kept or connect()
        return self

    def __exit__(self, kind, error, trace):
        if self.keep and (kind is None or issubclass(kind, Refusal)):
            return
        # After an error of the database, the next request has another connection.
        Connection.kept = None if self.keep else Connection.kept
        self.open.close()

    def rows(self, sql, *parameters):
        with self.open.cursor() as cursor:
            cursor.execute(sql, parameters)
            return cursor.fetchall()

    def change(self, sql, *parameters):
        """Executes a statement that adds or changes one row."""
        with self.open.cursor() as cursor:
            cursor.execute(sql, parameters)
            if cursor.rowcount != 1:
                raise RuntimeError(f"the database acknowledged {cursor.rowcount} rows instead of 1")


def held():
    return Connection(CONFIG["connection"] == "kept")


def application(environ, start_response):
    fields = []
    try:
        kind, body = answer(environ)
        status = 200
    except Refusal as refusal:
        status, kind, body, fields = refusal.status, TEXT, f"{refusal}\n", refusal.fields
    except Exception as error:  # The database is gone, full or too slow, or refused the statement.
        status, kind, body = 503, TEXT, f"{CONFIG['engine']}: {' '.join(str(error).split())}\n"
        fields = [("Retry-After", "1")]
    body = body.encode()
    fields += [("Content-Type", kind), ("Content-Length", str(len(body)))]
    start_response(f"{status} {REASONS[status]}", fields)
    return [body]


def answer(environ):
    """The type and the body."""
    host = re.sub(r":\d+$", "", environ.get("HTTP_HOST", "localhost"))
    if not re.fullmatch(r"localhost|[0-9.]+|\[.*\]", host, re.IGNORECASE):
        raise Refusal(421, "this host name is not accepted; use 127.0.0.1 or localhost")
    if environ.get("HTTP_AUTHORIZATION") != CONFIG["authorization"]:
        raise Refusal(401, "user and password are in the URL that 'kurabe up stack' printed")
    path, query = environ["PATH_INFO"], environ.get("QUERY_STRING", "")
    method = "POST" if path in POSTS else "GET"
    if method == "GET" and path not in GETS:
        raise Refusal(404, "there is no such page")
    experiment = path.split("/")[1]
    if path != "/health" and experiment not in ABOUT:
        raise Refusal(501, f"{experiment} is not served: its data is not loaded")
    if environ["REQUEST_METHOD"] != method:
        raise Refusal(405, f"this page is requested by {method}", [("Allow", method)])
    if path == f"/{experiment}" and experiment in ABOUT:
        return "application/json", json.dumps(ABOUT[experiment]) + "\n"
    if path == "/webapp/request":
        return webapp({name: values[0] for name, values in parse_qs(query).items()})
    key = key_of(query)
    if path == "/connect/new":
        return read(Connection(False), experiment, "connect", key)
    if path == "/connect/read":
        return read(held(), experiment, "connect", key)
    if path == "/kv/read":
        # Records 1 to `records` are in one table, those that were added in another.
        is_added = key is not None and key > CONFIG["experiments"]["kv"]["records"]
        return read(held(), experiment, "kv_w" if is_added else "kv_r", key)
    with held() as database:
        match path:
            case "/health":
                database.rows("SELECT 1")
                return TEXT, "ok\n"
            case "/kv/write":
                return write(database)
            case "/kv/count":
                return record(database.rows(f"SELECT count(*) FROM {PREFIX}kv_w")[0][0], "")
            case "/webapp/count":
                return record(database.rows(f"SELECT count(*) FROM {PREFIX}webapp_log")[0][0], "")
            case "/webapp/log":
                return show(database, "log", "webapp_log", LINE, key)
            case _:
                return show(database, "user", "webapp_users", USER, key)


def key_of(query):
    """The record that a query names; None where it names none."""
    if not query:
        return None
    found = re.fullmatch(r"key=([0-9]+)", query)
    if not found or int(found[1]) >= 1 << 64:
        raise Refusal(400, "the only parameter is key, a whole number: ?key=17")
    return int(found[1])


def signed(key):
    """The key as the database has it: keys are signed there."""
    if key >= 1 << 63:
        raise Refusal(404, f"there is no record {key}")
    return key


def record(key, data):
    """All answers are equally long: ab counts an answer of another length as a failure."""
    return DATA, f"{key:020}\n{data}"


def tabbed(*fields):
    return "\t".join(map(str, fields)) + "\n"


def new_key():
    """A key that no other process makes: microseconds, which rise, and the number of the process."""
    return time.time_ns() // 1000 << 10 | os.getpid() & 1023


def read(connection, experiment, table, key):
    """Reads the row that the key names, or one that is drawn uniformly."""
    key = signed(random.randint(1, CONFIG["experiments"][experiment]["records"]) if key is None else key)
    with connection as database:
        rows = database.rows(f"SELECT data FROM {PREFIX}{table} WHERE id = %s", key)
    if not rows:
        raise Refusal(404, f"there is no record {key}")
    return record(key, rows[0][0])


def write(database):
    key, seed = new_key(), CONFIG["experiments"]["kv"]["seed"]
    data = "".join(hashlib.md5(f"{seed}:{key}:{part}".encode()).hexdigest() for part in (1, 2, 3))
    database.change(f"INSERT INTO {PREFIX}kv_w (id, data) VALUES (%s, %s)", key, data)
    return record(key, data)


def show(database, what, table, fields, key):
    rows = database.rows(f"SELECT {fields} FROM {PREFIX}{table} WHERE id = %s", signed(key or 0))
    if not rows:
        raise Refusal(404, f"there is no record {key}")
    return DATA, tabbed(what, *rows[0])


def webapp(given):
    """Logs a user in and writes the log; changes the user and searches the postal codes if the input says so."""
    for name in ("name", "password", "ip", "at"):
        if name not in given:
            raise Refusal(400, f"the parameter {name} is missing")
    with held() as database:
        users = database.rows(f"SELECT {USER} FROM {PREFIX}webapp_users WHERE name = %s AND password = %s",
                              given["name"], given["password"])
        if not users:
            raise Refusal(403, "no user has this name and password")
        user, at = users[0], int(given["at"])
        line = new_key()
        database.change(f"INSERT INTO {PREFIX}webapp_log (id, user_id, ip, at) VALUES (%s, %s, %s, {TIME_OF})",
                        line, user[0], given["ip"], at)
        body = tabbed("user", *user) + tabbed("log", line, user[0], given["ip"], at)
        if "version" in given:
            database.change(f"UPDATE {PREFIX}webapp_users SET email = %s, postal_code = %s, address = %s, version = %s, "
                            f"updated = {TIME_OF} WHERE id = %s", given["email"], given["postal_code"],
                            given["address"], int(given["version"]), int(given["updated"]), user[0])
            body += tabbed("changed", given["version"])
        if "prefix" in given:
            # Codes have seven digits.
            towns = database.rows(f"SELECT code, prefecture, city, town, kana FROM {PREFIX}webapp_codes "
                                  "WHERE code BETWEEN %s AND %s ORDER BY code, number",
                                  given["prefix"] + "00", given["prefix"] + "99")
            body += tabbed("found", given["prefix"], len(towns)) + "".join(tabbed(*town) for town in towns)
        return DATA, body
