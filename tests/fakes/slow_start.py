"""A server that answers 503 for a while, or never answers, or will not go: ``slow_start.py PORT READY_AFTER_S [stubborn] [mute]``."""

from __future__ import annotations

import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def main() -> None:
    port, ready_after_s, words = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
    began = time.monotonic()
    if "stubborn" in words:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if "mute" in words:
                time.sleep(3600)
            self.send_response(200 if time.monotonic() - began >= ready_after_s else 503)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    print("loading weights", flush=True)
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main()
