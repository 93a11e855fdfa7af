//! What users ask for: requests that need one call, and requests that need none.
//! Every argument follows from the request, so that exactly one call is right.

use hob_core::language::ENGLISH_MONTHS;
use serde_json::{Value, json};

use crate::draw::Draw;

const CITIES: &[&str] =
    &["Lyon", "Porto", "Graz", "Bergen", "Turin", "Ghent", "Malmö", "Seville", "Krakow", "Bristol"];
const FIRST_NAMES: &[&str] = &["Ines", "Omar", "Lena", "Tomas", "Yuki", "Amara", "Piet", "Noor"];
const MAILBOXES: &[&str] = &["sales", "billing", "support", "press", "events", "hiring", "legal"];
const THINGS: &[&str] =
    &["water the plants", "pay the rent", "call the dentist", "renew the passport", "feed the cat"];
const ARTICLES: &[&str] =
    &["desk lamp", "stapler", "whiteboard", "paper tray", "chair mat", "webcam"];
const FAULTS: &[&str] =
    &["Login page is blank", "Export stops at row 500", "Printer prints twice", "Search is slow"];
const LABELS: &[&str] = &["frontend", "backend", "mobile", "printing", "urgent-fix", "regression"];
const TITLES: &[&str] =
    &["Budget review", "Design talk", "Team lunch", "Release planning", "Safety training"];

/// The day on which the request is made. The month's end is far, so that a day can be added.
pub(super) struct Today {
    year: i64,
    month: i64,
    day: i64,
}

impl Today {
    pub(super) fn draw(draw: &mut Draw) -> Today {
        Today {
            year: draw.between(2027, 2033),
            month: draw.between(1, 12),
            day: draw.between(2, 17),
        }
    }

    pub(super) fn date(&self) -> String {
        self.after(0)
    }

    fn after(&self, days: i64) -> String {
        format!("{}-{:02}-{:02}", self.year, self.month, self.day + days)
    }

    /// A day after this one: in words, and as a date.
    fn later(&self, draw: &mut Draw) -> (String, String) {
        match draw.below(3) {
            0 => ("tomorrow".to_owned(), self.after(1)),
            1 => {
                let days = draw.between(2, 9);
                (format!("in {days} days"), self.after(days))
            }
            _ => {
                let days = draw.between(2, 10);
                let month = ENGLISH_MONTHS[self.month as usize - 1];
                (format!("on {} {month} {}", self.day + days, self.year), self.after(days))
            }
        }
    }
}

/// A time: in words, and with 24 hours.
fn time(draw: &mut Draw) -> (String, String) {
    let (hour, minute) = (draw.between(8, 20), *draw.pick(&[0, 15, 30, 45]));
    let exact = format!("{hour:02}:{minute:02}");
    let half = if hour < 12 { "am" } else { "pm" };
    let words = match draw.below(2) {
        0 => exact.clone(),
        _ => format!("{}:{minute:02} {half}", (hour + 11) % 12 + 1),
    };
    (words, exact)
}

/// A request that needs the first tool of the group, and the arguments of the call.
pub(super) fn needs_call(group: usize, draw: &mut Draw, today: &Today) -> (String, Value) {
    match group {
        0 => currency(draw),
        1 => forecast(draw),
        2 => event(draw, today),
        3 => mail(draw),
        4 => train(draw, today),
        5 => thermostat(draw),
        6 => parcel(draw),
        7 => reminder(draw, today),
        8 => order(draw),
        _ => ticket(draw),
    }
}

fn currency(draw: &mut Draw) -> (String, Value) {
    let all = [
        ("euros", "EUR"),
        ("US dollars", "USD"),
        ("Swiss francs", "CHF"),
        ("Japanese yen", "JPY"),
        ("British pounds", "GBP"),
        ("Swedish kronor", "SEK"),
    ];
    let pair = draw.some(&all, 2);
    let amount = draw.between(12, 9000) as f64 + *draw.pick(&[0.0, 0.5, 0.25]);
    let ((from_words, from), (to_words, to)) = (pair[0], pair[1]);
    let asked = match draw.below(2) {
        0 => format!("How much are {amount} {from_words} in {to_words} today?"),
        _ => format!("I have {amount} {from_words}. Please tell me what that is in {to_words}."),
    };
    (asked, json!({"amount": amount, "from": from, "to": to}))
}

