"""Shares of right answers: intervals of one, of a difference, and tests against a margin. Closed forms, standard library only."""

from __future__ import annotations

import math
from statistics import NormalDist

_NORMAL = NormalDist()


def wilson(correct: int, total: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return Wilson's interval of a share.

    Args:
        correct: Right answers.
        total: Questions, at least 1.
        confidence: Between 0 and 1.

    >>> [round(end, 6) for end in wilson(1125, 1319)]
    [0.83278, 0.871008]
    """
    z = _NORMAL.inv_cdf((1 + confidence) / 2)
    share = correct / total
    middle = share + z * z / (2 * total)
    half = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    # Rounding must not leave out 0 or 1 where every answer was wrong or right.
    low = 0.0 if correct == 0 else (middle - half) / scale
    return low, 1.0 if correct == total else (middle + half) / scale


def newcombe(base: int, base_total: int, candidate: int, candidate_total: int) -> tuple[float, float]:
    """Return Newcombe's 95 % interval of candidate less base, from the Wilson intervals of both.

    >>> [round(end, 6) for end in newcombe(1125, 1319, 1112, 1319)]
    [-0.037288, 0.017579]
    """
    before, after = base / base_total, candidate / candidate_total
    base_low, base_high = wilson(base, base_total)
    low, high = wilson(candidate, candidate_total)
    difference = after - before
    return (
        difference - math.hypot(after - low, base_high - before),
        difference + math.hypot(high - after, before - base_low),
    )


def score(base: int, base_total: int, candidate: int, candidate_total: int, difference: float) -> float:
    """Return the score statistic of Miettinen and Nurminen that candidate less base is `difference`; normal if it is.

    >>> round(1 - NormalDist().cdf(score(1125, 1319, 1112, 1319, -0.02)), 6)
    0.234167
    """
    before, after = base / base_total, candidate / candidate_total
    first = _restricted(base, base_total, candidate, candidate_total, difference)
    second = first + difference
    total = base_total + candidate_total
    variance = (second * (1 - second) / candidate_total + first * (1 - first) / base_total) * total / (total - 1)
    off = after - before - difference
    if variance <= 0:
        return 0.0 if off == 0 else math.copysign(math.inf, off)
    return off / math.sqrt(variance)


def score_interval(
    base: int, base_total: int, candidate: int, candidate_total: int, confidence: float = 0.90
) -> tuple[float, float]:
    """Return the differences that the score test does not reject.

    >>> [round(end, 6) for end in score_interval(1125, 1319, 1112, 1319)]
    [-0.032895, 0.013166]
    """
    z = _NORMAL.inv_cdf((1 + confidence) / 2)
    estimate = candidate / candidate_total - base / base_total

    def end(outer: float, sign: int) -> float:
        inside, outside = estimate, outer
        for _ in range(80):
            middle = (inside + outside) / 2
            if sign * score(base, base_total, candidate, candidate_total, middle) <= z:
                inside = middle
            else:
                outside = middle
        return inside

    return end(-1.0, 1), end(1.0, -1)


def noninferiority(base: int, base_total: int, candidate: int, candidate_total: int, margin: float) -> float:
    """Return the one-sided p that the candidate is not worse by more than a margin."""
    return _NORMAL.cdf(-score(base, base_total, candidate, candidate_total, -margin))


def equivalence(base: int, base_total: int, candidate: int, candidate_total: int, margin: float) -> float:
    """Return the p of both one-sided tests that the shares differ by less than a margin: the larger one."""
    above = _NORMAL.cdf(score(base, base_total, candidate, candidate_total, margin))
    return max(noninferiority(base, base_total, candidate, candidate_total, margin), above)


def mcnemar(base_only: int, candidate_only: int) -> float:
    """Return the exact two-sided p that neither side answers more of the questions on which they differ.

    >>> round(mcnemar(20, 8), 6), mcnemar(14, 14), mcnemar(0, 0)
    (0.035698, 1.0, 1.0)
    """
    total = base_only + candidate_only
    tail = sum(math.comb(total, count) for count in range(min(base_only, candidate_only) + 1))
    return min(1.0, tail / (1 << total) * 2)


def questions_needed(share: float, margin: float) -> int:
    """Return how many questions an arm needs to show non-inferiority (5 %, power 80 %) if both answer `share` of them.

    >>> [questions_needed(0.85, margin) for margin in (0.01, 0.02, 0.03)]
    [15766, 3942, 1752]
    """
    z = _NORMAL.inv_cdf(0.95) + _NORMAL.inv_cdf(0.80)
    return math.ceil(2 * share * (1 - share) * z * z / margin**2)


def _restricted(base: int, base_total: int, candidate: int, candidate_total: int, difference: float) -> float:
    """Return the likeliest share of the base arm if the candidate's is greater by `difference`: a root of a cubic."""
    least, most = max(0.0, -difference), min(1.0, 1.0 - difference)
    if least >= most:
        return least
    total, correct = base_total + candidate_total, base + candidate
    third = total
    second = (candidate_total + 2 * base_total) * difference - total - correct
    first = (base_total * difference - total - 2 * base) * difference + correct
    zeroth = base * difference * (1 - difference)
    q: float = second**3 / (3 * third) ** 3 - second * first / (6 * third**2) + zeroth / (2 * third)
    w = math.copysign(math.sqrt(max(second**2 / (3 * third) ** 2 - first / (3 * third), 0.0)), q)
    angle = math.pi if w == 0 else math.pi + math.acos(max(-1.0, min(1.0, q / w**3)))
    root: float = 2 * w * math.cos(angle / 3) - second / (3 * third)
    return min(max(root, least), most)
