"""JSON schemas that answers must match, and a prompt for each.

Together they cover strings with and without limits, enumerations, integers and numbers in a range, patterns, formats,
references, alternatives, optional members, and lists.
"""

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "mood": {"enum": ["glad", "calm", "cross"]},
    },
    "required": ["name", "age", "mood"],
    "additionalProperties": False,
}

WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1, "maxLength": 40},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
    },
    "required": ["city", "unit"],
    "additionalProperties": False,
}

SHOPPING = {
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "minItems": 1,
            "maxItems": 5,
            "items": {"$ref": "#/$defs/item"},
        },
        "paid": {"type": "boolean"},
    },
    "required": ["items", "paid"],
    "additionalProperties": False,
    "$defs": {
        "item": {
            "type": "object",
            "properties": {
                "what": {"type": "string", "maxLength": 24},
                "price": {"type": "number", "minimum": 0, "maximum": 1000},
            },
            "required": ["what", "price"],
            "additionalProperties": False,
        }
    },
}

TICKET = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"},
        "due": {"type": "string", "format": "date"},
        "owner": {"anyOf": [{"type": "string", "maxLength": 20}, {"type": "null"}]},
    },
    "required": ["code", "due", "owner"],
    "additionalProperties": False,
}

WORDS = {"type": "array", "items": {"type": "string"}, "minItems": 2}

# Has no limits, so only the token limit can end the answer.
NOTES = {
    "type": "object",
    "properties": {"notes": {"type": "array", "items": {"type": "string"}}, "summary": {"type": "string"}},
    "required": ["notes", "summary"],
    "additionalProperties": False,
}

# Schema, prompt, and a number of tokens that is enough for the shortest valid answer.
FORMATS = {
    "person": (PERSON, "Describe a person of your town as JSON.", 40),
    "shopping": (SHOPPING, "Write the shopping list of a family as JSON.", 48),
    "ticket": (TICKET, "Make up a ticket for a broken printer as JSON.", 56),
    "words": (WORDS, "List words that rhyme with moon, as JSON.", 24),
    "notes": (NOTES, "Take long notes about the history of ships, as JSON.", 32),
}

WEATHER_TOOL = {
    "type": "function",
    "function": {
        "name": "weather_of",
        "description": "The weather forecast of a city.",
        "parameters": WEATHER,
    },
}
ALARM_TOOL = {
    "type": "function",
    "function": {
        "name": "set_alarm",
        "description": "Rings at a time of day.",
        "parameters": {
            "type": "object",
            "properties": {"hour": {"type": "integer", "minimum": 0, "maximum": 23}, "label": {"type": "string"}},
            "required": ["hour"],
            "additionalProperties": False,
        },
    },
}
TOOLS = [WEATHER_TOOL, ALARM_TOOL]


def parameters_of(name):
    return next(tool["function"]["parameters"] for tool in TOOLS if tool["function"]["name"] == name)
