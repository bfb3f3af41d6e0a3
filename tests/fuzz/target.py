"""What a target is: a maker of inputs and a check of what a reader does with one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, ClassVar


class Difference(Exception):
    """A reader gave another answer than the slow reference, without a word."""


@dataclass
class Case:
    """An input: the content of a file, its name, and how it is to be read."""

    name: str
    content: bytes
    options: dict[str, Any] = field(default_factory=dict)
    more: dict[str, bytes] = field(default_factory=dict)  # further files

    def write(self, folder: Path) -> Path:
        """Put the files into a folder."""
        for name, content in {self.name: self.content, **self.more}.items():
            (folder / name).write_bytes(content)
        return folder / self.name


class Target(ABC):
    """One kind of file. Inputs depend on the seed and the number of the case alone."""

    name: ClassVar[str]
    quick = False  # whether to prepare little, for a run of seconds

    def prepare(self) -> None:  # noqa: B027 - most have nothing to prepare
        """Do what takes long once: make valid files, compile kernels."""

    @abstractmethod
    def make(self, random: Random) -> Case:
        """Return an input."""

    @abstractmethod
    def check(self, case: Case, path: Path) -> bool:
        """Read the input; return whether it was accepted, raise `Difference` when the answer is wrong.

        `McrankError` and no other exception means that it was refused.
        """

    def case(self, seed: int, number: int) -> Case:
        """Return the input of a number."""
        return self.make(Random(f"{self.name} {seed} {number}"))
