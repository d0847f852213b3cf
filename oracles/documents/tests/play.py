"""Runs tests in Python: play.py FILE ADDRESS NAME… A line of JSON tells how each went."""

import importlib.util
import json
import pathlib
import sys
import traceback

file, address, *names = sys.argv[1:]
sys.path.insert(0, str(pathlib.Path(file).parent))
from client import Server  # noqa: E402

spec = importlib.util.spec_from_file_location("tests", file)
tests = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tests)
for name in names:
    problem = None
    try:
        getattr(tests, name)(Server(address))
    except Exception:
        problem = traceback.format_exc(limit=-2)
    print(json.dumps({"name": name, "problem": problem}), flush=True)
