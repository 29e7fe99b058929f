# SPDX-License-Identifier: Apache-2.0
"""A real WebSocket client against an echo server, and such a server.

    python3 ws_peer.py ws://NAME:PORT/ws [some]    connects to 127.0.0.1, whatever the name is
    python3 ws_peer.py serve PORT                  echoes; prints a line when it listens

Checks text, binary, fragments, large messages, pings, close codes, with and without
permessage-deflate; with "some", less of all of it. Exit 0: all as it should be; 77: the
websockets package is missing.
"""
import asyncio
import sys

try:
    import websockets
except ImportError:
    sys.exit(77)

URL, SOME = sys.argv[1], sys.argv[2:] == ["some"]


def connect(**more):
    return websockets.connect(URL, host="127.0.0.1", **more)


async def echo(ws, message):
    await ws.send(message)
    got = await ws.recv()
    assert got == message, f"sent {message[:40]!r}…, got {got[:40]!r}… ({len(got)})"


async def talk(compression):
    async with connect(compression=compression, max_size=None) as ws:
        wanted = compression is not None
        assert bool(ws.extensions) == wanted, f"extensions {ws.extensions}"
        for size in (0, 1, 125, 126, 127, 128, 65535, 65536, *([] if SOME else [1_000_000])):
            await echo(ws, "ä" * (size // 2))
            await echo(ws, bytes(i % 251 for i in range(size)))
        await echo(ws, "repeat " * 10000)
        await ws.send(["frag", "ment", "ed ", "täxt"])
        assert await ws.recv() == "fragmented täxt"
        await ws.send([b"\x00\x01", b"\x02"])
        assert await ws.recv() == b"\x00\x01\x02"
        for _ in range(3):
            await asyncio.wait_for(await ws.ping(b"payload"), 10)
        many = 200 if SOME else 2000
        for i in range(many):
            await ws.send(str(i))
        for i in range(many):
            assert await ws.recv() == str(i)
    assert ws.close_code == 1000, ws.close_code


async def close_codes():
    for code in (1000, 1001, 3000, 4999):
        ws = await connect()
        await ws.close(code, "bye")
        assert ws.close_code == code, (ws.close_code, code)


async def too_big():
    ws = await connect(compression=None, max_size=None)
    try:
        await ws.send(b"x" * (70 << 20))
        await ws.recv()
        raise AssertionError("70 MB were taken")
    except websockets.ConnectionClosed:
        assert ws.close_code == 1009, ws.close_code


async def main():
    await talk(None)
    await talk("deflate")
    await close_codes()
    if not SOME:
        await too_big()


async def serve(port):
    async def answer(ws):
        async for message in ws:
            await ws.send(message)

    async with websockets.serve(answer, "127.0.0.1", port, max_size=64 << 20):
        print("listening", flush=True)
        await asyncio.Future()


asyncio.run(serve(int(sys.argv[2])) if URL == "serve" else main())
