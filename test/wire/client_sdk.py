# SPDX-License-Identifier: Apache-2.0
"""APIRemoteWorkspace of the software agent SDK: it retries nothing but its wait for readiness."""
import time
import uuid

import httpx

from client_kit import IMAGE, check, is_runtime, step, wait


class Sdk:
    def __init__(self, base, key, sid=None):
        self.base, self.key = base, key
        self.sid = sid or f"agent-server-{uuid.uuid4()}"
        self.client = httpx.Client(headers={"X-API-Key": key})

    def start(self, command="/usr/local/bin/openhands-agent-server --port 60000"):
        body = {"image": IMAGE, "command": command, "working_dir": "/",
                "environment": {}, "session_id": self.sid, "run_as_user": 10001, "fs_group": 10001,
                "image_pull_policy": "IfNotPresent", "runtime_class": "sysbox-runc"}
        response = self.client.post(self.base + "/start", json=body, timeout=300)
        check(response.is_success, "start", response.text)
        self.take(is_runtime(response.json(), self.sid))

    def take(self, r):
        self.id = r.get("runtime_id") or r["id"]
        self.url, self.session_key = r["url"], r["session_api_key"]

    def attach(self):
        """To the session's runtime as it is; False: it has to be started."""
        response = self.client.get(f"{self.base}/sessions/{self.sid}", timeout=60)
        if response.status_code == 404:
            return False
        r = is_runtime(response.json(), self.sid)
        if r["status"] not in ("running", "paused"):
            return False
        self.take(r)
        if r["status"] == "paused":
            self.tell("resume")  # whose body is not read
        return True

    def open(self):
        """Whether it was there."""
        there = self.attach()
        if not there:
            self.start()
        self.wait_ready()
        return there

    def tell(self, what):
        response = self.client.post(f"{self.base}/{what}", json={"runtime_id": self.id}, timeout=60)
        check(response.is_success, what, response.text)

    def wait_ready(self):
        pause, began = 2, time.monotonic()
        while time.monotonic() - began < 300:
            r = self.client.get(f"{self.base}/sessions/{self.sid}", timeout=60).json()
            is_runtime(r, self.sid)
            if r["pod_status"] == "ready":
                try:
                    if httpx.get(self.url + "/health", timeout=5).is_success:
                        return
                except httpx.TransportError:
                    pass
            if r["pod_status"] in ("failed", "unknown", "crashloopbackoff"):
                raise ValueError(f"Runtime failed (status: {r['pod_status']}): {r.get('pod_logs', '')}")
            wait(pause)
            pause = min(pause * 2, 10)
        check(False, "not ready within 300 seconds")

    def work(self):
        """A connection with the key it has, for all that follows."""
        return httpx.Client(base_url=self.url, headers={"X-Session-API-Key": self.session_key})

    def life(self):
        check(not self.open(), "nobody's session")
        step("started and healthy")
        work = self.work()
        check(work.get("/server_info", timeout=5).is_success, "server_info")
        self.others(work)
        self.tell("pause")
        check(self.client.get(f"{self.base}/sessions/{self.sid}", timeout=60).json()["status"] == "paused", "paused")
        self.tell("resume")
        self.wait_ready()
        check(work.get("/server_info", timeout=5).is_success, "the old key and connection after a resume")
        step("paused and resumed; the old key still holds")
        self.tell("stop")
        after = self.client.get(f"{self.base}/sessions/{self.sid}", timeout=60)
        check(after.status_code == 404 or after.json()["status"] == "stopped", "stopped", after.text)
        again = Sdk(self.base, self.key, self.sid)
        check(not again.open() and again.id != self.id, "what was stopped is attached to")
        again.tell("stop")
        step("stopped; the session starts anew")
        self.fails()

    def others(self, work):
        """Two more with the same session: it runs when the first comes, and is paused when the second does."""
        upload = work.post("/upload_file", params={"destination": "/tmp"}, files={"file": ("mine", b"of the first")})
        check(upload.is_success, "upload", upload.text)
        for status in ("running", "paused"):
            if status == "paused":
                self.tell("pause")
            other = Sdk(self.base, self.key, self.sid)
            check(other.open(), "it is not found when", status)
            check((other.id, other.url, other.session_key) == (self.id, self.url, self.session_key), "another", other.id)
            got = other.work().get("/download_files", params={"path": "/tmp"}, timeout=30)
            check(got.is_success and b"of the first" in got.content, "its files when", status)
        step("attached to a running and to a paused one")

    def fails(self):
        """One that ends: what it said last is in the error."""
        self.sid = f"agent-server-{uuid.uuid4()}"
        self.start("sh -c 'echo words of the dying >&2; exit 3' --port 60000")
        try:
            self.wait_ready()
            check(False, "a command that ended is ready")
        except ValueError as e:
            check("words of the dying" in str(e), "pod_logs", e)
        r = is_runtime(self.client.get(f"{self.base}/sessions/{self.sid}", timeout=60).json(), self.sid)
        check("3" in r["container_statuses"][0]["reason"] and r["events"][-1]["type"] == "Warning", "why", r)
        check(self.client.post(self.base + "/stop", json={"runtime_id": self.id}, timeout=60).is_success, "stop")
        step("one that fails says why, with its last words")
