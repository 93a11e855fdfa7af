//! Sends single chat requests with prompts of a given number of tokens, for cold starts and the longest context.
//! Each prompt starts with a new word, so no cache can contain it.

use hob_core::statistics::SeededRandom;

use crate::chat::{ANSWER_BYTES_PER_TOKEN, Prompt, RequestTemplate, TokenRate, nonce};
use crate::drive::Exchange;
use crate::runs::{BenchError, Reply};
use crate::target::Api;
use crate::timeline::{RequestFault, RequestFigures, Timeline, figures, timeline};
use crate::workbench::Asker;

/// Words of the two prompts that measure the tokens per word.
const FEW_WORDS: u32 = Prompt::ROUND;
const MANY_WORDS: u32 = 4 * Prompt::ROUND;

/// A client of one server, with the request fields that the server accepts.
#[derive(Debug)]
pub(crate) struct Questions<'a> {
    asker: Asker<'a>,
    ignores_eos: bool,
    measure: Option<TokenRate>,
    made: u64,
}

/// A request's parsed answer.
#[derive(Debug)]
pub(crate) struct ParsedReply {
    exchange: Exchange,
    pub(crate) timeline: Timeline,
    pub(crate) figures: Option<RequestFigures>,
}

impl ParsedReply {
    pub(crate) fn fault(&self) -> Option<&RequestFault> {
        self.timeline.fault.as_ref()
    }

    pub(crate) fn reply(self) -> Reply {
        Reply::in_words(&self.exchange, &self.timeline, self.figures)
    }
}

impl<'a> Questions<'a> {
    pub(crate) fn new(asker: Asker<'a>) -> Questions<'a> {
        let ignores_eos = asker.target.api != Api::Ollama;
        Questions { asker, ignores_eos, measure: None, made: 0 }
    }

    pub(crate) fn asker(&self) -> &Asker<'a> {
        &self.asker
    }

    /// Sends a short request. If the server rejects `ignore_eos`, further requests do without it.
    pub(crate) fn ask_short(&mut self, tokens: u32) -> Result<ParsedReply, BenchError> {
        let prompt = self.prompt(FEW_WORDS);
        let answered = self.ask(&prompt, tokens)?;
        let may_be_eos =
            matches!(answered.fault(), Some(RequestFault::Refused { status: 400 | 422, .. }));
        if !(self.ignores_eos && may_be_eos) {
            return Ok(answered);
        }
        self.ignores_eos = false;
        let without = self.ask(&prompt, tokens)?;
        self.ignores_eos = without.fault().is_some();
        Ok(without)
    }

    /// A prompt of this many tokens, with its template. The tokens per word are measured once.
    pub(crate) fn of_tokens(&mut self, tokens: u32) -> Result<Prompt, BenchError> {
        let measure = match self.measure {
            Some(measure) => measure,
            None => self.count_words()?,
        };
        Ok(self.prompt(measure.words(tokens)))
    }

    /// Whether prompt lengths are based on the server's counts; otherwise they are a guess.
    pub(crate) fn is_counted(&self) -> bool {
        self.measure.is_some_and(|measure| measure.words_counted > 0)
    }

    pub(crate) fn ask(&self, prompt: &Prompt, tokens: u32) -> Result<ParsedReply, BenchError> {
        let request = self.request_template(tokens).bytes(prompt, 0);
        let exchange = self.asker.send(request, tokens as usize * ANSWER_BYTES_PER_TOKEN)?;
        let timeline = timeline(&exchange, self.asker.target.api.protocol());
        let figures = figures(&timeline, Some(tokens));
        Ok(ParsedReply { exchange, timeline, figures })
    }

    fn count_words(&mut self) -> Result<TokenRate, BenchError> {
        self.measure = TokenRate::measure([FEW_WORDS, MANY_WORDS], |words| {
            let prompt = self.prompt(words);
            Ok(self.ask(&prompt, 1)?.timeline.counts.prompt)
        })?;
        Ok(self.measure.unwrap_or_else(TokenRate::estimate))
    }

    fn prompt(&mut self, words: u32) -> Prompt {
        self.made += 1;
        let mut random =
            SeededRandom::new(self.asker.seed ^ self.made.wrapping_mul(0xA076_1D64_78BD_642F));
        Prompt::of_rounds(words, &nonce(&mut random))
    }

    fn request_template(&self, max_tokens: u32) -> RequestTemplate<'_> {
        let (target, ignores_eos) = (&self.asker.target, self.ignores_eos);
        RequestTemplate {
            target,
            max_tokens,
            tools: 0,
            switch: None,
            ignores_eos,
            context_tokens: None,
        }
    }
}
