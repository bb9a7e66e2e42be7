"""Real processes: servers that start slowly, die, hide their children, stall; and a launcher that is itself killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from moeprof.config.schema import Window
from moeprof.errors import CaptureError, ConfigError, NotReadyError, ServerDiedError, StalledError, WindowFailedError
from moeprof.profiler import family
from moeprof.profiler.backends.command import run_to_end
from moeprof.profiler.backends.vllm import VllmBackend
from moeprof.profiler.ports import choose_port
from moeprof.profiler.process import ServerProcess
from moeprof.profiler.signals import Terminated, termination_as_exception
from moeprof.profiler.watchdog import Watchdog

FAKES = Path(__file__).parents[1] / "fakes"
pytestmark = pytest.mark.skipif(not family.has_proc(), reason="needs /proc to see processes")


def fake(name: str, *words: str) -> list[str]:
    """Return the command of a fake server."""
    return [sys.executable, str(FAKES / f"{name}.py"), *words]


def start(folder: Path, *argv: str, stop_s: float = 10.0) -> ServerProcess:
    """Start a program with our environment and a log in a folder."""
    return ServerProcess.start(argv, env=dict(os.environ), log=folder / "server.log", stop_s=stop_s)


def tagged(tag: str) -> list[int]:
    """Return the living processes whose command line holds a word, found without the code under test."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if tag.encode() in words:  # a zombie has no command line
            found.append(int(folder.name))
    return sorted(found)


def lives(pid: int) -> bool:
    """Return whether a process is there and no zombie."""
    try:
        return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False


def until(holds: Callable[[], bool], limit_s: float = 30.0) -> bool:
    """Wait until something holds; return whether it does."""
    deadline = time.monotonic() + limit_s
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return holds()


def says(log: Path, words: str) -> Callable[[], bool]:
    """Return whether a log holds words, as a question."""
    return lambda: log.exists() and words in log.read_text()


def wait_and_raise(event: threading.Event, error: BaseException) -> None:
    """Stand for a main flow that ends badly once it is released."""
    assert event.wait(60)
    raise error


def crash(server: ServerProcess, event: threading.Event) -> None:
    """End a server behind its launcher's back, and wait until somebody notices."""
    os.kill(server.pid, signal.SIGSEGV)
    assert event.wait(60)


@pytest.fixture
def tag() -> Iterator[str]:
    """Yield a word for command lines, and kill at the end whoever still has it."""
    word = f"tag-{uuid.uuid4().hex}"
    yield word
    for pid in tagged(word):
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def port() -> int:
    return choose_port("127.0.0.1", 0)


def test_a_server_becomes_ready_and_goes(tmp_path: Path, port: int, tag: str) -> None:
    # GIVEN a server that answers 503 at first
    with start(tmp_path, *fake("slow_start", str(port), "0.5", tag)) as server:
        # WHEN it is awaited THEN it is ready, leads a session of its own, and logs into the file
        server.wait_ready(f"http://127.0.0.1:{port}/health", 60)
        assert (server.alive(), server.returncode()) == (True, None)
        assert os.getsid(server.pid) == os.getpgid(server.pid) == server.pid != os.getsid(0)
        assert [member.pid for member in server.members()] == tagged(tag) == [server.pid]
        assert server.tail(5) == ["loading weights"]
        guard = server.guard_pid
        assert lives(guard) and os.getsid(guard) == guard
    # AND afterwards it has ended at TERM, and its guard is gone too
    assert server.returncode() == -signal.SIGTERM
    assert server.stop() == family.Ending()
    assert (tagged(tag), lives(guard)) == ([], False)


def test_the_write_end_of_the_guards_pipe_is_ours_alone(tmp_path: Path, port: int) -> None:
    # GIVEN a server WHEN its open files are looked at THEN there is no pipe among them
    with start(tmp_path, *fake("slow_start", str(port), "0")) as server:
        server.wait_ready(f"http://127.0.0.1:{port}/", 60)
        links = [str(item.readlink()) for item in Path(f"/proc/{server.pid}/fd").iterdir()]
        assert [link for link in links if link.startswith("pipe:")] == []


