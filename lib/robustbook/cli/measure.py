"""`robustbook measure`: the book's measures on a network of your own."""

import contextlib
import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import BookError

if TYPE_CHECKING:
    from ..results.own import Report


@click.command()
@click.argument("target", metavar="PACKAGE.MODULE:MAKE_NETWORK")
@click.option("--data", required=True, help="data set whose test images are used, such as cifar10")
@click.option(
    "--measures", default="", metavar="NAME[,NAME...]", help="only these; all that apply if not given"
)
@click.option("--budget", default="quick", show_default=True, help="tiny, quick, laptop or full")
@click.option(
    "--inputs", default="0-1", show_default=True, help="pixels it expects: 0-1, 0-255, -1-1, standardised"
)
@click.option("--seed", default=0, show_default=True, help="where chance comes from")
@click.option(
    "--out", type=click.Path(path_type=Path), help="folder of the results; measured/NAME if not given"
)
@click.option("--dry-run", is_flag=True, help="examine the network and state the minutes, measure nothing")
@click.option("--quiet", is_flag=True, help="no progress bar")
def measure(
    target: str,
    data: str,
    measures: str,
    budget: str,
    inputs: str,
    seed: int,
    out: Path | None,
    dry_run: bool,
    quiet: bool,
) -> None:
    """Measure a network: PACKAGE.MODULE:MAKE_NETWORK is a function without arguments that gives one.

    What is finished is kept in the folder of the results, and the same command goes on from there.
    """
    from ..results.own import carry_out, plan_measures

    chosen = [name.strip() for name in measures.split(",") if name.strip()]
    plan = plan_measures(classifier_named(target), data, measures=chosen, budget=budget, inputs=inputs)
    click.echo(plan.told())
    if dry_run:
        return
    name = target.rpartition(":")[2]
    folder = out or Path("measured") / f"{name}-{data}"
    show(carry_out(plan, name=name, seed=seed, out=folder, progress=not quiet), folder)


def show(report: "Report", folder: Path) -> None:
    """Print the table, and keep it and the figure."""
    from .. import figures
    from ..results.own_figure import beside_the_book
    from ..storage import write_text

    table = report.beside()
    click.echo(table.to_string(index=False, na_rep="–", float_format=lambda value: f"{value:.4g}"))
    write_text(folder / "table.csv", table.to_csv(index=False))
    click.echo(folder / "table.csv")
    for path in figures.save(beside_the_book, [report.table, report.book, report.name], folder / "figure"):
        click.echo(path)


def classifier_named(target: str) -> Any:
    """`package.module:make_network`: the object of that name, or what it makes when called."""
    module_name, _, name = target.partition(":")
    if not module_name or not name:
        raise BookError(f"'{target}' names no network; write package.module:make_network")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    import torch

    from ..vision import torchvision

    with contextlib.suppress(ImportError, RuntimeError):
        torchvision()  # the reader's module may import it plainly, also where its operators do not load
    try:
        found = getattr(importlib.import_module(module_name), name)
        ready = isinstance(found, torch.nn.Module) or (
            hasattr(found, "predict") and not isinstance(found, type)
        )
        return found if ready else found()
    except Exception as error:  # whatever the reader's own code may raise
        reason = (str(error).splitlines() or [""])[0]
        raise BookError(f"{target} gives no network: {type(error).__name__}: {reason}") from error
