//! `POST /completions`: continues texts as they stand. It uses the path of chat with another JSON format.
//! Several prompts run in parallel, each with the requested number of choices.

use axum::extract::Request;
use axum::response::Response;
use hob_core::Chat;
use hob_wire::{ChatDelivery, CompletionAnswer, CompletionChunks, parse_completion};

use crate::api_error::{ApiError, CHAT_PROMPT, FieldNames};
use crate::chat::{OpenAi, check, head, start, streamed, whole, without_effect};
use crate::chat_answer::seeded;
use crate::request_body::{Intake, read_request};

const NAMES: FieldNames = &[(CHAT_PROMPT, "prompt")];

pub(crate) async fn complete(request: Request) -> Result<Response, ApiError> {
    let Intake { context, guards, body } = read_request(request, parse_completion).await?;
    let prefixes = body.prefixes();
    let resolved = context.resolve::<Chat>(body.model)?;
    body.requests.iter().try_for_each(|request| check(&resolved.model, request))?;
    let tells_prompts = resolved.model.model.card().scores_prompts
        && body.requests.iter().any(|request| request.echo && request.logprobs.is_some());
    let head = head(&resolved, &context);
    let ignored = &without_effect(&resolved.model, body.ignored, body.unknown);
    let each = body.choices;
    let requests = body.requests.into_iter().flat_map(|request| seeded(request, each)).collect();
    let start = start(context, guards, resolved, (requests, body.delivery));
    match body.delivery {
        ChatDelivery::Whole => {
            let answer = CompletionAnswer::new(head, &prefixes, each);
            let mut answer = if tells_prompts { answer.with_prompt_tokens() } else { answer };
            whole(start, NAMES, (&mut answer, ignored)).await
        }
        ChatDelivery::Events(usage) => {
            let chunks = CompletionChunks::new(head, &prefixes, each, usage);
            let chunks = if tells_prompts { chunks.with_prompt_tokens() } else { chunks };
            streamed(start, None, (OpenAi(chunks, NAMES), ignored)).await
        }
    }
}
