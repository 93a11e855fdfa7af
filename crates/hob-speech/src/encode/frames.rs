//! Cuts frames of one size from pieces of any size.
//! Because of this, the bytes do not depend on where a response is cut.

/// Holds samples that do not fill a frame yet: always less than one frame.
#[derive(Debug)]
pub(super) struct Frames {
    held: Vec<f32>,
    samples_per_frame: usize,
}

impl Frames {
    pub(super) fn of(samples_per_frame: usize) -> Self {
        Self { held: Vec::with_capacity(samples_per_frame), samples_per_frame }
    }

    /// Calls `frame` with every frame that `samples` completes.
    pub(super) fn push<E>(
        &mut self,
        mut samples: &[f32],
        mut frame: impl FnMut(&[f32]) -> Result<(), E>,
    ) -> Result<(), E> {
        while self.held.len() + samples.len() >= self.samples_per_frame {
            let (head, tail) = samples.split_at(self.samples_per_frame - self.held.len());
            self.held.extend_from_slice(head);
            frame(&self.held)?;
            self.held.clear();
            samples = tail;
        }
        self.held.extend_from_slice(samples);
        Ok(())
    }

    /// Returns the samples that fill no frame.
    pub(super) fn take_rest(&mut self) -> Vec<f32> {
        std::mem::take(&mut self.held)
    }
}
