"""What a worker tells of an error is one line, but for one that nobody expects."""

from __future__ import annotations

import pytest

from mcrank import errors
from mcrank.experiments.workers import told_of


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "No space left on device", "c/trials/1"), "c/trials/1: No space left on device."),
        (OSError("no answer"), "no answer."),
        (MemoryError(), "not enough memory"),
        (errors.DataError("no row"), "no row"),
    ],
)
def test_what_the_machine_or_the_data_lack_is_told_in_one_line(error, words):
    told = told_of(error)
    assert told["error"] == words
    assert told["kind"] == type(error).__name__


def test_an_error_that_nobody_expects_tells_where_it_arose():
    try:
        {}["key"]
    except KeyError as error:
        told = told_of(error)
    assert told["kind"] == "unexpected"
    assert "test_worker_errors.py" in told["error"]
