"""A researcher's own rules: how a profile is updated, how long a message takes, whether it is lost.

A rule is a function. Compiled with `numba.njit` it runs on both engines at compiled speed, without the engines being
compiled anew: they call it through its address. A plain Python function runs on the events engine only.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.errors import NumbaError
from numba.extending import intrinsic

__all__ = [
    "DELAY",
    "LOSS",
    "UPDATE",
    "call_delay",
    "call_loss",
    "call_update",
    "check_rule",
    "is_compiled",
    "rule_address",
]

# Kinds of rule, by what their functions take and return.
UPDATE = "rule(own, other, rating, rate, lam)"
DELAY = "rule(word, base, now) -> seconds"
LOSS = "rule(word, base, now) -> bool"

_POINTER = ctypes.POINTER(ctypes.c_double)


def is_compiled(rule: Callable[..., Any]) -> bool:
    """Whether a rule is a numba function, which every engine can run."""
    return hasattr(rule, "py_func")


def check_rule(rule: Any, *, name: str, kind: str) -> None:
    """Check that a rule can be called as its kind is.

    Raises
    ------
    ValueError
        If it is not a function, or numba cannot compile it for these arguments.
    """
    if not callable(rule):
        raise ValueError(f"{name} must be a function {kind}, compiled with numba.njit, got {rule!r}")
    if not is_compiled(rule):
        _try(rule, name=name, kind=kind)
    try:
        rule_address(rule, kind)
    except NumbaError as error:
        raise ValueError(
            f"{name}: numba cannot compile {getattr(rule, '__name__', rule)!r} as {kind}: {error}"
        ) from error


def _try(rule: Callable[..., Any], *, name: str, kind: str) -> None:
    """Call a plain Python rule once, so that a wrong one is refused before a run and not in the middle of it."""
    try:
        if kind == UPDATE:
            rule(np.ones(2), np.ones(2), 1.0, 0.01, 0.01)
        else:
            rule(np.uint64(2**63), 0.01, 0.0)
    except Exception as error:
        raise ValueError(f"{name}: a call of {getattr(rule, '__name__', rule)!r} as {kind} failed: {error}") from error


def raise_failure() -> None:
    """Raise the first error that a plain Python rule has raised while an engine called it.

    Raises
    ------
    RuntimeError
        From that error. Through its address a rule cannot raise where it is called.
    """
    if _failures:
        error = _failures[0]
        _failures.clear()
        raise RuntimeError(f"a rule of the world raised {type(error).__name__}: {error}") from error


_failures: list[Exception] = []


def _heard(call: Callable[..., Any], otherwise: Any) -> Callable[..., Any]:
    """The same call, with its errors kept for `raise_failure`."""

    def safely(*arguments: Any) -> Any:
        try:
            return call(*arguments)
        except Exception as error:
            _failures.append(error)
            return otherwise

    return safely


@cache
def rule_address(rule: Callable[..., Any], kind: str) -> int:
    """Address of a rule as a C function; what stands behind it is kept for as long as the process lives."""
    made = _compiled(rule, kind) if is_compiled(rule) else _plain(rule, kind)
    _alive.append(made)
    return made.address if is_compiled(rule) else ctypes.cast(made, ctypes.c_void_p).value or 0


_alive: list[Any] = []


def _compiled(rule: Callable[..., Any], kind: str) -> Any:
    float64, pointer = numba.float64, types.CPointer(numba.float64)
    if kind == UPDATE:

        @numba.cfunc(types.void(pointer, pointer, types.intp, float64, float64, float64))
        def update(own, other, rank, rating, rate, lam):
            rule(numba.carray(own, (rank,)), numba.carray(other, (rank,)), rating, rate, lam)

        return update
    if kind == DELAY:

        @numba.cfunc(float64(numba.uint64, float64, float64))
        def delay(word, base, now):
            return rule(word, base, now)

        return delay

    @numba.cfunc(numba.int64(numba.uint64, float64, float64))
    def loss(word, base, now):
        return 1 if rule(word, base, now) else 0

    return loss


def _plain(rule: Callable[..., Any], kind: str) -> Any:
    if kind == UPDATE:

        def update(own: Any, other: Any, rank: int, rating: float, rate: float, lam: float) -> None:
            others = np.ctypeslib.as_array(other, (rank,))
            others.flags.writeable = False
            rule(np.ctypeslib.as_array(own, (rank,)), others, rating, rate, lam)

        number = ctypes.c_double
        return ctypes.CFUNCTYPE(None, _POINTER, _POINTER, ctypes.c_ssize_t, number, number, number)(
            _heard(update, None)
        )
    if kind == DELAY:
        return ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_uint64, ctypes.c_double, ctypes.c_double)(
            _heard(lambda word, base, now: float(rule(np.uint64(word), base, now)), 0.0)
        )
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, ctypes.c_double, ctypes.c_double)(
        _heard(lambda word, base, now: int(bool(rule(np.uint64(word), base, now))), 0)
    )


@intrinsic
def call_update(typing_context, address, own, other, rating, rate, lam):
    """Call an update rule by its address: `own` and `other` are contiguous float64, shape (rank,)."""

    def generate(context, builder, signature, arguments):
        number, size = ir.DoubleType(), ir.IntType(64)
        rows = [context.make_array(signature.args[n])(context, builder, arguments[n]) for n in (1, 2)]
        rank = builder.extract_value(rows[0].shape, 0)
        function_type = ir.FunctionType(
            ir.VoidType(), [number.as_pointer(), number.as_pointer(), size, number, number, number]
        )
        function = builder.inttoptr(arguments[0], function_type.as_pointer())
        builder.call(function, [rows[0].data, rows[1].data, rank, *arguments[3:]])
        return context.get_dummy_value()

    return types.void(types.int64, own, other, types.float64, types.float64, types.float64), generate


@intrinsic
def call_delay(typing_context, address, word, base, now):
    """Call a delay rule by its address; returns seconds, float64."""
    return types.float64(types.int64, types.uint64, types.float64, types.float64), _call_scalar(ir.DoubleType())


@intrinsic
def call_loss(typing_context, address, word, base, now):
    """Call a loss rule by its address; returns 1 where the message is lost, int64."""
    return types.int64(types.int64, types.uint64, types.float64, types.float64), _call_scalar(ir.IntType(64))


def _call_scalar(result: Any) -> Callable[..., Any]:
    def generate(context, builder, signature, arguments):
        function_type = ir.FunctionType(result, [ir.IntType(64), ir.DoubleType(), ir.DoubleType()])
        return builder.call(builder.inttoptr(arguments[0], function_type.as_pointer()), arguments[1:])

    return generate
