//! The words by which an open sentence is recognised in English.
//! Its table is by far the longest: most sentences that were measured are English.

use super::{NEVER_ENOUGH, OpenWords};

pub(super) const ENGLISH: OpenWords = OpenWords {
    names: ["en", "english"],
    last: "the a an my your our their its every and or nor but because although unless whereas if \
           than during despite very um uh uhm er erm I'm I've I'll I'd you're you've you'll \
           we're we've we'll they're they've they'll he's she's it's that's there's until whether",
    last_phrases: "such as, as soon as, as long as, as well as, as far as, as though, even though, \
                   in order to",
    links: "of for with from at into between is are was were",
    relatives: "what what's where where's who who's whom which whose why how how's when that's than as \
                whether this worth",
    pronouns: "that you nothing something anything everything someone anyone everyone",
    mentions: "spell word",
    questions: "is are was were am do does did can could will would shall should has have had may",
    clauses: "if when before after while unless although whenever",
    subjects: "i he she it we they there i'm i've it's he's she's we're they're there's",
    main_clause: "please don't remind wake stop start let's",
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
               if it works, if it's possible, if it is possible, whenever i can, \
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
                    please remind me to",
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
    pairs: &[
        ("between a", "and or of to versus vs couple pair group crowd team few lot dozen hundred"),
        ("between an", "and or of to versus vs couple pair group crowd team"),
    ],
    announced: &[
        ("phone number is", 7),
        ("telephone number is", 7),
        ("mobile number is", 7),
        ("cell number is", 7),
        ("my number is", 7),
        ("account number is", 6),
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
        ("our address is", NEVER_ENOUGH),
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
};
