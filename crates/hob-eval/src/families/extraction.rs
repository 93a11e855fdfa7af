//! Extraction: a record in prose with noise around it, to be written as JSON after a schema.
//! The size is how many fields there are, and how much noise.

use hob_core::language::ENGLISH_MONTHS;
use serde_json::{Map, Value, json};

use crate::checkers::JsonFields;
use crate::draw::Draw;
use crate::{Checker, Item};

pub const SIZES: &[&str] = &["small", "medium", "large"];

const FAMILY: &str = "extraction";
const TOKENS_MAX: u32 = 512;

const PEOPLE: [&str; 12] = [
    "Marta Lindqvist",
    "Tomás Herrera",
    "Aiko Brandt",
    "Noor El Amin",
    "Piotr Zalewski",
    "Grace Okafor",
    "Luc Moreau",
    "Hana Novak",
    "Ravi Menon",
    "Elsa Koskinen",
    "Diego Salas",
    "Yara Haddad",
];
const FIRMS: [&str; 10] = [
    "Northwind Paper",
    "Alder & Pine",
    "Kestrel Tools",
    "Blue Harbour Foods",
    "Quill Print",
    "Osprey Bikes",
    "Lumen Glass",
    "Juniper Textiles",
    "Cobalt Clinics",
    "Fern Hotels",
];
const TOWNS: [&str; 10] =
    ["Porto", "Ghent", "Turku", "Brno", "Malmö", "Graz", "Cork", "Tartu", "Split", "Bergen"];
const GOODS: [&str; 10] = [
    "desk lamps",
    "paper rolls",
    "garden chairs",
    "bike bells",
    "glass jars",
    "wool blankets",
    "steel hinges",
    "coffee filters",
    "oak shelves",
    "cork boards",
];
/// Sentences that have nothing to do with the record.
const NOISE: [&str; 12] = [
    "Thanks for the call on Friday.",
    "The coffee machine on the second floor works again.",
    "Please ignore the earlier mail, it went out too soon.",
    "Our office is closed in the last week of the year.",
    "By the way, the old price list is no longer valid.",
    "The parking lot behind the building is for visitors.",
    "Someone left a green umbrella at the front desk.",
    "We moved to new premises two years ago.",
    "The weather has been dreadful all week.",
    "Let me know if the attachment does not open.",
    "Last year's order had 70 pieces, but that is history.",
    "Our newsletter comes every second month.",
];

/// A field: its name, the JSON type, the value, and the sentence that says it.
struct Field {
    name: &'static str,
    kind: &'static str,
    value: Value,
    sentence: String,
}

/// `None` where the size is not one of [`SIZES`].
pub fn item(seed: u64, size: &str, index: u32) -> Option<Item> {
    let (fields, noise) = match size {
        "small" => (4, 2),
        "medium" => (7, 6),
        "large" => (10, 12),
        _ => return None,
    };
    let mut draw = Draw::new(seed, FAMILY, size, index);
    let fields: Vec<Field> = order(&mut draw).into_iter().take(fields).collect();
    let mut sentences: Vec<String> = fields.iter().map(|field| field.sentence.clone()).collect();
    sentences.extend(draw.some(&NOISE, noise).into_iter().map(str::to_owned));
    draw.shuffle(&mut sentences);
    let expected: Map<String, Value> =
        fields.iter().map(|field| (field.name.to_owned(), field.value.clone())).collect();
    let schema = schema(&fields);
    let prompt = format!(
        "Read this message:\n\n{}\n\nWrite what it says of the order as one JSON object that follows this schema. Dates are YYYY-MM-DD. Write nothing but the JSON.\n\n{schema}",
        sentences.join(" ")
    );
    Some(Item {
        schema: Some(schema),
        ..Item::new(
            (FAMILY, size, index),
            prompt,
            Checker::Json(JsonFields { expected: Value::Object(expected) }),
            TOKENS_MAX,
        )
    })
}

fn schema(fields: &[Field]) -> Value {
    let properties: Map<String, Value> =
        fields.iter().map(|field| (field.name.to_owned(), json!({ "type": field.kind }))).collect();
    let required: Vec<&str> = fields.iter().map(|field| field.name).collect();
    json!({
        "type": "object", "properties": properties, "required": required,
        "additionalProperties": false,
    })
}

/// All fields of one order. The most important ones come first, for the small sizes.
fn order(draw: &mut Draw) -> [Field; 10] {
    let (firm, person) = (*draw.pick(&FIRMS), *draw.pick(&PEOPLE));
    let (goods, count) = (*draw.pick(&GOODS), draw.between(3, 480));
    let cents = draw.between(150, 9_900);
    let price = cents as f64 / 100.0;
    let (town, month, day) = (*draw.pick(&TOWNS), draw.between(1, 12), draw.between(1, 28));
    let year = draw.between(2024, 2027);
    let number = format!("{}-{}", draw.pick(&["PO", "AB", "Q"]), draw.between(10_000, 99_999));
    let (express, discount, weeks) = (draw.below(2) == 0, draw.between(2, 18), draw.between(2, 9));
    let field = |name, kind, value: Value, sentence: String| Field { name, kind, value, sentence };
    [
        field("customer", "string", json!(firm), format!("The order comes from {firm}.")),
        field("quantity", "integer", json!(count), format!("They need {count} {goods}.")),
        field(
            "unit_price",
            "number",
            json!(price),
            format!("We agreed on {price:.2} euros a piece."),
        ),
        field("number", "string", json!(number), format!("It runs under the number {number}.")),
        field(
            "contact",
            "string",
            json!(person),
            format!("Please write to {person} with any questions."),
        ),
        field(
            "city",
            "string",
            json!(town),
            format!("Everything goes to their warehouse in {town}."),
        ),
        field(
            "delivery_date",
            "string",
            json!(format!("{year}-{month:02}-{day:02}")),
            format!("It must be there on {} {day}, {year}.", ENGLISH_MONTHS[(month - 1) as usize]),
        ),
        field(
            "express",
            "boolean",
            json!(express),
            match express {
                true => "They asked for express delivery.".to_owned(),
                false => "Express delivery is not needed.".to_owned(),
            },
        ),
        field(
            "discount_percent",
            "integer",
            json!(discount),
            format!("They get a discount of {discount} percent."),
        ),
        field(
            "warranty_weeks",
            "integer",
            json!(weeks),
            format!("The warranty runs for {weeks} weeks."),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_says_every_value_and_the_schema_names_every_field() {
        for (size, fields) in [("small", 4), ("medium", 7), ("large", 10)] {
            for index in 0..30 {
                let item = item(5, size, index).expect("an item");
                let Checker::Json(JsonFields { expected }) = &item.checker else { panic!("JSON") };
                let expected = expected.as_object().expect("an object");
                assert_eq!(expected.len(), fields);
                let schema = item.schema.as_ref().expect("a schema");
                for (name, value) in expected {
                    assert!(schema["properties"][name].is_object(), "{name}");
                    let is_written = match value {
                        Value::String(text) if name != "delivery_date" => {
                            item.prompt.contains(text)
                        }
                        Value::Number(number) if name != "unit_price" => {
                            item.prompt.contains(&number.to_string())
                        }
                        _ => true,
                    };
                    assert!(is_written, "{name}: {}", item.prompt);
                }
            }
        }
        assert_eq!(item(5, "huge", 0), None);
        assert_eq!(item(5, "small", 2), item(5, "small", 2));
        assert_ne!(item(5, "small", 2), item(5, "small", 3));
    }
}
