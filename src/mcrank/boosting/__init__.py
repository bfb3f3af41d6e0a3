"""Boosting: bins, histograms, splits and trees, grown in rounds."""