fn forecast(draw: &mut Draw) -> (String, Value) {
    let (city, days) = (*draw.pick(CITIES), draw.between(2, 9));
    let asked =
        format!("I travel to {city}. What will the weather be there in the next {days} days?");
    let mut arguments = json!({"city": city, "days": days});
    if draw.below(2) == 0 {
        return (asked, arguments);
    }
    arguments["unit"] = json!("fahrenheit");
    (format!("{asked} Please use Fahrenheit."), arguments)
}

fn event(draw: &mut Draw, today: &Today) -> (String, Value) {
    let (title, (day, date), (at, start)) = (*draw.pick(TITLES), today.later(draw), time(draw));
    let minutes = *draw.pick(&[30, 45, 60, 90, 120]);
    let lasts = match minutes {
        60 => "one hour".to_owned(),
        120 => "two hours".to_owned(),
        90 => "one and a half hours".to_owned(),
        _ => format!("{minutes} minutes"),
    };
    let asked = format!("Put \"{title}\" into my calendar {day} at {at}. It lasts {lasts}.");
    let mut arguments =
        json!({"title": title, "date": date, "start": start, "duration_minutes": minutes});
    if draw.below(2) == 0 {
        return (asked, arguments);
    }
    let guests = addresses(draw, 2);
    let asked = format!("{asked} Invite {} and {}.", guests[0], guests[1]);
    arguments["attendees"] = json!(guests);
    (asked, arguments)
}

fn addresses(draw: &mut Draw, count: usize) -> Vec<String> {
    let boxes = draw.some(MAILBOXES, count);
    boxes.iter().map(|name| format!("{name}@example.com")).collect()
}

fn mail(draw: &mut Draw) -> (String, Value) {
    let receivers = addresses(draw, 2);
    let (invoice, days) = (draw.between(1000, 9999), draw.between(3, 30));
    let subject = format!("Invoice {invoice}");
    let body = format!("Please pay within {days} days.");
    let asked = format!(
        "Send a mail to {} and {}. The subject is \"{subject}\" and the text is \"{body}\"",
        receivers[0], receivers[1]
    );
    let mut arguments = json!({"to": receivers, "subject": subject, "body": body});
    if draw.below(2) == 0 {
        return (asked, arguments);
    }
    arguments["priority"] = json!("high");
    (format!("{asked} Mark it as high priority."), arguments)
}

fn train(draw: &mut Draw, today: &Today) -> (String, Value) {
    let (cities, names) = (draw.some(CITIES, 2), draw.some(FIRST_NAMES, 2));
    let (day, date) = today.later(draw);
    let ages = [draw.between(18, 80), draw.between(4, 17)];
    let asked = format!(
        "{} ({} years old) and {} ({}) need train seats from {} to {} {day}. Please book them.",
        names[0], ages[0], names[1], ages[1], cities[0], cities[1]
    );
    let mut arguments = json!({"from": cities[0], "to": cities[1], "date": date, "passengers": [
        {"name": names[0], "age": ages[0]},
        {"name": names[1], "age": ages[1]},
    ]});
    if draw.below(2) == 0 {
        return (asked, arguments);
    }
    arguments["class"] = json!("first");
    (format!("{asked} They travel first class."), arguments)
}

fn thermostat(draw: &mut Draw) -> (String, Value) {
    let rooms = [
        ("kitchen", "kitchen"),
        ("bedroom", "bedroom"),
        ("office", "office"),
        ("bathroom", "bathroom"),
        ("living room", "living_room"),
    ];
    let (words, room) = *draw.pick(&rooms);
    let celsius = draw.between(16, 24) as f64 + *draw.pick(&[0.0, 0.5]);
    let asked = format!("It should be {celsius} degrees in the {words}");
    let mut arguments = json!({"room": room, "celsius": celsius});
    if draw.below(2) == 0 {
        return (format!("{asked}."), arguments);
    }
    let (at, exact) = time(draw);
    arguments["until"] = json!(exact);
    (format!("{asked}, until {at}."), arguments)
}

fn parcel(draw: &mut Draw) -> (String, Value) {
    let street = format!(
        "{} {}",
        draw.pick(&["Mill Lane", "Station Road", "Harbour Street"]),
        draw.between(2, 180)
    );
    let (postcode, city) = (draw.between(10_000, 98_999).to_string(), *draw.pick(CITIES));
    let weight = draw.between(5, 195) as f64 / 10.0;
    let asked = format!(
        "Please have a parcel picked up. It weighs {weight} kg and goes to {street}, {postcode} {city}."
    );
    let address = json!({"street": street, "postcode": postcode, "city": city});
    let mut arguments = json!({"weight_kg": weight, "address": address});
    if draw.below(2) == 0 {
        return (asked, arguments);
    }
    arguments["express"] = json!(true);
    (format!("{asked} It has to be there the next day."), arguments)
}

