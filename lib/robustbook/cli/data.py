"""`robustbook data`: get the full data sets and pretrained networks, and see what is there."""

from typing import TYPE_CHECKING

import click

from ..errors import BookError, unknown

if TYPE_CHECKING:
    from ..datasets.inventory import Entry

COLUMNS = ("name", "split", "state", "size", "where", "note")


@click.group()
def data() -> None:
    """Data sets and pretrained networks: fetch the full ones, list what is there."""


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


@data.command("list")
def list_command() -> None:
    """Show every data set and pretrained network: where it is, its size, and whether it is intact."""
    from ..datasets.inventory import inventory

    click.echo(table(inventory()))


def table(entries: "list[Entry]") -> str:
    """The entries as aligned columns."""
    rows = [COLUMNS] + [(e.name, e.split, e.state, megabytes(e.size), e.where, e.note) for e in entries]
    widths = [max(len(row[k]) for row in rows) for k in range(len(COLUMNS))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in rows)


def megabytes(size: int) -> str:
    """A size to read."""
    return f"{size / 1e6:.1f} MB" if size else ""
