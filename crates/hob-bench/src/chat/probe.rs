//! Sends a few requests to find out whether the model thinks, what turns thinking off, how many tokens a word has, and
//! how long the template is. A model's name decides nothing.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use hob_core::statistics::SeededRandom;

use super::prompt::{Prompt, TokenRate, nonce};
use super::request::RequestTemplate;
use super::shape::{SHAPES, Shape};
use super::{ChatSession, SwitchEffect, ThinkingSwitch, TriedSwitch};
use crate::drive::{Arrivals, Exchange};
use crate::read_answer::ReadAnswer;
use crate::runs::BenchError;
use crate::timeline::{ChunkKind, RequestFault, Timeline, timeline};

/// Probes without thinking in a row after which a switch counts as working.
const SWITCH_PROBES: usize = 3;
const PROBE_TOKENS: u32 = 48;
/// Words of the two prompts that measure the tokens per word.
const FEW_WORDS: u32 = 40;
const MANY_WORDS: u32 = 240;
/// A rate is used for prompts up to this many times as long as the longest prompt that it was measured with.
const LONGER_FACTOR_MAX: u32 = 8;

impl ChatSession<'_> {
    pub(super) fn probe(&mut self, switch: Option<ThinkingSwitch>) -> Result<Timeline, BenchError> {
        let exchange = self.probe_exchange(switch)?;
        Ok(self.timeline_of(exchange.as_ref()))
    }

    /// None: the user stopped.
    fn probe_exchange(
        &mut self,
        switch: Option<ThinkingSwitch>,
    ) -> Result<Option<Exchange>, BenchError> {
        // `quick_word`: the answer is short, unless the model thinks.
        let shape = Shape { max_tokens: PROBE_TOKENS, ..SHAPES[4] };
        let prompt = self.prompt(shape);
        let request = RequestTemplate { switch, ..self.request_template(shape) }.bytes(&prompt, 0);
        self.exchange(request)
    }

    fn exchange(&self, request: Bytes) -> Result<Option<Exchange>, BenchError> {
        let driven = self.drive(vec![request], Arrivals::Closed { users: 1 }, PROBE_TOKENS)?;
        Ok(driven.exchanges.into_iter().next())
    }

    fn timeline_of(&self, exchange: Option<&Exchange>) -> Timeline {
        exchange.map_or_else(
            || Timeline { fault: Some(RequestFault::Stopped), ..Timeline::default() },
            |exchange| timeline(exchange, self.asker.target.api.protocol()),
        )
    }

    fn ask_once(&self, request: Bytes) -> Result<Timeline, BenchError> {
        Ok(self.timeline_of(self.exchange(request)?.as_ref()))
    }

    /// Requests one token after a prompt of this many words. `seed` differs for each probe, so that no prompt is cached.
    fn ask_with_words(&self, words: u32, tools: u32, seed: u64) -> Result<Timeline, BenchError> {
        let mut random = SeededRandom::new(self.asker.seed ^ seed);
        let nonce = nonce(&mut random);
        let prompt = Prompt::of_words(words, &nonce, &mut random);
        // The template takes no more than these two fields of a shape.
        let shape = Shape { max_tokens: 1, tools, ..SHAPES[0] };
        self.ask_once(self.request_template(shape).bytes(&prompt, 0))
    }

    pub(super) fn measure_token_rate(&self) -> Result<TokenRate, BenchError> {
        Ok(self.rate_of([FEW_WORDS, MANY_WORDS], 0)?.unwrap_or_else(TokenRate::estimate))
    }

    /// Measures again for a prompt that is much longer than the counted ones, because the error grows with the number of words.
    ///
    /// # Errors
    /// The requests cannot be sent.
    pub(crate) fn measure_token_rate_for(&mut self, prompt_tokens: u32) -> Result<(), BenchError> {
        let (known, wanted) = (self.token_rate.words_counted, self.token_rate.words(prompt_tokens));
        if known == 0 || wanted / known <= LONGER_FACTOR_MAX {
            return Ok(());
        }
        let words = wanted / LONGER_FACTOR_MAX;
        self.token_rate =
            self.rate_of([FEW_WORDS, words], u64::MAX / 2)?.unwrap_or(self.token_rate);
        Ok(())
    }

    fn rate_of(&self, words: [u32; 2], seed: u64) -> Result<Option<TokenRate>, BenchError> {
        TokenRate::measure(words, |words| {
            Ok(self.ask_with_words(words, 0, seed ^ u64::from(words))?.counts.prompt)
        })
    }

    /// The template's tokens for each number of tools. A server can have cached only the template of a new prompt. If it
    /// reports more cached tokens than that, its counts prove nothing, and the template counts as 0.
    pub(super) fn measure_templates(&self) -> Result<BTreeMap<u32, u32>, BenchError> {
        let tool_counts: BTreeSet<u32> = self.chat.shapes.iter().map(|shape| shape.tools).collect();
        let mut templates = BTreeMap::new();
        for tools in tool_counts {
            let answer = self.ask_with_words(FEW_WORDS, tools, u64::MAX - u64::from(tools))?;
            let counts = answer.counts;
            let Some(prompt) = counts.prompt else { continue };
            let template = self.token_rate.template_tokens(FEW_WORDS, prompt);
            let is_possible = counts.cached.is_none_or(|cached| cached <= template);
            templates.insert(tools, if is_possible { template } else { 0 });
        }
        Ok(templates)
    }

    /// The first switch with which all probes were answered without thinking.
    pub(super) fn find_switch(&mut self) -> Result<Option<ThinkingSwitch>, BenchError> {
        for switch in ThinkingSwitch::ALL {
            if self.try_switch(switch, SWITCH_PROBES)? == SwitchEffect::Works {
                return Ok(Some(switch));
            }
        }
        Ok(None)
    }

    /// Tries the switches after the one that works, with one probe each, so that a report can say what each of them does.
    /// Tries none if the model does not think, or if thinking stays on.
    pub(crate) fn try_all_switches(&mut self) -> Result<&[TriedSwitch], BenchError> {
        if !self.tried.is_empty() {
            for switch in ThinkingSwitch::ALL.into_iter().skip(self.tried.len()) {
                self.try_switch(switch, 1)?;
            }
        }
        Ok(&self.tried)
    }

    fn try_switch(
        &mut self,
        switch: ThinkingSwitch,
        probes: usize,
    ) -> Result<SwitchEffect, BenchError> {
        let (mut effect, mut sent) = (SwitchEffect::Works, 0);
        while effect == SwitchEffect::Works && sent < probes {
            effect = self.effect_of(switch)?;
            sent += 1;
        }
        self.tried.push(TriedSwitch { switch, effect });
        Ok(effect)
    }

    fn effect_of(&mut self, switch: ThinkingSwitch) -> Result<SwitchEffect, BenchError> {
        let exchange = self.probe_exchange(Some(switch))?;
        let Some(exchange) = exchange else { return Ok(SwitchEffect::Fails) };
        let answer = timeline(&exchange, self.asker.target.api.protocol());
        if answer.fault.is_some() {
            return Ok(SwitchEffect::Fails);
        }
        if thoughts(&answer) > 0 {
            return Ok(SwitchEffect::StillThinks);
        }
        let visible = ReadAnswer::of(&exchange, &self.asker.target).answer.content;
        Ok(match hob_eval::shows_a_thought(&visible) {
            true => SwitchEffect::Leaks,
            false => SwitchEffect::Works,
        })
    }
}

pub(super) fn thoughts(timeline: &Timeline) -> usize {
    let counted = timeline.counts.reasoning.unwrap_or(0) as usize;
    let chunks = timeline.chunks.iter().filter(|chunk| chunk.kind == ChunkKind::Thought).count();
    counted.max(chunks)
}
