#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The calls of three clients of the runtime API, in their order, with their headers, time limits and retries.

    serve_clients.py v0|v1|sdk BASE_URL API_KEY

Written from the contract, on the HTTP library those clients use. Every field a client reads is looked at, whether
this run needs it or not. Waits are shortened by SCALE; nothing else is. What makes a client try again is made to
happen: a quota that is full, connections that are cut or never answered. The server's keys may have three runtimes
each ([tenant] most_runtimes = 3). Prints one line per step; fails loudly.
"""
import sys

sys.dont_write_bytecode = True  # beside the sources

from client_kit import step  # noqa: E402
from client_sdk import Sdk  # noqa: E402
from client_v0 import V0  # noqa: E402
from client_v1 import V1  # noqa: E402


def main():
    kind, base, key = sys.argv[1:4]
    {"v0": V0, "v1": V1, "sdk": Sdk}[kind](base.rstrip("/"), key).life()
    step(f"{kind}: all of it")


if __name__ == "__main__":
    main()
