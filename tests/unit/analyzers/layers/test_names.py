from __future__ import annotations

import polars as pl

from moeprof.analyzers.layers.fold import Element, Instance
from moeprof.analyzers.layers.sequences import Sequence
from moeprof.analyzers.layers.structure import _names


def test_a_kernel_that_no_repetition_has_so_often_bears_the_name_that_it_has_elsewhere() -> None:
    # GIVEN a body with one more launch of kernel 1 than either repetition, as an order of mean positions can give
    sequence = Sequence(
        phase="target",
        tokens=(0, 1, 0, 1),
        occurrences=(0, 0, 1, 1),
        kernels=(),
        names=("gemm<1>", "sum", "gemm<2>", "sum"),
        ordered=False,
        streams=None,
        iterations=1,
        counted=1,
        differing=0,
        others=(),
        timed=pl.DataFrame(),
    )
    element = Element((0, 1, 1), (Instance(0, 2, (0, 1)), Instance(2, 4, (0, 1))))
    # WHEN the launches of the body are named, of which the third has no place in any repetition
    names = _names(sequence, element, [[0, 1], [0, 1]], told=3)
    # THEN it has its kernel's name; of two names as frequent the first in order counts
    assert names == ("gemm<1>", "sum", "sum")
