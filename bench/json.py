# SPDX-License-Identifier: Apache-2.0
"""json.py FILE ROUNDS: CPython's json on the lines of FILE; CPU seconds, best of ROUNDS, as
"parse write parse_web write_web", then what json.dumps made of every line. Run with -P: this file
has the name of the module it measures."""
import json
import sys
import time


def best(rounds, work, items):
    least = 1e9
    for _ in range(rounds):
        start = time.process_time()
        for item in items:
            work(item)
        least = min(least, time.process_time() - start)
    return least


def main():
    rounds = int(sys.argv[2])
    with open(sys.argv[1], encoding="utf-8", newline="\n") as f:
        lines = f.read().split("\n")[:-1]
    values = [json.loads(line) for line in lines]
    web = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    seconds = [
        best(rounds, json.loads, lines),
        best(rounds, json.dumps, values),
        best(rounds, json.loads, [web(v) for v in values]),
        best(rounds, lambda v: web(v).encode("utf-8"), values),
    ]
    print(*seconds)
    sys.stdout.write("\n".join(map(json.dumps, values)) + "\n")


main()
