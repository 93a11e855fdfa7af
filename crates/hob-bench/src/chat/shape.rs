//! Shapes of requests: the planned lengths of prompt and answer, and three fixed questions.
//! A change of a shape needs a new version, because results of different versions are not comparable.

/// Version of all shapes.
pub const SHAPES_VERSION: u32 = 1;

/// The planned size of a prompt and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub name: &'static str,
    pub prompt_tokens: u32,
    pub max_tokens: u32,
    /// Number of tool schemas in each request.
    pub tools: u32,
    /// The exact prompt. `None`: random words, about `prompt_tokens` tokens.
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

/// Name of all shapes of a context sweep. They differ in length.
const SWEEP: &str = "ctx";

impl Shape {
    /// A shape of a context sweep.
    pub(crate) fn of_sweep(prompt_tokens: u32, max_tokens: u32) -> Shape {
        Shape { name: SWEEP, prompt_tokens, max_tokens, tools: 0, question: None }
    }

    pub(crate) fn is_of_sweep(&self) -> bool {
        self.name == SWEEP
    }

    pub fn by_name(name: &str) -> Option<Shape> {
        SHAPES.into_iter().find(|shape| shape.name == name)
    }
}
