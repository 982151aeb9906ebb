"""The same work as a task of inspect_ai: an answer and a grade by a model for each sample."""

import json
import os

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.scorer import model_graded_qa
from inspect_ai.solver import generate


@task
def work():
    with open(os.environ["ITEMS"], encoding="utf-8") as file:
        items = json.load(file)
    samples = [Sample(input=f"{item['context']}\n\n{item['question']}", target=item["fact"]) for item in items]
    judge = get_model("openai-api/loopback/inspect-judge", config=GenerateConfig(cache=True, max_connections=64))
    return Task(dataset=samples, solver=generate(cache=True), scorer=model_graded_qa(model=judge))
