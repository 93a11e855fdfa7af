//! What is asked: shapes of prompts and answers, and three questions that everybody asks.
//! Version 1. A shape that changes gets another version, because figures of two are not compared.

/// Version of all shapes.
pub const VERSION: u32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub name: &'static str,
    pub prompt_tokens: u32,
    pub max_tokens: u32,
    pub tools: u32,
    /// Asked as it is; else words of no meaning, as many as are wanted.
    pub question: Option<&'static str>,
}

pub const SHAPES: [Shape; 7] = [
    Shape { name: "short_short", prompt_tokens: 64, max_tokens: 128, tools: 0, question: None },
    Shape { name: "long_short", prompt_tokens: 8192, max_tokens: 128, tools: 0, question: None },
    Shape { name: "short_long", prompt_tokens: 64, max_tokens: 1024, tools: 0, question: None },
    Shape { name: "agentic", prompt_tokens: 2048, max_tokens: 512, tools: 6, question: None },
    Shape {
        name: "quick_word",
        prompt_tokens: 32,
        max_tokens: 64,
        tools: 0,
        question: Some("What is 17 plus 25? Answer with one word."),
    },
    Shape {
        name: "quick_reasoning",
        prompt_tokens: 64,
        max_tokens: 512,
        tools: 0,
        question: Some(
            "A train leaves at 9:40 and drives 210 km at 84 km/h, waits 25 minutes, and drives 96 km more at 64 km/h. When does it arrive? Show each step.",
        ),
    },
    Shape {
        name: "quick_coding",
        prompt_tokens: 48,
        max_tokens: 512,
        tools: 0,
        question: Some(
            "Write a Python function that returns the nth Fibonacci number, memoised, with a docstring and three tests.",
        ),
    },
];

/// The name of prompts of any length, as a sweep asks them.
const SWEEP: &str = "ctx";

impl Shape {
    /// A prompt of so many tokens, with an answer of so many.
    pub(crate) fn of_sweep(prompt_tokens: u32, max_tokens: u32) -> Shape {
        Shape { name: SWEEP, prompt_tokens, max_tokens, tools: 0, question: None }
    }

    pub(crate) fn is_of_sweep(&self) -> bool {
        self.name == SWEEP
    }

    pub fn named(name: &str) -> Option<Shape> {
        SHAPES.into_iter().find(|shape| shape.name == name)
    }
}
