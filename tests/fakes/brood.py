"""A server whose children hide: in another group, in another session, as an orphan. ``brood.py TAG [leader-goes]``.

The tag stands in each command line, so that a test finds them all without the code under test.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

_SLEEP = (
    "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(3600)"
)
_ORPHAN = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[2], sys.argv[1], 'orphan'], start_new_session=True)"


def main() -> None:
    tag = sys.argv[1]
    plain = subprocess.Popen([sys.executable, "-c", _SLEEP, tag, "plain"], stdout=subprocess.PIPE)
    group = subprocess.Popen([sys.executable, "-c", _SLEEP, tag, "group"], stdout=subprocess.PIPE, process_group=0)
    session = subprocess.Popen(
        # An emptied environment: only its parent tells whose it is.
        [sys.executable, "-c", _SLEEP, tag, "session"],
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={},
    )
    subprocess.run([sys.executable, "-c", _ORPHAN, tag, _SLEEP], check=True)
    for child in (plain, group, session):
        assert child.stdout is not None
        child.stdout.readline()
    print(f"leader of {tag} is {os.getpid()}", flush=True)
    if "leader-goes" in sys.argv:
        return
    time.sleep(3600)


if __name__ == "__main__":
    main()
