# SPDX-License-Identifier: Apache-2.0
"""V0, RemoteRuntime of OpenHands: the oldest client, and the one that forgives least."""
import io
import shutil
import socket
import subprocess
import time
import urllib.parse
import uuid
import zipfile

import httpx

from client_kit import (FAR, IMAGE, Cutter, Disconnected, Exhausted, Unavailable, build_form, check, context, is_runtime,
                        send_request, step, wait)

DOCKERFILE = """FROM scratch
COPY root /
RUN ["/bin/busybox", "--install", "-s", "/bin"]
RUN mkdir -p /etc /root /tmp; echo by the client >/etc/made
"""


class NotFound(Exception):
    pass


class Upload:
    """Somebody with the same key who sends a context and never ends; the server has begun to read it."""

    def __init__(self, base, key):
        to = urllib.parse.urlsplit(base)
        self.socket = socket.create_connection((to.hostname, to.port))
        self.socket.sendall(f"POST /build HTTP/1.1\r\nHost: {to.netloc}\r\nX-API-Key: {key}\r\n"
                            "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 1000000\r\n"
                            "Expect: 100-continue\r\n\r\n".encode())
        said = self.socket.recv(65536)
        check(said.startswith(b"HTTP/1.1 100 "), "an upload", said)

    def close(self):
        self.socket.close()


