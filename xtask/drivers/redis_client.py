"""Two clients by redis-py, one after the other."""

import os
import sys

import redis

for _ in range(2):
    client = redis.Redis(os.environ["KURABE_HOST"], int(os.environ["KURABE_PORT"]))
    if client.get("kurabe_own") is not None:
        sys.exit("the answer is wrong")
    client.close()
