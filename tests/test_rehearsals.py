"""The `paper` profile of every chapter: one step of first rows. A file of its own, for the second worker."""

import pytest
from robustbook.execute import chapters
from robustbook.results import load_chapter
from robustbook.results.engine import outcomes


@pytest.mark.parametrize("name", chapters())
def test_the_first_row_of_every_experiment_can_be_rehearsed(name):
    """`robustbook rehearse` tries all rows of the paper profile, which takes too long here."""
    for experiment in load_chapter(name, "paper").experiments.values():
        first = experiment.rows("paper")[:1]
        for outcome in outcomes(experiment.function, first, engine="inline", rehearse=True):
            assert not outcome.error, f"{experiment.name}: {outcome.row}: {outcome.error}"
