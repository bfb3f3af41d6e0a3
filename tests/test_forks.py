"""Forking before, during and after the first prediction: the child predicts, and nobody waits for ever."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.slow

# In children: a fork in a test process would leave a second pytest behind.
SECONDS = 100
HEAD = f"""
import os, signal, sys, threading, time

def child(work):
    number = os.fork()
    if number == 0:
        signal.alarm({SECONDS})  # a child that waits for ever dies of it
        try:
            work()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
    return number

def check(*numbers):
    ends = [os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]) for number in numbers]
    assert ends == [0] * len(ends), ends
"""


def run(code, *arguments):
    subprocess.run(
        # Newer Pythons warn of forks beside threads, which are what this is about.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", HEAD + textwrap.dedent(code), *arguments],
        check=True,
        timeout=4 * SECONDS,
    )


def test_while_another_thread_imports(tmp_path):
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(0.5)\nDONE = True\n")
    run(
        """
        import mcrank
        mcrank.__path__.append(sys.argv[1])
        thread = threading.Thread(target=__import__, args=("mcrank.slow",))
        thread.start()
        while "mcrank.slow" not in sys.modules:
            time.sleep(0.001)

        def work():
            from mcrank.slow import DONE

        check(child(work))
        thread.join()
        """,
        str(tmp_path),
    )


def test_while_another_thread_compiles():
    run(
        """
        import mcrank
        from numba import njit
        from numba.core.compiler_lock import global_compiler_lock
        started = threading.Event()

        def compiling():
            with global_compiler_lock:
                started.set()
                time.sleep(0.5)

        thread = threading.Thread(target=compiling)
        thread.start()
        started.wait()
        check(child(lambda: njit(lambda x: x + 1)(1)))
        thread.join()
        """
    )


def test_while_another_thread_computes_an_attribute():
    run(
        """
        from mcrank.scorers.forest import program as compiled
        from mcrank.scorers.forest.forest import ForestBuilder
        builder = ForestBuilder(n_features=1, base=[0.0])
        builder.append(feature=[-1], value=[1.0])
        forest, started, made = builder.build(), threading.Event(), compiled.compile_forest

        def slow(forest):
            if threading.current_thread() is not threading.main_thread():
                started.set()
                time.sleep(0.5)
            return made(forest)

        compiled.compile_forest = slow
        thread = threading.Thread(target=lambda: forest.compiled)
        thread.start()
        started.wait()
        check(child(lambda: forest.compiled))
        thread.join()
        """
    )


def test_two_threads_fork_at_once():
    run(
        """
        import mcrank, numba
        numbers = []

        def fork_some():
            for _ in range(20):
                numbers.append(child(lambda: None))

        threads = [threading.Thread(target=fork_some) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(numbers) == 60
        check(*numbers)
        from numba.core.compiler_lock import global_compiler_lock
        assert not global_compiler_lock.is_locked()
        """
    )


def test_whoever_compiles_may_fork():
    run(
        """
        import mcrank
        from numba import njit
        from numba.core.compiler_lock import global_compiler_lock
        with global_compiler_lock:
            check(child(lambda: njit(lambda x: x + 1)(1)))
        """
    )


PREDICT = """
import numpy as np
rows = np.load(sys.argv[1] + "/rows.npz")
X, scores = rows["X"], rows["scores"]
path = sys.argv[1] + "/model.mcrank"

def predict(ranker):
    for part in (slice(0, 1), slice(None)):
        np.testing.assert_array_equal(ranker.predict(X[part]), scores[part])
"""


def test_after_loading_and_after_predicting(model_folder):
    """As servers do that load their model and fork workers."""
    run(
        PREDICT
        + textwrap.dedent(
            """
        import mcrank
        ranker = mcrank.load(path)
        check(*(child(lambda: predict(ranker)) for _ in range(3)))
        predict(ranker)
        check(*(child(lambda: predict(ranker)) for _ in range(3)))
        """
        ),
        str(model_folder),
    )


def test_under_traffic(model_folder):
    """Workers are forked again and again while threads load and predict for the first time."""
    run(
        PREDICT
        + textwrap.dedent(
            """
        import mcrank
        errors = []

        def serve():
            try:
                ranker = mcrank.load(path)
                for _ in range(20):
                    predict(ranker)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=serve) for _ in range(2)]
        for thread in threads:
            thread.start()
        numbers = []
        while any(thread.is_alive() for thread in threads):
            if len(numbers) < 10:
                numbers.append(child(lambda: predict(mcrank.load(path))))
            time.sleep(0.02)
        numbers.append(child(lambda: predict(mcrank.load(path))))
        check(*numbers)
        assert not errors, errors
        """
        ),
        str(model_folder),
    )
