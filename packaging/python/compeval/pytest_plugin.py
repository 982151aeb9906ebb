"""A pytest plug-in: `@pytest.mark.compeval(baseline="main")` makes a test of each line of the gate.

    @pytest.mark.compeval(baseline="main")
    def test_compaction(gate):
        gate.check()

The project is evaluated once, when the first of these tests runs. The methods and dimensions are those of the baseline, so
collecting the tests asks nobody and costs nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .program import run

MARK = "compeval(baseline, project='.', label='pytest', flags=()): a test for each line of the gate against the baseline"
FAILURES = "failures"
# Reasons for which a comparison has no verdict at all, as opposed to having found nothing.
CANNOT_SAY = ("answerer differs", "few fixtures", "missing", "truncated")


@dataclass(frozen=True)
class Settings:
    """Which evaluation a marked test is about."""

    baseline: str
    project: str = "."
    label: str = "pytest"
    flags: tuple[str, ...] = ()

    @staticmethod
    def of(mark: pytest.Mark, folder: Path) -> "Settings":
        fields = dict(mark.kwargs)
        if mark.args:
            fields["baseline"] = mark.args[0]
        project = (folder / fields.pop("project", ".")).resolve()
        return Settings(project=str(project), flags=tuple(fields.pop("flags", ())), **fields)

    def lines(self) -> list[tuple[str, str]]:
        """The method and figure of each line; read from the results of the baseline."""
        path = Path(self.project) / "results" / self.baseline / "summary.json"
        try:
            summary = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            hint = f"compeval run --label {self.baseline}"
            raise pytest.UsageError(f"no baseline: {error.strerror}: {path} (to make one: {hint})") from error
        return [
            (method, figure)
            for method, scores in summary["methods"].items()
            for figure in ("overall", *scores["dimensions"], FAILURES)
        ]


@dataclass(frozen=True)
class GateLine:
    """One method and one figure of the comparison with the baseline."""

    method: str
    figure: str
    compared: dict[str, Any] | None

    def check(self) -> None:
        """Fails the test where the comparison calls the figure regressed, and skips it where it cannot say."""
        if self.compared is None:
            pytest.skip(f"{self.method} is not compared: it has no counterpart in this run")
        fault = self.fault(self.compared)
        if fault is not None:
            pytest.fail(f"{self.method} {fault}", pytrace=False)

    def fault(self, compared: dict[str, Any]) -> str | None:
        if self.figure == FAILURES:
            found = compared["reliability"]
            now, before = (f"{found[f'{when}failed']} of {found[f'{when}chains']}" for when in ("", "baseline_"))
            return f"fails more often: {now} compressions, {before} before" if found["regressed"] else None
        found = compared["overall"] if self.figure == "overall" else compared["dimensions"].get(self.figure)
        if found is None:
            pytest.skip(f"{self.figure} of {self.method} is not compared")
        if found["reason"] in CANNOT_SAY:
            pytest.skip(f"no verdict on {self.figure} of {self.method}: {found['reason']}")
        return f"regressed in {self.figure}: {sentence(found)}" if found["verdict"] == "regressed" else None


def sentence(found: dict[str, Any]) -> str:
    interval = "(95%: {:+.2f} to {:+.2f})".format(*found["ci95"]) if found["ci95"] else "(no interval)"
    return f"{found['difference']:+.2f} {interval}"


OUTCOMES = pytest.StashKey[dict]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARK)
    config.stash[OUTCOMES] = {}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    mark = metafunc.definition.get_closest_marker("compeval")
    if mark is None or "gate" not in metafunc.fixturenames:
        return
    settings = Settings.of(mark, metafunc.config.rootpath)
    lines = settings.lines()
    names = [f"{method}-{figure}" for method, figure in lines]
    metafunc.parametrize("gate", [(settings, *line) for line in lines], ids=names, indirect=True)


@pytest.fixture
def gate(request: pytest.FixtureRequest) -> GateLine:
    """A line of the gate. The first test that asks for one runs the evaluation."""
    if not hasattr(request, "param"):
        raise pytest.UsageError("the fixture `gate` needs the mark: @pytest.mark.compeval(baseline=…)")
    settings, method, figure = request.param
    outcomes = request.config.stash[OUTCOMES]
    if settings not in outcomes:
        options = {"label": settings.label, "compare_to": settings.baseline}
        outcomes[settings] = run(settings.project, flags=["--replace", *settings.flags], **options)
    comparison = outcomes[settings]["comparison"] or {"methods": {}}
    return GateLine(method, figure, comparison["methods"].get(method))
