"""Rules for chapter 3 of the thesis: sparse perturbations."""

import pandas as pd

from .core import DIRECTION, INCONCLUSIVE, NOT_REPRODUCED, PAPER_SCALE, REPRODUCED, Finding, rule
from .decide import everywhere, exceeds, rank_correlation, spread, weakest

PUBLISHED = {"vgg16-imagenet", "resnet101-imagenet", "densenet161-imagenet", "inception_v3-imagenet"}
"""The four ImageNet networks of the thesis."""


def _mean(values: pd.Series, digits: int = 2) -> str:
    """Mean and, where there are several values, their spread."""
    width = f" ± {spread(values):.{digits}f}" if len(values) > 1 else ""
    return f"{values.mean():.{digits}f}{width}"


def _alone(values: pd.Series) -> str:
    """A warning where no spread is known."""
    return " (one seed)" if len(values) == 1 else ""


@rule("THESIS-C01", "THESIS-X3.2.1")
def clipping_spoils(table: pd.DataFrame) -> Finding:
    """l1-DeepFool fools 95 % without a box, and half at most once clipped to it."""
    wide = table.pivot_table(index=["data", "network", "seed"], columns="kind", values="fooled")
    verdicts, parts = set(), []
    for (_, network), part in wide.groupby(["data", "network"]):
        free, after = part["free"], part["clipped after"]
        verdicts |= {everywhere(free >= 95), exceeds(-after, -50.0, null=-float(free.mean()))}
        parts.append(f"{network} {free.mean():.0f} → {_mean(after, 0)} %")
    return Finding(
        weakest(verdicts), "free → clipped: " + "; ".join(parts), float(wide["clipped after"].mean())
    )


@rule("THESIS-C02", "THESIS-X3.2.1")
def clipping_inside_does_not_help(table: pd.DataFrame) -> Finding:
    """Clipping at every step gains ten points at most over clipping at the end."""
    wide = table.pivot_table(index=["data", "network", "seed"], columns="kind", values="fooled")
    gain = wide["clipped in the loop"] - wide["clipped after"]
    verdicts = {exceeds(-part, -10.0) for _, part in gain.groupby(["data", "network"])}
    text = "gain in points: " + "; ".join(
        f"{network} {_mean(part, 1)}" for (_, network), part in gain.groupby(["data", "network"])
    )
    return Finding(weakest(verdicts), text, float(gain.mean()))


@rule("THESIS-C03", "THESIS-A1")
def solver_reaches_the_plane(table: pd.DataFrame) -> Finding:
    """On the plane, inside the box, whenever the linear program has a solution."""
    worst = float(table["largest_residual"].max())
    met = (
        (table["largest_residual"] < 1e-5) & (table["inside"] == 100) & (table["agrees_with_program"] == 100)
    )
    text = (
        f"largest residual {worst:.1e} over {int(table['instances'].sum()):,} problems, "
        f"{table['inside'].min():.0f} % inside the box, "
        f"{table['agrees_with_program'].min():.0f} % agree on what is feasible"
    )
    return Finding(everywhere(met), text, worst)


@rule("THESIS-C04", "THESIS-E3.3")
def greedy_is_optimal(table: pd.DataFrame) -> Finding:
    """The l1 norm exceeds the linear program's by rounding alone."""
    worst = float(table["largest_excess"].max())
    return Finding(
        everywhere(table["largest_excess"] < 1e-6),
        f"largest relative excess {worst:.1e} over {len(table)} sets of problems",
        worst,
    )


def _attack(table: pd.DataFrame, name: str) -> pd.DataFrame:
    return table[table["attack"] == name].set_index(["data", "network", "seed"]).sort_index()


@rule("THESIS-C05", "THESIS-T3.1")
def sparsefool_fools(table: pd.DataFrame) -> Finding:
    """At least 99 % of the images, on every network."""
    ours = _attack(table, "sparsefool")
    least = float(ours["fooled"].min())
    text = ", ".join(
        f"{network} {_mean(part)} % of {int(part.size)} x {int(ours['images'].loc[data, network].iloc[0]):,}"
        for (data, network), part in ours["fooled"].groupby(["data", "network"], sort=False)
    )
    return Finding(everywhere(ours["fooled"] >= 99, ours["fooled"] >= 90), text, least)


@rule("THESIS-C06", "THESIS-T3.1")
def sparser_and_faster_than_jsma(table: pd.DataFrame) -> Finding:
    """Fewer pixels than JSMA, in less than half the time, on every network."""
    ours, theirs = _attack(table, "sparsefool"), _attack(table, "jsma")
    pixels = theirs["median_pixels"] / ours["median_pixels"].reindex(theirs.index)
    times = theirs["seconds"] / ours["seconds"].reindex(theirs.index)
    networks = ["data", "network"]
    verdicts = {exceeds(part, 1.0) for _, part in pixels.groupby(networks)}
    verdicts |= {exceeds(part, 2.0, null=1.0) for _, part in times.groupby(networks)}
    text = "; ".join(
        f"{network}: JSMA {pixels.loc[data, network].mean():.2f} x the pixels, "
        f"{times.loc[data, network].mean():.1f} x the time"
        for data, network in pixels.groupby(networks, sort=False).groups
    )
    return Finding(weakest(verdicts), text, float(pixels.min()))


