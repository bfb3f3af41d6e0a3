"""Small models of one version of XGBoost with the margins it gives; run with each version that is to be kept.

pip install xgboost==1.7.6 && python make_xgboost.py   # writes xgboost-1.7.6.json
"""

import base64
import json
from pathlib import Path

import numpy
import xgboost

rng = numpy.random.default_rng(5)
X = rng.standard_normal((200, 3)).astype(numpy.float32)
grades = numpy.digitize(X[:, 0] + X[:, 1] ** 2, [0, 1])
X[rng.random(X.shape) < 0.1] = numpy.nan
models = []
for more in (
    {"objective": "rank:ndcg"}, {"objective": "binary:logistic"}, {"objective": "reg:squarederror"},
    {"objective": "multi:softprob", "num_class": 3}, {"objective": "count:poisson"},
    {"objective": "rank:pairwise", "booster": "dart", "rate_drop": 0.5}, {"booster": "gblinear"},
):  # fmt: skip
    depth = {} if more.get("booster") == "gblinear" else {"max_depth": 2}
    data = xgboost.DMatrix(X, (grades > 0) if "binary" in str(more) else grades)
    if "rank" in str(more):
        data.set_group([20] * 10)
    booster = xgboost.train({"nthread": 1, "seed": 1, **depth, **more}, data, 3)
    margins = booster.predict(xgboost.DMatrix(X[:40]), output_margin=True)
    models.append({
        "options": more, "json": json.loads(booster.save_raw("json")),
        "ubj": base64.b85encode(bytes(booster.save_raw("ubj"))).decode(),
        "margins": numpy.asarray(margins, dtype=float).reshape(40, -1).tolist(),
    })  # fmt: skip
rows = [[None if numpy.isnan(x) else float(x) for x in row] for row in X[:40]]
path = Path(__file__).parent / f"xgboost-{xgboost.__version__}.json"
path.write_text(json.dumps({"rows": rows, "models": models}, separators=(",", ":")) + "\n")
