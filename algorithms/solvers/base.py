"""What all solvers share: their parameters, by scikit-learn's protocol and without scikit-learn."""

import inspect
from typing import Any, Self

import numpy as np

__all__ = ["Solver", "check_count"]


class Solver:
    """A solver whose `__init__` stores its arguments under their own names and does nothing else.

    So `sklearn.base.clone`, grid searches and the like take it for one of their own.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of `__init__` by name.

        Parameters
        ----------
        deep : bool
            Whether to give those of a solver inside this one too, as ``name__argument``.
        """
        params = {name: getattr(self, name) for name in self._parameter_names()}
        if deep:
            inner = {name: given for name, given in params.items() if isinstance(given, Solver)}
            for name, solver in inner.items():
                params |= {f"{name}__{key}": each for key, each in solver.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Change arguments; those of a solver inside this one go by ``name__argument``. Returns the solver.

        Raises
        ------
        ValueError
            If there is no such argument.
        """
        known = self._parameter_names()
        for key, value in params.items():
            name, _, rest = key.partition("__")
            if name not in known or (rest and not isinstance(getattr(self, name), Solver)):
                raise ValueError(f"{key!r} is no parameter of {type(self).__name__}; it has {', '.join(known)}")
            if rest:
                getattr(self, name).set_params(**{rest: value})
            else:
                setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        given = inspect.signature(type(self)).parameters
        changed = {name: each for name, each in self.get_params(deep=False).items() if _differs(each, given[name])}
        return f"{type(self).__name__}({', '.join(f'{name}={each!r}' for name, each in changed.items())})"

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return list(inspect.signature(cls).parameters)


def check_count(name: str, given: Any, *, expected: str = "an integer >= 1") -> None:
    """Refuse an argument that is no integer >= 1.

    Parameters
    ----------
    name : str
        The argument, as the message says it.
    given : object
    expected : str
        What it must be, as the message says it.

    Raises
    ------
    ValueError
        If it is none.
    """
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 1:
        raise ValueError(f"{name} must be {expected}, got {given!r}")


def _differs(value: Any, parameter: inspect.Parameter) -> bool:
    return value is not parameter.default and repr(value) != repr(parameter.default)
