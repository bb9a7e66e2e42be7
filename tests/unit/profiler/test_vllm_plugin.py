"""Markers in a worker: order, nesting and closing of ranges, and that an unknown vLLM is left alone."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from importlib import import_module
from importlib.metadata import Distribution
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from moeprof.profiler.server_site import moeprof_markers
from moeprof.profiler.server_site.moeprof_markers import hooks, ranges
from moeprof.profiler.vllm_plugin import NAME, server_site
from tests.unit.profiler.fake_vllm import Recorder, Runner, Worker, v1, v2


def marked(worker: Worker) -> hooks.Step:
    """Attach to a worker and return its step."""
    step = hooks.Step(worker.recorder.ranges())
    hooks.attach(worker, step)
    return step


def test_one_step_of_v1() -> None:
    # GIVEN a worker with the V1 runner and three drafts
    recorder = Recorder()
    worker = v1(recorder)
    # WHEN it is marked and makes a step
    parts = hooks.attach(worker, hooks.Step(recorder.ranges()))
    worker.execute_model("batch")
    assert worker.sample_tokens(None) == "tokens"
    # THEN target and sample lie in the iteration, the drafts in sample, and each draft begins with its forward
    assert parts == ["V1 runner", "target", "sample", "drafts"]
    assert recorder.log == [
        "moeprof.iter#0",
        "  <annotation>",
        "  moeprof.target",
        "    <forward>",
        "  moeprof.sample",
        "    <sampling>",
        "    moeprof.draft#0",
        "      <prepare 0>",
        "      <draft 0>",
        "      <prepare 1>",
        "    moeprof.draft#1",
        "      <draft 1>",
        "      <prepare 2>",
        "    moeprof.draft#2",
        "      <draft 2>",
        "    <bookkeeping>",
    ]
    assert recorder.open == []


def test_a_proposer_without_forward_context_is_one_range() -> None:
    # GIVEN a proposer whose forwards cannot be told apart
    recorder = Recorder()
    worker = v1(recorder, context=False)
    # WHEN it drafts
    parts = hooks.attach(worker, hooks.Step(recorder.ranges()))
    worker.execute_model("batch")
    worker.sample_tokens(None)
    # THEN one range holds all drafts, and the log's line says so
    assert [line.strip() for line in recorder.log if "draft#" in line] == ["moeprof.draft#0"]
    assert parts[-1] == "drafts as one range: Proposer calls no set_forward_context"


@pytest.mark.parametrize(("graphs", "word"), [(True, "graph"), (False, "eager")])
def test_drafts_of_v2(graphs: bool, word: str) -> None:
    # GIVEN a V2 speculator that replays graphs (its managers are made later) or runs eagerly
    recorder = Recorder()
    worker = v2(recorder)
    parts = hooks.attach(worker, hooks.Step(recorder.ranges()))
    if graphs:
        worker.model_runner.speculator.init_cudagraph_manager()
    # WHEN it makes a step
    worker.execute_model("batch")
    worker.sample_tokens(None)
    # THEN each forward is a draft of its own
    assert recorder.log[5:-1] == [
        "    <sampling>",
        "    moeprof.draft#0",
        f"      <prefill {word}>",
        "    moeprof.draft#1",
        f"      <decode {word}>",
        "    moeprof.draft#2",
        f"      <decode {word}>",
    ]
    assert parts[1:] == ["target", "sample", "drafts"]


def test_a_worker_without_drafts() -> None:
    # GIVEN a runner that does not speculate
    recorder = Recorder()
    worker = Worker(recorder, Runner(recorder))
    # WHEN it is marked THEN the log's line names no drafts
    assert hooks.attach(worker, hooks.Step(recorder.ranges())) == ["V1 runner", "target", "sample"]


def test_a_dummy_batch_is_idle_and_its_drafts_are_marked() -> None:
    # GIVEN an idle data-parallel rank
    recorder = Recorder()
    worker = v1(recorder, drafts=2)
    marked(worker)
    # WHEN it runs a dummy batch
    worker.execute_dummy_batch()
    # THEN the iteration says idle, and its forward is target
    assert recorder.log == [
        "moeprof.iter#0[idle]",
        "  moeprof.target",
        "    <dummy forward>",
        "    moeprof.draft#0",
        "      <prepare 0>",
        "      <draft 0>",
        "      <prepare 1>",
        "    moeprof.draft#1",
        "      <draft 1>",
    ]
    assert recorder.open == []


@pytest.mark.parametrize("after", ["execute_model", "execute_dummy_batch"])
def test_a_step_without_sampling_ends_where_the_next_begins(after: str) -> None:
    # GIVEN a step that awaits sampling (a rank of a pipeline that samples nothing)
    recorder = Recorder()
    worker = v1(recorder)
    marked(worker)
    worker.execute_model("batch")
    assert recorder.open == ["moeprof.iter#0"]
    # WHEN another step follows
    recorder.log.clear()
    getattr(worker, after)(*(["batch"] if after == "execute_model" else []))
    # THEN its iteration is the next one, beside the first and not inside it
    assert recorder.log[0] == ("moeprof.iter#1" if after == "execute_model" else "moeprof.iter#1[idle]")


def test_a_result_ends_the_step_at_once() -> None:
    # GIVEN a forward that returns its result: vLLM does not ask for sampling then
    recorder = Recorder()
    worker = v1(recorder)
    marked(worker)
    worker.model_runner.result = "empty"
    # WHEN the step is made THEN no range stays open
    assert worker.execute_model("batch") == "empty"
    assert recorder.log == ["moeprof.iter#0", "  <annotation>", "  moeprof.target", "    <forward>"]
    assert recorder.open == []


def test_an_exception_closes_all_ranges() -> None:
    # GIVEN a forward that fails
    recorder = Recorder()
    worker = v1(recorder)
    step = marked(worker)
    worker.model_runner.fault = RuntimeError("out of memory")
    # WHEN the step is made THEN the same exception comes out, and nothing is open
    with pytest.raises(RuntimeError, match="out of memory"):
        worker.execute_model("batch")
    assert (recorder.open, step.ranges.open) == ([], [])


def test_an_exception_in_a_draft_closes_all_ranges() -> None:
    # GIVEN a drafter that fails in its second forward
    recorder = Recorder()
    worker = v1(recorder)
    original = recorder.did

    def fail(what: str) -> None:
        if what == "draft 1":
            raise RuntimeError("no memory")
        original(what)

    recorder.did = fail  # type: ignore[method-assign]
    step = marked(worker)
    worker.execute_model("batch")
    # WHEN tokens are sampled
    with pytest.raises(RuntimeError, match="no memory"):
        worker.sample_tokens(None)
    # THEN nothing is open, and the next step drafts from 0 again
    assert (recorder.open, step.ranges.open, step.draft) == ([], [], None)


def test_nothing_is_written_while_nobody_records_and_steps_are_counted() -> None:
    # GIVEN a profiler that starts with the third step and stops with the fifth, each time inside the profiler's own step
    recorder = Recorder()
    recorder.on = False
    worker = v1(recorder)
    step = marked(worker)

    def on_step() -> None:
        recorder.on = 2 <= step.number < 4

    worker.on_step = on_step
    # WHEN six steps are made
    for _ in range(6):
        worker.execute_model("batch")
        worker.sample_tokens(None)
    # THEN exactly the recorded steps have an iteration, under the numbers that they have for the engine
    assert [line for line in recorder.log if line.startswith("moeprof.iter")] == ["moeprof.iter#2", "moeprof.iter#3"]


def test_a_profiler_that_starts_before_sampling_marks_from_the_next_step() -> None:
    # GIVEN a step whose forward was not recorded
    recorder = Recorder()
    recorder.on = False
    worker = v1(recorder)
    marked(worker)
    worker.execute_model("batch")
    # WHEN recording starts before its sampling
    recorder.on = True
    worker.sample_tokens(None)
    # THEN no phase stands without an iteration
    assert [line for line in recorder.log if "moeprof" in line] == []


def test_attaching_twice_marks_once() -> None:
    # GIVEN a worker that was marked already
    recorder = Recorder()
    worker = v1(recorder)
    step = marked(worker)
    # WHEN it is marked again
    hooks.attach(worker, step)
    worker.execute_model("batch")
    # THEN each range is there once
    assert [line.strip() for line in recorder.log if "moeprof" in line] == ["moeprof.iter#0", "moeprof.target"]


def test_a_failing_writer_ends_marking_and_not_the_request(caplog: pytest.LogCaptureFixture) -> None:
    # GIVEN a profiler that refuses a range
    recorder = Recorder()
    worker = v1(recorder)

    class Broken(Recorder):
        def enter(self, name: str) -> str:
            if name == "moeprof.sample":
                raise OSError("no room")
            return super().enter(name)

    broken = Broken()
    hooks.attach(worker, hooks.Step(ranges.Ranges([broken], lambda: True)))
    # WHEN two steps are made
    with caplog.at_level(logging.WARNING, "vllm.moeprof"):
        for _ in range(2):
            worker.execute_model("batch")
            assert worker.sample_tokens(None) == "tokens"
    # THEN both have their tokens, what was open is closed, and one line says why marking ended
    assert broken.open == []
    assert caplog.messages == ["moeprof markers: not active any more: OSError: no room"]


def test_an_unknown_worker_is_left_alone() -> None:
    # GIVEN a worker of another vLLM, that samples inside execute_model
    recorder = Recorder()

    class Old:
        def __init__(self) -> None:
            self.model_runner = Runner(recorder)

        def execute_model(self) -> None: ...

    worker = Old()
    before = dict(vars(worker.model_runner))
    # WHEN it is to be marked THEN the reason names the class and the call, and nothing was changed
    with pytest.raises(hooks.Unsupported, match=r"Old: its Worker has no sample_tokens"):
        hooks.attach(worker, hooks.Step(recorder.ranges()))
    assert list(vars(worker)) == ["model_runner"]
    assert vars(worker.model_runner) == before


class Wrapper:
    """vLLM's ``WorkerWrapperBase``, as far as it matters."""

    def __init__(self, worker: Any) -> None:
        self.worker = worker

    def init_device(self) -> str:
        return "ready"


