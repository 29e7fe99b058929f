# SPDX-License-Identifier: Apache-2.0
"""jupyter.py: a bare jupyter_client on a kernel of its own. Reads a number of cells per line and
answers with the milliseconds each took, one line per question."""
import sys
import time

from jupyter_client import KernelManager


def run(client, code):
    request = client.execute(code, store_history=False, allow_stdin=False)
    value = None
    while True:
        message = client.get_iopub_msg(timeout=30)
        if message["parent_header"].get("msg_id") != request:
            continue
        if message["msg_type"] == "execute_result":
            value = message["content"]["data"]["text/plain"]
        if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            break
    while client.get_shell_msg(timeout=30)["parent_header"].get("msg_id") != request:
        pass
    return value


def main():
    manager = KernelManager(kernel_name="python3", transport="ipc")
    manager.start_kernel()
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    print("ready", flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            start = time.perf_counter()
            assert run(client, "1+1") == "2"
            times.append((time.perf_counter() - start) * 1e3)
        print(" ".join("%.4f" % t for t in times), flush=True)
    client.stop_channels()
    manager.shutdown_kernel(now=True)


main()
