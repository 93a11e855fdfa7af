//! Uploaded files: a multipart form, or for sound JSON with the file inside.
//! They are read piece by piece, so that a file that is too large is rejected before it is all in memory.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use bytes::{Bytes, BytesMut};
use hob_core::{SoundFile, TranscriptTask};
use hob_wire::{
    FormField, WireError, WireTranscript, parse_transcript_form, parse_transcript_json,
};
use multer::{Constraints, Field, Multipart, SizeLimit};
use tokio::time::{Instant, timeout_at};

use crate::api_error::ApiError;
use crate::body_memory::IncomingBody;
use crate::context::RequestContext;
use crate::request_body::{ReadLimits, RequestGuards, check_compression, read_json, unless_slow};

/// The field that holds the sound.
const FILE: &str = "file";
/// Bytes of any other field; prompts are the longest of them.
const FIELD_BYTES_MAX: usize = 64 << 10;
const FIELDS_MAX: usize = 64;
/// Time limit for the whole file: a hundred megabytes take a while from a phone.
const UPLOAD_TIME_MAX: Duration = Duration::from_secs(600);

/// Reads a transcription request, in either of the two forms.
pub(crate) async fn read_transcript(
    context: &RequestContext,
    (headers, body): (&HeaderMap, Body),
    task: TranscriptTask,
    guards: &mut RequestGuards,
) -> Result<WireTranscript, ApiError> {
    let file_bytes_max = context.options().file_bytes_max;
    let content_type = content_type(headers);
    if is_form(&content_type) {
        let sent = (content_type.as_str(), headers, body);
        let Form { file, fields } = read_form(context, sent, guards, file_bytes_max).await?;
        return Ok(parse_transcript_form(task, file, fields)?);
    }
    // In base64, four bytes stand for three.
    let bytes_max = file_bytes_max / 3 * 4 + FIELD_BYTES_MAX;
    let read_limits = ReadLimits { bytes_max, time_max: UPLOAD_TIME_MAX };
    let parse = move |body: &[u8]| parse_transcript_json(task, body);
    read_json(context, (headers, body), guards, read_limits, parse).await.map_err(|refusal| {
        match refusal {
            ApiError::NotJson { got } => ApiError::NeitherFormNorJson { got },
            other => other,
        }
    })
}

/// Reads a form for its file alone.
pub(crate) async fn read_file(
    context: &RequestContext,
    (headers, body): (&HeaderMap, Body),
    file_bytes_max: usize,
) -> Result<SoundFile, ApiError> {
    let content_type = content_type(headers);
    if !is_form(&content_type) {
        return Err(ApiError::NotForm { got: content_type });
    }
    let sent = (content_type.as_str(), headers, body);
    let form = read_form(context, sent, &mut RequestGuards::default(), file_bytes_max).await?;
    Ok(form.file.ok_or_else(|| WireError::missing(FILE))?)
}

fn content_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE);
    value.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).unwrap_or_default()
}

fn is_form(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("multipart/form-data")
}

async fn read_form(
    context: &RequestContext,
    (content_type, headers, body): (&str, &HeaderMap, Body),
    guards: &mut RequestGuards,
    file_bytes_max: usize,
) -> Result<Form, ApiError> {
    check_compression(headers)?;
    let boundary = multer::parse_boundary(content_type).map_err(|error| unreadable(&error))?;
    let incoming = guards.reserve_memory(context, headers, form_bytes_max(file_bytes_max)).await?;
    let limit = SizeLimit::new().whole_stream(form_bytes_max(file_bytes_max) as u64);
    let constraints = Constraints::new().size_limit(limit);
    let reader = FormReader {
        parts: Multipart::with_constraints(body.into_data_stream(), boundary, constraints),
        file_bytes_max,
        piece_time_max: context.options().read_time_max,
        deadline: Instant::now() + UPLOAD_TIME_MAX,
        incoming,
    };
    let form = reader.form().await?;
    guards.arrived(form.file.as_ref().map_or(0, |file| file.bytes.len()));
    Ok(form)
}

fn form_bytes_max(file_bytes_max: usize) -> usize {
    file_bytes_max + FIELDS_MAX * FIELD_BYTES_MAX
}

#[derive(Default)]
struct Form {
    file: Option<SoundFile>,
    fields: Vec<FormField>,
}

