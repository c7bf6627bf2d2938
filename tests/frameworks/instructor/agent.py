"""An agent that asks for an answer of a form; instructor asks once more when it is not of that form."""

import instructor
import openai
from opentelemetry import trace
from pydantic import BaseModel

from frameworks import lab, otlp_file

provider = otlp_file.provider()
otlp_file.instrument()
client = instructor.from_openai(openai.OpenAI())
tracer = trace.get_tracer("app")

AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner"}


class Trip(BaseModel):
    hour: int


with tracer.start_as_current_span("invoke_agent planner", attributes=AGENT):
    messages = [{"role": "user", "content": lab.TRIP}]
    trip = client.chat.completions.create(
        model="gpt-fake", messages=messages, response_model=Trip, max_retries=2
    )
    print(trip.hour)

provider.shutdown()