class V0:
    limit = "most_runtimes"  # the one that is run into

    def __init__(self, base, key, sid=None, attach=False, keep=False):
        self.base = self.resume_base = base + "/"  # configured with a slash at its end: "//start"
        self.sid, self.attach, self.keep = sid or uuid.uuid4().hex, attach, keep
        self.session = httpx.Client(headers={"X-API-Key": key})
        self.image, self.runtime_id = IMAGE, None
        self.limited = self.cut = self.resumes = self.resumes_failed = self.uploads = 0
        self.make_room = self.before_resume = lambda: None

    def api(self, method, path, **more):
        return send_request(self.session, method, self.base + path, timeout=180.0, on_limited=self.note_limit, **more)

    def note_limit(self, response):
        check(int(response.headers["retry-after"]) > 0, "429 without a time", response.headers)
        check(self.limit in response.json()["detail"], "429 does not name the limit", response.text)
        self.limited += 1
        self.make_room()

    def another(self, **more):
        return V0(self.base[:-1], self.session.headers["X-API-Key"], **more)

    def connect(self):
        """The one that is there, or a new one; whatever fails is closed."""
        try:
            if not self.check_existing():
                if self.attach:
                    raise NotFound(self.sid)
                self.start()
                self.wait_alive()
            self.setup_env()
        except Exception:
            self.close()
            raise

    def close(self):
        if not self.attach:
            self.api("POST", "/pause" if self.keep else "/stop", json={"runtime_id": self.runtime_id})

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
            try:
                self.before_resume()
                self.resume()
                return True
            except (httpx.HTTPError, Exhausted, Unavailable):
                self.resumes_failed += 1
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
        libraries = [w for w in subprocess.run(["ldd", "/bin/bash"], capture_output=True, text=True, check=True)
                     .stdout.split() if w.startswith("/")]
        form = build_form(context(DOCKERFILE, ["/bin/bash", "/bin/busybox", *libraries]), tags[:2])
        if not shutil.which("buildah"):
            try:
                self.upload(form)
                check(False, "a build without a builder")
            except httpx.HTTPStatusError as e:
                check("buildah" in e.response.json()["detail"], "no builder", e)
            return False
        build_id, began = self.upload_late(form).json()["build_id"], time.monotonic()
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

    def upload(self, form):
        """One too many is sent again three times, as every request, then from its beginning, and so on for ever."""
        while True:
            self.uploads += 1
            try:
                return send_request(self.session, "POST", self.base + "/build", timeout=30, on_limited=self.note_limit,
                                    files=form)
            except Exhausted:
                wait(30)

    def upload_late(self, form):
        """Two are the most that a key may send at once; they go when this one is at its second beginning."""
        others = [Upload(self.base, self.session.headers["X-API-Key"]) for _ in range(2)]

        def make_room():
            while self.uploads > 1 and others:
                others.pop().close()

        self.limit, self.make_room = "most_contexts", make_room
        response = self.upload(form)
        check(self.limited > 3 and self.uploads > 1, "attempts", self.limited, self.uploads)
        self.limit, self.make_room, self.limited = V0.limit, lambda: None, 0
        step("a build that is one too many is sent again until there is room")
        return response

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
        send_request(self.session, "POST", self.resume_base + "/resume", timeout=180.0, on_limited=self.note_limit,
                     json={"runtime_id": self.runtime_id})  # the body is not read
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
        self.api("POST", "/pause", json={"runtime_id": self.runtime_id})
        large = bytes(6 << 20)  # more than anybody reads of what he refuses, unless he means to
        self.sandbox("POST", "/upload_file", timeout=300, params={"destination": "/workspace", "recursive": "false"},
                     files={"file": ("large", large)})
        check(self.run("wc -c < large")["content"] == str(len(large)) and self.resumes == 2, "a large upload")
        step("a large upload to a paused one is refused in words, and sent again")
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
        self.kept()
        self.attached()
        self.resume_in_vain()
        self.refused()
        self.limits()

    def kept(self):
        """keep_runtime_alive: closed is paused, and whoever comes for the session goes on with it."""
        first = self.another(keep=True)
        first.connect()
        first.run("echo kept > kept")
        first.close()
        check(self.api("GET", f"/sessions/{first.sid}").json()["status"] == "paused", "closed and not paused")
        second = self.another(sid=first.sid)
        second.connect()
        check(second.runtime_id == first.runtime_id and second.resumes == 1, "another one", second.runtime_id)
        check(second.run("cat kept")["content"] == "kept", "its files")
        second.close()
        check(not second.check_existing(), "closed and not stopped")
        step("closed with keep-alive is paused, the next client resumes it; closed without is stopped")

    def attached(self):
        """Who only attaches starts nothing and ends nothing."""
        nobody = self.another(attach=True)
        try:
            nobody.connect()
            check(False, "attached to nothing")
        except NotFound:
            check(not nobody.check_existing(), "it was started")
        first = self.another()
        first.connect()
        second = self.another(sid=first.sid, attach=True)
        second.connect()
        check(second.runtime_id == first.runtime_id and second.resumes == 0, "another one", second.runtime_id)
        second.close()
        check(first.run("echo still there")["content"] == "still there", "a client that attached ended it")
        first.close()
        step("attached to a running one and closed, it runs on; to none, nothing is started")

    def resume_in_vain(self):
        """A resume that fails: as if there were none, POST /start. Paused still, that resumes it; gone, it is new."""
        first = self.another(keep=True)
        first.connect()
        first.close()
        relay = Cutter(self.base, ["reset"])
        second = self.another(sid=first.sid)
        second.resume_base = relay.url
        second.connect()
        check((second.resumes, second.resumes_failed, relay.cuts) == (1, 1, 1), "resumes", second.resumes, relay.cuts)
        check(second.runtime_id == first.runtime_id, "one that is paused is replaced")
        check(second.run("echo awake")["content"] == "awake", "after a start of what was paused")
        relay.close()
        first.close()
        third = self.another(sid=first.sid)
        third.before_resume = first.stop
        third.connect()
        check((third.resumes, third.resumes_failed) == (1, 1), "resumes", third.resumes)
        check(third.runtime_id != first.runtime_id, "what was stopped came back")
        third.close()
        step("a resume that fails becomes a start: of the paused one, or of a new one")

    def refused(self):
        """What could not be started is closed: a stop of null, whose 404 hides the first error."""
        wrong = self.another()
        wrong.image = "no/such:image"
        try:
            wrong.connect()
            check(False, "an image that is not there")
        except httpx.HTTPStatusError as e:
            check(e.request.url.path.endswith("/stop") and e.response.status_code == 404, "closed", e)
        except Unavailable:
            check(FAR, "an image that is not there was started")  # elsewhere they know better, and say so later
        check(not wrong.check_existing(), "a refused start is there")
        step("a start that is refused is closed by a stop of null")

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
