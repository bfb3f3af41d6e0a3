"""Cores as affinity and quotas of control groups allow, against made-up and real files."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import pytest

from mcrank import cores
from mcrank.cores import available_bytes, available_cores, cpu_quota, memory_limit


def octal(path):
    return str(path).replace(" ", "\\040")


def process(folder, groups, mounts):
    """A folder like those in /proc."""
    (folder / "cgroup").write_text("\n".join(groups) + "\n")
    lines = (
        f"31 23 0:28 {root} {octal(top)} rw,relatime shared:1 - {kind} {kind} {options}"
        for root, top, kind, options in mounts
    )
    (folder / "mountinfo").write_text("\n".join(lines) + "\n")
    return folder


def group(path, **files):
    path.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (path / name.replace("__", ".")).write_text(f"{text}\n")
    return path


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("max 100000", math.inf), ("150000 100000", 1.5), ("50000 100000", 0.5), ("", math.inf), ("7", math.inf),
     ("x y", math.inf), ("100 0", math.inf)],
)  # fmt: skip
def test_the_second_version(tmp_path, text, wanted):
    top = group(tmp_path / "sys fs", cpu__max=text)
    assert cpu_quota(process(tmp_path, ["0::/"], [("/", top, "cgroup2", "rw")])) == wanted


def test_the_least_of_all_groups_above(tmp_path):
    top = group(tmp_path / "sys")
    group(top / "a.slice", cpu__max="200000 100000")
    group(top / "a.slice" / "b.service", cpu__max="max 100000")
    group(top / "other", cpu__max="1000 100000")
    mounts = [("/", top, "cgroup2", "rw")]
    assert cpu_quota(process(tmp_path, ["0::/a.slice/b.service"], mounts)) == 2.0
    # A folder above the topmost group is not one of them.
    group(tmp_path, cpu__max="1000 100000")
    assert cpu_quota(process(tmp_path, ["0::/a.slice/b.service"], mounts)) == 2.0
    # A group outside of what a container sees: its topmost one is what there is.
    assert cpu_quota(process(tmp_path, ["0::/../elsewhere"], mounts)) == math.inf


@pytest.mark.parametrize(("quota", "wanted"), [(-1, math.inf), (250000, 2.5)])
def test_the_first_version(tmp_path, quota, wanted):
    cpu = group(tmp_path / "cpu,cpuacct", cpu__cfs_quota_us=quota, cpu__cfs_period_us=100000)
    group(tmp_path / "memory", cpu__cfs_quota_us=1000, cpu__cfs_period_us=100000)
    groups = ["5:memory:/", "4:cpu,cpuacct:/docker/abc", "1:name=systemd:/", "0::/"]
    # The container sees its own group as the top, though it is named from the machine's.
    mounts = [
        ("/docker/abc", cpu, "cgroup", "rw,cpu,cpuacct"),
        ("/docker/abc", tmp_path / "memory", "cgroup", "rw,memory"),
    ]
    assert cpu_quota(process(tmp_path, groups, mounts)) == wanted


@pytest.mark.parametrize(("text", "wanted"), [("max", math.inf), ("1000", 1000), ("", math.inf)])
def test_limits_of_memory(tmp_path, text, wanted):
    top = group(tmp_path / "two", memory__max=text)
    assert memory_limit(process(tmp_path, ["0::/"], [("/", top, "cgroup2", "rw")])) == wanted
    group(top / "a", memory__max=2000)
    limit = memory_limit(process(tmp_path, ["0::/a"], [("/", top, "cgroup2", "rw")]))
    assert limit == min(wanted, 2000)
    one = group(tmp_path / "one", memory__limit_in_bytes=text)
    mounts = [("/", one, "cgroup", "rw,memory"), ("/", group(tmp_path / "cpu"), "cgroup", "rw,cpu")]
    assert memory_limit(process(tmp_path, ["4:memory:/", "1:cpu:/"], mounts)) == wanted


def test_memory_that_is_there(monkeypatch):
    free = available_bytes()
    assert free > 1 << 20
    monkeypatch.setattr(cores, "memory_limit", lambda: 1234.0)
    assert available_bytes() == 1234


def test_damaged_files_are_no_limit(tmp_path):
    for text in ("", "\n\n", "nonsense", "::::", "0::\n-\n - \n"):
        (tmp_path / "cgroup").write_text(text)
        (tmp_path / "mountinfo").write_text(text)
        assert cpu_quota(tmp_path) == math.inf


@pytest.mark.parametrize(("quota", "wanted"), [(0.2, 1), (1.0, 1), (1.1, 2), (math.inf, None)])
def test_a_quota_bounds_the_cores(monkeypatch, quota, wanted):
    free = available_cores()
    monkeypatch.setattr(cores, "_quota", lambda: quota)
    assert available_cores() == min(free, wanted or free)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_affinity_bounds_the_cores():
    core = min(os.sched_getaffinity(0))
    code = (
        f"import os; os.sched_setaffinity(0, [{core}]); from mcrank.cores import available_cores; "
        "print(available_cores())"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == ["1"]


def test_joblib_counts_the_same():
    """It looks where a container sees its own group; both must agree wherever it can see one."""
    joblib = pytest.importorskip("joblib")
    assert available_cores() <= joblib.cpu_count()
    if all(not os.path.isdir(f"/sys/fs/cgroup{path}") or path == "/" for path in _own_groups()):
        assert available_cores() == min(joblib.cpu_count(), len(os.sched_getaffinity(0)))


def _own_groups():
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            return [line.split(":", 2)[2].strip() for line in file if line.split(":")[1] in ("", "cpu")]
    except OSError:
        return ["/"]
