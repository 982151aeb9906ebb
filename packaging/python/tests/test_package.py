"""The module `compeval` against the program that COMPEVAL names, offline: python3 -m unittest discover packaging/python/tests

The tests of the pytest plug-in and of data frames are skipped where pytest and pandas are not installed.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import compeval

ROOT = Path(__file__).resolve().parents[3]
HAS_PYTEST = importlib.util.find_spec("pytest") is not None
HAS_PANDAS = importlib.util.find_spec("pandas") is not None

METHOD = """import compeval

def compress(request):
    return {"summary": compeval.history(request)[0]["content"][:200]}

compeval.method(compress)
"""

GATE = """import pytest

@pytest.mark.compeval(baseline="first", flags=["--methods", "anchored,full", "--runs", "1"])
def test_compaction(gate):
    gate.check()
"""

class Package(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.project = Path(self.folder.name)
        subprocess.run([os.environ["COMPEVAL"], "-C", self.project, "init", "-q"], check=True)

    def edit(self, name, old, new):
        path = self.project / name
        text = path.read_text(encoding="utf-8")
        self.assertIn(old, text)
        path.write_text(text.replace(old, new), encoding="utf-8")

    def python(self, *arguments):
        package = str(Path(compeval.__file__).parent.parent)
        variables = {**os.environ, "PYTHONPATH": package, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=self.project, env=variables, capture_output=True, encoding="utf-8")

    def test_a_run_returns_its_summary_and_its_cells(self):
        found = compeval.run(self.project, label="first", methods=["full", "none"])
        self.assertEqual((found["exit_code"], found["label"]), (0, "first"))
        self.assertEqual(set(found["methods"]), {"full", "none"})
        cells = compeval.rows("first", self.project)
        self.assertEqual({cell["method"] for cell in cells}, {"full", "none"})
        if HAS_PANDAS:
            self.assertEqual(len(compeval.frame("first", self.project)), len(cells))

    def test_a_mistake_is_an_exception_with_the_message_of_the_program(self):
        with self.assertRaises(compeval.CompevalError) as caught:
            compeval.run(self.project, methods=["no-such-method"])
        self.assertEqual(caught.exception.code, 2)
        self.assertIn("no-such-method", str(caught.exception))

    def test_a_function_is_a_method(self):
        (self.project / "mine.py").write_text(METHOD, encoding="utf-8")
        table = f'\n[[compress]]\nname = "mine"\nstrategy = "command"\ncommand = ["{sys.executable}", "mine.py"]\n'
        with open(self.project / "pipeline.toml", "a", encoding="utf-8") as pipeline:
            pipeline.write(table + 'inputs = ["mine.py"]\nenv = ["PYTHONPATH"]\n')
        os.environ["PYTHONPATH"] = str(Path(compeval.__file__).parent.parent)
        found = compeval.run(self.project, label="own", methods=["mine"])
        self.assertGreater(found["methods"]["mine"]["context_tokens"], 0)
        self.assertEqual(self.python("-c", "import mine").stdout, "")

    @unittest.skipUnless(HAS_PYTEST, "pytest is not installed")
    def test_the_gate_is_a_test_for_each_method_and_figure(self):
        # A verdict needs several sessions; those of the repository are there.
        for folder in ("fixtures", "probes"):
            shutil.copytree(ROOT / folder, self.project / folder, dirs_exist_ok=True)
        compeval.run(self.project, label="first", methods=["anchored", "full"], flags=["--runs", "1"])
        (self.project / "test_gate.py").write_text(GATE, encoding="utf-8")
        pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "compeval.pytest_plugin", "test_gate.py"]
        same = self.python(*pytest)
        self.assertEqual(same.returncode, 0, same.stdout)
        self.edit("prompts/anchored.md", "## Current state", "")
        worse = self.python(*pytest)
        self.assertEqual(worse.returncode, 1, worse.stdout)
        self.assertIn("anchored regressed in overall: -", worse.stdout)
        self.assertIn("[full-overall]", self.python(*pytest, "--collect-only").stdout)


if __name__ == "__main__":
    unittest.main()
