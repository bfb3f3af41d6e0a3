"""Which trial comes next: folds are loaded once by each worker, and files read once."""

from __future__ import annotations

import random
from collections import Counter
from types import SimpleNamespace

import pytest

import mcrank
from mcrank.data import folds as folds_of_files
from mcrank.data.folds import Fold
from mcrank.experiments import schedule as schedules
from mcrank.experiments.fold_source import KeptFolds, Source
from mcrank.experiments.schedule import Schedule, Task
from mcrank.experiments.trial import Trial

pytestmark = pytest.mark.slow


def tasks_of(systems, folds, points=1):
    """As `compare` lists them: system by system."""
    return [
        Task(Trial(f"s{system}", fold, "mcrank", {}, {"n": point}), f"Fold{fold}", "", "")
        for system in range(systems)
        for fold in range(folds)
        for point in range(points)
    ]


def played(tasks, workers, seconds):
    """Let workers take tasks, each as soon as it is free; return the folds each had, in their order."""
    schedule = Schedule(tasks, 0, None)
    schedule.jobs = workers
    had = [[] for _ in range(workers)]
    free = [(0.0, worker, None) for worker in range(workers)]
    done = []
    while free:
        free.sort(key=lambda one: one[:2])
        now, worker, task = free.pop(0)
        if task is not None:
            schedule.finished(task, seconds(task))
        task = schedule.take(had[worker][-1] if had[worker] else None)
        if task is None:
            continue
        done.append(task)
        if not had[worker] or had[worker][-1] != task.trial.fold:
            had[worker].append(task.trial.fold)
        free.append((now + seconds(task), worker, task))
    assert Counter(done) == Counter(tasks)
    return had


def test_one_worker_loads_each_fold_once():
    assert played(tasks_of(8, 5), 1, lambda task: 1.0) == [[0, 1, 2, 3, 4]]


@pytest.mark.parametrize("workers", [2, 3, 7])
@pytest.mark.parametrize("seed", range(5))
def test_no_worker_comes_back_to_a_fold(workers, seed):
    chance = random.Random(seed)
    took = {}

    def seconds(task):
        return took.setdefault((task.trial.system, task.trial.point["n"]), chance.uniform(0.1, 20.0))

    had = played(tasks_of(6, 5, 2), workers, seconds)
    assert all(len(folds) == len(set(folds)) for folds in had)
    assert {fold for folds in had for fold in folds} == set(range(5))


def test_workers_begin_with_folds_of_their_own():
    assert sorted(folds[0] for folds in played(tasks_of(4, 3), 3, lambda task: 1.0)) == [0, 1, 2]


def test_systems_are_timed_before_the_longest_is_taken():
    schedule = Schedule(tasks_of(3, 1, 2), 0, None)
    first = [schedule.take(0) for _ in range(3)]
    assert [task.trial.system for task in first] == ["s0", "s1", "s2"]
    for task, took in zip(first, (1.0, 5.0, 2.0), strict=True):
        schedule.finished(task, took)
    assert [schedule.take(0).trial.system for _ in range(3)] == ["s1", "s2", "s0"]


def test_the_first_rounds_tell_how_long_everything_will_take(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(schedules, "time", SimpleNamespace(monotonic=lambda: now[0]))
    told = []
    schedule = Schedule(tasks_of(3, 1), 0, told.append)
    schedule.say()
    task = schedule.take(0)
    now[0] += 5.0
    schedule.round(task, 1, 100)
    schedule.say()
    now[0] += 9.0
    schedule.round(task, 10, 100)
    schedule.say()
    assert [one.seconds_left for one in told] == [None, None, 90.0 + 2 * 104.0]
    now[0] += 55.0
    schedule.finished(task, 60.0)
    schedule.say()
    assert told[-1].seconds_left == 2 * 60.0


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_files_are_read_once(letor, monkeypatch, n_jobs):
    paths = []

    def counted(path, **options):
        paths.append(str(path))
        return mcrank.read(path, **options)

    monkeypatch.setattr(folds_of_files, "read", counted)
    handed = []
    monkeypatch.setattr(Source, "handed_over", lambda *given: handed.append(told(*given)) or handed[-1])
    found = mcrank.compare(["best-feature", "mcrank:n_estimators=1,num_leaves=2|3"], letor, n_jobs=n_jobs)
    assert len(found.folds) == 3
    assert len(paths) == len(set(paths)) == 9
    # Worker processes are not told of the files at all.
    assert [recipe["form"] for recipe in handed] == ["pickles"] * (n_jobs - 1)


told = Source.handed_over


def test_folds_too_large_to_keep_are_made_again():
    data = mcrank.make_artificial(n_train=12, n_valid=1, n_test=1, docs_per_query=4, n_features=3).train
    source = Source.of(data, folds=3)
    size = source.fold(0).nbytes
    made = []

    def make(number):
        made.append(number)
        return source.fold(number)

    for room, expected in ((10 * size, [0, 1, 2]), (2 * size, [0, 1, 2, 0]), (0, [0, 1, 2, 1, 0])):
        made.clear()
        folds = KeptFolds(make, room)
        for number in (0, 1, 2, 2, 1, 0):
            assert isinstance(folds[number], Fold)
        assert made == expected, room
