# SPDX-License-Identifier: Apache-2.0
"""What the clients of serve_clients.py have in common: what they read of a runtime, their retries of 429, and a
relay that makes connections break."""
import base64
import io
import json
import os
import socket
import struct
import tarfile
import threading
import time
import urllib.parse

import httpx

SCALE = float(os.environ.get("SCALE", "0.02"))
STATUSES = {"starting", "running", "paused", "stopped", "error"}
POD = {"ready", "running", "pending", "not found", "failed", "unknown", "crashloopbackoff", "stopped"}
IMAGE = os.environ.get("IMAGE", "host")
FAR = "FAR" in os.environ  # its sandboxes are another server's: it builds nothing and keeps none warm


def step(text):
    print("ok", text, flush=True)


def check(condition, text, *more):
    if not condition:
        raise SystemExit(f"FAILED: {text} {' '.join(str(m) for m in more)}")


def wait(seconds):
    time.sleep(seconds * SCALE)


class Unavailable(Exception):
    pass


class Disconnected(Exception):
    pass


class Exhausted(Exception):
    """What the retry library raises in the end: no HTTP error any more."""


class Cutter:
    """A relay to a sandbox that cuts its first connections as planned, then passes everything on.

    "reset": before anything is read; "before": when the whole request has gone on, and nothing has come back;
    "amid": when the answer's head and a piece of its body have come back. "hold": it reads the request and does no
    more, so that the client's time runs out.
    """

    def __init__(self, url, plan, then=lambda: None):
        to = urllib.parse.urlsplit(url)
        self.to, self.plan, self.cuts, self.then = (to.hostname, to.port), list(plan), 0, then
        self.held = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                here = self.listener.accept()[0]
            except OSError:
                return
            how = self.plan.pop(0) if self.plan else None
            threading.Thread(target=self.one, args=(here, how), daemon=True).start()

    def one(self, here, how):
        if how:
            self.cuts += 1
        if how == "reset":
            here.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            here.close()
            return
        if how == "hold":
            self.read_message(here)
            self.held.append(here)
            return
        there = socket.create_connection(self.to)
        if how:
            there.sendall(self.read_message(here))
            if how == "amid":
                here.sendall(self.read_message(there)[:-3])
            there.close()
            here.close()
            if not self.plan:
                self.then()
            return
        threading.Thread(target=self.pump, args=(here, there), daemon=True).start()
        self.pump(there, here)

    @staticmethod
    def read_message(sock):
        got = b""
        while b"\r\n\r\n" not in got:
            got += sock.recv(65536)
        head = got[:got.index(b"\r\n\r\n") + 4]
        length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
        while len(got) < len(head) + length:
            got += sock.recv(65536)
        return got

    @staticmethod
    def pump(come, go):
        try:
            while piece := come.recv(65536):
                go.sendall(piece)
            go.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.listener.close()
        for sock in self.held:
            sock.close()


# --- what all of them send and read ---

def is_runtime(r, session):
    """Every field some client reads; a missing one crashes that client."""
    for name, kinds in {
        "runtime_id": str, "session_id": str, "url": str, "status": str, "pod_status": str, "work_hosts": dict,
        "restart_count": int, "restart_reasons": list,
    }.items():
        check(name in r, f"runtime object has no '{name}'", r)
        check(isinstance(r[name], kinds), f"'{name}' is a {type(r[name]).__name__}", r)
    for name in ("session_api_key", "status_detail"):
        check(name in r and (r[name] is None or isinstance(r[name], str)), f"'{name}' is no text and not null", r)
    check(r["status"] in STATUSES, "status", r["status"])
    check(r["pod_status"].lower() in POD, "pod_status", r["pod_status"])
    check(not r["url"].endswith("/"), "url ends in a slash", r["url"])
    check(r["session_id"] == session, "another session's", r)
    for name in ("container_statuses", "events"):
        check(isinstance(r[name], list) and all(isinstance(x, dict) for x in r[name]), name, r[name])
        json.dumps(r[name])  # into the log, while it is pending
    check(len(r["container_statuses"]) == 1, "container_statuses", r["container_statuses"])
    state = r["container_statuses"][0]
    check(state["state"] == r["status"] and state["ready"] == (r["pod_status"] == "ready"), "container_statuses", r)
    check(state["restart_count"] == r["restart_count"], "container_statuses", r)
    check(r["events"] and r["events"][-1]["reason"] == r["status"], "events", r["events"])
    check(isinstance(r["pod_logs"], str), "pod_logs", r["pod_logs"])
    for url, port in r["work_hosts"].items():
        check(url.startswith("http") and isinstance(port, int), "work_hosts", r["work_hosts"])
    return r


def answer(response, what):
    """As the oldest client does it: .get('detail') on whatever JSON an error brings."""
    if response.status_code >= 400:
        detail = ""
        try:
            detail = response.json().get("detail", "")
        except ValueError:
            pass
        raise httpx.HTTPStatusError(f"{what}: {response.status_code} {detail}", request=response.request, response=response)
    return response


def send_request(session, method, url, timeout=60.0, on_limited=lambda response: None, **more):
    """Three attempts on 429, four seconds apart."""
    for attempt in range(3):
        response = session.request(method, url, timeout=timeout, **more)
        if response.status_code != 429:
            return answer(response, f"{method} {url}")
        on_limited(response)
        if attempt < 2:
            wait(4)
    raise Exhausted(response.json()["detail"])


def context(dockerfile, paths):
    """A folder to build from, packed: these files of this machine below root/."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1, dereference=True) as tar:
        for path in paths:
            tar.add(path, "root" + path)
        info = tarfile.TarInfo("Dockerfile")
        info.size = len(dockerfile)
        tar.addfile(info, io.BytesIO(dockerfile.encode()))
    return packed.getvalue()


def build_form(packed, tags):
    return [("context", ("context.tar.gz", base64.b64encode(packed))), ("target_image", (None, tags[0])),
            *(("tags", (None, tag)) for tag in tags[1:])]
