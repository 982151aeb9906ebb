"""The same work for inspect_ai: a model answers, a model grades, both with inspect's own cache."""

import json
import os
import pathlib

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import CORRECT, INCORRECT, Score, accuracy, scorer
from inspect_ai.solver import generate


@scorer(metrics=[accuracy()])
def graded():
    grader = get_model("openai-api/sim/grader")

    async def score(state, target):
        prompt = f"{state.input_text}\nAnswer: {state.output.completion}\n\nEnd with GRADE: C or GRADE: I."
        grade = await grader.generate(prompt, cache=True)
        return Score(value=CORRECT if "GRADE: C" in grade.completion else INCORRECT)

    return score


@task
def work():
    items = json.loads(pathlib.Path(os.environ["COMPARE_WORK"]).read_text())
    samples = [Sample(input=f"{item['context']}\n\nQuestion: {item['question']}", target="x") for item in items]
    return Task(dataset=MemoryDataset(samples), solver=generate(cache=True), scorer=graded())
