"""Work in a process of its own, which can be stopped and may crash.

Contract: a task is a function of a module, called with arguments that can be pickled; it answers in
plain data (None, booleans, numbers, texts, bytes, lists, tuples, dicts). A process that takes too
long, needs too much memory or crashes is one error of `whosin.errors` here. What comes back is read
without making any object of a class, so that a process that a damaged file has taken over cannot
reach this one.

`run` starts a new interpreter, for one file in a program of a user. `Nursery` keeps a process that
has imported everything and forks itself for each task, for a server.
"""

from whosin.isolation.limits import Limits
from whosin.isolation.nursery import Nursery
from whosin.isolation.once import run

__all__ = ["Limits", "Nursery", "run"]
