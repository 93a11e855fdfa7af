//! Captures the server's log while a test runs.

use std::sync::{Arc, Mutex, Once};

use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Captures all events of all levels until the guard is dropped.
    pub(crate) fn listen(&self) -> DefaultGuard {
        // The process caches whether any subscriber wants an event, and a test without a subscriber may ask first.
        // With one subscriber that wants everything, no event is disabled.
        static WANT_ALL: Once = Once::new();
        WANT_ALL.call_once(|| {
            let listener = tracing_subscriber::registry();
            tracing::subscriber::set_global_default(listener).expect("the first");
        });
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(self.clone())
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("a log").clone()).expect("text")
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("a log").extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Log;

    fn make_writer(&'a self) -> Log {
        self.clone()
    }
}
