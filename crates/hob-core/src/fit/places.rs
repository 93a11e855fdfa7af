//! The possible placements: one card, all cards, experts in system memory, some layers in system memory, no card.
//! When a model is divided, chooses the placement that keeps most of it on the card.

use super::engines::Splits;
use super::setup::own_cards;
use super::{ComputeSite, FitError, Layout, Planner};
use crate::footprint::{KvTypes, find_largest};
use crate::machine::GpuMemory;
use crate::weights::Part;

impl Planner<'_> {
    /// Layouts to consider for one pair of KV types.
    ///
    /// # Errors
    /// No device here runs the format, or the engine does not accept these types.
    pub(super) fn layouts(&self, kv: KvTypes) -> Result<Vec<Layout>, FitError> {
        let shape = &self.model.shape;
        let mut layouts = Vec::new();
        let mut refused = None;
        for number in 0..self.machine.gpus.len() {
            match self.runs_on(self.machine.gpus.get(number)) {
                Ok(()) => layouts.extend(self.on_card(number, kv)?),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        layouts.extend(self.across_cards(kv)?);
        match self.runs_on(None) {
            Ok(()) => layouts.push(Layout::whole(shape, ComputeSite::Cpu)),
            Err(error) => refused = refused.or(Some(error)),
        }
        match refused.filter(|_| layouts.is_empty()) {
            Some(error) => Err(error.into()),
            None => Ok(layouts),
        }
    }

    /// The whole model on a card, and parts of it if the whole does not fit.
    fn on_card(&self, number: usize, kv: KvTypes) -> Result<Vec<Layout>, FitError> {
        let whole = Layout::whole(&self.model.shape, ComputeSite::Gpu(number));
        let is_own = |gpu: &crate::machine::Gpu| matches!(gpu.memory, GpuMemory::Own { .. });
        let can_split = self.machine.gpus.get(number).is_some_and(is_own);
        let fits = self.fits(&whole, kv, self.context_tokens())?;
        let mut layouts = vec![whole];
        if fits || !can_split {
            return Ok(layouts);
        }
        let splits = self.profile.splits;
        if splits != Splits::Never {
            layouts.extend(self.experts_in_ram(number, kv)?);
        }
        if splits == Splits::Anywhere {
            layouts.extend(self.some_layers(number, kv)?);
        }
        Ok(layouts)
    }

    /// Moves the experts of as few layers as necessary. `None` without experts, or if even that does not fit.
    fn experts_in_ram(&self, number: usize, kv: KvTypes) -> Result<Option<Layout>, FitError> {
        let shape = &self.model.shape;
        let layers = u32::try_from(shape.layers.len()).unwrap_or(u32::MAX);
        if !shape.weights.0.iter().any(|group| group.part == Part::Experts) {
            return Ok(None);
        }
        let layout = |experts_in_ram| Layout {
            experts_in_ram,
            ..Layout::whole(shape, ComputeSite::Gpu(number))
        };
        let fits = |count| self.card_fits(&layout(count), kv);
        if !fits(layers)? {
            return Ok(None);
        }
        let too_few = find_largest(layers, |count| Ok::<_, FitError>(!fits(count)?))?;
        Ok(Some(layout(layers.min(too_few + 1))))
    }

    /// The layout with as many layers on the card as fit.
    fn some_layers(&self, number: usize, kv: KvTypes) -> Result<Option<Layout>, FitError> {
        let shape = &self.model.shape;
        let layers = u32::try_from(shape.layers.len()).unwrap_or(u32::MAX);
        let layout = |count| Layout::split(shape, number, count);
        let many = find_largest(layers, |count| self.card_fits(&layout(count), kv))?;
        Ok((many > 0).then(|| layout(many)))
    }

    /// Whether the cards hold their part. System memory is checked elsewhere.
    fn card_fits(&self, layout: &Layout, kv: KvTypes) -> Result<bool, FitError> {
        let terms = self.terms(layout, kv, self.context_tokens())?;
        let mut uses = self.uses(&terms).into_iter();
        Ok(uses.all(|used| used.pool == super::Pool::Ram || used.fits()))
    }

    /// Layers in order over all cards, in proportion to free memory, and as many of them as fit if not all do. The output is
    /// the last of them.
    fn across_cards(&self, kv: KvTypes) -> Result<Vec<Layout>, FitError> {
        let mut cards = own_cards(self.machine);
        cards.retain(|(number, _)| self.runs_on(self.machine.gpus.get(*number)).is_ok());
        if cards.len() < 2 {
            return Ok(Vec::new());
        }
        let layers = u32::try_from(self.model.shape.layers.len()).unwrap_or(u32::MAX);
        let spread = |count| Layout::spread(&self.model.shape, &cards, count);
        let whole = spread(layers.saturating_add(1));
        let is_divided = self.profile.splits == Splits::Anywhere && !self.card_fits(&whole, kv)?;
        let mut layouts = vec![whole];
        // With one layer more, another card may be the full one, so bisection would not do.
        for layout in (2..=layers).rev().filter(|_| is_divided).map(spread) {
            if self.card_fits(&layout, kv)? {
                layouts.push(layout);
                break;
            }
        }
        Ok(layouts)
    }
}
