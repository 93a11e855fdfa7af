//! Pictures as Ollama's clients send them, where they end up, and values that are not pictures.
//! A picture that the model would not see is never passed over in silence.

use hob_core::chat::{Conversation, Image, Message, Prompt};
use hob_wire::{OllamaAction, parse_ollama_chat, parse_ollama_generate};

use crate::builders::{image, system, user};

/// The messages that an action holds.
fn messages(action: OllamaAction) -> Vec<Message> {
    match action {
        OllamaAction::Answer(request) => match request.prompt {
            Prompt::Chat(Conversation { messages, .. }) => messages,
            other => unreachable!("{other:?} is not a conversation"),
        },
        other => unreachable!("{other:?} is not a request"),
    }
}

/// What hob reads from a message that says "Hé" and has these `images`.
fn images(images: &str) -> Vec<Image> {
    let body = format!(r#"{{"messages":[{{"role":"user","content":"Hé","images":{images}}}]}}"#);
    let request = parse_ollama_chat(body.as_bytes()).expect(images);
    messages(request.action).remove(0).images
}

#[test]
fn bytes_in_base64_become_addresses_of_their_kind() {
    for (bytes, url) in [
        ("/9j/4AAQSkZJRg==", "data:image/jpeg;base64,/9j/4AAQSkZJRg=="),
        ("iVBORw0KGgo=", "data:image/png;base64,iVBORw0KGgo="),
        ("R0lGODlhAQAB", "data:image/gif;base64,R0lGODlhAQAB"),
        ("UklGRiQAAABXRUJQ", "data:image/webp;base64,UklGRiQAAABXRUJQ"),
        ("aGk+/w==", "data:image/png;base64,aGk+/w=="),
        (r"iVBO\nRw0K\r\nGgo=\n", "data:image/png;base64,iVBORw0KGgo="),
        ("data:image/bmp;base64,Qk0=", "data:image/bmp;base64,Qk0="),
    ] {
        assert_eq!(images(&format!("[\"{bytes}\"]")), [image(3, url)], "{bytes}");
    }
    let two = [image(3, "data:image/gif;base64,R0lG"), image(3, "data:image/jpeg;base64,/9j/")];
    assert_eq!(images(r#"["R0lG","/9j/"]"#), two);
    for none in ["[]", "null"] {
        assert_eq!(images(none), []);
    }
}

#[test]
fn a_prompt_s_pictures_stand_behind_what_the_user_says() {
    let shown = |text: &str| Message {
        images: vec![image(text.len(), "data:image/gif;base64,R0lG")],
        ..user(text)
    };
    for (fields, expected) in [
        (r#""prompt":"What is it?""#, vec![shown("What is it?")]),
        (r#""prompt":"P","system":"S""#, vec![system("S"), shown("P")]),
        (r#""prompt":"""#, vec![shown("")]),
        (r#""raw":false,"suffix":"""#, vec![shown("")]),
    ] {
        let body = format!(r#"{{"images":["R0lG"],{fields}}}"#);
        let request = parse_ollama_generate(body.as_bytes()).expect(fields);
        assert_eq!(messages(request.action), expected, "{fields}");
    }
}

#[test]
fn what_is_no_picture_is_said() {
    let wanted = "must be a picture in base64, and is another text";
    let many = format!("[{}\"R0lG\"]", "\"R0lG\",".repeat(256));
    for (images, expected) in [
        (r#"["https://example.org/cat.png"]"#, format!("images[0]' {wanted}")),
        (r#"["R0lG","no base64"]"#, format!("images[1]' {wanted}")),
        (r#"["=="]"#, format!("images[0]' {wanted}")),
        (r#"[""]"#, format!("images[0]' {wanted}")),
        (r#"[{"url":"x"}]"#, "images[0]' must be a string, and is an object".to_owned()),
        (r#""R0lG""#, "images' must be a list, and is a string".to_owned()),
        (&many, "images' has 257 pictures and the limit is 256".to_owned()),
    ] {
        let chat = format!(r#"{{"messages":[{{"role":"user","images":{images}}}]}}"#);
        let refused = parse_ollama_chat(chat.as_bytes()).expect_err(images);
        assert_eq!(refused.to_string(), format!("'messages[0].{expected}"));
        let generate = format!(r#"{{"prompt":"p","images":{images}}}"#);
        let refused = parse_ollama_generate(generate.as_bytes()).expect_err(images);
        assert_eq!(refused.to_string(), format!("'{expected}"));
    }
}

#[test]
fn raw_text_has_no_place_for_a_picture() {
    let expected = "'images' need a prompt that is neither 'raw' nor has a 'suffix'";
    for fields in [r#""prompt":"p","raw":true"#, r#""prompt":"p","suffix":"s""#, r#""raw":true"#] {
        let body = format!(r#"{{"images":["R0lG"],{fields}}}"#);
        let refused = parse_ollama_generate(body.as_bytes()).expect_err(fields);
        assert_eq!(refused.to_string(), expected, "{fields}");
        let body = format!(r#"{{"images":[],{fields}}}"#);
        assert!(parse_ollama_generate(body.as_bytes()).is_ok(), "{fields}");
    }
}