struct FormReader {
    parts: Multipart<'static>,
    file_bytes_max: usize,
    piece_time_max: Duration,
    /// When the whole form must have arrived.
    deadline: Instant,
    incoming: Option<Arc<IncomingBody>>,
}

impl FormReader {
    async fn form(mut self) -> Result<Form, ApiError> {
        let mut form = Form::default();
        let mut fields = 0;
        while let Some(field) = self.next().await? {
            fields += 1;
            if fields > FIELDS_MAX {
                let detail = format!("it has more than {FIELDS_MAX} fields");
                return Err(ApiError::BadForm { detail });
            }
            self.take(&mut form, field).await?;
        }
        Ok(form)
    }

    async fn next(&mut self) -> Result<Option<Field<'static>>, ApiError> {
        let (by, time_max) = self.by();
        let next = unless_slow(self.incoming.as_deref(), self.parts.next_field());
        let next = timeout_at(by, next).await;
        let next = next.map_err(|_| ApiError::BodyTooSlow { time_max })??;
        next.map_err(|error| self.form_error(&error))
    }

    async fn take(&self, form: &mut Form, field: Field<'static>) -> Result<(), ApiError> {
        let name = field.name().unwrap_or_default().to_owned();
        if name != FILE {
            let bytes_max = FIELD_BYTES_MAX;
            let too_large = || ApiError::FieldTooLarge { name: printable_name(&name), bytes_max };
            let bytes = self.bytes(field, bytes_max, too_large).await?;
            let text = String::from_utf8(bytes.into())
                .map_err(|_| WireError::invalid(&printable_name(&name), "is not UTF-8"))?;
            form.fields.push((name, text));
            return Ok(());
        }
        if form.file.is_some() {
            let reason = "was sent twice".to_owned();
            return Err(WireError::invalid(FILE, reason).into());
        }
        let called = field.file_name().map(str::to_owned);
        let bytes_max = self.file_bytes_max;
        let too_large = || ApiError::FieldTooLarge { name: FILE.to_owned(), bytes_max };
        let bytes = self.bytes(field, bytes_max, too_large).await?;
        form.file = Some(SoundFile { bytes, name: called });
        Ok(())
    }

    async fn bytes(
        &self,
        mut field: Field<'static>,
        bytes_max: usize,
        too_large: impl Fn() -> ApiError,
    ) -> Result<Bytes, ApiError> {
        let mut bytes = BytesMut::new();
        loop {
            let (by, time_max) = self.by();
            let piece = timeout_at(by, unless_slow(self.incoming.as_deref(), field.chunk())).await;
            let piece = piece.map_err(|_| ApiError::BodyTooSlow { time_max })??;
            let Some(piece) = piece.map_err(|error| self.form_error(&error))? else { break };
            if bytes.len() + piece.len() > bytes_max {
                return Err(too_large());
            }
            bytes.extend_from_slice(&piece);
            self.incoming.iter().for_each(|incoming| incoming.add_received(piece.len()));
        }
        Ok(bytes.freeze())
    }

    /// When the next piece must have arrived, and the length of that limit.
    fn by(&self) -> (Instant, Duration) {
        let piece = Instant::now() + self.piece_time_max;
        if piece < self.deadline {
            (piece, self.piece_time_max)
        } else {
            (self.deadline, UPLOAD_TIME_MAX)
        }
    }

    fn form_error(&self, error: &multer::Error) -> ApiError {
        match error {
            multer::Error::StreamSizeExceeded { .. } => {
                ApiError::BodyTooLarge { bytes_max: form_bytes_max(self.file_bytes_max) }
            }
            multer::Error::StreamReadFailed(_)
            | multer::Error::IncompleteStream
            | multer::Error::IncompleteFieldData { .. }
            | multer::Error::IncompleteHeaders => ApiError::BodyBrokenOff,
            other => unreadable(other),
        }
    }
}

fn unreadable(error: &multer::Error) -> ApiError {
    ApiError::BadForm { detail: error.to_string() }
}

/// Names come from clients and are shown in messages.
fn printable_name(name: &str) -> String {
    const CHARS_MAX: usize = 64;
    name.chars().filter(|c| !c.is_control()).take(CHARS_MAX).collect()
}
