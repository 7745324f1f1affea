"""Examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import linetender

MODULES = ["linetender", *(f"linetender.{found.name}" for found in pkgutil.iter_modules(linetender.__path__))]


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("_native")])
def test_examples_run(name: str, badserver: str) -> None:
    found = doctest.DocTestFinder(exclude_empty=True).find(
        importlib.import_module(name), name, globs={"badserver": badserver}
    )
    runner = doctest.DocTestRunner()
    for example in found:
        runner.run(example)
    assert runner.summarize().failed == 0


def test_everything_public_is_documented() -> None:
    for name in linetender.__all__:
        thing = getattr(linetender, name)
        if isinstance(thing, type):
            assert thing.__doc__, name
            for member, value in vars(thing).items():
                if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                    assert value.__doc__, f"{name}.{member}"
