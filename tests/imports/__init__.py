"""Models that LightGBM, XGBoost, CatBoost and scikit-learn trained, imported and compared with themselves."""
