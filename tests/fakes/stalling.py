"""A server that generates for a while and then no more, with requests still running: ``stalling.py PORT LOOKS``.

It counts looks at ``/metrics``, not seconds: after LOOKS of them the tokens stand still. A negative LOOKS: it stops answering instead.
"""

from __future__ import annotations

import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_TEXT = """# HELP vllm:num_requests_running Requests.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0",model_name="t"}} 2.0
vllm:num_requests_running{{engine="1",model_name="t"}} 1.0
vllm:num_requests_waiting{{engine="0",model_name="t"}} 0.0
vllm:generation_tokens_total{{engine="0",model_name="t"}} {tokens}
"""


def main() -> None:
    port, limit = int(sys.argv[1]), int(sys.argv[2])
    looks = 0

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            nonlocal looks
            if self.path == "/metrics":
                looks += 1
                if limit < 0 and looks > -limit:
                    time.sleep(3600)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(_TEXT.format(tokens=10.0 * min(looks, abs(limit))).encode())

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    print("INFO serving", flush=True)
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main()
