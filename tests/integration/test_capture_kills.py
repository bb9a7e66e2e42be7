"""Blocks that are killed at any moment: nothing is left running, nothing half-written, and the next block is good."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from moeprof.profiler import family
from tests.fakes.blocks import Blocks, until

pytestmark = pytest.mark.skipif(not family.has_proc(), reason="needs /proc to see processes")
SHORT = (("concurrency = [2, 4]", "concurrency = [2]"), ("timed = 2", "timed = 1"), ("stop_s = 5", "stop_s = 2"))
FEW, MANY = 3, 20
POINTS = [
    pytest.param(FEW, id="few"),
    pytest.param(MANY, id="many", marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
]


@pytest.fixture
def blocks(tmp_path: Path) -> Iterator[Blocks]:
    made = Blocks(tmp_path)
    made.configure(*SHORT)
    yield made
    made.kill_all()


def begin(blocks: Blocks) -> subprocess.Popen[str]:
    """Start a block; return when the store is locked, from where on a signal must be met with grace."""
    process = blocks.start("capture", "--arm", "base")
    assert until(lambda: blocks.locked() or process.poll() is not None)
    return process


def length_s(blocks: Blocks) -> float:
    """Return how long a good block takes, from its lock to its end."""
    process = begin(blocks)
    began = time.monotonic()
    assert process.wait(100) == 0
    return time.monotonic() - began


def points(name: str, count: int, length: float) -> list[float]:
    """Return moments of a block, one in each of equal parts of it, in seconds, always at the same places."""
    source = random.Random(name)
    return [length * (part + source.random()) / count for part in range(count)]


def complete(blocks: Blocks) -> list[str]:
    """Return the stored runs."""
    return [name for name in blocks.runs() if "/." not in name]


def unfinished(blocks: Blocks) -> list[str]:
    """Return the temporary run folders."""
    return [name for name in blocks.runs() if "/." in name]


def assert_good_again(blocks: Blocks) -> None:
    """Capture a block, which sweeps first, and hold what must be true then."""
    before = len(complete(blocks))
    assert blocks.run("capture", "--arm", "base") == 0, blocks.stderr
    assert (len(complete(blocks)), unfinished(blocks), blocks.alive()) == (before + 1, [], {})


@pytest.mark.parametrize("count", POINTS)
def test_moeprof_is_killed(blocks: Blocks, count: int) -> None:
    # GIVEN a block WHEN moeprof is killed at some moment of it
    for number, delay in enumerate(points("kill", count, length_s(blocks))):
        process = begin(blocks)
        time.sleep(delay)
        process.kill()
        process.wait()
        said = blocks.stderr
        # THEN soon no process is left
        assert until(lambda: blocks.alive() == {}), (delay, blocks.alive())
        # AND while a server ran, its guard removes the folder too
        if "ready after" in said and "stopping the server" not in said:
            assert until(lambda: unfinished(blocks) == []), delay
        if number % 5 == count % 5 - 1:
            assert_good_again(blocks)
    # AND afterwards a block is good, and no folder is left
    assert_good_again(blocks)


@pytest.mark.timeout(900)
@pytest.mark.slow  # a signal in the first or last instant of the interpreter itself ends it before any code of ours can answer
@pytest.mark.parametrize(
    ("number", "code", "count"), [(signal.SIGTERM, 143, MANY), (signal.SIGINT, 130, MANY), (signal.SIGHUP, 129, FEW)]
)
def test_moeprof_is_asked_to_end(blocks: Blocks, number: signal.Signals, code: int, count: int) -> None:
    # GIVEN a block WHEN moeprof gets a signal at some moment of it
    for delay in points(number.name, count, length_s(blocks)):
        before = complete(blocks)
        process = begin(blocks)
        time.sleep(delay)
        process.send_signal(number)
        ended = process.wait(60)
        # THEN nothing is left when it has ended, and it ended as asked or had done its work
        done = complete(blocks) != before
        assert (blocks.alive(), unfinished(blocks)) == ({}, []), delay
        # Python ends itself by SIGINT where the interrupt came within exec() of a text, though we had caught it;
        # a shell shows 130 for that as well.
        met = (code, -number) if number == signal.SIGINT else (code,)
        assert ended in ((0, code, -number) if done else met), (delay, ended, blocks.stderr)
        assert "Traceback" not in blocks.stderr, blocks.stderr
        if not done:
            last = "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
            told = blocks.stderr.splitlines()[-1]
            # A block that had begun leaves its log for a person, and says where; nothing else is said before that.
            left = re.fullmatch(
                rf"moeprof: {last}(?:; nothing was stored(?:; what the block left lies in (.+))?)?", told
            )
            assert left is not None, told
            if "ready after" in blocks.stderr:
                assert left[1] is not None and (Path(left[1]) / "server.log").stat().st_size > 0
    assert_good_again(blocks)


@pytest.mark.parametrize("count", POINTS)
def test_the_server_is_killed(blocks: Blocks, count: int) -> None:
    # GIVEN a block WHEN its server is killed at some moment of it
    struck = 0
    # The first one at once: on a machine that was busy when the block's length was taken, all others may come too late.
    for delay in (0.0, *points("server", count, length_s(blocks))):
        before = complete(blocks)
        process = begin(blocks)
        assert until(lambda: blocks.server() is not None or process.poll() is not None)  # noqa: B023 - called at once
        time.sleep(delay)
        server = blocks.server()
        if server is not None:
            os.kill(server, signal.SIGKILL)
        code = process.wait(100)
        # THEN the block fails with the reason, unless the server was not needed any more
        assert (blocks.alive(), unfinished(blocks)) == ({}, []), delay
        assert code in (0, 3), blocks.stderr
        assert len(complete(blocks)) == len(before) + (code == 0)
        if code == 3:
            struck += 1
            assert re.match(
                r"moeprof: error\[server-died\]: the server was ended by SIGKILL (before it was ready|while it was measured)",
                blocks.error()[0],
            ), blocks.stderr
            assert (Path(next(iter(blocks.error()[2:3])).split()[3].rstrip(";")) / "server.log").exists()
    assert struck > 0
    assert_good_again(blocks)


#: A load client that takes its time and then tells what it was asked for.
CLIENT = """\
import json, sys, time
from pathlib import Path
told = dict(zip(sys.argv, sys.argv[1:]))
time.sleep(0.4)
prompts, given, asked = (int(told[name]) for name in ("--num-prompts", "--random-input-len", "--random-output-len"))
result = {"num_prompts": prompts, "completed": prompts, "failed": 0, "duration": 0.4, "output_throughput": 1.0}
result |= {"total_input_tokens": prompts * given, "total_output_tokens": prompts * asked}
Path(told["--result-dir"], told["--result-filename"]).write_text(json.dumps(result))
"""


@pytest.mark.parametrize("count", POINTS)
def test_the_client_is_killed(blocks: Blocks, count: int) -> None:
    # GIVEN a load client that is a process of its own, one for each pass
    program = blocks.folder / "bin" / "vllm-rs"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{CLIENT}")
    program.chmod(0o755)
    blocks.environment["PATH"] = f"{program.parent}:{blocks.environment['PATH']}"
    blocks.configure(*SHORT, ('client = "builtin"', 'client = "vllm-rs"'))

    def client() -> int | None:
        return next((pid for pid, words in blocks.alive().items() if f"{program} bench" in words), None)

    # WHEN one of them is killed at some moment, in the warm-up or in the timed pass
    for number, delay in enumerate(points("client", count, 0.3)):
        before = complete(blocks)
        process = begin(blocks)
        assert until(lambda: client() is not None or process.poll() is not None)  # noqa: B023 - called at once
        if number % 2:
            first = client()
            assert until(lambda: client() not in (None, first) or process.poll() is not None)  # noqa: B023
        time.sleep(delay)
        struck = client()
        if struck is not None:
            os.kill(struck, signal.SIGKILL)
        code = process.wait(100)
        # THEN the block fails for that reason, and nothing is left of it; one that was done before goes on
        assert (blocks.alive(), unfinished(blocks)) == ({}, []), delay
        assert code in (0, 3), blocks.stderr
        assert len(complete(blocks)) == len(before) + (code == 0)
        if code == 3:
            assert blocks.error()[0] == "moeprof: error[pass-failed]: vllm-rs bench serve ended with code -9"
    assert list((blocks.store / "failed").iterdir())
    assert_good_again(blocks)


def test_a_load_client_dies_with_its_moeprof(blocks: Blocks) -> None:
    # GIVEN a server's environment with vLLM's client, which takes for ever
    program = blocks.folder / "bin" / "vllm-rs"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport time\nprint('api_key=sk-0123456789abcdef', flush=True)\ntime.sleep(600)\n"
    )
    program.chmod(0o755)
    blocks.environment["PATH"] = f"{program.parent}:{blocks.environment['PATH']}"
    blocks.configure(*SHORT, ('client = "builtin"', 'client = "vllm-rs"'))
    # WHEN moeprof is killed while the client runs
    process = begin(blocks)
    assert until(lambda: any("vllm-rs" in words for words in blocks.alive().values()))
    process.kill()
    process.wait()
    # THEN the client, a session of its own, goes with the server
    assert until(lambda: blocks.alive() == {}), blocks.alive()
    assert until(lambda: unfinished(blocks) == [])
    # AND when it fails by itself, what it printed is shown without secrets
    program.write_text(program.read_text().replace("time.sleep(600)", "raise SystemExit(1)"))
    assert blocks.run("capture", "--arm", "base") == 3
    assert blocks.error()[0] == (
        "moeprof: error[pass-failed]: vllm-rs bench serve ended with code 1: api_key=<redacted>"
    )
    # AND what it printed is kept without them
    assert [path.read_text() for path in blocks.failed().glob("bench/*.txt")] == ["api_key=<redacted>\n"]


def test_a_load_client_dies_with_its_server(blocks: Blocks) -> None:
    # GIVEN a client that takes for ever WHEN the server is killed
    program = blocks.folder / "bin" / "vllm-rs"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(600)\n")
    program.chmod(0o755)
    blocks.environment["PATH"] = f"{program.parent}:{blocks.environment['PATH']}"
    blocks.configure(*SHORT, ('client = "builtin"', 'client = "vllm-rs"'))
    process = begin(blocks)
    assert until(lambda: any("vllm-rs" in words for words in blocks.alive().values()))
    server = blocks.server()
    assert server is not None
    os.kill(server, signal.SIGKILL)
    # THEN the block ends with that reason, and the client is gone
    assert process.wait(60) == 3
    assert blocks.error()[0] == ("moeprof: error[server-died]: the server was ended by SIGKILL while it was measured")
    assert blocks.alive() == {}
