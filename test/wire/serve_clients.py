#!/usr/bin/env python3
"""The calls of three clients of the runtime API, in their order, with their headers, time limits and retries.

    serve_clients.py v0|v1|sdk BASE_URL API_KEY

Written from the contract, on the HTTP library those clients use. Every field a client reads is looked at, whether
this run needs it or not. Waits are shortened by SCALE; nothing else is. What makes a client try again is made to
happen: a quota that is full, connections that are cut. The server's keys may have three runtimes each
([tenant] most_runtimes = 3). Prints one line per step; fails loudly.
"""
import base64
import hashlib
import io
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tarfile
import threading
import time
import urllib.parse
import uuid
import zipfile

import httpx

SCALE = float(os.environ.get("SCALE", "0.02"))
STATUSES = {"starting", "running", "paused", "stopped", "error"}
POD = {"ready", "running", "pending", "not found", "failed", "unknown", "crashloopbackoff", "stopped"}
IMAGE = os.environ.get("IMAGE", "host")
FAR = "FAR" in os.environ  # its sandboxes are another server's: it builds nothing, keeps none warm and has no logs


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
    "amid": when the answer's head and a piece of its body have come back.
    """

    def __init__(self, url, plan, then=lambda: None):
        to = urllib.parse.urlsplit(url)
        self.to, self.plan, self.cuts, self.then = (to.hostname, to.port), list(plan), 0, then
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
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
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


# --- V0: RemoteRuntime ---

class V0:
    def __init__(self, base, key):
        self.base = base + "/"  # configured with a slash at its end: "//start"
        self.sid = uuid.uuid4().hex
        self.session = httpx.Client(headers={"X-API-Key": key})
        self.image, self.limited, self.cut, self.resumes = IMAGE, 0, 0, 0
        self.make_room = lambda: None

    def api(self, method, path, **more):
        return send_request(self.session, method, self.base + path, timeout=180.0, on_limited=self.note_limit, **more)

    def note_limit(self, response):
        check(int(response.headers["retry-after"]) > 0, "429 without a time", response.headers)
        check("most_runtimes" in response.json()["detail"], "429 does not name the limit", response.text)
        self.limited += 1
        self.make_room()

    def another(self):
        return V0(self.base[:-1], self.session.headers["X-API-Key"])

    def stop(self):
        self.api("POST", "/stop", json={"runtime_id": self.runtime_id})

    def take(self, r):
        self.runtime_id, self.url, self.work_hosts = r["runtime_id"], r["url"], r.get("work_hosts", {})
        if "session_api_key" in r:
            self.session.headers["X-Session-API-Key"] = r["session_api_key"]

    def check_existing(self):
        try:
            r = self.api("GET", f"/sessions/{self.sid}").json()
        except httpx.HTTPStatusError as e:
            if e.response.status_code == 404:
                return False
            raise
        is_runtime(r, self.sid)
        if r["status"] == "running":
            self.take(r)
            return True
        if r["status"] == "paused":
            self.take(r)
            self.resume()
            return True
        return False

    def image_exists(self, image):
        response = self.api("GET", "/image_exists", params={"image": image})
        check(response.status_code == 200, "image_exists", response.status_code)
        result = response.json()
        if result["exists"]:
            check(isinstance(result["image"]["upload_time"], str), "upload_time", result)
            check(result["image"]["image_size_bytes"] > 0, "image_size_bytes", result)
        return result["exists"]

    def build(self):
        """From the most exact tag to the least; then it is built under the first two, and must be there."""
        prefix = self.api("GET", "/registry_prefix").json()["registry_prefix"].rstrip("/")
        tags = [f"{prefix}/runtime:{t}" for t in ("oh_v0.62_image_host_tag_", "oh_v0.62_lock", "oh_v0.62_base")]
        for tag in tags:
            check(not self.image_exists(tag), "nobody built", tag)
        form = [("context", ("context.tar.gz", base64.b64encode(context()))),
                ("target_image", (None, tags[0])), ("tags", (None, tags[1]))]
        response = self.session.post(self.base + "/build", files=form, timeout=30)
        if not shutil.which("buildah"):
            check(response.status_code >= 400 and "buildah" in response.json()["detail"], "no builder", response.text)
            return False
        build_id, began = answer(response, "build").json()["build_id"], time.monotonic()
        while time.monotonic() - began < 30 * 60:
            result = self.api("GET", "/build_status", params={"build_id": build_id}).json()
            check(result["status"] not in ("FAILURE", "INTERNAL_ERROR", "TIMEOUT", "CANCELLED", "EXPIRED"),
                  "build", result.get("error"), result)
            if result["status"] == "SUCCESS":
                break
            wait(30)
        self.image = result["image"]
        check(self.image_exists(self.image) and self.image_exists(tags[1]), "built and not there", result)
        return True

    def start(self):
        command = ["/openhands/micromamba/bin/micromamba", "run", "-n", "openhands", "poetry", "run", "python", "-u", "-m",
                   "openhands.runtime.action_execution_server", "60000", "--working-dir", "/workspace", "--plugins",
                   "agent_skills", "jupyter", "--username", "root", "--user-id", "0", "--no-enable-browser"]
        body = {"image": self.image, "command": command, "working_dir": "/openhands/code/",
                "environment": {"DEBUG": "true", "NO_CHANGE_TIMEOUT_SECONDS": "120", "GREETING": "a $b \"c\""},
                "session_id": self.sid, "resource_factor": 1}
        response = self.api("POST", "/start", json=body)
        r = is_runtime(response.json(), self.sid)
        self.take(r)
        return r

    def wait_alive(self):
        began = time.monotonic()
        while time.monotonic() - began < 180:
            r = is_runtime(self.api("GET", f"/runtime/{self.runtime_id}").json(), self.sid)
            check(r["runtime_id"] == self.runtime_id, "asked for", self.runtime_id)
            status = r["pod_status"].lower()
            if status == "ready":
                try:
                    self.sandbox("GET", "/alive", timeout=5, resume=False)
                    return
                except (httpx.HTTPStatusError, Disconnected):
                    pass
            elif status in ("failed", "unknown", "crashloopbackoff"):
                raise Unavailable(status)
            wait(2)
        raise Unavailable("not alive within 180 seconds")

    def sandbox(self, method, path, **more):
        """A connection that is cut under an answer is tried five times, the same bytes each time."""
        for seconds in (4, 4, 4, 8, None):
            try:
                return self.sandbox_mapped(method, path, **more)
            except httpx.RemoteProtocolError:
                self.cut += 1
                if seconds is None:
                    raise Exhausted("cut")
                wait(seconds)

    def sandbox_mapped(self, method, path, timeout=60.0, resume=True, **more):
        """Errors become what the caller of a runtime sees."""
        try:
            return self.sandbox_sent(method, path, timeout, **more)
        except httpx.HTTPStatusError as e:
            code = e.response.status_code
            if code == 404 and path != "/alive":
                raise Disconnected("not responding")
            if code in (502, 504):
                raise Disconnected("temporarily unavailable")
            if code == 503 and resume:  # paused: kept alive, so resume, set up, send once more
                self.resume()
                return self.sandbox_mapped(method, path, timeout=timeout, resume=False, **more)
            raise

    def sandbox_sent(self, method, path, timeout, **more):
        """One that cannot be reached is tried three times."""
        for attempt in range(3):
            try:
                return send_request(self.session, method, self.url + path, timeout=timeout, **more)
            except httpx.NetworkError:
                self.cut += 1
                if attempt == 2:
                    raise Exhausted("network")
                wait(4)

    def resume(self):
        self.resumes += 1
        self.api("POST", "/resume", json={"runtime_id": self.runtime_id})  # the body is not read
        self.wait_alive()
        self.setup_env()

    def run(self, command, **args):
        action = {"action": "run", "args": {"command": command, "is_input": False, "thought": "", "blocking": False,
                                            "is_static": False, "cwd": None, "hidden": False,
                                            "confirmation_state": "confirmed", **args}, "timeout": 120}
        reply = self.sandbox("POST", "/execute_action", timeout=125, json={"action": action}).json()
        check(reply["observation"] == "run", "not a command's observation", reply)
        return reply

    def setup_env(self):
        reply = self.run('export CATALOG="set up";')
        check(reply["extras"]["metadata"]["exit_code"] == 0, "export", reply)
        reply = self.run('touch ~/.bashrc; grep -q "^export CATALOG=" ~/.bashrc || echo "export CATALOG=\\"set up\\"" >> ~/.bashrc;')
        check(reply["extras"]["metadata"]["exit_code"] == 0, ".bashrc", reply)
        self.run('git config --global user.name "openhands" && git config --global user.email "openhands@all-hands.dev"')

    def life(self):
        check(not self.check_existing(), "a session nobody started")
        step("a session nobody started is 404")
        if not FAR:
            self.of_built_image()
        first = self.start()
        self.wait_alive()
        self.setup_env()
        step("started, alive, environment set up")
        check(self.start()["runtime_id"] == first["runtime_id"], "a second start of a session is another runtime")
        step("a second start gives the same runtime")
        reply = self.run('echo "$GREETING|$CATALOG"; pwd')
        check(reply["content"] == 'a $b "c"|set up\n/workspace', "environment and directory", reply)
        step("what was sent with the start is there")
        listed = self.sandbox("POST", "/list_files", timeout=10, json={}).json()
        check(isinstance(listed, list), "list_files", listed)
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as z:
            z.writestr("top/hello.txt", "hello")
        self.sandbox("POST", "/upload_file", timeout=300, params={"destination": "/workspace", "recursive": "true"},
                     files={"file": ("top.zip", packed.getvalue())})
        got = self.sandbox("GET", "/download_files", timeout=30, params={"path": "/workspace/top"})
        with zipfile.ZipFile(io.BytesIO(got.content)) as z:
            check(any(n.endswith("hello.txt") for n in z.namelist()), "download", z.namelist())
        step("files go in and out")
        self.api("POST", "/pause", json={"runtime_id": self.runtime_id})
        check(is_runtime(self.api("GET", f"/sessions/{self.sid}").json(), self.sid)["status"] == "paused", "paused")
        raw = self.session.get(self.url + "/alive", timeout=5)
        check(raw.status_code == 503 and "retry-after" in raw.headers, "a paused sandbox answers", raw.status_code)
        check(self.run("echo back")["content"] == "back", "after a 503 it is resumed and asked again")
        check(self.resumes == 1, "resumes", self.resumes)
        step("paused is 503; resumed by the client, the command is sent again")
        self.cuts()
        other = self.another()
        other.sid = self.sid
        self.api("POST", "/pause", json={"runtime_id": self.runtime_id})
        check(other.check_existing(), "a paused session is attached to")
        check(other.run("cat top/hello.txt")["content"].startswith("hello"), "its files are there")
        step("a second client attaches to the paused session")
        self.api("POST", "/stop", json={"runtime_id": self.runtime_id})
        check(self.visit() in (None, 404), "a stopped sandbox answers on an old connection")
        check(self.visit() in (None, 404), "a stopped sandbox answers on a new connection")
        try:
            self.api("POST", "/stop", json={"runtime_id": None})
            check(False, "a stop of null")
        except httpx.HTTPStatusError as e:
            check(e.response.status_code == 404 and e.response.json()["detail"], "a stop of null", e)
        step("stopped; a stop of null is 404")
        second = self.another()
        second.sid = self.sid
        check(not second.check_existing(), "a stopped session is not attached to")
        again = second.start()
        check(again["runtime_id"] != first["runtime_id"], "a stopped runtime is replaced")
        second.wait_alive()
        second.stop()
        step("a stopped session starts anew")
        self.limits()

    def of_built_image(self):
        """As without a runtime_container_image: the image is built before the start."""
        built = self.another()
        if not built.build():
            step("registry prefix and image tags; a build without a builder is refused by its name")
            return
        step("registry prefix, image tags, build, and the image is there")
        built.start()
        built.wait_alive()
        check(built.run("cat /etc/made; pwd")["content"] == "by the client\n/workspace", "the built image")
        built.stop()
        step("a runtime of the built image")

    def through(self, plan, then=lambda: None):
        """A client of the same session, by way of a cutter."""
        cutter = Cutter(self.url, plan, then)
        client = self.another()
        client.sid = self.sid
        client.take(is_runtime(self.api("GET", f"/sessions/{self.sid}").json(), self.sid))
        client.url = cutter.url
        return client, cutter

    def cuts(self):
        def let_go():
            self.sandbox("POST", "/upload_file", timeout=300, params={"destination": "/workspace", "recursive": "false"},
                         files={"file": ("go", b"on")})

        client, cutter = self.through(["before"] * 4, let_go)  # all four while it runs
        counted = client.run("echo once >> count; until [ -e go ]; do sleep 0.01; done; wc -l < count")["content"]
        check(counted == "1", "cut four times, and run this often:", counted)
        check((client.cut, cutter.cuts) == (4, 4), "cuts", client.cut, cutter.cuts)
        cutter.close()
        client, cutter = self.through(["amid", "amid"])
        check(client.run("echo whole")["content"] == "whole", "after answers that were cut")
        check((client.cut, cutter.cuts) == (2, 2), "cuts", client.cut, cutter.cuts)
        cutter.close()
        client, cutter = self.through(["before"] * 5)
        try:
            client.run("echo never heard")
            check(False, "a fifth attempt that was cut")
        except Exhausted:
            check((client.cut, cutter.cuts) == (5, 5), "cuts", client.cut, cutter.cuts)
        cutter.close()
        step("cut connections are tried again, five times in all, and a command still runs once")
        client, cutter = self.through(["reset", "reset"])
        check(client.run("echo through")["content"] == "through", "after resets")
        check((client.cut, cutter.cuts) == (2, 2), "resets", client.cut, cutter.cuts)
        cutter.close()
        step("reset connections are tried again")

    def limits(self):
        """Three are the most a key may have: a fourth start is put off until one goes."""
        held = [self.another() for _ in range(3)]
        for h in held:
            h.start()
        late = self.another()
        try:
            late.start()
            check(False, "a fourth runtime")
        except Exhausted:
            check(late.limited == 3, "attempts", late.limited)
        late.limited, late.make_room = 0, held.pop().stop
        late.start()
        check(late.limited == 1, "attempts", late.limited)
        late.wait_alive()
        for h in held + [late]:
            h.stop()
        step("429 is tried again, three times in all, with a time and the limit's name")

    def visit(self):
        """The status of /alive; None: nobody is there."""
        try:
            return self.session.get(self.url + "/alive", timeout=5).status_code
        except httpx.TransportError:
            return None


def context():
    """A folder to build from: a shell with its libraries, busybox for the rest."""
    libraries = [w for w in subprocess.run(["ldd", "/bin/bash"], capture_output=True, text=True, check=True).stdout.split()
                 if w.startswith("/")]
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1, dereference=True) as tar:
        for path in ["/bin/bash", "/bin/busybox", *libraries]:
            tar.add(path, "root" + path)
        text = b"FROM scratch\nCOPY root /\nRUN [\"/bin/busybox\", \"--install\", \"-s\", \"/bin\"]\n" \
               b"RUN mkdir -p /etc /root /tmp; echo by the client >/etc/made\n"
        info = tarfile.TarInfo("Dockerfile")
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text))
    return packed.getvalue()


# --- V1: RemoteSandboxService ---

class V1:
    ENV = {"OPENVSCODE_SERVER_ROOT": "/openhands/.openvscode-server", "OH_ENABLE_VNC": "0", "LOG_JSON": "true",
           "OH_CONVERSATIONS_PATH": "/workspace/conversations", "OH_BASH_EVENTS_DIR": "/workspace/bash_events",
           "OH_VSCODE_PORT": "60001", "OH_WEBHOOKS_0_BASE_URL": "http://app.example/api/v1/webhooks",
           "OH_ALLOW_CORS_ORIGINS_0": "http://app.example", "WORKER_1": "12000", "WORKER_2": "12001"}

    def __init__(self, base, key):
        self.base, self.key = base, key
        self.client = httpx.Client()

    def api(self, method, path, **more):
        """A read that timed out is tried once more, on a new connection; a POST never."""
        headers = {"X-API-Key": self.key}
        try:
            return self.client.request(method, self.base + path, headers=headers, timeout=15, **more)
        except httpx.TimeoutException:
            if method != "GET":
                raise
            self.client = httpx.Client()
            return self.client.request(method, self.base + path, headers=headers, timeout=15, **more)

    def start(self, sid, **more):
        body = {"image": IMAGE, "command": ["/usr/local/bin/openhands-agent-server", "--port", "60000"],
                "working_dir": "/workspace/project", "environment": self.ENV, "session_id": sid, "resource_factor": 1,
                "run_as_user": 10001, "run_as_group": 10001, "fs_group": 10001, **more}
        response = self.api("POST", "/start", json=body)
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

    def life(self):
        configs = self.api("GET", "/api/warm-runtime-configs").json()["configs"]
        for c in configs:
            check(isinstance(c["name"], str) and isinstance(c["image"], str), "warm configuration", c)
            check(isinstance(c.get("command", []), list) and isinstance(c.get("environment", {}), dict), "warm", c)
        step(f"{len(configs)} warm configurations")
        if not FAR:
            self.of_config(configs[0])
        self.pairs()

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
        resumed = self.api("POST", "/resume", json={"runtime_id": r["runtime_id"]})
        check(resumed.status_code == 200, "resume", resumed.text)
        self.wait_running(one)
        check(self.session_of(one)["session_api_key"] == key, "the key is the same after a resume")
        again = self.api("POST", "/resume", json={"runtime_id": r["runtime_id"]})
        check(again.status_code == 200 or again.status_code == 409, "a resume of one that runs", again.status_code)
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


# --- SDK: APIRemoteWorkspace ---

class Sdk:
    def __init__(self, base, key):
        self.base, self.key = base, key
        self.sid = f"agent-server-{uuid.uuid4()}"
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

    def life(self):
        check(self.client.get(f"{self.base}/sessions/{self.sid}", timeout=60).status_code == 404, "nobody's session")
        self.start()
        self.wait_ready()
        step("started and healthy")
        work = httpx.Client(base_url=self.url, headers={"X-Session-API-Key": self.session_key})
        check(work.get("/server_info", timeout=5).is_success, "server_info")
        check(self.client.post(self.base + "/pause", json={"runtime_id": self.id}, timeout=60).is_success, "pause")
        check(self.client.get(f"{self.base}/sessions/{self.sid}", timeout=60).json()["status"] == "paused", "paused")
        check(self.client.post(self.base + "/resume", json={"runtime_id": self.id}, timeout=60).is_success, "resume")
        self.wait_ready()
        check(work.get("/server_info", timeout=5).is_success, "the old key and connection after a resume")
        step("paused and resumed; the old key still holds")
        check(self.client.post(self.base + "/stop", json={"runtime_id": self.id}, timeout=60).is_success, "stop")
        after = self.client.get(f"{self.base}/sessions/{self.sid}", timeout=60)
        check(after.status_code == 404 or after.json()["status"] == "stopped", "stopped", after.text)
        step("stopped")
        self.fails()

    def fails(self):
        """One that ends: what it said last is in the error."""
        self.sid = f"agent-server-{uuid.uuid4()}"
        self.start("sh -c 'echo words of the dying >&2; exit 3' --port 60000")
        try:
            self.wait_ready()
            check(False, "a command that ended is ready")
        except ValueError as e:
            check(FAR or "words of the dying" in str(e), "pod_logs", e)
        r = is_runtime(self.client.get(f"{self.base}/sessions/{self.sid}", timeout=60).json(), self.sid)
        check("3" in r["container_statuses"][0]["reason"] and r["events"][-1]["type"] == "Warning", "why", r)
        check(self.client.post(self.base + "/stop", json={"runtime_id": self.id}, timeout=60).is_success, "stop")
        step("one that fails says why, with its last words")


def main():
    kind, base, key = sys.argv[1:4]
    {"v0": V0, "v1": V1, "sdk": Sdk}[kind](base.rstrip("/"), key).life()
    step(f"{kind}: all of it")


if __name__ == "__main__":
    main()
