"""The live demo: when it is live, what it keeps, and that it falls back with the reason."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from moeprof.config.load import load_config
from scripts import cpu_environment, demo


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Return what is compared and reported on, instead of showing it."""
    calls: list[tuple[str, ...]] = []

    def compare(*words: str) -> int:
        calls.append(words)
        return 0

    monkeypatch.setattr(demo, "compare", compare)
    monkeypatch.setattr(demo, "report", compare)
    return calls


def test_memory_is_read_as_the_system_tells_it(tmp_path: Path) -> None:
    # GIVEN what a system says of its memory, and one that says nothing
    told = tmp_path / "meminfo"
    told.write_text("MemTotal:       24731708 kB\nMemAvailable:    5859375 kB\n")
    # WHEN it is read THEN it is the memory that can be had, in bytes
    assert demo.available_memory(told) == 6 * 10**9
    assert demo.available_memory(tmp_path / "none") is None


def test_too_little_memory_is_refused_with_both_figures() -> None:
    # GIVEN just enough, or no figure THEN nothing is refused
    demo.check_memory(6 * 10**9)
    demo.check_memory(None)
    # GIVEN less WHEN it is checked THEN both figures are named
    with pytest.raises(demo.NotLiveError, match=r"^5\.9 GB of memory are available and 6 GB are needed$"):
        demo.check_memory(5_900_000_000)


def test_captures_are_kept_only_for_the_same_sources(tmp_path: Path) -> None:
    # GIVEN a store made from some sources
    store = demo.prepare(tmp_path / "demo", "a")
    store.mkdir()
    # WHEN the demo runs with the same, and then with others THEN the store is kept once and then gone
    assert demo.prepare(tmp_path / "demo", "a").is_dir()
    assert not demo.prepare(tmp_path / "demo", "b").exists()


def test_every_source_counts(tmp_path: Path) -> None:
    # GIVEN two files WHEN one changes, or the interpreter does THEN the fingerprint is another
    files = [tmp_path / "a.py", tmp_path / "b.py"]
    for file in files:
        file.write_text("1")
    before = demo.fingerprint(files, Path("/p"))
    assert demo.fingerprint(files, Path("/p")) == before
    assert demo.fingerprint(files, Path("/q")) != before
    files[1].write_text("2")
    assert demo.fingerprint(files, Path("/p")) != before
    # AND the demo's own sources are there
    names = {file.name for file in demo.sources()}
    assert {"moeprof.toml", "block.py", "hooks.py", "agrs.py", "mega.py"} <= names


def test_a_failed_step_gives_its_reason(capfd: pytest.CaptureFixture[str]) -> None:
    # GIVEN a step that ends as a failed capture does
    code = "import sys; print('moeprof: error[server-died]: the server ended\\n  at: x', file=sys.stderr); sys.exit(3)"
    # WHEN it runs THEN its output is shown, and its reason is the error
    with pytest.raises(demo.FailedError, match=r"^the capture failed: the server ended$"):
        demo.run([sys.executable, "-c", code], os.environ, "the capture")
    assert capfd.readouterr().err == "moeprof: error[server-died]: the server ended\n  at: x\n"
    # AND one that says nothing has its code, and one that does not end its limit
    with pytest.raises(demo.FailedError, match=r"^it failed: exit code 5$"):
        demo.run([sys.executable, "-c", "raise SystemExit(5)"], os.environ, "it")
    with pytest.raises(demo.FailedError, match=r"^it did not end within 0\.2 s$"):
        demo.run([sys.executable, "-c", "import time; time.sleep(600)"], os.environ, "it", 0.2)


def test_without_an_environment_the_samples_are_shown(
    shown: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # GIVEN a machine without network
    def lacking(*_: object, **__: object) -> Path:
        raise cpu_environment.Unavailable("the package index cannot be reached (no network?)")

    monkeypatch.setattr(cpu_environment, "environment", lacking)
    monkeypatch.setattr(demo, "available_memory", lambda: None)
    # WHEN the demo runs
    code = demo.main([])
    # THEN it says why in a sentence, shows the samples, and ends with 0
    assert code == 0
    assert capsys.readouterr().err == (
        "demo: not live: the package index cannot be reached (no network?)\n"
        "demo: here are stored samples from H200 GPUs instead; mega is derived from base, not measured\n"
    )
    assert shown == [demo.SAMPLES, demo.SAMPLES[:1]]


def test_a_capture_that_fails_is_not_hidden_by_samples(
    shown: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    # GIVEN an environment that is there, and whose Python ends whatever it is asked with an error
    monkeypatch.setattr(cpu_environment, "environment", lambda *_, **__: Path(sys.executable))
    monkeypatch.setattr(demo, "available_memory", lambda: None)
    monkeypatch.setattr(demo, "live", lambda: demo.run([sys.executable, "-c", "raise SystemExit(3)"], os.environ, "it"))
    # WHEN the demo runs
    code = demo.main([])
    # THEN it ends with 3 and the reason, and shows nothing else
    assert code == 3
    assert capsys.readouterr().err == (
        "demo: failed: it failed: exit code 3\n"
        "demo: the environment with vLLM is there, so this is a fault; make demo-samples shows stored samples\n"
    )
    assert shown == []


def test_the_quick_demo_starts_nothing(shown: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN that nothing live may start
    monkeypatch.setattr(demo, "live", lambda: pytest.fail("started"))
    # WHEN the quick demo runs THEN samples are shown
    assert demo.main(["--samples"]) == 0
    assert shown == [demo.SAMPLES, demo.SAMPLES[:1]]


def test_the_example_is_a_configuration_of_two_arms() -> None:
    # GIVEN the example that the demo captures
    config = load_config(demo.CONFIG, start=demo.ROOT, environ={})
    # THEN both arms differ only in what mega is made of, and the model and store are the demo's
    base, mega = config.arms["base"], config.arms["mega"]
    assert list(config.arms) == ["base", "mega"]
    assert base.flags == mega.flags
    plugins = base.env["VLLM_PLUGINS"].split(",")
    assert mega.env == {**base.env, "VLLM_PLUGINS": ",".join([*plugins, "moeprof_cpu_mega"])}
    assert Path(str(base.server.model)).resolve() == demo.PLACE / "model"
    assert Path(config.store).resolve() == demo.PLACE / "store"
    assert config.window.iterations == 8
