//! The words by which an open sentence is recognised in English.
//! Its table is by far the longest: most sentences that were measured are English.

use super::{NEVER_ENOUGH, OpenWords};

pub(super) const ENGLISH: OpenWords = OpenWords {
    names: ["en", "english"],
    last: "the a an my your our their its every and or nor but because although unless whereas if \
           than during despite very um uh uhm er erm I'm I've I'll I'd you're you've you'll \
           we're we've we'll they're they've they'll he's she's it's that's there's until whether Mister Mr Mrs Ms",
    last_phrases: "such as, as soon as, as long as, as well as, as far as, as though, even though, even if, \
                   in order to, instead of, because of, a couple of, a pair of, the name of, only if, \
                   not only, nowhere near as, twice as, half as, just as, message saying, note saying, text saying, message saying that, \
                   message that says, note that says, reminder that says, would rather, by the time",
    links: "of for with from at into between is are was were",
    infinitive: "to",
    // Without "ask", "tell", "let" and "find": "Find out which."
    imperatives: "add arrange book bring buy call cancel change close copy delete email forward get give hang \
                  invite leave lower make mark move navigate open order pack pay pick play plug pop post print put \
                  raise read record remove rename reserve save schedule send set show shut skip start stop store \
                  switch take text transfer translate turn type wake write",
    command_links: "at by to of for with from into onto than per via between among",
    relative_ends: "whose which",
    persons: "me us him her them it out",
    relatives: "what what's where where's who who's whom which whose why how how's when that's than as \
                whether this worth",
    pronouns: "that you nothing something anything everything someone anyone everyone",
    mentions: "spell word",
    questions: "is are was were am do does did can could will would shall should has have had may",
    clauses: "if when before after while unless although whenever",
    subjects: "i he she it we they there i'm i've it's he's she's we're they're there's",
    main_clause: "please don't remind wake stop start let's",
    long_clauses: "whether, although, even though, even if, every time, each time, by the time, as soon as, \
                   now that, given that, according to, not only",
    // Without "What I said" and "All I know", which are answers.
    long_subjects: &[
        ("the reason i", ""),
        ("the reason i'm", ""),
        ("the reason why i", ""),
        ("the reason why i'm", ""),
        ("the thing", "about"),
        ("the only thing i", "want wanted need needed"),
        ("all i", "want wanted need needed"),
        ("what i", "want wanted need needed mean meant"),
        ("what i really", "want wanted need needed mean meant"),
        ("what i'd", "like"),
        ("what i would", "like"),
        ("what we", "want need"),
    ],
    verbs: "is was are were isn't wasn't aren't weren't will would won't can can't cannot could \
            may might must should has had does doesn't did didn't makes made means depends",
    complete: "an a, anything but, just because, not very, not until, big if, what if, as if, \
               nine one one, nine nine nine, one one two, before it's too late, \
               if i'm not mistaken, if i remember correctly, if it's all right, if it's ok, \
               if it's okay, if i can, if i could, if i may, if i must, if i have to, if it helps, \
               if it works, as soon as you can, as soon as i can, if it's possible, if it is possible, whenever i can, \
               yes could you please, yes can you please, yes please remind me to, \
               yes remind me to",
    leads: "and so but well okay ok yes yeah no hi hello hey oh um uh uhm hmm sorry",
    holds: "wait, wait a second, wait a moment, wait a minute, just a second, just a moment, \
            just a minute, one second, one moment, one moment please, hold on, hold on a second, \
            hang on, hang on a second, let me think, let me see, let me check, give me a second, \
            give me a moment, give me a minute",
    announcements: "my name is, my phone number is, my telephone number is, my address is, \
                    my email is, my email address is, my question is, my problem is, \
                    the question is, the problem is, the point is, the thing is, the reason is, \
                    i would like, i'd like, could you please, can you please, remind me to, \
                    please remind me to, i mean, i was wondering, i was wondering if you could, here's the thing, \
                    what happened was, what happened is, my idea is, my idea was, the plan is, the idea is, \
                    the trouble is, my point is, the reason being",
    several: &[
        // People say of a picture that its colours are grey.
        ("colours are", "red green blue yellow orange purple pink brown"),
        ("colors are", "red green blue yellow orange purple pink brown"),
        ("days are", "monday tuesday wednesday thursday friday saturday sunday"),
        (
            "months are",
            "january february march april may june july august september october november december",
        ),
    ],
    all: "all both most these those which some many any",
    counts: "two three four five six seven eight nine ten",
    counting_verbs: "are were",
    counted: "letters digits numbers words things items names ingredients characters",
    corrections: "no sorry, no wait, sorry no, wait no, no actually, actually no, or rather, no make that, make that, \
                  scratch that, sorry i mean, no i mean, no i meant",
    command_corrections: "no, wait",
    pairs: &[
        ("email address is", "at"),
        ("either we", "or"),
        ("either i", "or"),
        ("either the", "or of"),
        ("either a", "or"),
        ("neither the", "nor of"),
        ("not only did", "also too but"),
        ("not only is", "also too but"),
        ("not only was", "also too but"),
        ("the sooner we", "the"),
        ("the longer i", "the"),
        ("the older i", "the"),
        ("the more i", "the"),
        ("the more you", "the"),
        ("the less i", "the"),
        ("between a", "and or of to versus vs couple pair group crowd team few lot dozen hundred"),
        ("between an", "and or of to versus vs couple pair group crowd team"),
    ],
    announced: &[
        ("phone number is", 7),
        ("telephone number is", 7),
        ("mobile number is", 7),
        ("cell number is", 7),
        ("my mobile is", 7),
        ("my mobile's", 7),
        ("my mobiles", 7),
        ("my cell is", 7),
        ("my number is", 7),
        ("my number's", 7),
        ("account number is", 6),
        ("sort code is", 6),
        ("booking code is", 4),
        ("booking number is", 4),
        ("confirmation code is", 4),
        ("order number is", 4),
        ("reference number is", 4),
        // A library's card has fewer digits, and an IP address is a number.
        ("the card number is", 12),
        ("my card number is", 12),
        ("credit card number is", 12),
        ("debit card number is", 12),
        ("zip code is", 5),
        ("pin is", 4),
        ("the address is", NEVER_ENOUGH),
        ("my address is", NEVER_ENOUGH),
        ("navigate to", NEVER_ENOUGH),
        ("our address is", NEVER_ENOUGH),
    ],
    announced_codes: &[
        // The shortest in the United Kingdom: M1 1AE.
        ("postcode is", 5),
        ("post code is", 5),
        ("flight number is", 3),
        ("flight is", 3),
        ("licence plate is", 5),
        ("license plate is", 5),
        ("number plate is", 5),
        ("booking reference is", 5),
        ("confirmation number is", 5),
        ("serial number is", 6),
        ("tracking number is", 8),
    ],
    services: "000 100 101 105 110 111 112 118 118118 119 211 311 411 511 611 711 811 911 988 999",
    own: "my our",
    digits: "zero oh one two three four five six seven eight nine double triple",
    first: "",
    first_marked: "first firstly",
    commands: "i we you let add call check close do find get give go make open play put read send \
               set show take tell turn write",
    further: "second secondly then next finally last lastly after afterwards later but now",
    list_verbs: "need needs want wants like likes love loves have has play plays buy buys speak \
                 speaks sell sells bring brings",
    list_commands: "add buy order invite bring pack",
    no_things: "a an the my your it that this them you him her me us one some more time help not none \
                nothing something anything everything please thanks thank to too so well now here there",
    last_links: "and or but finally last lastly",
    prepositions: "at to by for with from of into onto about through than per via between among towards behind under \
                   near across against past whose",
    beginnings: "if, when, before, after, while, unless, since, until, whenever, wherever, once, whether, although, \
                 because, during, despite, dear, even though, even if, every time, each time, by the time, \
                 as soon as, as long as, as far as, now that, given that, in case, the moment, the minute, \
                 the first time, the last time, the next time, next time, last time, according to, not only",
    articles: "the my your our a an this that there there's everyone everybody anyone people those",
    relative_subjects: "who whose which that where",
};
