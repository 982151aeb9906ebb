"""What people write by hand: asyncio, one file a reply as a cache, a semaphore, retries. `script.py WORK CACHE URL`"""

import asyncio
import hashlib
import json
import pathlib
import sys

import httpx

IN_FLIGHT = 64


async def ask(client, limit, cache, url, model, prompt):
    request = {"model": model, "messages": [{"role": "user", "content": prompt}]}
    file = cache / (hashlib.sha256(json.dumps(request).encode()).hexdigest() + ".json")
    if file.exists():
        return json.loads(file.read_text())
    async with limit:
        while True:
            response = await client.post(f"{url}/chat/completions", json=request)
            if response.status_code != 429:
                break
            await asyncio.sleep(float(response.headers.get("retry-after", 1)))
    response.raise_for_status()
    text = response.json()["choices"][0]["message"]["content"]
    part = file.with_suffix(".part")
    part.write_text(json.dumps(text))
    part.rename(file)
    return text


async def main(work, cache, url):
    cache.mkdir(parents=True, exist_ok=True)
    limit = asyncio.Semaphore(IN_FLIGHT)
    limits = httpx.Limits(max_connections=IN_FLIGHT, max_keepalive_connections=IN_FLIGHT)

    async with httpx.AsyncClient(timeout=600, limits=limits) as client:

        async def one(item):
            prompt = f"{item['context']}\n\nQuestion: {item['question']}"
            answer = await ask(client, limit, cache, url, "reader", prompt)
            grading = f"{item['context']}\n\nQuestion: {item['question']}\nAnswer: {answer}\n\nEnd with GRADE: C or GRADE: I."
            return await ask(client, limit, cache, url, "grader", grading)

        grades = await asyncio.gather(*(one(item) for item in work))
    print(sum("GRADE: C" in grade for grade in grades), "of", len(grades))


if __name__ == "__main__":
    items = json.loads(pathlib.Path(sys.argv[1]).read_text())
    asyncio.run(main(items, pathlib.Path(sys.argv[2]), sys.argv[3]))