fn reminder(draw: &mut Draw, today: &Today) -> (String, Value) {
    let (text, (day, date), (at, exact)) = (*draw.pick(THINGS), today.later(draw), time(draw));
    let mut arguments = json!({"text": text, "date": date, "time": exact});
    if draw.below(2) == 0 {
        return (format!("Remind me {day} at {at} to \"{text}\"."), arguments);
    }
    arguments["repeat"] = json!("weekly");
    (format!("Remind me every week to \"{text}\", for the first time {day} at {at}."), arguments)
}

fn order(draw: &mut Draw) -> (String, Value) {
    let articles = draw.some(ARTICLES, 2);
    let counts = [draw.between(2, 40), draw.between(2, 40)];
    let asked = format!(
        "Order these from the warehouse: {} × {} and {} × {}.",
        counts[0], articles[0], counts[1], articles[1]
    );
    let mut arguments = json!({"items": [
        {"article": articles[0], "quantity": counts[0]},
        {"article": articles[1], "quantity": counts[1]},
    ]});
    if draw.below(2) == 0 {
        return (asked, arguments);
    }
    let centre = draw.between(100, 999);
    arguments["cost_centre"] = json!(centre);
    (format!("{asked} Charge it to cost centre {centre}."), arguments)
}

fn ticket(draw: &mut Draw) -> (String, Value) {
    let (title, labels) = (*draw.pick(FAULTS), draw.some(LABELS, 2));
    let priority = *draw.pick(&["low", "medium", "high", "critical"]);
    let project = draw.pick(&["OPS", "WEB", "APP", "LAB"]).to_string();
    let asked = format!(
        "Open a ticket in project {project} with the title \"{title}\", priority {priority} and \
         the labels {} and {}.",
        labels[0], labels[1]
    );
    let arguments =
        json!({"title": title, "priority": priority, "labels": labels, "project": project});
    (asked, arguments)
}

/// A request that its own text answers: the group of tempting tools, the request, accepted replies.
pub(super) fn needs_none(draw: &mut Draw) -> (usize, String, Vec<String>) {
    match draw.below(5) {
        0 => {
            let days = draw.some(&["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"], 3);
            let city = *draw.pick(CITIES);
            let low = draw.between(8, 15);
            let warmest = draw.below(3);
            let degrees = |at: usize| low + if at == warmest { 9 } else { at as i64 };
            let listed: Vec<String> =
                (0..3).map(|at| format!("{}: {} degrees", days[at], degrees(at))).collect();
            let asked = format!(
                "I already have the forecast for {city}: {}. Which of these days is the warmest?",
                listed.join(", ")
            );
            (1, asked, vec![days[warmest].to_owned()])
        }
        1 => {
            let (euros, rate) = (draw.between(2, 30) * 100, draw.between(101, 139));
            let asked = format!(
                "Yesterday my bank gave me {} US dollars for {euros} euros. How many US dollars did \
                 I get for each euro?",
                euros * rate / 100
            );
            (0, asked, vec![(rate as f64 / 100.0).to_string()])
        }
        2 => {
            let (title, old) = (*draw.pick(TITLES), draw.between(8, 10));
            let new = draw.between(13, 17);
            let asked = format!(
                "\"{title}\" was planned for {old:02}:30 and I have already moved it to {new}:15. \
                 At what time does it begin now?"
            );
            (2, asked, vec![format!("{new}:15"), format!("{}:15", new - 12)])
        }
        3 => {
            let (invoice, days) = (draw.between(1000, 9999), draw.between(3, 30));
            let asked = format!(
                "This mail came in: \"Invoice {invoice} is open. Please pay within {days} days.\" \
                 Which number does the invoice have?"
            );
            (3, asked, vec![invoice.to_string()])
        }
        _ => {
            let (first, second) = (draw.between(1000, 4999), draw.between(5000, 9999));
            let fault = *draw.pick(FAULTS);
            let asked = format!(
                "My notes say: ticket {first} (\"{fault}\") has high priority and ticket {second} has \
                 low priority. Which ticket has high priority, by my notes?"
            );
            (9, asked, vec![first.to_string()])
        }
    }
}
