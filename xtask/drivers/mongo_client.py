"""Two clients by PyMongo, one after the other."""

import os
import sys

import pymongo

for _ in range(2):
    client = pymongo.MongoClient(os.environ["KURABE_HOST"], int(os.environ["KURABE_PORT"]))
    if client.kurabe.kurabe_own.find_one() is not None:
        sys.exit("the answer is wrong")
    client.close()
