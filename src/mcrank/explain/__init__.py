"""Why a row has its score, and why one row is above another: in features, adding up exactly."""
