//! `POST /completions`: texts continued as they stand. Chat's way, with other JSON at both ends.
//! Several prompts run side by side, each as so many choices.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use hob_core::Clocked;
use hob_wire::{ChatDelivery, CompletionAnswer, CompletionChunks, parse_completion};

use crate::asking::{Asking, read_asking};
use crate::chat::{asked, check, head, streamed, whole, without_effect};
use crate::converse::{Question, converse, seeded};
use crate::failure::ApiError;
use crate::router::App;

pub(crate) async fn complete(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, ApiError> {
    let Asking { received, caller, held, mut wire } =
        read_asking(&app, request, parse_completion).await?;
    wire.model = caller.chat_name(&app, wire.model)?;
    let target = app.chat_target(wire.model.as_deref())?;
    wire.requests.iter().try_for_each(|request| check(&target, request))?;
    let prefixes = wire.prefixes();
    let tells_prompts = target.clocks != Clocked::ByItself
        && wire.requests.iter().any(|request| request.echo && request.logprobs.is_some());
    let asked = asked(wire.model.clone(), wire.delivery, received, (caller, held));
    let head = head(wire.model, &target, received);
    let ignored = &without_effect(&target, wire.ignored, wire.unknown);
    let each = wire.choices;
    let requests = wire.requests.into_iter().flat_map(|request| seeded(request, each)).collect();
    let question = Question { target, requests, asked };
    let about = |refusal: ApiError| refusal.about("prompt");
    match wire.delivery {
        ChatDelivery::Whole => {
            let answer = CompletionAnswer::new(head, &prefixes, each);
            let answer = if tells_prompts { answer.with_prompt_tokens() } else { answer };
            whole(converse(&app, question).await.map_err(about)?, answer, ignored).await
        }
        ChatDelivery::Events(usage) => {
            let chunks = CompletionChunks::new(head, &prefixes, each, usage);
            let chunks = if tells_prompts { chunks.with_prompt_tokens() } else { chunks };
            streamed(app, question, None, (chunks, ignored)).await.map_err(about)
        }
    }
}
