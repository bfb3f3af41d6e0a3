"""Every ranker by name: what the command line trains and a model file may hold. A new ranker is one line
here.
"""

from __future__ import annotations

RANKERS: dict[str, str] = {
    "mcrank": "mcrank.rankers.mcrank:McRank",
    "ordinal": "mcrank.rankers.mcrank:OrdinalMcRank",
    "regression": "mcrank.rankers.regression:RegressionRanker",
    "gbrank": "mcrank.rankers.gbrank:GBRank",
    "lambdamart": "mcrank.rankers.lambdamart:LambdaMART",
    "best-feature": "mcrank.rankers.best_feature:BestFeature",
    "adarank": "mcrank.rankers.adarank:AdaRank",
    "ranksvm": "mcrank.rankers.ranksvm:RankSVM",
    "ranknet": "mcrank.rankers.nets:RankNet",
    "lambdarank": "mcrank.rankers.nets:LambdaRank",
    "rankboost": "mcrank.rankers.rankboost:RankBoost",
    "coordinate-ascent": "mcrank.rankers.coordinate_ascent:CoordinateAscent",
    "blend": "mcrank.rankers.blend:Blend",
    "frank": "mcrank.rankers.frank:FRank",
}
