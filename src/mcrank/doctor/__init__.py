"""What is wrong with ranking data; above the measures, so that it computes no figure they have."""
