"""Queries that have no answer in a collection of everyday videos, by rules that anyone can repeat.

Half are made from the lists below: documents, ideas, science and software, which nobody filmed or
photographed for these collections. Half are captions of the other collections, those whose nearest caption
of this one, by the cosine of their sentence vectors, is farthest.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from wordreel.types import Float32, Int64

EACH = 250
OFFICE = (
    [
        "quarterly",
        "annual",
        "draft",
        "unsigned",
        "overdue",
        "confidential",
        "revised",
        "missing",
        "scanned",
        "audited",
    ],
    [
        "tax report",
        "balance sheet",
        "insurance policy",
        "employment contract",
        "expense claim",
        "pension statement",
        "board minutes",
        "patent application",
        "invoice",
        "audit trail",
    ],
)
IDEAS = (
    ["the meaning of", "the history of", "an argument against", "the definition of", "a theory of"],
    [
        "justice",
        "inflation",
        "monetary policy",
        "free will",
        "grammar",
        "democracy",
        "probability",
        "copyright",
        "gravity",
        "nostalgia",
    ],
)
SCIENCE = (
    ["a diagram of", "an electron micrograph of", "the equation of", "a simulation of", "the genome of"],
    [
        "a mitochondrion",
        "a black hole",
        "a neutron star",
        "a protein folding",
        "a crystal lattice",
        "the influenza virus",
        "plate tectonics",
        "a carbon nanotube",
        "a magnetic field",
        "the ozone layer",
    ],
)
SOFTWARE = (
    ["how to fix", "release notes of", "stack trace from", "unit tests for", "documentation of"],
    [
        "a segmentation fault",
        "the payment service",
        "a database migration",
        "the compiler",
        "a memory leak",
        "the login page",
        "a kernel module",
        "a spreadsheet macro",
        "the mail server",
        "a broken build",
    ],
)


def absent_queries() -> list[str]:
    """Every pair of every list.

    >>> queries = absent_queries()
    >>> len(queries) == EACH, queries[0], queries[-1]
    (True, 'quarterly tax report', 'documentation of a broken build')
    """
    return [" ".join(words) for lists in (OFFICE, IDEAS, SCIENCE, SOFTWARE) for words in product(*lists)]


def farthest(theirs: Float32, own: Float32, count: int = EACH) -> Int64:
    """The rows of `theirs [n, dim]` whose nearest row of `own [m, dim]` is farthest, by cosine.

    >>> farthest(np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32)[:2], 1).tolist()
    [2]
    """
    nearest = np.array([(row @ own.T).max() for row in theirs])
    return np.sort(np.argsort(nearest, kind="stable")[:count])