@pytest.mark.parametrize(("words", "seen"), [((), "answered 503"), (("mute",), "did not answer")], ids=["503", "mute"])
def test_a_server_that_never_becomes_ready(tmp_path: Path, port: int, words: tuple[str, ...], seen: str) -> None:
    # GIVEN a server that lives and is not ready
    with start(tmp_path, *fake("slow_start", str(port), "3600", *words)) as server:
        assert until(says(server.log, "loading"))
        # WHEN its limit runs out THEN the error says what was seen, and shows the log
        with pytest.raises(NotReadyError) as caught:
            server.wait_ready(f"http://127.0.0.1:{port}/health", 1)
    url = f"http://127.0.0.1:{port}/health"
    assert caught.value.message == f"the server was not ready within 1 s: {url} {seen} at the end"
    assert (caught.value.exit_code, caught.value.path) == (3, str(server.log))
    assert caught.value.__notes__ == ["loading weights"]


def test_a_port_that_nobody_serves_refuses(tmp_path: Path, port: int, tag: str) -> None:
    # GIVEN a process that is no server WHEN it is awaited THEN the refusal is told
    with (
        start(tmp_path, sys.executable, "-c", "import time; time.sleep(3600)", tag) as server,
        pytest.raises(NotReadyError, match=r"refused the connection at the end$"),
    ):
        server.wait_ready(f"http://127.0.0.1:{port}/health", 1)


def test_a_server_that_dies_loading_tells_why(tmp_path: Path, port: int) -> None:
    # GIVEN a server that ends in start-up, with a secret in its reason
    log = tmp_path / "server.log"
    with (
        ServerProcess.start(
            fake("dies_loading"),
            env=dict(os.environ),
            log=log,
            redact=lambda text: text.replace("hf_abcdefgh", "<redacted>"),
        ) as server,
        pytest.raises(ServerDiedError) as caught,
    ):
        # WHEN it is awaited
        server.wait_ready(f"http://127.0.0.1:{port}/health", 60)
    # THEN the worker's error is the sentence, and the telling lines come along, without the secret
    assert caught.value.message == (
        "the server ended with exit code 7 before it was ready: ValueError: no kernel for token <redacted>"
    )
    assert caught.value.__notes__ == [
        "\n".join(
            [
                "...",
                "(Worker_DP0 pid=7) ERROR Traceback (most recent call last):",
                "(Worker_DP0 pid=7) ERROR   File 'model.py', line 3, in load",
                "(Worker_DP0 pid=7) ERROR ValueError: no kernel for token <redacted>",
                "...",
                *(f"INFO shutting down part {number}" for number in range(16, 30)),
                "RuntimeError: Engine core initialization failed. See root cause above.",
            ]
        )
    ]


def test_a_server_that_was_killed_is_told_so(tmp_path: Path, port: int) -> None:
    # GIVEN a server that the kernel ends WHEN it is awaited THEN the signal is named, and memory hinted at
    with (
        start(tmp_path, *fake("dies_loading", "kill")) as server,
        pytest.raises(ServerDiedError, match=r"^the server was ended by SIGKILL before it was ready: ") as caught,
    ):
        server.wait_ready(f"http://127.0.0.1:{port}/health", 60)
    assert "memory" in str(caught.value.hint)


def test_a_server_that_ignores_term_is_killed(tmp_path: Path, port: int, tag: str) -> None:
    # GIVEN a server that ignores TERM
    with start(tmp_path, *fake("slow_start", str(port), "0", "stubborn", tag)) as server:
        server.wait_ready(f"http://127.0.0.1:{port}/", 60)
        # WHEN it is stopped THEN it is killed, and named
        ending = server.stop(0.3)
    assert ([member.pid for member in ending.killed], ending.left) == ([server.pid], ())
    assert (server.returncode(), tagged(tag)) == (-signal.SIGKILL, [])


