"""Requests to the server: with a limit, never through a proxy, and a sentence instead of an exception."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from dataclasses import dataclass

_OPENER = urllib.request.build_opener(
    urllib.request.ProxyHandler({})
)  # a proxy of the environment must not see loopback
_BODY = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back.

    Attributes:
        status: HTTP status; None when there was no answer.
        body: Text of the answer, or "" when there was none.
        seen: What happened, as the end of a sentence: ``answered 503``, ``refused the connection``.
        late: Whether the limit ran out.
    """

    status: int | None
    body: str
    seen: str
    late: bool = False

    @property
    def ok(self) -> bool:
        """Whether the server said yes."""
        return self.status is not None and 200 <= self.status < 300


def fetch(url: str, limit_s: float, *, post: bytes | None = None, kind: str | None = None) -> Answer:
    """Ask a server once.

    Args:
        url: Address.
        limit_s: Limit of connecting and of each read.
        post: Body to POST; None: GET.
        kind: Its content type.
    """
    request = urllib.request.Request(url, post, {} if kind is None else {"Content-Type": kind})
    try:
        with _OPENER.open(request, timeout=limit_s) as answer:
            body = answer.read(_BODY).decode("utf-8", "replace")
            return Answer(answer.status, body, f"answered {answer.status}")
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, _text(error), f"answered {error.code}")
    except TimeoutError:
        return Answer(None, "", f"did not answer within {limit_s:g} s", late=True)
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            return Answer(None, "", f"did not answer within {limit_s:g} s", late=True)
        if isinstance(error.reason, ConnectionRefusedError):
            return Answer(None, "", "refused the connection")
        return Answer(None, "", f"could not be reached ({error.reason})")
    except (OSError, http.client.HTTPException) as error:
        return Answer(None, "", f"broke the connection ({type(error).__name__})")


def _text(error: urllib.error.HTTPError) -> str:
    try:
        return error.read(_BODY).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        return ""
