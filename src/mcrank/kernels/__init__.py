"""Compiled functions: how they are declared, where they are kept, and when a kept one may be used.

`declare` has `kernel` and `step`; `stamp` describes all that a kernel is compiled from; `cache` keeps kernels
on disk under that description, in the folders of `folders`.
"""

from mcrank.kernels.declare import kernel as kernel
from mcrank.kernels.declare import step as step
