//! Every odd value in every kind of field, and how the fields next to it are read.
//! Servers differ in what they send where a text or a number belongs.

use serde::Deserialize;

use super::*;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Any<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow, deserialize_with = "parts")]
    parts: Text<'a>,
    #[serde(borrow, deserialize_with = "written")]
    written: Text<'a>,
    count: Count,
    amount: Amount,
    flag: Flag,
    maybe: Maybe<Inner>,
    objects: Objects<Inner>,
    first: First<Inner>,
}

#[derive(Debug, Default, Deserialize)]
struct Inner {
    #[serde(default)]
    n: Count,
}

#[test]
fn whatever_a_field_holds_the_others_are_read() {
    let fields =
        ["text", "parts", "written", "count", "amount", "flag", "maybe", "objects", "first"];
    for odd in ["null", "true", "-1", "1.5", "\"x\"", "[1,[2]]", "{\"a\":{\"b\":1}}"] {
        for field in fields {
            let json = format!("{{\"{field}\":{odd},\"zz\":{odd},\"text\":\"here\"}}");
            let json = match field {
                "text" => json.replace(",\"text\":\"here\"", ""),
                _ => json,
            };
            let any: Any<'_> = serde_json::from_str(&json).expect(&json);
            let expected = if odd == "\"x\"" { "x" } else { "" };
            let expected = if field == "text" { expected } else { "here" };
            assert_eq!(any.text.as_str(), expected, "{json}");
        }
    }
}

#[test]
fn texts_are_joined_or_written_where_that_is_asked_for() {
    let json = r#"{"parts":["a",{"type":"text","text":"b"},{"summary":"c"},7],
        "written":{"b":1,"a":[]},"text":"plain","count":12.0,"amount":-1,"flag":true,
        "maybe":{"n":1},"objects":[{"n":2},null,{"n":3}],"first":[null,{"n":4},{"n":5}]}"#;
    let any: Any<'_> = serde_json::from_str(json).expect("lenient");
    assert_eq!((any.parts.as_str(), any.written.as_str()), ("abc", r#"{"b":1,"a":[]}"#));
    assert!(matches!(any.text.0, Cow::Borrowed("plain")), "read where it stands");
    assert_eq!((any.count.0, any.amount.0, any.flag.0), (Some(12), Some(-1.0), true));
    let numbers = |inner: &[Inner]| inner.iter().map(|inner| inner.n.0).collect::<Vec<_>>();
    assert_eq!(numbers(&any.maybe.0.into_iter().collect::<Vec<_>>()), [Some(1)]);
    assert_eq!(numbers(&any.objects.0), [Some(2), Some(3)]);
    assert_eq!(numbers(&any.first.0.into_iter().collect::<Vec<_>>()), [Some(4)]);
}

#[test]
fn an_error_field_without_words_is_none() {
    for (json, is_error) in [
        ("null", false),
        ("false", false),
        (r#""""#, false),
        ("{}", false),
        (r#""no""#, true),
        (r#"{"code":1}"#, true),
    ] {
        let error: Value = serde_json::from_str(json).expect("JSON");
        assert_eq!(error_in(Some(&error)).is_some(), is_error, "{json}");
    }
    assert_eq!(error_in(None), None);
}
