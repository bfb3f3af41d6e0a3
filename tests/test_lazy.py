"""Attributes computed when first asked for."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from mcrank.lazy import lazy


@dataclass(frozen=True)
class Thing:
    calls: list

    @lazy
    def value(self):
        """What it is."""
        self.calls.append(1)
        return object()


def test_computed_once_and_documented():
    thing = Thing([])
    assert thing.value is thing.value
    assert thing.calls == [1]
    assert Thing.value.__doc__ == "What it is."


def test_threads_that_ask_at_once_get_one_value_and_nobody_waits():
    inside = threading.Barrier(2, timeout=60)

    class Slow:
        @lazy
        def value(self):
            inside.wait()  # both are computing: with a lock this would never come
            return object()

    slow, found = Slow(), []
    threads = [threading.Thread(target=lambda: found.append(slow.value)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 2
    assert found[0] is found[1] is slow.value
