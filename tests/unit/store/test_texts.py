"""Texts of a run lose their secrets and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moeprof.store import redact, texts
from moeprof.store.folder import Store
from tests.unit.store.runs import clock, manifest

TOKEN = "hf_dummy_value_0123456789"
PLAIN = (
    b"(Worker) INFO max_num_batched_tokens=8192\r\nprogress 1 %\rprogress 2 %\n\xff wrong byte\nthe end, no line feed"
)


def test_a_text_without_secrets_stays_byte_for_byte(tmp_path: Path) -> None:
    # GIVEN a log with wrong bytes, a progress bar and an end without a line feed
    log = tmp_path / "server.log"
    log.write_bytes(PLAIN)
    before = log.stat().st_mtime_ns
    # WHEN it is cleaned THEN it is not touched
    assert texts.clean_file(log, ()) == 0
    assert (log.read_bytes(), log.stat().st_mtime_ns) == (PLAIN, before)


@pytest.mark.parametrize("filler", [0, 40_000])
def test_only_the_secrets_of_a_log_go(tmp_path: Path, filler: int) -> None:
    # GIVEN a small and a large log with a token, a known password, a header, and a private key of three lines
    log = tmp_path / "server.log"
    fill = b"(Worker) INFO nothing of note happens in this line\n" * filler
    key = b"-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----\n"
    secret = f"login {TOKEN}\nopen sesame-street\nAuthorization: Bearer abcdefgh\n".encode()
    log.write_bytes(PLAIN + b"\n" + fill + secret + key + b"last\n")
    # WHEN it is cleaned
    count = texts.clean_file(log, ("sesame-street",))
    # THEN each is counted once, what stands around them is there, and no other file is
    gone = redact.REDACTED
    clean = f"login {gone}\nopen {gone}\nAuthorization: {gone}\n{gone}\n".encode()
    assert (count, log.read_bytes()) == (4, PLAIN + b"\n" + fill + clean + b"last\n")
    assert [path.name for path in tmp_path.iterdir()] == ["server.log"]
    # AND a second time there is nothing to do
    assert texts.clean_file(log, ("sesame-street",)) == 0


def test_a_json_file_stays_one(tmp_path: Path) -> None:
    # GIVEN a client's result with figures under telling names, an infinity, and two secrets
    path = tmp_path / "c8-pass0.json"
    figures = {"total_output_tokens": 512, "request_rate": float("inf"), "itls": [[0.1, 0.2]], "tokenizer_id": "/m"}
    path.write_text(json.dumps({**figures, "api_key": "x y", "errors": [f"401 for {TOKEN}"]}))
    # WHEN it is cleaned THEN it is read as before, but for the secrets
    assert texts.clean_file(path, ()) == 2
    assert json.loads(path.read_text()) == {**figures, "api_key": "<redacted>", "errors": ["401 for <redacted>"]}
    # AND without them, not a byte changes
    path.write_text(json.dumps(figures, indent=1))
    before = path.read_bytes()
    assert texts.clean_file(path, ()) == 0 and path.read_bytes() == before


def test_what_is_no_json_is_cleaned_as_text(tmp_path: Path) -> None:
    # GIVEN a JSON file that was cut, and one JSON object a line
    for name, text in (("a.json", f'{{"token": "{TOKEN}", "n": 1'), ("b.jsonl", f'{{"n": 1}}\n{{"x": "{TOKEN}"}}\n')):
        path = tmp_path / name
        path.write_text(text)
        # WHEN it is cleaned THEN the rest stays
        assert texts.clean_file(path, ()) == 1
        assert path.read_text() == text.replace(TOKEN, "<redacted>")


def test_a_stored_run_holds_no_secret_and_counts_them(tmp_path: Path) -> None:
    # GIVEN a run whose server and client printed secrets, and a trace that nobody rewrites
    store = Store(tmp_path / "store", clock=clock())
    with store.begin("mega", 1) as writer:
        writer.hide(("sesame-street",))
        (writer.path / "server.log").write_text(f"a {TOKEN}\nb {TOKEN} sesame-street\n")
        (writer.path / "bench" / "c8-pass0.txt").write_text("Bearer abcdefgh\n")
        (writer.path / "bench" / "c8-pass0.json").write_text('{"completed": 4}')
        (writer.path / "traces" / "rank0.json").write_text('{"token": "x"}')
        # WHEN it is committed
        run = writer.commit(manifest(reason="open sesame-street"))
    # THEN no file holds one, the manifest counts them, and its digests are of what is stored
    held = b"".join(path.read_bytes() for path in run.path.rglob("*") if path.is_file())
    assert TOKEN.encode() not in held and b"sesame-street" not in held and b"abcdefgh" not in held
    assert run.manifest.extra["redactions"] == {"server.log": 3, "bench/c8-pass0.txt": 1}
    sizes = {name: entry.bytes for name, entry in run.manifest.files.items()}
    assert sizes == {name: (run.path / name).stat().st_size for name in sizes}
    assert (run.path / "traces" / "rank0.json").read_text() == '{"token": "x"}'


@pytest.mark.parametrize("told", [True, False])
def test_a_failed_run_holds_no_secret_either(tmp_path: Path, told: bool) -> None:
    # GIVEN a run that fails, with and without a manifest
    store = Store(tmp_path / "store", clock=clock())
    with store.begin("mega", 1) as writer:
        writer.hide(())
        (writer.path / "server.log").write_text(f"a {TOKEN}\n")
        # WHEN it is set aside THEN its log is clean
        folder = writer.fail("it failed", manifest() if told else None)
    assert (folder / "server.log").read_text() == "a <redacted>\n"


def test_files_that_came_from_elsewhere_stay_as_they_are(tmp_path: Path) -> None:
    # GIVEN a run whose writer hides nothing, as one that is ingested
    store = Store(tmp_path / "store", clock=clock())
    with store.begin("mega", 1) as writer:
        (writer.path / "bench" / "a.txt").write_text(TOKEN)
        run = writer.commit(manifest())
    # THEN its files are what they were
    assert (run.path / "bench" / "a.txt").read_text() == TOKEN
    assert "redactions" not in run.manifest.extra


def test_a_long_line_takes_no_square_of_its_length(tmp_path: Path) -> None:
    # GIVEN lines that are made of beginnings of names and addresses
    log = tmp_path / "server.log"
    log.write_text("\n".join(("key." * 50_000, "x://" * 20_000, "cookie-" * 30_000, "a" * 300_000)))
    # WHEN they are cleaned THEN it ends, and nothing was a secret
    assert texts.clean_file(log, ()) == 0
    assert log.stat().st_size == 200_000 + 80_000 + 210_000 + 300_000 + 3
