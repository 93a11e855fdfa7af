//! Phrases as Whisper writes them: those after which more must follow, with the reason, and those that delay no answer.

use super::OpenEnd::{Bracket, Clause, Digits, FirstStep, LastWord, Punctuation};
use super::{OpenEnd, open_end};

const OPEN: [(&str, &str, OpenEnd); 62] = [
    ("en", "I need eggs,", Punctuation),
    ("en", "Can you tell me...", Punctuation),
    ("en", "The name of the film was…", Punctuation),
    ("en", "I was going to-", Punctuation),
    ("en", "What I need is this:", Punctuation),
    ("de", "Ich brauche Eier, Milch,", Punctuation),
    ("ja", "明日は、", Punctuation),
    ("en", "He said \"I will", Bracket),
    ("en", "Play the song (the one from the party", Bracket),
    ("es", "¿Me puedes decir", Bracket),
    ("fr", "Il a dit « je viens", Bracket),
    ("en", "My telephone number is 555.", Digits),
    ("en", "My telephone number is five five five.", Digits),
    ("en", "My phone number is 5-5-5, 1-2.", Digits),
    ("en", "Hello. My phone number is double five", Digits),
    ("en", "The card number is 4000 1234", Digits),
    ("en", "My zip code is 941", Digits),
    ("en", "My address is 12.", Digits),
    ("es", "Mi número de teléfono es 612 345", Digits),
    ("fr", "Mon numéro de téléphone est le 06 12 34.", Digits),
    ("it", "Il mio numero è 333 12.", Digits),
    ("pt", "O meu número é 912.", Digits),
    ("de", "Meine Telefonnummer ist 030.", Digits),
    ("de", "Meine Postleitzahl ist die 10", Digits),
    ("en", "I would like to have the.", LastWord),
    ("en", "Please give me a.", LastWord),
    ("en", "I like tea and", LastWord),
    ("en", "We could, um.", LastWord),
    ("en", "I wanted to say that I'm", LastWord),
    ("en", "Turn on the light. Then open my", LastWord),
    ("en", "I would like to book a table for", LastWord),
    ("en", "The difference between the two is", LastWord),
    ("en", "The name of the film was", LastWord),
    ("es", "Quiero reservar una mesa para el.", LastWord),
    ("es", "Me gustaría ir a la", LastWord),
    ("es", "Yo quería ir, pero", LastWord),
    ("fr", "Je voudrais réserver une table à.", LastWord),
    ("fr", "Allume la lumière de la.", LastWord),
    ("fr", "Je voudrais savoir l'", LastWord),
    ("it", "Vorrei prenotare un tavolo per.", LastWord),
    ("it", "Accendi la luce della", LastWord),
    ("pt", "Gostaria de reservar uma mesa com.", LastWord),
    ("pt", "Acende a luz da", LastWord),
    ("de", "Ich möchte einen Tisch für.", LastWord),
    ("de", "Ich komme später, weil", LastWord),
    ("de", "Das ist der Schlüssel zum.", LastWord),
    ("en", "First, open the window.", FirstStep),
    ("en", "First open the window.", FirstStep),
    ("en", "Firstly, I need eggs", FirstStep),
    ("es", "Primero, abre la ventana.", FirstStep),
    ("fr", "D'abord, ouvre la fenêtre.", FirstStep),
    ("it", "Prima, apri la finestra.", FirstStep),
    ("pt", "Primeiro, abre a janela.", FirstStep),
    ("de", "Zuerst öffne das Fenster.", FirstStep),
    ("en", "If it rains tomorrow.", Clause),
    ("en", "Before we start.", Clause),
    ("en", "When I come home", Clause),
    ("en", "Thank you. If it’s raining tomorrow.", Clause),
    ("en", "Unless they call me", Clause),
    ("fr", "Quand je rentre à la maison.", Clause),
    ("de", "Wenn es morgen regnet.", Clause),
    ("de", "Bevor wir anfangen.", Clause),
];

