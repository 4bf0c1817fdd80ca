"""One rule a claim: from measured tables to a verdict, with the evidence in a sentence.

Rules are written from the `test` column of the catalogue and read tables only; nothing is typed in.
"""

from .core import RULES, Finding, Rule, Verdict, judge, rule
from .decide import everywhere, exceeds, rank_correlation

__all__ = [
    "RULES",
    "Finding",
    "Rule",
    "Verdict",
    "everywhere",
    "exceeds",
    "judge",
    "rank_correlation",
    "rule",
]
