"""Choosing the weight of a regulariser by the framework papers' rule (FW21, section 3.3; gap U3)."""

import pandas as pd


def closest_weights(rows: pd.DataFrame, column: str) -> pd.Series:
    """For each data set and method the weight whose mean accuracy over seeds is closest to the plain one.

    `rows` have the columns data, method and weight, and an accuracy in `column`; weight 0 is the network
    without a regulariser. Of two equally close weights the smaller is taken. The index is (data, method).
    """
    mean = rows.groupby(["data", "method", "weight"], sort=False)[column].mean().reset_index()
    plain = mean[mean["weight"] == 0].set_index("data")[column]
    mean["apart"] = (mean[column] - mean["data"].map(plain)).abs()
    order = mean.sort_values(["apart", "weight"], kind="stable")
    return order.groupby(["data", "method"], sort=False)["weight"].first()


def at_closest_weights(rows: pd.DataFrame, column: str = "validation") -> pd.DataFrame:
    """The rows of the networks that the rule chooses."""
    picked = closest_weights(rows, column).loc[list(zip(rows["data"], rows["method"], strict=True))]
    return rows[rows["weight"].to_numpy() == picked.to_numpy()]
