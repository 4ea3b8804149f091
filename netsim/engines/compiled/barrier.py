"""A barrier between the threads of a team: they meet after each window, many thousand times a second.

numba has no atomic operations on the CPU, so the two that a barrier needs are LLVM instructions here. A thread that
waits spins for a while and then lets others run.
"""

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from algorithms.compilation import kernel

__all__ = ["wait_for_all"]

_SPINS = 4000


@intrinsic
def _atomic_add(typing_context, array, amount):
    """Add to array[0] (int64), sequentially consistent."""

    def generate(context, builder, signature, arguments):
        pointer = _first(context, builder, signature.args[0], arguments[0])
        return builder.atomic_rmw("add", pointer, arguments[1], "seq_cst")

    return types.int64(array, types.int64), generate


@intrinsic
def _atomic_load(typing_context, array):
    """Read array[0] (int64), sequentially consistent."""

    def generate(context, builder, signature, arguments):
        pointer = _first(context, builder, signature.args[0], arguments[0])
        return builder.load_atomic(pointer, "seq_cst", 8)

    return types.int64(array), generate


@intrinsic
def _let_others_run(typing_context):
    """Give the processor to another thread: sched_yield of the C library."""

    def generate(context, builder, signature, arguments):
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.IntType(32), []), "sched_yield")
        return builder.sext(builder.call(function, []), ir.IntType(64))

    return types.int64(), generate


def _first(context, builder, array_type, array):
    return context.make_array(array_type)(context, builder, array).data


@kernel
def wait_for_all(arrived, n_threads, meeting):
    """Wait until all threads have come to meeting number `meeting` (from 1); False where it was called off.

    Parameters
    ----------
    arrived : int64, shape (>= 2,)
        Shared. The first counts arrivals over all meetings; the second is set to call the meeting off.
    n_threads, meeting : int
    """
    _atomic_add(arrived, np.int64(1))
    goal = np.int64(n_threads) * np.int64(meeting)
    spins = 0
    while _atomic_load(arrived) < goal:
        spins += 1
        if spins > _SPINS:
            if arrived[1] != 0:
                return False
            _let_others_run()
    return True
