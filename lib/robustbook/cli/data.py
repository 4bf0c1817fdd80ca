"""`robustbook data`: get full data sets and pretrained networks, corrupt images, see what is there."""

from typing import TYPE_CHECKING

import click

from ..errors import BookError, unknown

if TYPE_CHECKING:
    from ..datasets.inventory import Entry

COLUMNS = ("name", "split", "state", "size", "where", "note")


@click.group()
def data() -> None:
    """Data sets and pretrained networks: fetch them, write corrupted sets, list what is there."""


@data.command("fetch")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def fetch_command(names: tuple[str, ...], quiet: bool) -> None:
    """Get full data sets (`all` of them) or pretrained networks, by name, into ROBUSTBOOK_DATA."""
    from ..datasets import DATASETS  # imports torch: not for `--help`
    from ..datasets.fetch import fetch
    from ..datasets.ways import WAYS
    from ..networks import PRETRAINED
    from ..networks.fetch import fetch as fetch_network

    everything = [name for name in WAYS if name != "svhn-10000"]  # a stand-in, for want of svhn
    chosen = dict.fromkeys(n for name in names for n in (everything if name == "all" else [name]))
    errors = []
    for name in chosen:
        try:
            if name not in PRETRAINED and name not in DATASETS:
                raise unknown("data set or pretrained network", name, [*DATASETS, *PRETRAINED, "all"])
            bring = fetch_network if name in PRETRAINED else fetch
            click.echo(bring(name, progress=not quiet))
        except BookError as error:
            errors.append(str(error))
    if errors:
        raise BookError("; ".join(errors))


@data.command("corrupt")
@click.argument("name", metavar="mnist|cifar10|cifar100")
@click.option("--only", multiple=True, metavar="NAME[,NAME...]", help="Only these corruptions.")
@click.option("--train", is_flag=True, help="MNIST-C: the 60,000 training images as well.")
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(1), help="Processes that compute.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def corrupt_command(name: str, only: tuple[str, ...], train: bool, jobs: int, quiet: bool) -> None:
    """Write MNIST-C, CIFAR-10-C or CIFAR-100-C, computed here, in the public layout into the data folder.

    What is there and intact is kept, so that an interrupted command goes on. The book computes what it needs
    without these files; with them it reads the same pixels faster. Official files in the data folder come
    first. Frost is drawn, not photographed.
    """
    from ..corruptions.writing import write

    names = tuple(part.strip() for text in only for part in text.split(",") if part.strip())
    if only and not names:
        raise BookError("--only without a name: give corruptions, such as --only fog,frost")
    click.echo(write(name, only=names, train=train, jobs=jobs, progress=not quiet))


@data.command("list")
def list_command() -> None:
    """Show every data set and pretrained network: where it is, its size, and whether it is intact."""
    from ..corruptions.inventory import corrupted_sets
    from ..datasets.inventory import inventory

    click.echo(table(inventory() + corrupted_sets()))


def table(entries: "list[Entry]") -> str:
    """The entries as aligned columns."""
    rows = [COLUMNS] + [(e.name, e.split, e.state, megabytes(e.size), e.where, e.note) for e in entries]
    widths = [max(len(row[k]) for row in rows) for k in range(len(COLUMNS))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in rows)


def megabytes(size: int) -> str:
    """A size to read."""
    return f"{size / 1e6:.1f} MB" if size else ""
