"""One step of private gradient descent: clipping, noise and sampling, each attacked by itself.

`findings` is what a check says, `clipping`, `noising` and `batches` are the checks, and `step` puts
them together.
"""
