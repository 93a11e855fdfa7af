//! The words by which an open sentence is recognised, for each language that has such a table.
//! A word that may end a sentence in good style is in no list: a wrong word delays answers. Lists are small on purpose.

mod english;

use std::sync::LazyLock;

use english::ENGLISH;

/// Number of digits that no number reaches: after this announcement more than a number must follow.
pub(super) const NEVER_ENOUGH: usize = usize::MAX;

/// The words of one language, in lower case with one space between them. Between phrases are a comma and a space.
#[derive(Debug, Default)]
pub(super) struct OpenWords {
    /// Code and English name of the language.
    names: [&'static str; 2],
    /// Words that end no sentence, as they are written within one.
    pub(super) last: &'static str,
    /// Phrases that end no sentence.
    pub(super) last_phrases: &'static str,
    /// Words that end no sentence without a full stop, except in questions and after `relatives`. The prepositions among them
    /// may also end one after `pronouns`.
    pub(super) links: &'static str,
    pub(super) relatives: &'static str,
    /// The word before the verb of "a lot to talk about".
    pub(super) infinitive: &'static str,
    /// First words of commands.
    pub(super) imperatives: &'static str,
    /// Words that end no command, even with a full stop, except after `persons` ("Help me to") and where `links` may end a
    /// sentence, too.
    pub(super) command_links: &'static str,
    /// Words that end no command, except after `persons` ("Show me which").
    pub(super) relative_ends: &'static str,
    pub(super) persons: &'static str,
    pub(super) pronouns: &'static str,
    /// Words before a word that is only mentioned: "Can you spell because?"
    pub(super) mentions: &'static str,
    /// First words of questions.
    pub(super) questions: &'static str,
    /// First words of subordinate clauses, if a word of `subjects` follows.
    pub(super) clauses: &'static str,
    pub(super) subjects: &'static str,
    /// Beginnings of subordinate clauses that are seldom an answer, whatever their subject.
    pub(super) long_clauses: &'static str,
    /// Words of a main clause that follows a clause without a comma, in addition to `commands` and `questions`.
    pub(super) main_clause: &'static str,
    /// How a long subject begins, and the words of which one must follow. An empty list allows every word.
    pub(super) long_subjects: &'static [(&'static str, &'static str)],
    /// Verbs that may follow such a subject.
    pub(super) verbs: &'static str,
    /// Ends of sentences that are complete, although the other lists say otherwise.
    pub(super) complete: &'static str,
    /// Words before a sentence that change nothing of it.
    pub(super) leads: &'static str,
    /// Whole sentences by which a person keeps the turn.
    pub(super) holds: &'static str,
    /// Whole sentences that only announce what follows. Without those that are an answer, such as "I want to".
    pub(super) announcements: &'static str,
    /// What is said before several things, and the words for one of them. In languages with endings, only words in the
    /// singular, which describe no plural.
    pub(super) several: &'static [(&'static str, &'static str)],
    /// Words by which one description is meant for several things: "All colours are red".
    pub(super) all: &'static str,
    /// Numbers from two on, and the verbs that may follow: "The last four letters on the plate are".
    pub(super) counts: &'static str,
    pub(super) counting_verbs: &'static str,
    /// What is counted and then read, so that one of them is not a description: "The four letters are M".
    pub(super) counted: &'static str,
    /// Last words by which a person takes back what was said, and the end of a command that does so.
    pub(super) corrections: &'static str,
    pub(super) command_corrections: &'static str,
    /// What is said before the first of two things, and the words of which one must follow. Some stand for several
    /// things: "between a group of trees".
    pub(super) pairs: &'static [(&'static str, &'static str)],
    /// What is said before a number, and the digits that such a number has at least.
    pub(super) announced: &'static [(&'static str, usize)],
    /// What is said before a code with letters, and the characters that such a code has at least.
    pub(super) announced_codes: &'static [(&'static str, usize)],
    /// Telephone numbers of emergency and information services, which have fewer digits than `announced` says.
    pub(super) services: &'static str,
    /// Words by which an announced number is the speaker's.
    pub(super) own: &'static str,
    /// Words for digits. "Double" stands for one more digit.
    pub(super) digits: &'static str,
    /// Words that begin the first of several steps: always, and before a comma or a word of `commands`.
    pub(super) first: &'static str,
    pub(super) first_marked: &'static str,
    pub(super) commands: &'static str,
    /// Words that begin a further step.
    pub(super) further: &'static str,
    /// Verbs that often have several objects, after a word of `subjects`.
    pub(super) list_verbs: &'static str,
    /// Verbs that often have several objects in commands: "Add eggs".
    pub(super) list_commands: &'static str,
    /// Words by which the object of such a verb begins no list: "I need help", "I have a question".
    pub(super) no_things: &'static str,
    /// Words before the last of several things or steps.
    pub(super) last_links: &'static str,
    /// Words after which a sentence may go on, although it may end with them: "That's the chair I sat at".
    pub(super) prepositions: &'static str,
    /// Beginnings of clauses that may be an answer ("When the rain stops") or go on.
    pub(super) beginnings: &'static str,
    /// Words that begin a subject, and those that begin a clause of it: "The man who called".
    pub(super) articles: &'static str,
    pub(super) relative_subjects: &'static str,
}