@rule("THESIS-C07", "THESIS-T3.1")
def against_one_pixel(table: pd.DataFrame) -> Finding:
    """Sparser on MNIST, less sparse on CIFAR-10, a hundred times faster on both."""
    ours, theirs = _attack(table, "sparsefool"), _attack(table, "one-pixel")
    pixels = theirs["median_pixels"] / ours["median_pixels"].reindex(theirs.index)
    times = theirs["seconds"] / ours["seconds"].reindex(theirs.index)
    digits = pixels.index.get_level_values("data") == "mnist"
    sides = everywhere([*(pixels[digits] > 1), *(pixels[~digits] < 1)])
    speed = INCONCLUSIVE if times.isna().any() else everywhere(times > 100, times > 1)
    text = "; ".join(
        f"{network}: one-pixel {pixels.loc[data, network].mean():.2f} x the pixels, "
        f"{times.loc[data, network].mean():,.0f} x the time"
        for data, network in pixels.groupby(["data", "network"], sort=False).groups
    )
    return Finding(weakest({sides, speed}), text, float(times.min()))


@rule("THESIS-C08", "THESIS-T3.1")
def jsma_slows_down(table: pd.DataFrame) -> Finding:
    """From MNIST to CIFAR-10 JSMA's time grows by a larger factor than SparseFool's."""
    growth = {}
    for name in ("jsma", "sparsefool"):
        seconds = _attack(table, name)["seconds"].groupby(["data", "seed"]).mean().unstack("data")
        growth[name] = seconds["cifar10"] / seconds["mnist"]
    ratio = growth["jsma"] / growth["sparsefool"]
    text = (
        f"CIFAR-10 over MNIST: JSMA {_mean(growth['jsma'], 1)} x, "
        f"SparseFool {_mean(growth['sparsefool'], 1)} x"
    )
    return Finding(exceeds(ratio, 1.0), text, float(ratio.mean()))


@rule("THESIS-C09", "THESIS-T3.2")
def few_pixels_on_imagenet(table: pd.DataFrame) -> Finding:
    """Under half a percent of the pixels on each ImageNet network; other networks show the direction."""
    photos = table[table["data"] == "imagenet"]
    if photos.empty:
        return Finding(PAPER_SCALE, "no ImageNet images in this run", None)
    worst = float(photos["median_pixels"].max())
    verdict = everywhere(photos["median_pixels"] < 0.5)
    text = ", ".join(
        f"{r.network} {r.median_pixels:.2f} % ({r.images:,} images)" for r in photos.itertuples()
    )
    if verdict == REPRODUCED and not set(photos["network"]) >= PUBLISHED:
        return Finding(DIRECTION, f"{text}; none of the thesis' networks", worst)
    return Finding(verdict, text, worst)


@rule("THESIS-C10", "THESIS-X3.3.1")
def chance_fools_rarely(table: pd.DataFrame) -> Finding:
    """Random elements, as many, fool less than a quarter and less than a third of what SparseFool fools."""
    groups = table.groupby(["data", "network"], sort=False)
    verdicts = {exceeds(-part["random"], -25.0) for _, part in groups}
    verdicts |= {exceeds(part["sparsefool"] / 3 - part["random"], 0.0) for _, part in groups}
    text = "random: " + ", ".join(f"{name[1]} {_mean(part['random'], 1)} %" for name, part in groups)
    return Finding(weakest(verdicts), text, float(table["random"].max()))


@rule("THESIS-C11", "THESIS-F3.3")
def lambda_trades(table: pd.DataFrame) -> Finding:
    """With lambda rounds fall, pixels rise, and the fooling rate within two rounds does not fall."""
    verdicts, parts = set(), []
    for data, part in table.groupby("data", sort=False):
        ranks = {
            name: [rank_correlation(one["lam"], one[name]) for _, one in part.groupby("seed")]
            for name in ("rounds", "median_pixels", "fooled_in_2")
        }
        verdicts |= {exceeds([-r for r in ranks["rounds"]], 0.0), exceeds(ranks["median_pixels"], 0.0)}
        verdicts.add(everywhere([r >= 0 for r in ranks["fooled_in_2"]]))
        shown = ", ".join(f"{sum(r) / len(r):+.2f}" for r in ranks.values())
        parts.append(f"{data} {shown}")
    text = "rank correlation of lambda with rounds, pixels, fooling within two rounds: " + "; ".join(parts)
    return Finding(weakest(verdicts), text)