def install(monkeypatch: pytest.MonkeyPatch, wrapper: type | None, recorder: Recorder) -> None:
    """Put a fake vLLM in place and register the plugin."""
    module = ModuleType("vllm.v1.worker.worker_base")
    if wrapper is not None:
        module.__dict__["WorkerWrapperBase"] = wrapper
    for name in ("vllm", "vllm.v1", "vllm.v1.worker"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    step = hooks.Step(recorder.ranges())
    monkeypatch.setattr(hooks, "this_process", lambda: step)
    moeprof_markers.register()


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "vllm.moeprof")
    return caplog


def fresh() -> type[Wrapper]:
    return type("WorkerWrapperBase", (Wrapper,), {"init_device": Wrapper.init_device})


def test_registered_once_a_worker_is_marked_when_its_device_is_set_up(
    monkeypatch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture
) -> None:
    # GIVEN markers switched on, and a plugin that is registered twice, as vLLM may do
    monkeypatch.setenv("MOEPROF_MARKERS", "1")
    recorder, wrapper = Recorder(), fresh()
    install(monkeypatch, wrapper, recorder)
    moeprof_markers.register()
    # WHEN vLLM sets a worker up
    worker = v1(recorder)
    assert wrapper(worker).init_device() == "ready"
    worker.execute_model("batch")
    # THEN the log proves it in one line, and the worker is marked
    assert log.messages == ["moeprof markers: active (V1 runner, target, sample, drafts)"]
    assert recorder.log[0] == "moeprof.iter#0"


