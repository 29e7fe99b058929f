# SPDX-License-Identifier: Apache-2.0
"""V1, RemoteSandboxService of OpenHands: it indexes what others ask for, and re-reads what it was refused."""
import hashlib
import os
import shutil
import subprocess
import time
import uuid

import httpx

from client_kit import FAR, IMAGE, SCALE, Cutter, build_form, check, context, is_runtime, step, wait


class NotResumable(Exception):
    pass


class V1:
    ENV = {"OPENVSCODE_SERVER_ROOT": "/openhands/.openvscode-server", "OH_ENABLE_VNC": "0", "LOG_JSON": "true",
           "OH_CONVERSATIONS_PATH": "/workspace/conversations", "OH_BASH_EVENTS_DIR": "/workspace/bash_events",
           "OH_VSCODE_PORT": "60001", "OH_WEBHOOKS_0_BASE_URL": "http://app.example/api/v1/webhooks",
           "OH_ALLOW_CORS_ORIGINS_0": "http://app.example", "WORKER_1": "12000", "WORKER_2": "12001"}

    def __init__(self, base, key):
        self.base, self.key = base, key
        self.client = httpx.Client()
        self.patience, self.late, self.conflicts = 15, 0, 0

    def api(self, method, path, **more):
        """A read that timed out is tried once more, on a new connection; a POST never."""
        headers = {"X-API-Key": self.key}
        try:
            return self.client.request(method, self.base + path, headers=headers, timeout=self.patience, **more)
        except httpx.TimeoutException:
            self.late += 1
            if method != "GET":
                raise
            self.client = httpx.Client()
            return self.client.request(method, self.base + path, headers=headers, timeout=15, **more)

    def start_sent(self, sid, **more):
        body = {"image": IMAGE, "command": ["/usr/local/bin/openhands-agent-server", "--port", "60000"],
                "working_dir": "/workspace/project", "environment": self.ENV, "session_id": sid, "resource_factor": 1,
                "run_as_user": 10001, "run_as_group": 10001, "fs_group": 10001, **more}
        return self.api("POST", "/start", json=body)

    def start(self, sid, **more):
        response = self.start_sent(sid, **more)
        check(200 <= response.status_code < 300, "start", response.status_code, response.text)
        r = is_runtime(response.json(), sid)
        check(isinstance(r["session_api_key"], str), "V1 indexes the key", r)
        hashlib.sha256(r["session_api_key"].encode()).hexdigest()
        return r

    def session_of(self, sid):
        response = self.api("GET", f"/sessions/{sid}")
        check(response.status_code == 200, "a runtime that was just started is not there", response.status_code)
        return is_runtime(response.json(), sid)

    def wait_running(self, sid):
        began = time.monotonic()
        while time.monotonic() - began < 120:
            r = self.session_of(sid)
            check(r["status"] != "error", "it failed", r)
            if r["status"] == "running":
                try:
                    if self.client.get(r["url"] + "/alive", timeout=5).is_success:
                        return r
                except httpx.TransportError:
                    pass
            wait(2)
        check(False, "not running within 120 seconds")

    def resume(self, sid, runtime_id):
        """409: it is read once more, and may run by now. The status; None: there is no such."""
        response = self.api("POST", "/resume", json={"runtime_id": runtime_id})
        if response.status_code == 404:
            return None
        if response.status_code == 200:
            return is_runtime(response.json(), sid)["status"]
        check(response.status_code == 409, "resume", response.status_code, response.text)
        self.conflicts += 1
        detail, again = response.json()["detail"], self.api("GET", f"/sessions/{sid}")
        status = again.json()["status"] if again.status_code == 200 else None
        check(isinstance(detail, str) and (status or "stopped") in detail, "409 does not name the state", detail)
        if status in ("starting", "running"):
            return status
        if status in (None, "stopped"):  # which this client takes for missing
            return None
        raise NotResumable(status)

    def life(self):
        configs = self.api("GET", "/api/warm-runtime-configs").json()["configs"]
        for c in configs:
            check(isinstance(c["name"], str) and isinstance(c["image"], str), "warm configuration", c)
            check(isinstance(c.get("command", []), list) and isinstance(c.get("environment", {}), dict), "warm", c)
        step(f"{len(configs)} warm configurations")
        if not FAR:
            self.of_config(configs[0])
        self.pairs()
        self.held()
        self.limits()
        if shutil.which("buildah") and not FAR:
            self.conflict()

    def of_config(self, c):  # the first becomes the sandbox specification, to the letter
        of_config = uuid.uuid4().hex
        r = self.start(of_config, image=c["image"], command=c["command"], working_dir=c["working_dir"],
                       environment={**c["environment"], **self.ENV})
        self.wait_running(of_config)
        self.api("POST", "/stop", json={"runtime_id": r["runtime_id"]})
        step("a warm configuration is started")

    def pairs(self):
        one, two = uuid.uuid4().hex, uuid.uuid4().hex
        r = self.start(one)
        check(self.session_of(one)["runtime_id"] == r["runtime_id"], "it is visible at once")
        r = self.wait_running(one)
        self.start(two)
        step("two started, visible at once, running")
        listed = self.api("GET", "/list").json()
        check(listed["total"] >= 2, "total", listed["total"])
        mine = [x for x in listed["runtimes"] if x["session_id"] in (one, two)]
        check(len(mine) == 2, "both are listed", mine)
        batch = self.api("GET", "/sessions/batch", params=[("ids", one), ("ids", "nobody"), ("ids", two)]).json()
        check(isinstance(batch, list), "a bare array", batch)
        found = {x["session_id"] for x in batch if x}
        check(found == {one, two}, "the batch", found)
        batch = self.api("GET", "/sessions/batch", params={"ids": f"{one},{two}"}).json()
        check({x["session_id"] for x in batch if x} == {one, two}, "ids with commas", batch)
        step("list and batch")
        key = r["session_api_key"]
        paused = self.api("POST", "/pause", json={"runtime_id": r["runtime_id"]})
        check(paused.status_code == 200 and paused.json()["status"] == "paused", "pause", paused.text)
        check("session_api_key" in self.session_of(one), "the key's field is there when paused")
        check(self.client.get(r["url"] + "/server_info", timeout=5).status_code == 503, "paused is 503")
        check(self.resume(one, r["runtime_id"]) in ("starting", "running"), "resume")
        self.wait_running(one)
        check(self.session_of(one)["session_api_key"] == key, "the key is the same after a resume")
        check(self.resume(one, r["runtime_id"]) == "running", "a resume of one that runs")
        step("pause and resume, the key stays")
        for path in ("/pause", "/resume", "/stop"):
            e = self.api("POST", path, json={"runtime_id": "nosuchruntimeid"})
            check(e.status_code == 404 and isinstance(e.json()["detail"], str), path, e.text)
        step("what is not there is 404, with a detail")
        for sid in (one, two):
            r = self.session_of(sid)
            stopped = self.api("POST", "/stop", json={"runtime_id": r["runtime_id"]})
            check(stopped.status_code == 200 and stopped.json()["status"] == "stopped", "stop", stopped.text)
        listed = self.api("GET", "/list").json()
        check(not [x for x in listed["runtimes"] if x["session_id"] in (one, two)], "stopped ones are listed")
        step("stopped and off the list")
        self.conflicts = 0
        check(self.resume(two, r["runtime_id"]) is None and self.conflicts == 1, "a resume of what was stopped")
        step("a resume of what was stopped is 409 with its state; read again, it is missing")

    def held(self):
        """The first connection is never answered: a read goes to a second one, anything else is given up."""
        for method, path, body in (("GET", "/list", None), ("POST", "/pause", {"runtime_id": "nosuchruntimeid"})):
            relay = Cutter(self.base, ["hold"])
            client = V1(relay.url, self.key)
            client.patience = 15 * SCALE
            try:
                got = client.api(method, path, **({"json": body} if body else {}))
                check(method == "GET" and "runtimes" in got.json(), "tried again:", method, path)
            except httpx.TimeoutException:
                check(method == "POST", "not tried again:", method, path)
            check((client.late, relay.cuts) == (1, 1), "late", client.late, relay.cuts)
            relay.close()
        step("a read that is late is sent again once, on a new connection; a POST is not")

    def limits(self):
        """Three are the most a key may have. A fourth start fails, and is not sent again."""
        sids = [uuid.uuid4().hex for _ in range(4)]
        ids = [self.start(sid)["runtime_id"] for sid in sids[:3]]
        refused = self.start_sent(sids[3])
        check(refused.status_code == 429 and "most_runtimes" in refused.json()["detail"], "a fourth", refused.text)
        check(int(refused.headers["retry-after"]) > 0, "429 without a time", refused.headers)
        check(self.api("GET", f"/sessions/{sids[3]}").status_code == 404, "a refused start is there")
        self.api("POST", "/stop", json={"runtime_id": ids.pop()})
        ids.append(self.start(sids[3])["runtime_id"])
        for runtime_id in ids:
            self.api("POST", "/stop", json={"runtime_id": runtime_id})
        step("a start over the limit is 429 with a time and the limit's name")

    def conflict(self):
        """A runtime whose image is being built is starting, and then has none: it cannot be resumed either time."""
        prefix = self.api("GET", "/registry_prefix").json()["registry_prefix"].rstrip("/")
        seconds, tag, sid = str(500000 + os.getpid()), f"{prefix}/held:1", uuid.uuid4().hex
        packed = context(f'FROM scratch\nCOPY root /\nRUN ["/bin/busybox", "sleep", "{seconds}"]\n', ["/bin/busybox"])
        self.api("POST", "/build", files=build_form(packed, [tag]))
        r = self.start(sid, image=tag)
        self.conflicts = 0
        check(self.resume(sid, r["runtime_id"]) == "starting" and self.conflicts == 1, "resume of a starting one")
        subprocess.run(["sh", "-c", f'until kill $(pgrep -fx "/bin/busybox sleep {seconds}"); do sleep .01; done'],
                       stderr=subprocess.DEVNULL, check=True)
        while self.session_of(sid)["status"] == "starting":
            wait(2)
        try:
            check(False, "resumed without an image:", self.resume(sid, r["runtime_id"]))
        except NotResumable as e:
            check(str(e) == "error" and self.conflicts == 2, "not resumable", e)
        self.api("POST", "/stop", json={"runtime_id": r["runtime_id"]})
        step("a resume of one that is starting is 409 and fine; of one that has no image it is 409 and refused")