@rule("THESIS-C12", "THESIS-F3.6")
def bound_saturates(table: pd.DataFrame) -> Finding:
    """All are fooled whatever the bound, pixels fall with it, and 25 levels are within 20 % of 255."""
    least = float(table["fooled"].min())
    pixels = table.pivot_table(index="seed", columns="alpha", values="median_pixels")
    falling = [rank_correlation(pixels.columns, one) for _, one in pixels.iterrows()]
    excess = pixels[25] / pixels[255] - 1
    verdicts = {
        everywhere(table["fooled"] >= 99),
        everywhere([r < -0.8 for r in falling]),
        exceeds(-excess, -0.2),
    }
    tightest = table[table["alpha"] == table["alpha"].min()]["fooled"].mean()
    text = (
        f"fooled {least:.1f} % at least ({tightest:.1f} % with {int(table['alpha'].min())} levels); "
        f"with 25 levels {_mean(100 * excess, 0)} % more pixels than with 255"
    )
    return Finding(weakest(verdicts), text, float(excess.mean()))


@rule("THESIS-C13", "THESIS-T3.3")
def transfer_is_partial(table: pd.DataFrame) -> Finding:
    """Off the diagonal under half are fooled, and more from the larger network to the smaller.

    Larger means deeper, as in the thesis, where VGG-16 has the most weights and is the smallest; networks of
    one depth are ordered by their weights.
    """
    apart = table[table["source"] != table["target"]]
    cells = apart.groupby(["source", "target"])["fooled"]
    partial = {exceeds(-part, -50.0) for _, part in cells}
    gains = []
    deeper = apart["source_layers"] - apart["target_layers"]
    wider = apart["source_weights"] > apart["target_weights"]
    for (large, small), part in apart[(deeper > 0) | ((deeper == 0) & wider)].groupby(["source", "target"]):
        back = apart[(apart["source"] == small) & (apart["target"] == large)].set_index("seed")["fooled"]
        gains.append((large, small, part.set_index("seed")["fooled"] - back))
    if not gains:
        return Finding(INCONCLUSIVE, "one network alone", None)
    downhill = {exceeds(gain, 0.0) for *_, gain in gains}
    text = f"largest transfer {cells.mean().max():.1f} %; larger to smaller minus smaller to larger: "
    text += ", ".join(f"{a}/{b} {_mean(gain, 1)}" for a, b, gain in gains)
    verdict = weakest(partial | downhill)
    if verdict == NOT_REPRODUCED and partial == {REPRODUCED} and sum(g.mean() > 0 for *_, g in gains) > 0:
        mixed = {g.mean() > 0 for *_, g in gains} == {True, False}
        verdict = INCONCLUSIVE if mixed else verdict  # some pairs one way, some the other
    return Finding(verdict, text, float(cells.mean().max()))


@rule("THESIS-C14", "sparsefool-regions")
def pixels_are_where_it_matters(table: pd.DataFrame) -> Finding:
    """More perturbed pixels than a quarter in the central quarter, and where another network looks."""
    verdicts, parts = set(), []
    for (_, network), part in table.groupby(["data", "network"], sort=False):
        by_seed = part.groupby("seed")[["in_centre", "salient"]].mean()
        seen = by_seed.dropna(axis=1)
        verdicts |= {exceeds(seen[column], 25.0) for column in seen}
        parts.append(f"{network} {', '.join(_mean(seen[column], 1) for column in seen)}")
    text = "share in the central quarter, and in another network's most salient quarter (%): "
    return Finding(weakest(verdicts), text + "; ".join(parts), float(table["in_centre"].min()))


@rule("THESIS-C15", "THESIS-X3.4.2")
def other_norms_do_not_protect(table: pd.DataFrame) -> Finding:
    """The adversarially trained network is fooled too, with one to four times the pixels."""
    wide = table.pivot_table(index="seed", columns="kind", values=["median_pixels", "fooled"])
    ratio = wide["median_pixels"]["adversarial"] / wide["median_pixels"]["standard"]
    fooled = wide["fooled"]["adversarial"]
    verdicts = {everywhere(fooled >= 99), exceeds(ratio, 1.0), exceeds(-ratio, -4.0)}
    text = f"fooled {_mean(fooled, 1)} %, {_mean(ratio)} times the pixels{_alone(ratio)}"
    return Finding(weakest(verdicts), text, float(ratio.mean()))


@rule("THESIS-C16", "THESIS-X3.4.2")
def faster_on_the_hardened(table: pd.DataFrame) -> Finding:
    """Less time on the adversarially trained network than on its plain twin."""
    wide = table.pivot_table(index="seed", columns="kind", values=["seconds", "gradients"], dropna=False)
    work = wide["gradients"]["adversarial"] / wide["gradients"]["standard"]
    if "seconds" not in wide or wide["seconds"].isna().any(axis=None):
        return Finding(INCONCLUSIVE, f"not timed; {_mean(work)} times the gradients", float(work.mean()))
    ratio = wide["seconds"]["adversarial"] / wide["seconds"]["standard"]
    text = f"{_mean(ratio)} times the time, {_mean(work)} times the gradients{_alone(ratio)}"
    return Finding(exceeds(-ratio, -1.0), text, float(ratio.mean()))
