"""Requests to the server."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from moeprof.profiler import fetch as module
from moeprof.profiler.fetch import Answer, fetch


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/broken":
            self.wfile.write(b"no HTTP at all\r\n\r\n")
            return
        self.send_response(500 if self.path == "/bad" else 200)
        self.end_headers()
        self.wfile.write(b"sorry" if self.path == "/bad" else b"fine")

    def do_POST(self) -> None:
        length = self.headers["Content-Length"]
        self.send_response(204)
        self.end_headers()
        assert length == "0"

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_answers(address: str) -> None:
    # GIVEN a server WHEN it is asked THEN status, text and a phrase come back, for a refusal as well
    assert fetch(f"{address}/", 60) == Answer(200, "fine", "answered 200")
    assert fetch(f"{address}/bad", 60) == Answer(500, "sorry", "answered 500")
    assert fetch(f"{address}/", 60, post=b"") == Answer(204, "", "answered 204")
    assert [fetch(f"{address}{path}", 60).ok for path in ("/", "/bad")] == [True, False]


def test_no_answers(address: str) -> None:
    # GIVEN what is no HTTP, a port that nobody serves, and a server that is silent
    broken = fetch(f"{address}/broken", 60)
    assert (broken.status, broken.ok, broken.seen) == (None, False, "broke the connection (BadStatusLine)")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        # WHEN they are asked THEN each is told apart
        assert fetch(url, 0.2) == Answer(None, "", "did not answer within 0.2 s", late=True)
    assert fetch(url, 60) == Answer(None, "", "refused the connection")


def test_a_proxy_of_the_environment_is_not_asked(address: str) -> None:
    # GIVEN a proxy in the environment that nobody serves
    with socket.create_server(("127.0.0.1", 0)) as free:
        proxy = f"http://127.0.0.1:{free.getsockname()[1]}"
    code = f"from moeprof.profiler.fetch import fetch; import sys; sys.stdout.write(fetch('{address}/', 60).seen)"
    source = str(Path(module.__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": source, "http_proxy": proxy, "no_proxy": ""}
    # WHEN a program with it asks a loopback server THEN the answer is the server's
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "answered 200"
