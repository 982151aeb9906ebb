"""The graded cells of a result set."""

from __future__ import annotations

import csv
import io
import os
from typing import TYPE_CHECKING

from .program import call

if TYPE_CHECKING:
    import pandas


def rows(label: str, project: str | os.PathLike[str] = ".") -> list[dict[str, str]]:
    """The graded cells of a label, one dict a cell, with the texts of `compeval report LABEL --csv` (docs/data.md)."""
    _, text = call(project, "report", label, "--csv")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def frame(label: str, project: str | os.PathLike[str] = ".") -> "pandas.DataFrame":
    """The graded cells of a label as a data frame, one row a cell; an unknown value is NaN. Needs pandas."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("compeval.frame needs pandas: pip install pandas (compeval.rows does without)") from error
    _, text = call(project, "report", label, "--csv")
    # Only an empty cell is unknown: an answer may well be the text "None" or "nan".
    return pandas.read_csv(io.StringIO(text, newline=""), keep_default_na=False, na_values=[""])
