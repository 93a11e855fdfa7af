//! Which placements are possible: one card, all cards, the experts in the system's memory, some layers there, no card.
//! Of those that divide a model, the one that leaves as much as possible on the card.

use super::engines::Splits;
use super::setup::own_cards;
use super::{FitError, Layout, Planner, Site};
use crate::footprint::KvTypes;
use crate::machine::GpuMemory;
use crate::weights::Part;

impl Planner<'_> {
    /// # Errors
    /// The engine reads the format on nothing that is here, or does not take these types.
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
        layouts.extend(self.across_cards());
        match self.runs_on(None) {
            Ok(()) => layouts.push(Layout::whole(shape, Site::Cpu)),
            Err(error) => refused = refused.or(Some(error)),
        }
        match refused.filter(|_| layouts.is_empty()) {
            Some(error) => Err(error.into()),
            None => Ok(layouts),
        }
    }

    /// Whole, and in part where it does not fit whole.
    fn on_card(&self, number: usize, kv: KvTypes) -> Result<Vec<Layout>, FitError> {
        let whole = Layout::whole(&self.model.shape, Site::Gpu(number));
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

    /// As few layers' experts as need be; none where even without any it does not fit, or there are none.
    fn experts_in_ram(&self, number: usize, kv: KvTypes) -> Result<Option<Layout>, FitError> {
        let shape = &self.model.shape;
        let layers = u32::try_from(shape.layers.len()).unwrap_or(u32::MAX);
        if !shape.weights.0.iter().any(|group| group.part == Part::Experts) {
            return Ok(None);
        }
        let layout =
            |experts_in_ram| Layout { experts_in_ram, ..Layout::whole(shape, Site::Gpu(number)) };
        let fits = |count| self.card_fits(&layout(count), kv);
        if !fits(layers)? {
            return Ok(None);
        }
        // `few` do not suffice, `enough` do.
        let (mut few, mut enough) = (0, layers);
        while enough - few > 1 {
            let middle = few + (enough - few) / 2;
            if fits(middle)? { enough = middle } else { few = middle }
        }
        Ok(Some(layout(enough)))
    }

    /// As many layers as the card holds.
    fn some_layers(&self, number: usize, kv: KvTypes) -> Result<Option<Layout>, FitError> {
        let shape = &self.model.shape;
        let layers = u32::try_from(shape.layers.len()).unwrap_or(u32::MAX);
        let layout = |count| Layout::split(shape, number, count);
        // `many` fit, `beyond` do not.
        let (mut many, mut beyond) = (0, layers);
        while beyond - many > 1 {
            let middle = many + (beyond - many) / 2;
            if self.card_fits(&layout(middle), kv)? { many = middle } else { beyond = middle }
        }
        Ok((many > 0).then(|| layout(many)))
    }

    /// Whether the cards hold their part, whatever the system's memory says.
    fn card_fits(&self, layout: &Layout, kv: KvTypes) -> Result<bool, FitError> {
        let terms = self.terms(layout, kv, self.context_tokens())?;
        let mut uses = self.uses(&terms).into_iter();
        Ok(uses.all(|used| used.pool == super::Pool::Ram || used.fits()))
    }

    /// Layers one after the other, by what is free on each; the last has the output too.
    fn across_cards(&self) -> Option<Layout> {
        let mut cards = own_cards(self.machine);
        cards.retain(|(number, _)| self.runs_on(self.machine.gpus.get(*number)).is_ok());
        let layers = u32::try_from(self.model.shape.layers.len()).unwrap_or(u32::MAX);
        let all = layers.saturating_add(1);
        (cards.len() > 1).then(|| Layout::spread(&self.model.shape, &cards, all))
    }
}
