"""The command `robustbook`: run, build, figures, data, scorecard, rehearse, measure."""

import sys

import click

from ..errors import BookError
from .data import data
from .main import build, figures, rehearse, scorecard
from .measure import measure
from .run import run


class _Commands(click.Group):
    """A group whose errors are one line on standard error and exit code 2."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple:  # type: ignore[type-arg]
        from ..errors import unknown

        if args and args[0] not in self.commands and not args[0].startswith("-"):
            raise unknown("command", args[0], self.commands)
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="robustbook")
def cli() -> None:
    """Reproduce papers on the robustness of image classifiers, one table or figure at a time."""


for command in (run, build, figures, data, scorecard, rehearse, measure):
    cli.add_command(command)


def main() -> None:
    """Entry point: problems a person can fix are one line and exit code 2, never a stack trace."""
    try:
        code = cli.main(standalone_mode=False)
    except BookError as error:
        code = _complain(str(error), 2)
    except click.exceptions.Abort:
        code = _complain("interrupted; finished rows are stored, the same command goes on from there", 130)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        code = 2
    except click.ClickException as error:
        code = _complain(error.format_message(), 2)
    except KeyboardInterrupt:
        code = _complain("interrupted; finished rows are stored, the same command goes on from there", 130)
    sys.exit(code if isinstance(code, int) else 0)


def _complain(text: str, code: int) -> int:
    click.echo(f"robustbook: {' '.join(text.split())}", err=True)
    return code
