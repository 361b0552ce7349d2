"""A base class that passes everything on: each member of vLLM's connector interface to the inner connector.

Made from the interface that the running vLLM has, so a method that a later version adds is passed on as well, not answered by
the default of the base class. Works without vLLM for any base: that is how it is tested.
"""

import inspect
from collections.abc import Callable
from typing import Any

_OUR_OWN = frozenset({"_inner", "_inner_class"})


def forwarding_base(base: type, inner_class: Callable[[tuple[object, ...]], tuple[type | None, tuple[object, ...]]]) -> type:
    """A subclass of `base` whose every member is that of `self._inner`.

    `inner_class` finds, for the arguments of a class method, the inner class and the arguments that it is to see; where it
    knows none (None), the base answers.
    """
    members: dict[str, object] = {"__getattr__": _getattr}
    for name in dir(base):
        if not name.startswith("__") and name not in _OUR_OWN and not name.startswith("_abc_"):
            members[name] = _forward(base, name, inner_class)
    return type("ForwardingConnector", (base,), members)


def _forward(base: type, name: str, inner_class: Callable[..., tuple[type | None, tuple[object, ...]]]) -> object:
    """One member that asks the inner connector."""
    member = inspect.getattr_static(base, name)
    if isinstance(member, classmethod):
        return _class_method(base, name, inner_class)
    if inspect.isfunction(member):
        return _method(name)
    return property(lambda self: getattr(self._inner, name))


def _method(name: str) -> Callable[..., Any]:
    """A method by the same name."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._inner, name)(*args, **kwargs)

    method.__name__ = name
    return method


def _class_method(base: type, name: str, inner_class: Callable[..., tuple[type | None, tuple[object, ...]]]) -> object:
    """A class method by the same name: the inner class answers where one is known, else the interface's default."""

    def class_method(cls: type, *args: Any, **kwargs: Any) -> Any:
        found, seen = inner_class(args)
        if found is None:
            return inspect.getattr_static(base, name).__func__(cls, *args, **kwargs)
        return getattr(found, name)(*seen, **kwargs)

    class_method.__name__ = name
    return classmethod(class_method)


def _getattr(self: Any, name: str) -> Any:
    """Attributes that the interface does not name are the inner connector's."""
    if name in _OUR_OWN:
        raise AttributeError(name)
    return getattr(self._inner, name)
