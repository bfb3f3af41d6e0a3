"""What other libraries call the options of a ranker: who comes from them is told the word here.

Words of LightGBM, XGBoost, CatBoost, scikit-learn and RankLib. Only looked at when an option is not known.
"""

from __future__ import annotations

from collections.abc import Container

# Our word -> theirs. None of theirs may be an option of a ranker here (tests/test_synonyms.py).
_THEIRS: dict[str, str] = {
    "n_estimators": "num_boost_round num_iterations num_iteration num_round num_rounds n_rounds nrounds "
    "rounds num_trees num_tree n_trees ntree iterations n_iter tree",
    "learning_rate": "eta shrinkage shrinkage_rate lr",
    "num_leaves": "max_leaves max_leaf_nodes max_leaf num_leaf leaf leaves",
    "max_bins": "max_bin border_count tc",
    "min_samples_leaf": "min_data_in_leaf min_data_per_leaf min_data min_child_samples mls",
    "min_sum_hessian": "min_sum_hessian_in_leaf min_sum_hessian_per_leaf min_child_weight",
    "min_gain": "min_gain_to_split min_split_gain min_split_loss gamma",
    "l1": "lambda_l1 reg_alpha alpha",
    "l2": "lambda_l2 reg_lambda lambda l2_leaf_reg l2_regularization weight_decay",
    "subsample": "bagging_fraction bagging sub_row srate",
    "colsample": "feature_fraction sub_feature colsample_bytree rsm max_features frate",
    "colsample_node": "feature_fraction_bynode sub_feature_bynode colsample_bynode",
    "max_depth": "depth",
    "extra_trees": "extra_tree",
    "feature_weights": "feature_contri feature_contrib",
    "interaction": "interaction_constraints interaction_cst",
    "monotone": "monotone_constraints monotone_constraint monotonic_cst mc",
    "categorical": "categorical_feature categorical_features cat_feature cat_features",
    "drop_rate": "rate_drop",
    "early_stopping_rounds": "early_stopping_round early_stopping od_wait n_iter_no_change estop",
    "random_state": "seed random_seed rng",
    "n_jobs": "num_threads num_thread nthread nthreads n_thread thread_count thread",
    "verbose": "verbosity silent",
    "multi_output": "multi_strategy",
    "truncation": "lambdarank_truncation_level lambdarank_num_pair_per_sample",
    "norm": "lambdarank_norm lambdarank_normalization",
    "measure": "metric metrics eval_metric metric2t",
    "scaling": "normalize norm_features",
    "epochs": "epoch max_epochs",
    "hidden": "hidden_layer_sizes hidden_units",
    "restarts": "n_restarts",
}
_OURS = {theirs: ours for ours, words in _THEIRS.items() for theirs in words.split()}


def word_for(name: str, known: Container[str]) -> str | None:
    """Return what an option that other libraries have is called here; None where nobody says so.

    Parameters
    ----------
    name : str
        What was not known, with underscores or with the dashes of a command line.
    known : container of str
        The options there are.

    Examples
    --------
    >>> from mcrank.synonyms import word_for
    >>> word_for("eta", ["learning_rate"]), word_for("--num-boost-round", ["n_estimators"])
    ('learning_rate', 'n_estimators')
    >>> word_for("eta", ["depth"]) is None
    True
    """
    ours = _OURS.get(name.lstrip("-").replace("-", "_").lower())
    return ours if ours is not None and ours in known else None