/// In any language.
const COMPLETE: [(&str, &str); 89] = [
    ("en", ""),
    ("en", "Yes."),
    ("en", "Yes"),
    ("en", "What are you looking for?"),
    ("en", "What are you looking for"),
    ("en", "I did."),
    ("en", "I did"),
    ("en", "Yes I am"),
    ("en", "Yes, it is."),
    ("en", "Yes it is"),
    ("en", "Is that what it is for?"),
    ("en", "Is that what it is for"),
    ("en", "That's what I was afraid of."),
    ("en", "Where are you from"),
    ("en", "I don't know where he is"),
    ("en", "Do you want to come with"),
    ("en", "Turn the light on"),
    ("en", "Please turn it off."),
    ("en", "Come in."),
    ("en", "I'd love to."),
    ("en", "Oh my."),
    ("en", "I think so."),
    ("en", "I need vitamin A"),
    ("en", "Plan A."),
    ("en", "I like this and that."),
    ("en", "The blue one is better."),
    ("en", "My train was late again this morning."),
    ("en", "Turn on the light in the kitchen."),
    ("en", "Is it tea or?"),
    ("en", "What if!"),
    ("en", "My telephone number is 555 1234."),
    ("en", "My phone number is oh two oh seven double nine four six"),
    ("en", "Is my phone number 555?"),
    ("en", "The error code is 404."),
    ("en", "My favourite number is 7."),
    ("en", "I live in room 12"),
    ("en", "My address is 12 Main Street, apartment 4."),
    ("en", "My pin is 1234."),
    ("en", "If it rains tomorrow, I will stay at home."),
    ("en", "If it rains I stay home"),
    ("en", "If you like."),
    ("en", "When you're ready."),
    ("en", "After lunch."),
    ("en", "Before the meeting."),
    ("en", "When is the next train"),
    ("en", "When is it?"),
    ("en", "Because I like it."),
    ("en", "First open the window, then close the door."),
    ("en", "First class, please."),
    ("en", "First of all, thank you."),
    ("en", "My first name is John."),
    ("en", "He said \"hello\" to me."),
    ("en", "He is 6'2\" tall."),
    ("en", "He is 6'2\"."),
    ("en", "He said \"I was born in 2024\"."),
    ("en", "[music] Hello"),
    ("es", "Sí, claro."),
    ("es", "¿Qué tiempo hace mañana?"),
    ("es", "Enciende la luz de la cocina."),
    ("es", "Quiero una."),
    ("es", "Mi número de teléfono es 612 345 678."),
    ("es", "Dime por qué."),
    ("es", "De vez en cuando"),
    ("es", "El primero de mayo."),
    ("fr", "Allume la lumière."),
    ("fr", "J'en veux un."),
    ("fr", "Monte le son."),
    ("fr", "Je suis pour."),
    ("fr", "S'il vous plaît."),
    ("fr", "Prends-le."),
    ("it", "Accendi la luce in cucina."),
    ("it", "Vieni su."),
    ("it", "Dimmi perché."),
    ("it", "È mio."),
    ("pt", "Acende a luz da cozinha."),
    ("pt", "Quero um."),
    ("pt", "O carro para."),
    ("pt", "Não sei quem é."),
    ("de", "Mach das Licht an."),
    ("de", "Hör bitte auf."),
    ("de", "Ich komme gern mit"),
    ("de", "Mach die Tür zu."),
    ("de", "Das kann sein."),
    ("de", "Schalte das Licht ein"),
    ("de", "Ich nehme die."),
    ("de", "Wenn es regnet, bleibe ich zu Hause."),
    ("de", "Wenn Sie möchten."),
    ("ja", "電気をつけて。"),
    ("nl", "Ik wil graag een"),
];

#[test]
fn a_phrase_after_which_more_must_follow_is_open() {
    for (language, text, reason) in OPEN {
        assert_eq!(open_end(text, Some(language)), Some(reason), "{language}: {text}");
    }
}

#[test]
fn a_phrase_that_may_be_complete_is_not_open() {
    for (language, text) in COMPLETE {
        assert_eq!(open_end(text, Some(language)), None, "{language}: {text}");
    }
}

/// Transcribers name languages in different ways, or not at all.
#[test]
fn a_language_has_a_code_and_a_name() {
    let text = "I would like to have the.";
    for language in ["en", "EN", "en-US", "en_GB", "english", "English"] {
        assert_eq!(open_end(text, Some(language)), Some(LastWord), "{language}");
    }
    for language in [None, Some(""), Some("xx"), Some("german")] {
        assert_eq!(open_end(text, language), None, "{language:?}");
    }
    assert_eq!(open_end("I need eggs,", None), Some(Punctuation));
}
