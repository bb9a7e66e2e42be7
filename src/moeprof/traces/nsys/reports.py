"""Reports that only nsys reads (``.nsys-rep``): their exports beside them, or one made with the nsys that is here."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

from moeprof.errors import UnsupportedFormatError
from moeprof.traces import formats
from moeprof.traces.formats import Format

_VERSION = re.compile(rb"(\d{4})[@.](\d+)")
_INSTALLED = re.compile(r"(\d{4})\.(\d+)")
_LIMIT_S = 1800


def exported(path: Path) -> Path:
    """Return a file or folder of tables: the path itself, or the export of the report that it is.

    An export of the same name beside a report is used when it is not older. Otherwise nsys exports the report into the
    cache (``MOEPROF_CACHE``, else ``moeprof`` in the user's cache folder), once for each content.

    Raises:
        UnsupportedFormatError: A report, and no nsys here that reads it; or a stream that was never made a report.
    """
    if path.is_dir():
        return path
    kind = formats.recognise(path)
    if kind is Format.STREAM:
        raise UnsupportedFormatError(
            f"a stream of Nsight Systems{_written(path)} that its importer never made a report of",
            path=str(path),
            hint=f"convert it with the importer of the same nsys: QdstrmImporter -i {path.name}; then nsys export",
        )
    if kind is Format.TABLE:
        raise UnsupportedFormatError(
            "one table in Parquet or Arrow; an export of Nsight Systems is the folder of all its tables",
            path=str(path),
            hint="give the folder that nsys export --type parquetdir (or arrowdir) made",
        )
    if kind is not Format.REPORT:
        return path
    return _beside(path) or _by_nsys(path)


def _beside(report: Path) -> Path | None:
    stem = formats.stem(report.name)
    for name in (f"{stem}.sqlite", f"{stem}.sqlite.gz"):
        beside = report.with_name(name)
        if beside.is_file() and beside.stat().st_mtime >= report.stat().st_mtime:
            return beside
    return None


def _by_nsys(report: Path) -> Path:
    program = os.environ.get("MOEPROF_NSYS") or shutil.which("nsys")
    wanted = _version(report)
    cure = f"where it was written: nsys export --type sqlite {report.name}; then give the .sqlite"
    if program is None:
        raise UnsupportedFormatError(
            f"a report of Nsight Systems{_written(report)}, which only nsys reads, and nsys is not here",
            path=str(report),
            hint=cure,
        )
    target = _cache() / f"{_fingerprint(report)}.sqlite"
    if target.is_file():
        return target
    installed = _installed(program)
    if wanted and installed and installed < wanted:
        raise UnsupportedFormatError(
            f"a report of Nsight Systems {_dotted(wanted)}; the nsys here is {_dotted(installed)} and reads older ones only",
            path=str(report),
            hint=f"install nsys {_dotted(wanted)} or newer, or export it {cure}",
        )
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    unfinished = target.with_suffix(f".{os.getpid()}.tmp")
    command = [program, "export", "--type", "sqlite", "--force-overwrite", "true", "--output", str(unfinished)]
    try:
        done = subprocess.run([*command, str(report)], capture_output=True, text=True, timeout=_LIMIT_S, check=False)
        if done.returncode or not unfinished.is_file():
            said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1]
            raise UnsupportedFormatError(f"nsys cannot export the report: {said}", path=str(report), hint=cure)
        unfinished.replace(target)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnsupportedFormatError(
            f"nsys does not export the report: {error}", path=str(report), hint=cure
        ) from error
    finally:
        unfinished.unlink(missing_ok=True)
    return target


def _version(report: Path) -> tuple[int, int] | None:
    """Return year and number of the nsys that wrote a report; those of 2022 and before do not say."""
    found = _VERSION.search(formats.head(report))
    return (int(found[1]), int(found[2])) if found else None


def _written(path: Path) -> str:
    version = _version(path)
    return f" {_dotted(version)}" if version else ""


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _installed(program: str) -> tuple[int, int] | None:
    try:
        answer = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _INSTALLED.search(answer)
    return (int(found[1]), int(found[2])) if found else None


def _cache() -> Path:
    chosen = os.environ.get("MOEPROF_CACHE")
    if chosen:
        return Path(chosen) / "nsys"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "moeprof" / "nsys"


def _fingerprint(report: Path) -> str:
    with report.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]
