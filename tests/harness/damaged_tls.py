"""TLS clients whose bytes are damaged."""

from __future__ import annotations

import contextlib
import random
import socket
import ssl


def converse(sock: socket.socket, randomness: random.Random) -> None:
    """A TLS client whose bytes are damaged, cut or repeated from some point on."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    client = context.wrap_bio(incoming, outgoing)
    good = randomness.randrange(3)
    with contextlib.suppress(ssl.SSLError, OSError):
        for step in range(4):
            try:
                if step < 2:
                    client.do_handshake()
                client.write(randomness.randbytes(randomness.randrange(1, 400)))
            except ssl.SSLWantReadError:
                pass
            data = bytearray(outgoing.read())
            if step >= good and data:
                for _ in range(randomness.randrange(1, 4)):
                    data[randomness.randrange(len(data))] = randomness.randrange(256)
                data = data[: randomness.randrange(len(data) + 1)] * randomness.choice((1, 1, 2))
            sock.sendall(data)
            if step == 0 and good:
                incoming.write(sock.recv(65536))
