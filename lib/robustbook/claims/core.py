"""Rules, findings and verdicts."""

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ..errors import BookError
from ..published import claim as published_claim
from ..storage import sha256

REPRODUCED, DIRECTION, INCONCLUSIVE = "reproduced", "direction only", "inconclusive"
NOT_REPRODUCED, PAPER_SCALE = "not reproduced", "needs paper scale"
VERDICTS = (REPRODUCED, DIRECTION, INCONCLUSIVE, NOT_REPRODUCED, PAPER_SCALE)


@dataclass(frozen=True)
class Finding:
    """What a rule says of the tables: verdict, evidence, and the number it rests on."""

    verdict: str
    evidence: str
    measured: float | None = None


@dataclass(frozen=True)
class Rule:
    """A claim's rule and the tables it reads."""

    claim: str
    tables: tuple[str, ...]
    decide: Callable[..., Finding]


@dataclass(frozen=True)
class Verdict:
    """A finding with where it comes from."""

    claim: str
    verdict: str
    evidence: str
    measured: float | None
    tables: tuple[str, ...]
    profile: str
    fingerprint: str


RULES: dict[str, Rule] = {}


def rule(claim: str, *tables: str) -> Callable[[Callable[..., Finding]], Callable[..., Finding]]:
    """Decorator: the rule of a claim, called with the tables in this order as DataFrames."""
    published_claim(claim)

    def register(decide: Callable[..., Finding]) -> Callable[..., Finding]:
        if claim in RULES:
            raise BookError(f"claim {claim} has two rules")
        RULES[claim] = Rule(claim, tables, decide)
        return decide

    return register


def all_rules() -> dict[str, Rule]:
    """Every rule of the book; the modules beside this one are imported on first use."""
    package = importlib.import_module(__package__ or "")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return RULES


def apply(rule: Rule, frames: Iterable[pd.DataFrame], *, stand_in: bool = False) -> Finding:
    """The rule's finding; stand-in data gives at most 'direction only'."""
    finding = rule.decide(*frames)
    if finding.verdict not in VERDICTS:
        raise BookError(f"rule of {rule.claim} returned the unknown verdict '{finding.verdict}'")
    if stand_in and finding.verdict == REPRODUCED:
        return Finding(DIRECTION, f"{finding.evidence} (stand-in data)", finding.measured)
    return finding


def judge(available: Iterable[str], result: Callable[[str], Any]) -> list[Verdict]:
    """Verdicts on all claims whose tables are among the available ones, in the catalogue's order."""
    have, judged = set(available), []
    for rule in sorted(all_rules().values(), key=lambda r: r.claim):
        if set(rule.tables) <= have:
            tables = [result(id) for id in rule.tables]
            judged.append(_verdict(rule, tables))
    return judged


def _verdict(rule: Rule, tables: list[Any]) -> Verdict:
    order = ("smoke", "laptop", "paper")
    profile = min((table.profile for table in tables), key=order.index)
    stand_in = any(table.provenance.get("stand_in") for table in tables)
    finding = apply(rule, [table.frame for table in tables], stand_in=stand_in)
    prints = "".join(table.provenance["fingerprint"] for table in tables)
    mark = sha256(prints.encode())[:16]
    return Verdict(
        rule.claim, finding.verdict, finding.evidence, finding.measured, rule.tables, profile, mark
    )
