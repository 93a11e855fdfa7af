//! Sentences to a voice assistant at home, each with one or two pauses, marked as in `clips.rs`.
//! They do not change. The first measurement, when no rule had been written for them, cut in on 5 of the 40. Since then two rules
//! are from its transcripts: codes and commands with several objects. A new set is needed to judge later rules.

use super::clips::Kind;

pub(super) const HELD_OUT: [(Kind, &str); 40] = [
    (Kind::Pause, "Set a timer for the potatoes, |let's say twenty-five minutes."),
    (Kind::Pause, "What I want is |something that the children can eat without a fork."),
    (Kind::Pause, "Could you move my appointment with the dentist from Thursday |to next week?"),
    (
        Kind::Pause,
        "The woman upstairs who leaves her bicycle in the hall |is moving out on Saturday.",
    ),
    (Kind::Pause, "My new address is forty-seven Willow Lane, |flat three, |in Norwich."),
    (Kind::Pause, "The booking code is seven, nine, two, |four, zero, |eight."),
    (Kind::Pause, "My surname is Kowalczyk, that's K, O, W, A, |L, C, Z, Y, K."),
    (Kind::Pause, "Wake me up at half past six, no, |make that a quarter to seven."),
    (Kind::Pause, "If my sister calls while I am in the shower, |tell her I will call her back."),
    (Kind::Pause, "I was wondering whether |there is still time to water the garden."),
    (Kind::Pause, "Remind me on the fourteenth of |November to renew my passport."),
    (Kind::Pause, "When the washing machine has finished, |could you send me a message?"),
    (Kind::Pause, "How long does it take to |fly from Glasgow to Lisbon?"),
    (Kind::Pause, "Turn the heating down in every room except |the bathroom."),
    (Kind::Pause, "The thing that bothers me about this recipe |is how much sugar it takes."),
    (Kind::Pause, "Write to Margaret that we will be there by eight, |or a little later."),
    (
        Kind::Pause,
        "Although I read the manual twice, |I still don't know |how to reset the router.",
    ),
    (Kind::Hesitation, "Put on some, uhm, |some jazz, but nothing with singing."),
    (Kind::Hesitation, "I think it was in, uh, |nineteen eighty-four or eighty-five."),
    (Kind::Hesitation, "What was the name of that, um, |that actor with the beard?"),
    (Kind::Hesitation, "So, um, |how do I get wine out of a carpet?"),
    (Kind::Hesitation, "Can you find out when the, uh, |the library closes on Fridays?"),
    (Kind::Hesitation, "My doctor said I should take them, um, |twice a day after meals."),
    (Kind::Hesitation, "Send the invoice to Peter, sorry, uh, |to Patrick at the garage."),
    (Kind::Hesitation, "I need, uhm, |let me think, |about three hundred grams of flour."),
    (Kind::Hesitation, "The film starts at, uh, |at ten past nine, I believe."),
    (Kind::Hesitation, "Well, what I really meant was, uhm, |the lamp next to the sofa."),
    (Kind::Hesitation, "Tell me something about, um, |about the moons of Jupiter."),
    (Kind::Hesitation, "Cancel the alarm, no wait, uh, |only the one for tomorrow."),
    (Kind::List, "Add washing powder, |light bulbs |and cat food to the shopping list."),
    (Kind::List, "For the cake we need two hundred grams of sugar, |four eggs |and a lemon."),
    (Kind::List, "Invite Sandra, |her husband, |and the neighbours from number twelve."),
    (Kind::List, "Close the blinds, |lock the back door, |and switch off everything downstairs."),
    (Kind::List, "On Monday I have yoga, |on Tuesday choir, |and on Wednesday nothing at all."),
    (Kind::List, "The dog is afraid of thunder, |vacuum cleaners, |and the man with the post."),
    (Kind::List, "Which is healthier, rice, |noodles, |or potatoes?"),
    (Kind::List, "I have been to Portugal, |Greece |and most of Italy."),
    (Kind::List, "I would like a large pizza with mushrooms, |one with ham, |and a small salad."),
    (Kind::List, "My shifts are from six to two, |then from two to ten, |and on Sunday I am free."),
    (Kind::List, "Play the Beatles, |the Kinks, |or anything else from the sixties."),
];