@pytest.mark.parametrize("value", [None, "0", "true"])
def test_off_unless_switched_on(
    value: str | None, monkeypatch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture
) -> None:
    # GIVEN another value than 1, or none
    monkeypatch.delenv("MOEPROF_MARKERS", raising=False)
    if value is not None:
        monkeypatch.setenv("MOEPROF_MARKERS", value)
    # WHEN the plugin is registered
    wrapper = fresh()
    before = wrapper.__dict__["init_device"]
    install(monkeypatch, wrapper, Recorder())
    # THEN nothing of vLLM changes and nothing is said
    assert wrapper.__dict__["init_device"] is before
    assert log.messages == []


@pytest.mark.parametrize(
    ("wrapper", "worker", "reason"),
    [
        (None, None, "AttributeError: module 'vllm.v1.worker.worker_base' has no attribute 'WorkerWrapperBase'"),
        (type("Renamed", (), {}), None, "tests.unit.profiler.test_vllm_plugin.Renamed has no init_device"),
        (fresh(), object(), "builtins.object: its Worker has no execute_model"),
    ],
    ids=["no-class", "no-call", "no-worker"],
)
def test_an_unknown_vllm_is_said_in_one_line(
    wrapper: type | None,
    worker: object,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    log: pytest.LogCaptureFixture,
) -> None:
    # GIVEN a vLLM with other names
    monkeypatch.setenv("MOEPROF_MARKERS", "1")
    # WHEN the plugin is registered, and a worker is set up
    install(monkeypatch, wrapper, Recorder())
    if worker is not None:
        assert wrapper is not None
        assert wrapper(worker).init_device() == "ready"
    # THEN the server goes on, and one line gives the reason
    assert log.messages == [f"moeprof markers: not active: {reason}"]


def test_the_folder_for_a_server_loads_by_entry_point_and_alone() -> None:
    # GIVEN a fresh interpreter with nothing but the plugin's folder on its path, and markers off
    code = (
        "import sys; from importlib.metadata import entry_points\n"
        f"[found] = entry_points(group='vllm.general_plugins', name={NAME!r})\n"
        "before = set(sys.modules); found.load()()\n"
        "print(sorted(name for name in set(sys.modules) - before if name.split('.')[0] not in sys.stdlib_module_names))"
    )
    environ = {**os.environ, "PYTHONPATH": str(server_site())}
    environ.pop("MOEPROF_MARKERS", None)
    # WHEN vLLM would load the plugin
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    # THEN it is found, and loads nothing but itself
    assert (done.stdout, done.stderr) == ("['moeprof_markers']\n", "")


