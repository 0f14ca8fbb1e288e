"""Two connections by a module of Python's DB-API, one after the other. The arguments: the module, and a statement."""

import importlib
import os
import sys

module = importlib.import_module(sys.argv[1])
host, port, user, database = (os.environ["KURABE_" + name] for name in ("HOST", "PORT", "USER", "DATABASE"))
name = "dbname" if sys.argv[1].startswith("psycopg") else "database"
for _ in range(2):
    password = os.environ.get("KURABE_PASSWORD", "")
    connection = module.connect(host=host, port=int(port), user=user, password=password, **{name: database})
    cursor = connection.cursor()
    cursor.execute(sys.argv[2])
    if cursor.fetchone() != (42,):
        sys.exit("the answer is wrong")
    connection.close()
