//! The tools that can be offered, in groups of similar ones.
//! The first tool of a group is the one that requests call. The others look like it.

use serde_json::{Map, Value, json};

/// A tool as a client would offer it.
pub(super) struct Tool {
    pub(super) name: &'static str,
    about: &'static str,
    pub(super) params: &'static [Param],
}

pub(super) struct Param {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    about: &'static str,
    pub(super) need: Need,
}

pub(super) enum Shape {
    Text,
    Whole,
    Number,
    Flag,
    Date,
    Time,
    OneOf(&'static [&'static str]),
    Texts,
    Fields(&'static [Param]),
    Rows(&'static [Param]),
}

pub(super) enum Need {
    Required,
    Optional,
    /// Optional, with this default as JSON.
    Default(&'static str),
}

use Shape::{Date, Fields, Flag, Number, OneOf, Rows, Text, Texts, Time, Whole};

const fn tool(name: &'static str, about: &'static str, params: &'static [Param]) -> Tool {
    Tool { name, about, params }
}

const fn must(name: &'static str, shape: Shape, about: &'static str) -> Param {
    Param { name, shape, about, need: Need::Required }
}

const fn may(name: &'static str, shape: Shape, about: &'static str) -> Param {
    Param { name, shape, about, need: Need::Optional }
}

const fn or(name: &'static str, shape: Shape, about: &'static str, json: &'static str) -> Param {
    Param { name, shape, about, need: Need::Default(json) }
}

const CURRENCIES: Shape = OneOf(&["EUR", "USD", "CHF", "JPY", "GBP", "SEK"]);
const ROOMS: Shape = OneOf(&["kitchen", "bedroom", "office", "bathroom", "living_room"]);
const CITY: Param = must("city", Text, "Name of the city");

/// Groups of similar tools.
pub(super) const GROUPS: &[&[Tool]] = &[
    &[
        tool(
            "convert_currency",
            "Converts an amount of money at today's rate",
            &[
                must("amount", Number, "The amount to convert"),
                must("from", CURRENCIES, "Currency of the amount"),
                must("to", CURRENCIES, "Currency wanted"),
                or("rounding", OneOf(&["none", "cents", "whole"]), "How to round", "\"cents\""),
            ],
        ),
        tool(
            "exchange_rate_history",
            "Lists the exchange rates of past days",
            &[
                must("from", CURRENCIES, "First currency"),
                must("to", CURRENCIES, "Second currency"),
                must("days", Whole, "How many days back"),
            ],
        ),
        tool(
            "convert_units",
            "Converts a length, weight or volume into another unit",
            &[
                must("amount", Number, "The amount to convert"),
                must("from", Text, "Unit of the amount"),
                must("to", Text, "Unit wanted"),
            ],
        ),
    ],
    &[
        tool(
            "weather_forecast",
            "Forecasts the weather of the coming days",
            &[
                CITY,
                must("days", Whole, "How many days, from 1 to 10"),
                or(
                    "unit",
                    OneOf(&["celsius", "fahrenheit"]),
                    "Unit of temperatures",
                    "\"celsius\"",
                ),
            ],
        ),
        tool("current_weather", "Reports the weather at this moment", &[CITY]),
        tool(
            "weather_history",
            "Reports the weather of a past day",
            &[CITY, must("date", Date, "The day")],
        ),
        tool("air_quality", "Reports the air quality at this moment", &[CITY]),
    ],
    &[
        tool(
            "create_event",
            "Adds an event to the calendar",
            &[
                must("title", Text, "Title of the event"),
                must("date", Date, "Day of the event"),
                must("start", Time, "Begin of the event"),
                must("duration_minutes", Whole, "Duration in minutes"),
                may("attendees", Texts, "Mail addresses of the people to invite"),
                or("private", Flag, "Whether others cannot see it", "false"),
            ],
        ),
        tool(
            "move_event",
            "Moves an event that is in the calendar already",
            &[
                must("title", Text, "Title of the event"),
                must("date", Date, "New day"),
                must("start", Time, "New begin"),
            ],
        ),
        tool("list_events", "Lists the events of a day", &[must("date", Date, "The day")]),
        tool(
            "find_free_time",
            "Finds a time at which all attendees are free",
            &[
                must("date", Date, "The day"),
                must("duration_minutes", Whole, "Duration in minutes"),
                must("attendees", Texts, "Mail addresses"),
            ],
        ),
    ],
    &[
        tool(
            "send_email",
            "Sends a new mail",
            &[
                must("to", Texts, "Mail addresses of the receivers"),
                must("subject", Text, "Subject line"),
                must("body", Text, "Text of the mail"),
                or("priority", OneOf(&["low", "normal", "high"]), "Priority", "\"normal\""),
            ],
        ),
        tool(
            "draft_email",
            "Saves a new mail as a draft and does not send it",
            &[
                must("to", Texts, "Mail addresses of the receivers"),
                must("subject", Text, "Subject line"),
                must("body", Text, "Text of the mail"),
            ],
        ),
        tool(
            "forward_email",
            "Forwards a mail that was received",
            &[
                must("mail_id", Text, "Identifier of the mail"),
                must("to", Texts, "Mail addresses of the receivers"),
            ],
        ),
        tool("search_email", "Searches the mails", &[must("words", Text, "Words to look for")]),
    ],
    &[
        tool(
            "book_train",
            "Books seats on a train",
            &[
                must("from", Text, "Station of departure"),
                must("to", Text, "Station of arrival"),
                must("date", Date, "Day of travel"),
                must(
                    "passengers",
                    Rows(&[
                        must("name", Text, "Name of the passenger"),
                        must("age", Whole, "Age in years"),
                    ]),
                    "All passengers",
                ),
                or("class", OneOf(&["first", "second"]), "Class", "\"second\""),
            ],
        ),
        tool(
            "search_trains",
            "Lists trains and books none",
            &[
                must("from", Text, "Station of departure"),
                must("to", Text, "Station of arrival"),
                must("date", Date, "Day of travel"),
            ],
        ),
        tool(
            "book_coach",
            "Books seats on a coach",
            &[
                must("from", Text, "Stop of departure"),
                must("to", Text, "Stop of arrival"),
                must("date", Date, "Day of travel"),
                must("seats", Whole, "How many seats"),
            ],
        ),
        tool(
            "train_status",
            "Reports the delay of a train",
            &[must("train", Text, "Number of the train")],
        ),
    ],
    &[
        tool(
            "set_thermostat",
            "Sets the temperature of a room",
            &[
                must("room", ROOMS, "The room"),
                must("celsius", Number, "Temperature wanted"),
                may("until", Time, "When the setting ends"),
            ],
        ),
        tool(
            "read_thermostat",
            "Reads the temperature of a room",
            &[must("room", ROOMS, "The room")],
        ),
        tool(
            "set_light",
            "Sets the brightness of a room's lights",
            &[must("room", ROOMS, "The room"), must("percent", Whole, "Brightness")],
        ),
        tool(
            "set_blinds",
            "Moves the blinds of a room",
            &[must("room", ROOMS, "The room"), must("percent", Whole, "How far they are closed")],
        ),
    ],
    &[
        tool(
            "ship_parcel",
            "Orders the pick-up of a parcel",
            &[
                must("weight_kg", Number, "Weight in kilograms"),
                must(
                    "address",
                    Fields(&[
                        must("street", Text, "Street and number"),
                        must("postcode", Text, "Postcode"),
                        must("city", Text, "City"),
                    ]),
                    "Where the parcel goes",
                ),
                or("express", Flag, "Whether it must arrive the next day", "false"),
            ],
        ),
        tool(
            "track_parcel",
            "Reports where a parcel is",
            &[must("number", Text, "Number of the parcel")],
        ),
        tool(
            "parcel_price",
            "Quotes the price of a parcel and orders nothing",
            &[
                must("weight_kg", Number, "Weight in kilograms"),
                must("postcode", Text, "Postcode of the receiver"),
            ],
        ),
    ],
    &[
        tool(
            "set_reminder",
            "Reminds of something at a day and time",
            &[
                must("text", Text, "What to be reminded of"),
                must("date", Date, "The day"),
                must("time", Time, "The time"),
                or("repeat", OneOf(&["never", "daily", "weekly"]), "Repetition", "\"never\""),
            ],
        ),
        tool("set_timer", "Starts a timer", &[must("minutes", Whole, "Minutes from now")]),
        tool("set_alarm", "Sets an alarm that rings", &[must("time", Time, "The time")]),
        tool("list_reminders", "Lists all reminders", &[]),
    ],
    &[
        tool(
            "order_items",
            "Orders articles from the warehouse",
            &[
                must(
                    "items",
                    Rows(&[
                        must("article", Text, "Name of the article"),
                        must("quantity", Whole, "How many"),
                    ]),
                    "All articles",
                ),
                may("cost_centre", Whole, "Number of the cost centre"),
                or("gift_wrap", Flag, "Whether to wrap it", "false"),
            ],
        ),
        tool(
            "check_stock",
            "Reports how many are in stock",
            &[must("article", Text, "The article")],
        ),
        tool(
            "return_items",
            "Sends articles back to the warehouse",
            &[must("order", Text, "Number of the order"), must("reason", Text, "Why")],
        ),
    ],
    &[
        tool(
            "create_ticket",
            "Opens a new ticket",
            &[
                must("title", Text, "Title"),
                must("priority", OneOf(&["low", "medium", "high", "critical"]), "Priority"),
                may("labels", Texts, "Labels"),
                or("project", Text, "Key of the project", "\"GENERAL\""),
            ],
        ),
        tool(
            "update_ticket",
            "Changes a ticket that exists",
            &[
                must("ticket", Whole, "Number of the ticket"),
                must("priority", OneOf(&["low", "medium", "high", "critical"]), "New priority"),
            ],
        ),
        tool("close_ticket", "Closes a ticket", &[must("ticket", Whole, "Number of the ticket")]),
        tool("search_tickets", "Searches tickets", &[must("words", Text, "Words to look for")]),
    ],
];

impl Tool {
    /// The definition as an entry of `tools` in `/v1/chat/completions`.
    pub(super) fn definition(&self) -> Value {
        json!({"type": "function", "function": {
            "name": self.name,
            "description": self.about,
            "parameters": object(self.params),
        }})
    }

    /// The defaults of the optional arguments.
    pub(super) fn defaults(&self) -> Map<String, Value> {
        let default = |param: &Param| match param.need {
            Need::Default(json) => Some((param.name.to_owned(), parsed(json))),
            Need::Required | Need::Optional => None,
        };
        self.params.iter().filter_map(default).collect()
    }

    /// Arguments that have one spelling: choices, dates and times.
    pub(super) fn exact(&self) -> Vec<String> {
        let one_spelling = |param: &&Param| matches!(param.shape, OneOf(_) | Date | Time);
        self.params.iter().filter(one_spelling).map(|param| param.name.to_owned()).collect()
    }
}

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_default()
}

fn object(params: &[Param]) -> Value {
    let properties: Map<String, Value> =
        params.iter().map(|param| (param.name.to_owned(), param.schema())).collect();
    let required: Vec<&str> = params
        .iter()
        .filter(|param| matches!(param.need, Need::Required))
        .map(|param| param.name)
        .collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

impl Param {
    fn schema(&self) -> Value {
        let mut schema = match &self.shape {
            Text => json!({"type": "string"}),
            Whole => json!({"type": "integer"}),
            Number => json!({"type": "number"}),
            Flag => json!({"type": "boolean"}),
            Date | Time => json!({"type": "string"}),
            OneOf(choices) => json!({"type": "string", "enum": choices}),
            Texts => json!({"type": "array", "items": {"type": "string"}}),
            Fields(params) => object(params),
            Rows(params) => json!({"type": "array", "items": object(params)}),
        };
        let format = match self.shape {
            Date => " (YYYY-MM-DD)",
            Time => " (HH:MM, 24 hours)",
            _ => "",
        };
        schema["description"] = json!(format!("{}{format}", self.about));
        if let Need::Default(json) = self.need {
            schema["default"] = parsed(json);
        }
        schema
    }
}
