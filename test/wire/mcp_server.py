# SPDX-License-Identifier: Apache-2.0
"""A server of tools on standard input and output, in a few lines. argv: what it is to do besides:
dies (before it answers), mute (never answers), refuse (the handshake), noise (prints what is no
message first)."""
import json
import os
import sys

MODE = sys.argv[1] if len(sys.argv) > 1 else ""
tools = ["echo", "where", "slow", "steps", "die", "grow", "fail", "odd", "huge", "log", "ask"]


def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


def call(number, name, args, token):
    if name == "echo":
        send(id=number, result=text(json.dumps(args, sort_keys=True), structuredContent=args))
    elif name == "where":
        send(id=number, result=text(f"{os.getcwd()} {os.environ.get('K')} {os.getpid()}"))
    elif name == "slow":
        open("slow", "w").close()  # answered never; a cancellation is noted
    elif name == "steps":
        send(method="notifications/progress", params={"progressToken": token, "progress": 1, "total": 2})
        send(id=number, result=text("stepped"))
    elif name == "die":
        print("out of luck", file=sys.stderr, flush=True)
        sys.exit(3)
    elif name == "grow":
        tools.append("grown")
        send(method="notifications/tools/list_changed")
        send(id=number, result=text("taller"))
    elif name == "fail":
        send(id=number, error={"code": -32000, "message": "it went wrong"})
    elif name == "odd":
        image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
        send(id=number, result={"content": [image, {"type": "x", "k": 1}], "isError": True, "_meta": {"m": 1}})
    elif name == "huge":
        sys.stdout.write("x" * (17 << 20))
        sys.stdout.flush()
    elif name == "log":
        send(method="notifications/message", params={"level": "info", "data": "hello"})
        send(id=number, result=text("logged"))
    elif name == "ask":
        send(id="q", method="roots/list")
        answer = json.loads(sys.stdin.readline())
        send(id=number, result=text(answer["error"]["message"]))


if MODE == "dies":
    print("no such model", file=sys.stderr)
    sys.exit(4)
if MODE == "noise":
    print("welcome to this server", flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, number, params = message.get("method"), message.get("id"), message.get("params", {})
    if MODE == "mute":
        continue
    if method == "initialize" and MODE == "refuse":
        send(id=number, error={"code": -32000, "message": "not for you"})
    elif method == "initialize":
        info = {"name": "few-lines", "version": "1"}
        send(id=number, result={"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info})
    elif method == "tools/list":  # a page for each tool
        at = int(params.get("cursor", 0))
        tool = {"name": tools[at], "description": "does it", "inputSchema": {"type": "object"}}
        more = {"nextCursor": str(at + 1)} if at + 1 < len(tools) else {}
        send(id=number, result={"tools": [tool], **more})
    elif method == "tools/call":
        call(number, params["name"], params.get("arguments", {}), params.get("_meta", {}).get("progressToken"))
    elif method == "notifications/cancelled":
        with open("cancelled", "w") as f:
            f.write("yes")
