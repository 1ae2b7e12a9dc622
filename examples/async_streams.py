"""Three answers at once, piece by piece as they are written. Run: python examples/async_streams.py [MAX_TOKENS]"""

import asyncio
import sys

from paceline import AsyncLLM, SamplingParams

params = SamplingParams(max_tokens=int(sys.argv[1]) if len(sys.argv) > 1 else 64)


async def answer(llm: AsyncLLM, number: int, question: str) -> str:
    async with llm.stream([{"role": "user", "content": question}], params) as stream:
        async for piece in stream:
            print(f"{number}: {piece.text!r}")  # the three take turns
    return stream.output().text


async def main(llm: AsyncLLM) -> None:
    questions = ["Name three rivers.", "What is a paceline?", "Why is the sky blue?"]
    async with llm:
        for text in await asyncio.gather(
            *[answer(llm, number, each) for number, each in enumerate(questions, start=1)]
        ):
            print(f"\n{text}")
        print(f"-- {llm.stats().num_steps} steps for {len(questions)} answers")


asyncio.run(main(AsyncLLM("smollm2")))  # loading blocks, so it is done before the event loop runs
