"""Ports for programs that must know theirs before they start."""

import contextlib
import random
import socket


def free_port():
    """A port below those that Linux and macOS give to clients. Other programs run meanwhile, and could be given any of those."""
    for port in random.sample(range(20_000, 32_000), 1_000):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no port of a thousand between 20000 and 32000 is free")