def test_the_folder_for_a_server_holds_only_the_plugin() -> None:
    # GIVEN the folder for a server's PYTHONPATH THEN no other module can be imported from it
    names = {path.name for path in server_site().iterdir() if path.name != "__pycache__"}
    assert names == {"moeprof_markers", "moeprof_markers-1.0.dist-info"}
    [found] = [Distribution.at(path) for path in server_site().glob("*.dist-info")]
    assert [(entry.group, entry.name) for entry in found.entry_points] == [("vllm.general_plugins", NAME)]


def test_the_entry_point_of_the_package_is_the_same_plugin() -> None:
    # GIVEN the project's metadata
    import tomllib

    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    # WHEN its entry point is resolved THEN it is a function of the module that runs in the server
    module, _, name = project["entry-points"]["vllm.general_plugins"][NAME].partition(":")
    assert callable(getattr(import_module(module), name))


class Torch:
    """The three things of torch that decide who records."""

    def __init__(self, *, cuda: bool) -> None:
        self.recording = self.capturing = False
        self.autograd = SimpleNamespace(_profiler_enabled=lambda: self.recording)
        self.profiler = SimpleNamespace(record_function=lambda name: None)
        self.cuda = SimpleNamespace(
            is_available=lambda: cuda,
            is_current_stream_capturing=lambda: self.capturing,
            nvtx=SimpleNamespace(range_push=lambda name: None, range_pop=lambda: None),
        )

    def ranges(self, monkeypatch: pytest.MonkeyPatch) -> ranges.Ranges:
        """Return the ranges that a process with this torch makes, and without the nvtx module."""
        monkeypatch.setitem(sys.modules, "torch", self)
        monkeypatch.setitem(sys.modules, "nvtx", None)
        return ranges.of_this_process.__wrapped__()


def test_an_iteration_is_marked_only_while_torch_records_and_no_graph_is_captured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # GIVEN a process with a GPU and no nsys
    monkeypatch.delenv(ranges.NSYS_SESSION, raising=False)
    monkeypatch.delenv(ranges.NVTX_FLAG, raising=False)
    torch = Torch(cuda=True)
    made = torch.ranges(monkeypatch)
    seen = []
    # WHEN the profiler is off, on, and on while a graph is captured
    for torch.recording, torch.capturing in ((False, False), (True, False), (True, True)):
        seen.append(made.recording())
    # THEN only the second is marked
    assert seen == [False, True, False]


@pytest.mark.parametrize("flag", [ranges.NSYS_SESSION, ranges.NVTX_FLAG])
@pytest.mark.parametrize("cuda", [True, False])
def test_under_nsys_all_steps_are_marked(flag: str, cuda: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a process that nsys started, or that was told to write NVTX, and no torch profiler
    monkeypatch.setenv(flag, "1")
    # WHEN it asks whether to mark THEN it does, where there is NVTX at all
    assert Torch(cuda=cuda).ranges(monkeypatch).recording() is cuda


def test_nvtx_ranges_lie_in_our_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN the nvtx module
    calls: list[tuple[object, ...]] = []
    nvtx = ModuleType("nvtx")
    nvtx.__dict__["push_range"] = lambda name, domain: calls.append((name, domain))
    nvtx.__dict__["pop_range"] = lambda domain: calls.append((domain,))
    monkeypatch.setitem(sys.modules, "nvtx", nvtx)
    # WHEN a range is written
    writer = ranges.nvtx_writer(Torch(cuda=False))
    assert writer is not None
    writer.enter("moeprof.target")
    writer.leave(None)
    # THEN it begins and ends in domain moeprof
    assert calls == [("moeprof.target", "moeprof"), ("moeprof",)]


def test_torch_records_the_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a real torch
    torch = pytest.importorskip("torch", reason="no torch here: the slow tests use the environment with vLLM")
    monkeypatch.delenv(ranges.NVTX_FLAG, raising=False)
    recorder = Recorder()
    worker = v1(recorder)
    hooks.attach(worker, hooks.Step(ranges.of_this_process.__wrapped__()))
    # WHEN three steps are made, the second of them under the profiler
    worker.execute_model("batch")
    worker.sample_tokens(None)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        worker.execute_model("batch")
        worker.sample_tokens(None)
    worker.execute_model("batch")
    worker.sample_tokens(None)
    # THEN the profile holds the ranges of that step, nested
    events = {event.name: event.cpu_parent.name if event.cpu_parent else None for event in profile.events()}
    assert {name: parent for name, parent in events.items() if name.startswith("moeprof.")} == {
        "moeprof.iter#1": None,
        "moeprof.target": "moeprof.iter#1",
        "moeprof.sample": "moeprof.iter#1",
        "moeprof.draft#0": "moeprof.sample",
        "moeprof.draft#1": "moeprof.sample",
        "moeprof.draft#2": "moeprof.sample",
    }
