# SPDX-License-Identifier: Apache-2.0
"""TLS in front of a unix socket: tls_front.py CERTIFICATE KEY SOCKET; prints its port."""
import socket
import ssl
import sys
import threading


def move(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
    except OSError:
        pass
    for s in (a, b):
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def serve(plain, tls, to):
    try:
        client = tls.wrap_socket(plain, server_side=True)
        server = socket.socket(socket.AF_UNIX)
        server.connect(to)
    except OSError:
        plain.close()
        return
    threading.Thread(target=move, args=(server, client), daemon=True).start()
    move(client, server)


tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(sys.argv[1], sys.argv[2])
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(
        target=serve, args=(listener.accept()[0], tls, sys.argv[3]), daemon=True
    ).start()
