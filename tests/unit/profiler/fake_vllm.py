"""Workers shaped like vLLM's, and a recorder in the place of the profiler."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from moeprof.profiler.server_site.moeprof_markers.ranges import Ranges


class Recorder:
    """Write down what begins and ends, with what the fake calls do in between.

    Attributes:
        on: Whether "the profiler" records.
    """

    def __init__(self) -> None:
        self.on = True
        self.log: list[str] = []
        self.open: list[str] = []

    def enter(self, name: str) -> str:
        self.log.append(f"{'  ' * len(self.open)}{name}")
        self.open.append(name)
        return name

    def leave(self, handle: str) -> None:
        assert self.open[-1] == handle  # ranges nest: the innermost ends first
        self.open.pop()

    def ranges(self) -> Ranges:
        return Ranges([self], lambda: self.on)

    def did(self, what: str) -> None:
        self.log.append(f"{'  ' * len(self.open)}<{what}>")


class Context:
    """Something to enter, as vLLM's annotation is."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def __enter__(self) -> None:
        self.recorder.did("annotation")

    def __exit__(self, *error: object) -> None:
        pass


class Worker:
    """The calls of ``vllm.v1.worker.gpu_worker.Worker`` that make a step."""

    def __init__(self, recorder: Recorder, runner: Any) -> None:
        self.recorder = recorder
        self.model_runner = runner
        self.on_step: Callable[[], None] = lambda: None

    def annotate_profile(self, scheduler_output: object) -> Context:
        self.on_step()
        return Context(self.recorder)

    def execute_model(self, scheduler_output: object) -> object:
        with self.annotate_profile(scheduler_output):
            return self.model_runner.execute_model(scheduler_output)

    def sample_tokens(self, grammar_output: object) -> object:
        return self.model_runner.sample_tokens(grammar_output)

    def execute_dummy_batch(self) -> None:
        self.model_runner._dummy_run(4)


class Runner:
    """A model runner; `result` is what its forward returns: None when sampling is to follow."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.result: object = None
        self.fault: Exception | None = None

    def execute_model(self, scheduler_output: object) -> object:
        self.recorder.did("forward")
        if self.fault is not None:
            raise self.fault
        return self.result

    def sample_tokens(self, grammar_output: object) -> str:
        self.recorder.did("sampling")
        self.draft()
        self.recorder.did("bookkeeping")
        return "tokens"

    def _dummy_run(self, tokens: int) -> None:
        self.recorder.did("dummy forward")
        self.dummy_draft()

    def draft(self) -> None: ...

    def dummy_draft(self) -> None: ...


def v1(recorder: Recorder, *, drafts: int = 3, context: bool = True) -> Worker:
    """Return a worker with the V1 runner and a proposer in a module of its own, as vLLM has it."""
    module = ModuleType("fake_llm_base_proposer")

    @contextmanager
    def set_forward_context(number: int) -> Iterator[None]:
        yield

    if context:
        module.__dict__["set_forward_context"] = set_forward_context

    class Proposer:
        def propose(self) -> None:
            self.run()

        def dummy_run(self) -> None:
            self.run()

        def run(self) -> None:
            for number in range(drafts):
                recorder.did(f"prepare {number}")
                if context:
                    with module.set_forward_context(number):
                        recorder.did(f"draft {number}")

    class RunnerV1(Runner):
        def __init__(self) -> None:
            super().__init__(recorder)
            self.drafter = Proposer()

        def draft(self) -> None:
            self.propose_draft_token_ids()

        def propose_draft_token_ids(self) -> None:
            self.drafter.propose()

        def dummy_draft(self) -> None:
            self.drafter.dummy_run()

    Proposer.__module__, Proposer.__qualname__ = module.__name__, Proposer.__name__
    sys.modules[module.__name__] = module
    return Worker(recorder, RunnerV1())


class Graphs:
    """A manager of captured graphs."""

    def __init__(self, recorder: Recorder, what: str) -> None:
        self.recorder, self.what = recorder, what

    def run_fullgraph(self) -> None:
        self.recorder.did(f"{self.what} graph")


def v2(recorder: Recorder, *, drafts: int = 3) -> Worker:
    """Return a worker with the V2 runner: an autoregressive speculator that replays graphs or runs eagerly."""

    class Speculator:
        prefill_cudagraph_manager: Graphs | None = None
        decode_cudagraph_manager: Graphs | None = None

        def init_cudagraph_manager(self) -> None:  # vLLM calls it after the worker was set up
            self.prefill_cudagraph_manager = Graphs(recorder, "prefill")
            self.decode_cudagraph_manager = Graphs(recorder, "decode")

        def propose(self) -> None:
            if self.prefill_cudagraph_manager is not None:
                self.prefill_cudagraph_manager.run_fullgraph()
            else:
                self._prefill()
            for _ in range(1, drafts):
                if self.decode_cudagraph_manager is not None:
                    self.decode_cudagraph_manager.run_fullgraph()
                else:
                    self._generate_draft()

        def _prefill(self) -> None:
            recorder.did("prefill eager")

        def _generate_draft(self) -> None:
            recorder.did("decode eager")

    class RunnerV2(Runner):
        def __init__(self) -> None:
            super().__init__(recorder)
            self.speculator = Speculator()

        def draft(self) -> None:
            self.speculator.propose()

    return Worker(recorder, RunnerV2())
