# SPDX-License-Identifier: Apache-2.0
"""Runs cells where there is no ipykernel: statements, the value of a last expression, tracebacks,
interrupts. Cells come over descriptor 3 as a length (4 bytes, big-endian) and JSON; the answer has
the same form. Whatever a cell prints goes to descriptors 1 and 2, so that it stays in order with
what its child processes print."""


def _croft_main():
    import ast
    import builtins
    import json
    import linecache
    import os
    import signal
    import socket
    import struct
    import sys
    import traceback
    import types

    sock = socket.socket(fileno=3)
    os.set_inheritable(3, False)
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    main.__builtins__ = builtins
    sys.argv = [""]
    sys.path.insert(0, "")

    def no_input(prompt=""):
        raise RuntimeError(
            "raw_input was called, but this frontend does not support input requests."
        )

    builtins.input = no_input

    def receive(size):
        data = b""
        while len(data) < size:
            piece = sock.recv(min(size - len(data), 1 << 20))
            if not piece:
                os._exit(0)
            data += piece
        return data

    def send(value):
        text = json.dumps(value).encode()
        sock.sendall(struct.pack(">I", len(text)) + text)

    def flush():
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass

    def hint(code):
        if code.lstrip().startswith(("%", "!")) or "\n%" in code or "\n!" in code:
            print("[Magics (%) and shell escapes (!) need ipykernel, which this Python lacks.]")

    def show_error(code):
        kind, value, trace = sys.exc_info()
        while trace and trace.tb_frame.f_globals is not main.__dict__:
            trace = trace.tb_next
        sys.stdout.write("".join(traceback.format_exception(kind, value, trace)))
        if kind is SyntaxError:
            hint(code)

    def run(code, number):
        name = "<cell %d>" % number
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        tree = ast.parse(code, name)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)
        exec(compile(tree, name, "exec"), main.__dict__)
        if last is None or code.rstrip().endswith(";"):
            return
        value = eval(compile(last, name, "eval"), main.__dict__)
        if value is not None:
            main._ = value
            sys.stdout.write(repr(value))

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    send({"ready": True})
    number = 0
    while True:
        (size,) = struct.unpack(">I", receive(4))
        code = json.loads(receive(size))["code"]
        number += 1
        try:
            try:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                run(code, number)
            except BaseException:
                show_error(code)
            finally:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
        except BaseException:  # an interrupt that came while the error was shown
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        flush()
        send({"done": number})


_croft_main()
