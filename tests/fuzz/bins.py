"""Target of files of bins, damaged blindly or forged with hashes in order; what is accepted is trained on."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import numpy as np

import mcrank
from mcrank.boosting.store import open_bins, write_bins
from mcrank.container import BINS
from tests.fuzz.forging import forged, seal
from tests.fuzz.target import Case, Difference, Target
from tests.reference.bins import check_bins
from tests.reference.container import Bad, read_container


class BinsTarget(Target):
    name = "bins"

    def prepare(self) -> None:
        """Make valid files, of 8 and of 16 bits, with and without weights, of rows in order and of others."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 21)).astype(np.float32)
        X[rng.random(X.shape) < 0.1] = np.nan
        y, qid = rng.integers(0, 3, 300), np.sort(rng.integers(0, 30, 300))
        weighted = mcrank.Dataset(X[:60, :3], y[:60], qid[:60].astype(str), weight=y[:60] + 0.5)
        self.files = []
        with tempfile.TemporaryDirectory() as folder:
            plain, apart = mcrank.Dataset(X, y, qid), mcrank.Dataset(X, y, rng.permutation(qid))
            for data, bins in ((weighted, 16), (plain, 256), (plain, 300), (apart, 40)):
                write_bins(data, path := Path(folder, "x.bins"), max_bins=bins, n_jobs=1)
                self.files.append(path.read_bytes())

    def make(self, random: Random) -> Case:
        content = random.choice(self.files)
        header, arrays = read_container(content, BINS.magic, finite=True)
        if random.random() < 0.4:  # one bin, grade, bound, ... that is another one
            name = random.choice(sorted(name for name in arrays if arrays[name].size))
            array = arrays[name].copy()
            array.reshape(-1)[random.randrange(array.size)] = random.choice((0, 1, 2, 255, 77))
            content = seal(header, arrays | {name: array}, BINS)
        else:
            content = forged(random, content, self.files[0], BINS)
        return Case("x.bins", content)

    def check(self, case: Case, path: Path) -> bool:
        data = open_bins(path)
        header, arrays = read_container(case.content, BINS.magic, finite=True)
        try:
            check_bins(header, arrays)
        except Bad as why:
            raise Difference(f"a file was accepted: {why}") from None
        way = {"max_bins": data.max_bins, "binning": data.binning}
        if 2 <= data.max_bins <= 65536:
            ranker = mcrank.RegressionRanker(n_estimators=1, n_jobs=1, num_leaves=4, **way).fit(data)
            if ranker.forest_.rows[0] != data.n_rows:
                raise Difference("rows were lost on the way")
        return True
