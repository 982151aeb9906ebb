"""A script as a team would write it: asyncio, the client of OpenAI, a semaphore and a file for each reply."""

import asyncio
import hashlib
import json
import os
import sys
from pathlib import Path

from openai import AsyncOpenAI

CACHE = Path("cache")


async def ask(client, limit, model, prompt):
    key = hashlib.sha256(json.dumps([model, prompt]).encode()).hexdigest()
    path = CACHE / f"{key}.json"
    if path.exists():
        return json.loads(path.read_text())
    async with limit:
        reply = await client.chat.completions.create(model=model, messages=[{"role": "user", "content": prompt}])
    text = reply.choices[0].message.content
    path.write_text(json.dumps(text))
    return text


async def grade(client, limit, item):
    answer = await ask(client, limit, "reader", f"{item['context']}\n\n{item['question']}")
    brief = f"{item['context']}\n\n{item['question']}\n\n{answer}\n\nGrade the answer."
    return json.loads(await ask(client, limit, "judge", brief))


async def main():
    CACHE.mkdir(exist_ok=True)
    items = json.loads(Path(sys.argv[1]).read_text())
    client = AsyncOpenAI(base_url=os.environ["BASE_URL"], api_key="none", max_retries=8)
    limit = asyncio.Semaphore(64)
    grades = await asyncio.gather(*(grade(client, limit, item) for item in items))
    Path("grades.json").write_text(json.dumps(grades))


asyncio.run(main())
