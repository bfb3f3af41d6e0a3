"""A service over HTTP: ranking, scores and explanations of models, and a page to look at them.

What needs a library of the extra ``serve`` is imported here and nowhere else, when `mcrank serve` is called.
"""
