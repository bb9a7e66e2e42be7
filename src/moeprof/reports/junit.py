"""JUnit XML: a suite per comparison, a case per rule. It says nothing of when and where: equal results are equal files."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

from moeprof.reports.checks import Check, Checks

#: What XML 1.0 cannot hold, not even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(found: Checks) -> str:
    """Return the checks as JUnit XML; all counts are those of the elements."""
    states = [check.state for check in found.checks]
    counts = f'tests="{len(states)}" failures="{states.count("failure")}" errors="{states.count("error")}"'
    name = _attribute(found.title)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites name={name} {counts}>"]
    lines.append(f'  <testsuite name={name} {counts} skipped="{states.count("skipped")}">')
    if found.properties:
        lines.append("    <properties>")
        lines += [
            f"      <property name={_attribute(key)} value={_attribute(found.properties[key])}/>"
            for key in sorted(found.properties)
        ]
        lines.append("    </properties>")
    lines += [_case(check) for check in found.checks]
    lines.append(f"    <system-out>{_body(found.verdict)}</system-out>")
    return "\n".join([*lines, "  </testsuite>", "</testsuites>"]) + "\n"


def _case(check: Check) -> str:
    head = f"    <testcase classname={_attribute(f'moeprof.{check.group}')} name={_attribute(check.name)}"
    if check.state == "ok":
        return f"{head}/>"
    message = _attribute(check.message)
    if check.state == "skipped":
        inner = f"<skipped message={message}/>"
    else:
        # The body repeats the message, since some readers show only one of them.
        inner = f"<{check.state} type={_attribute(check.word)} message={message}>{_body(check.message)}</{check.state}>"
    return f"{head}>\n      {inner}\n    </testcase>"


def _attribute(text: str) -> str:
    return quoteattr(_FORBIDDEN.sub("", text), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


def _body(text: str) -> str:
    return escape(_FORBIDDEN.sub("", text))