/// The table of a language, by its code ("en", "en-US") or its English name.
pub(super) fn open_words(language: &str) -> Option<&'static OpenWords> {
    let name = language.split(['-', '_']).next()?.to_lowercase();
    LANGUAGES.iter().find(|words| words.names.contains(&name.as_str()))
}

static LANGUAGES: LazyLock<[OpenWords; 6]> = LazyLock::new(|| {
    [
        ENGLISH,
        OpenWords {
            names: ["es", "spanish"],
            last: "el la los las un de del al a en con por y e o u ni que aunque pero su mis tus sus desde \
                   hasta muy",
            complete: "no muy",
            leads: "y pero bueno pues vale sí no hola eh",
            holds: "espera, espere, espera un momento, espere un momento, un momento, \
                    un momento por favor, un segundo, déjame pensar, déjame ver",
            announcements: "me llamo, mi nombre es, mi número es, mi dirección es, mi pregunta es, \
                            la pregunta es, el problema es, lo que quiero saber, \
                            la razón por la que llamo",
            several: &[
                ("colores son", "rojo verde azul amarillo"),
                ("colores son el", "rojo verde azul amarillo negro blanco"),
                ("días son el", "lunes martes miércoles jueves viernes sábado domingo"),
            ],
            pairs: &[
                // "Entre un momento" invites to come in.
                ("entre un", "y e o u de grupo montón momento rato poco"),
                ("entre una", "y e o u de pareja multitud vez"),
            ],
            announced: &[
                // Spain has 9 and 5. Other countries have fewer.
                ("número de teléfono es", 7),
                ("mi teléfono es", 7),
                ("mi número es", 7),
                ("código postal es", 4),
            ],
            services: "016 061 062 080 085 088 091 092 100 101 102 103 105 106 107 110 112 113 114 115 116 \
                       117 119 123 131 132 133 911",
            own: "mi nuestro",
            digits: "cero uno dos tres cuatro cinco seis siete ocho nueve",
            first_marked: "primero",
            further: "luego después segundo pero ahora",
            ..OpenWords::default()
        },
        OpenWords {
            names: ["fr", "french"],
            last: "le la les du des au aux de à et ou mon ma mes ta tes sa ses notre votre nos vos leurs \
                   cet cette ces que lorsque puisque parce dans chez par très je ne euh l' d' j' qu' n' c'",
            clauses: "si quand lorsque",
            subjects: "je j'ai il elle nous ils elles",
            main_clause: "on tu vous ça c'est",
            complete: "pas très, les leurs, juste parce que, si je peux, si je veux, \
                       si j'ai le temps, si je me souviens bien, si je ne me trompe pas, \
                       quand je peux, quand je veux, quand j'ai le temps",
            leads: "et alors mais bon ben oui non bonjour salut euh",
            holds: "attends, attendez, attends une seconde, un instant, \
                    un instant s'il vous plaît, un moment, une seconde, laisse-moi réfléchir, \
                    laissez-moi réfléchir",
            announcements: "je m'appelle, mon nom est, mon numéro est, mon adresse est, \
                            ma question est, la question est, le problème est, le problème c'est, \
                            ce que je veux savoir, la raison pour laquelle j'appelle, \
                            je voudrais",
            several: &[
                ("couleurs sont le", "rouge vert bleu jaune noir blanc orange rose gris violet"),
                ("jours sont le", "lundi mardi mercredi jeudi vendredi samedi dimanche"),
            ],
            pairs: &[
                // "Entre un instant" invites to come in.
                ("entre un", "et ou de groupe couple tas instant moment peu"),
                ("entre une", "et ou de bande foule minute seconde"),
            ],
            announced: &[
                // France has 10 and 5, Belgium 9 and 4.
                ("numéro de téléphone est le", 9),
                ("numéro de téléphone est", 9),
                ("mon numéro est le", 9),
                ("mon numéro est", 9),
                ("code postal est le", 4),
                ("code postal est", 4),
                ("j'habite au", NEVER_ENOUGH),
            ],
            services: "15 17 18 101 110 112 114 115 116 117 118 119 144 191 196 911 1414 3114 3919",
            own: "mon notre",
            digits: "zéro un deux trois quatre cinq six sept huit neuf",
            first: "premièrement",
            first_marked: "d'abord",
            further: "ensuite puis après deuxièmement mais maintenant",
            ..OpenWords::default()
        },
        OpenWords {
            names: ["it", "italian"],
            last: "il lo la i gli le un di a da in con per tra fra del dello della dei degli delle al allo \
                   alla ai agli alle dal dalla nel nella nei nelle sul sulla sui e ed o ma che mentre \
                   l' un' dell' all' nell' ehm",
            complete: "di che, altro che",
            leads: "e ma allora beh sì no ciao ehm",
            holds: "aspetta, aspetti, aspetta un attimo, aspetti un attimo, un attimo, un momento, \
                    un secondo, fammi pensare, mi faccia pensare",
            announcements: "mi chiamo, il mio nome è, il mio numero è, il mio indirizzo è, \
                            la mia domanda è, la domanda è, il problema è, \
                            quello che voglio sapere, il motivo per cui chiamo",
            several: &[
                ("colori sono", "rosso giallo verde"),
                ("colori sono il", "rosso giallo verde nero bianco blu"),
                ("giorni sono il", "lunedì martedì mercoledì giovedì venerdì sabato"),
            ],
            announced: &[
                ("numero di telefono è", 9),
                ("il mio numero è", 9),
                ("codice postale è", 5),
            ],
            services: "112 113 114 115 117 118 144 1515 1522 1530",
            own: "mio nostro",
            digits: "zero uno due tre quattro cinque sei sette otto nove",
            first_marked: "prima",
            further: "poi dopo secondo ma ora adesso",
            ..OpenWords::default()
        },
        OpenWords {
            names: ["pt", "portuguese"],
            // Without "pelo", which is also hair: "O gato solta pelo."
            last: "o a os as do da dos das de em no na nos nas ao aos à às por pela com pra e ou mas",
            complete: "meio mas",
            leads: "e mas bem então sim não olá oi",
            holds: "espera, espere, espera aí, um momento, só um momento, um segundo, \
                    só um segundo, um instante, deixa eu ver, deixa eu pensar, deixa-me pensar, \
                    deixe-me pensar",
            announcements: "me chamo, eu me chamo, chamo-me, meu nome é, o meu nome é, \
                            minha pergunta é, a minha pergunta é, a pergunta é, o problema é, \
                            o que eu quero saber",
            several: &[
                ("cores são", "vermelho verde azul amarelo"),
                ("cores são o", "vermelho verde azul amarelo preto branco"),
            ],
            pairs: &[
                // "Entre um momento" invites to come in.
                ("entre um", "e ou de grupo monte momento instante pouco minuto"),
                ("entre uma", "e ou de multidão vez"),
            ],
            announced: &[
                // Portugal has 9, and a landline in Brazil 8.
                ("número de telefone é", 8),
                ("meu número é", 8),
                ("código postal é", 7),
                ("cep é", 8),
            ],
            services: "100 112 115 117 144 180 181 188 190 191 192 193 197 198 199 911",
            own: "meu nosso",
            digits: "zero um dois três quatro cinco seis meia sete oito nove",
            first_marked: "primeiro",
            further: "depois segundo mas agora",
            ..OpenWords::default()
        },
        OpenWords {
            names: ["de", "german"],
            // Without prepositions that end sentences as parts of verbs: "Mach das Licht an."
            last: "und weil dass ob wenn falls obwohl sondern mein dein kein für von gegen zwischen wegen \
                   bis zum zur vom beim im am ins ans des äh ähm",
            clauses: "wenn bevor nachdem falls obwohl während sobald solange",
            subjects: "ich er es wir",
            complete: "als ob, na und, von wegen, was gegen, was von, nichts für, nichts gegen, \
                       nichts von, und ob, wenn es geht, wenn es sein muss, wenn es möglich ist, \
                       wenn es dir recht ist, wenn es ihnen recht ist, wenn es nichts ausmacht, \
                       wenn ich bitten darf, wenn ich mich nicht irre, wenn ich kann, \
                       wenn ich darf, wenn ich das wüsste",
            leads: "und aber also gut okay ok ja nein hallo hi äh ähm oh",
            holds: "moment, moment mal, moment bitte, einen moment, einen moment bitte, \
                    augenblick, einen augenblick, einen augenblick bitte, sekunde, eine sekunde, \
                    warte, warte mal, warten sie, lass mich überlegen, lassen sie mich überlegen, \
                    lass mich nachdenken",
            announcements: "ich heiße, mein name ist, meine nummer ist, meine telefonnummer ist, \
                            meine adresse ist, meine frage ist, die frage ist, das problem ist, \
                            was ich wissen will, der grund warum ich anrufe, ich hätte gern, \
                            ich hätte gerne",
            several: &[
                ("farben sind", "rot grün blau gelb orange lila rosa braun"),
                ("tage sind der", "montag dienstag mittwoch donnerstag freitag samstag sonntag"),
            ],
            all: "alle beide diese welche manche einige viele",
            pairs: &[
                ("zwischen einem", "und oder von haufen paar"),
                ("zwischen einer", "und oder von gruppe menge"),
                ("entweder", "oder"),
                ("sowohl", "als wie und"),
                ("weder", "noch"),
            ],
            announced: &[
                ("telefonnummer ist", 6),
                ("telefonnummer ist die", 6),
                ("handynummer ist", 9),
                ("handynummer ist die", 9),
                // Germany has 5, Austria and Switzerland 4.
                ("postleitzahl ist", 4),
                ("postleitzahl ist die", 4),
            ],
            services: "110 112 115 116117 117 118 122 133 140 141 143 144 147 1414",
            own: "meine unsere",
            digits: "null eins zwei zwo drei vier fünf sechs sieben acht neun",
            first: "zuerst erstens",
            further: "dann danach zweitens anschließend aber jetzt später",
            list_verbs: "brauche braucht mag möchte will habe hat spiele spielt kaufe kauft spreche spricht",
            no_things: "ein eine einen der die das den dich dir sie ihn ihm es mehr zeit hilfe nicht nichts etwas \
                        alles bitte danke zu auch",
            last_links: "und oder aber zuletzt schließlich",
            ..OpenWords::default()
        },
    ]
});