@pytest.mark.parametrize("words", [(), ("leader-goes",)], ids=["leader-stays", "leader-goes"])
def test_children_that_hide_are_found_and_ended(tmp_path: Path, tag: str, words: tuple[str, ...]) -> None:
    # GIVEN a server with children in another group, another session, and an orphan in its own
    with start(tmp_path, *fake("brood", tag, *words)) as server:
        assert until(says(server.log, "leader of"))
        assert until(says(server.log, "up\n"))  # the orphan, who ignores TERM from here on
        assert until(lambda: len(tagged(tag)) == (4 if words else 5))
        if words:
            assert until(lambda: not server.alive())
        before = tagged(tag)
        # WHEN it is stopped
        ending = server.stop(0.3)
    # THEN nobody is left; who ignored TERM was killed. With its parent gone and its environment emptied, one cannot be known for ours
    unknown = {"session"} if words else set()
    left = {pid for pid in before if lives(pid)}
    names = {Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[-2].decode() for pid in left}
    assert names == unknown
    assert ending.left == ()
    assert {member.pid for member in ending.killed} == set(before) - left - {server.pid}


def test_stop_is_safe_to_call_from_two_threads(tmp_path: Path, port: int, tag: str) -> None:
    # GIVEN a server that must be killed WHEN two threads stop it THEN both learn the same
    server = start(tmp_path, *fake("slow_start", str(port), "0", "stubborn", tag), stop_s=0.3)
    server.wait_ready(f"http://127.0.0.1:{port}/", 60)
    endings: list[family.Ending] = []
    threads = [threading.Thread(target=lambda: endings.append(server.stop())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [len(ending.killed) for ending in endings] == [1, 1]
    assert tagged(tag) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_exception_ends_the_server(tmp_path: Path, tag: str, error: type[BaseException]) -> None:
    # GIVEN a brood WHEN the block is left by an exception THEN nobody is left, and the exception goes on
    server = start(tmp_path, *fake("brood", tag), stop_s=0.3)
    assert until(says(server.log, "leader of"))
    with pytest.raises(error), server:
        raise error
    assert (tagged(tag), lives(server.guard_pid)) == ([], False)


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # it may hit while a file is being opened
def test_an_impatient_interruption_kills_at_once(tmp_path: Path, port: int, tag: str) -> None:
    # GIVEN a stubborn server with a long time to stop
    server = start(tmp_path, *fake("slow_start", str(port), "0", "stubborn", tag), stop_s=3600)
    server.wait_ready(f"http://127.0.0.1:{port}/", 60)
    # WHEN the wait for its end is interrupted
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        server.stop()
    timer.join()
    # THEN it was killed, without its hour
    assert (server.returncode(), tagged(tag), lives(server.guard_pid)) == (-signal.SIGKILL, [], False)


@pytest.mark.parametrize(
    ("argv", "cwd", "message"),
    [
        (("no-such-server",), None, "the command no-such-server was not found on PATH"),
        (("./no/such",), None, "the command ./no/such cannot be run: no such file or directory"),
        (("{tmp}/text",), None, "the command {tmp}/text cannot be run: permission denied"),
        ((sys.executable,), "{tmp}/none", "the server's working directory does not exist"),
    ],
)
def test_a_command_that_cannot_be_run(tmp_path: Path, argv: tuple[str, ...], cwd: str | None, message: str) -> None:
    # GIVEN a wrong command
    (tmp_path / "text").write_text("no program")
    words = [word.format(tmp=tmp_path) for word in argv]
    folder = Path(cwd.format(tmp=tmp_path)) if cwd else None
    # WHEN it is started THEN one sentence says what is wrong, as an error of the configuration
    with pytest.raises(ConfigError) as caught:
        ServerProcess.start(words, env=dict(os.environ), log=tmp_path / "server.log", cwd=folder)
    assert (caught.value.message, caught.value.exit_code) == (message.format(tmp=tmp_path), 2)


def test_a_log_that_cannot_be_written_is_no_fault_of_the_command(tmp_path: Path) -> None:
    # GIVEN a folder in the place of the log WHEN a server is started THEN the log is named
    (tmp_path / "server.log").mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        start(tmp_path, sys.executable)
    assert caught.value.filename == str(tmp_path / "server.log")


def test_a_command_is_awaited_to_its_end(tmp_path: Path, tag: str) -> None:
    # GIVEN programs that end well, end badly, and do not end
    with start(tmp_path, sys.executable, "-c", "") as good:
        run_to_end(good, 60)
    with (
        start(tmp_path, sys.executable, "-c", "raise ValueError('no GPU')") as bad,
        pytest.raises(
            ServerDiedError, match=r"^the server ended with exit code 1 instead of finishing: ValueError: no GPU\n"
        ),
    ):
        run_to_end(bad, 60)
    with (
        start(tmp_path, sys.executable, "-c", "import time; time.sleep(3600)", tag) as endless,
        pytest.raises(CaptureError, match=r"^the command did not end within 0\.2 s$"),
    ):
        run_to_end(endless, 0.2)
    # THEN nobody is left
    assert (good.returncode(), tagged(tag)) == (0, [])


@pytest.fixture
def driver(tmp_path: Path, tag: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Yield a small launcher with a brood, in a session of its own as from a terminal, and the id of its guard."""
    (tmp_path / "run" / "traces").mkdir(parents=True)
    (tmp_path / "run" / "traces" / "half").write_text("half-written")
    words = fake("driver", tag, str(tmp_path / "server.log"), str(tmp_path / "run"))
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": source()}, start_new_session=True
    )
    assert process.stdout is not None
    try:
        guard = int(process.stdout.readline())
        assert until(says(tmp_path / "server.log", "leader of"))
        assert until(lambda: len(tagged(tag)) == 6)  # the driver itself carries the tag
        yield process, guard
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


def source() -> str:
    """Return the folder that holds the package under test."""
    return str(Path(family.__file__).parents[2])


def test_a_sigkill_of_the_launcher_leaves_nothing(
    driver: tuple[subprocess.Popen[str], int], tmp_path: Path, tag: str
) -> None:
    # GIVEN a launcher with a server whose children hide and ignore TERM
    process, guard = driver
    # WHEN it is killed without a chance to clean up
    process.kill()
    process.wait()
    # THEN its guard ends them all, removes the temporary folder, and goes
    assert until(lambda: not tagged(tag))
    assert until(lambda: not lives(guard))
    assert (tmp_path / "run").exists() is False
    assert (tmp_path / "server.log").exists()


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=["ctrl-c", "term", "hangup"],
)
def test_a_launcher_that_is_asked_to_end_cleans_up_itself(
    driver: tuple[subprocess.Popen[str], int], tmp_path: Path, tag: str, number: signal.Signals, code: int
) -> None:
    # GIVEN a launcher in the foreground of a terminal
    process, guard = driver
    # WHEN its group gets a signal
    os.killpg(process.pid, number)
    # THEN it ends as a shell expects, nobody is left, and the temporary folder is left to its owner
    assert process.wait(60) == code
    assert (tagged(tag), lives(guard)) == ([], False)
    assert (tmp_path / "run" / "traces" / "half").exists()


@pytest.mark.parametrize("delay_s", [0.0, 0.02, 0.05, 0.1, 0.2])
def test_a_launcher_killed_while_it_launches_leaves_nothing(tmp_path: Path, tag: str, delay_s: float) -> None:
    # GIVEN a launcher that is just starting
    words = fake("driver", tag, str(tmp_path / "server.log"), str(tmp_path / "run"))
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": source()})
    assert until(lambda: (tmp_path / "server.log").exists())
    time.sleep(delay_s)
    # WHEN it is killed at some moment around the birth of the server
    process.kill()
    process.wait()
    # THEN nobody is left, now and after what may still have been starting
    time.sleep(1.0)
    assert until(lambda: not tagged(tag))
    assert until(lambda: not tagged(str(tmp_path / "run")))  # the guard's command line holds it


def test_the_second_term_does_not_disturb_the_clean_up() -> None:
    # GIVEN the handler WHEN two signals come THEN the first is an exception, the second is not, and handlers are put back
    before = signal.getsignal(signal.SIGTERM)
    steps: list[str] = []

    def work() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
            steps.append("went on")
        finally:
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGHUP)
            steps.append("cleaned up")

    with pytest.raises(Terminated) as caught, termination_as_exception():
        work()
    assert (steps, caught.value.number, caught.value.exit_code) == (["cleaned up"], signal.SIGTERM, 143)
    assert signal.getsignal(signal.SIGTERM) is before


def test_an_ignored_hangup_stays_ignored() -> None:
    # GIVEN a program started with nohup WHEN the terminal goes THEN nothing happens
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with termination_as_exception():
            signal.raise_signal(signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("looks", "state"),
    [("5", "3 requests running, 0 waiting, 50 tokens so far"), ("-5", "it lives but does not answer")],
    ids=["no-token", "no-answer"],
)
def test_a_stall_is_found_told_and_ended(tmp_path: Path, port: int, tag: str, looks: str, state: str) -> None:
    # GIVEN a server that generates for five looks and then no more, and a main flow that waits for it
    backend = VllmBackend()
    address = f"http://127.0.0.1:{port}"
    evidence = tmp_path / "stall.txt"
    released = threading.Event()
    told: list[CaptureError] = []

    def trouble(error: CaptureError) -> None:
        told.append(error)
        released.set()

    with start(tmp_path, *fake("stalling", str(port), looks, tag)) as server:
        server.wait_ready(f"{address}/health", 60)
        # WHEN the watchdog watches
        with (
            pytest.raises(StalledError) as caught,
            Watchdog(
                server,
                lambda: backend.progress(address, 0.5),
                stall_s=1.5,
                on_trouble=trouble,
                evidence=evidence,
                period_s=0.05,
            ),
        ):
            wait_and_raise(released, ConnectionError("the client's own error, a consequence"))
    # THEN the main flow is released and gets the stall, not its consequence, with evidence at hand
    assert told == [caught.value]
    assert caught.value.message == f"the server made no progress for 1.5 s: {state}"
    assert (caught.value.exit_code, caught.value.path) == (3, str(evidence))
    text = evidence.read_text()
    assert text.startswith(caught.value.message)
    assert "generated_tokens=50" in text
    assert f"== process {server.pid} " in text
    assert "\n== end of the log\nINFO serving\n" in text
    assert tagged(tag) == []


def test_a_server_that_dies_under_watch_died_and_did_not_stall(tmp_path: Path, port: int) -> None:
    # GIVEN a watched server
    address = f"http://127.0.0.1:{port}"
    released = threading.Event()
    with start(tmp_path, *fake("stalling", str(port), "5")) as server:
        server.wait_ready(f"{address}/health", 60)
        with (
            pytest.raises(ServerDiedError, match=r"^the server was ended by SIGSEGV while it was measured\n"),
            Watchdog(
                server,
                lambda: VllmBackend().progress(address, 0.5),
                stall_s=600,
                on_trouble=lambda error: released.set(),
                period_s=0.05,
            ),
        ):
            # WHEN it crashes THEN its death is told at once
            crash(server, released)


def test_ctrl_c_under_watch_stays_ctrl_c(tmp_path: Path, port: int) -> None:
    # GIVEN a watched server that has died WHEN the user interrupts THEN that goes first
    released = threading.Event()
    with (
        start(tmp_path, *fake("dies_loading")) as server,
        pytest.raises(KeyboardInterrupt),
        Watchdog(server, lambda: None, stall_s=600, on_trouble=lambda error: released.set(), period_s=0.05),
    ):
        wait_and_raise(released, KeyboardInterrupt())


def test_a_server_without_a_profiler_says_so(tmp_path: Path, port: int) -> None:
    # GIVEN a server that knows no POST, and then none at all
    address = f"http://127.0.0.1:{port}"
    with start(tmp_path, *fake("slow_start", str(port), "0")) as server:
        server.wait_ready(f"{address}/", 60)
        with pytest.raises(WindowFailedError, match=r"^the server answered 501 to /start_profile: "):
            VllmBackend().start_profile(address, Window())
    with pytest.raises(WindowFailedError, match=r"^the server refused the connection to /stop_profile$"):
        VllmBackend().stop_profile(address, Window())
    assert VllmBackend().progress(address, 1) is None
