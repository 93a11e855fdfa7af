//! Two servers in turns, with the same words, ABBA: whatever the machine does meanwhile, it does to both.
//! What comes of it are two records of one campaign, which may be compared block by block.

use hob_core::statistics::Chance;
use jiff::Timestamp;

use crate::calibrate::{Calibration, Pace};
use crate::llm::{Cell, Lab, Prompt, Wish};
use crate::record::{Record, sha256_hex};
use crate::runs::{BenchError, Block, Context};
use crate::target::Target;
use crate::terms::Metric;
use crate::turns::{Both, Turns, run};
use crate::workbench::{Asker, Workbench};

/// The other server, and what is known of it.
#[derive(Clone, Debug)]
pub struct Rival {
    pub target: Target,
    pub context: Context,
}

/// Measures every cell of the workbench's own server and of its rival; each pair is kept once it is done.
///
/// # Errors
/// One of them does not answer as a chat model does, or a record cannot be kept.
pub fn measure(
    bench: &mut Workbench<'_>,
    rival: &Rival,
    wish: &Wish,
) -> Result<Vec<(Record, Record)>, BenchError> {
    let asker = Asker { target: rival.target.clone(), ..bench.asker() };
    let mut labs = [Lab::roomy(bench.asker(), wish)?, Lab::roomy(asker, wish)?];
    let pairs: Vec<(Cell, Cell)> = labs[0].cells().into_iter().zip(labs[1].cells()).collect();
    let mut records = Vec::new();
    for (number, cells) in pairs.iter().enumerate() {
        if bench.is_stopped() {
            break;
        }
        let name = format!("{}/{} {}", number + 1, pairs.len(), cells.0.name());
        records.extend(each(bench, rival, &mut labs, *cells, &name)?);
    }
    Ok(records)
}

fn each(
    bench: &mut Workbench<'_>,
    rival: &Rival,
    labs: &mut [Lab<'_>; 2],
    cells: (Cell, Cell),
    name: &str,
) -> Result<Option<(Record, Record)>, BenchError> {
    let started = Timestamp::now();
    let chance = Chance::seeded(bench.context.seed);
    let (asked, held, pairs) = (Vec::new(), Held::Nothing, 0);
    let mut duel = Duel { labs, cells, chance, asked, held, pairs };
    let Both { first, second } = run(bench, name, &mut duel)?;
    // The words are the same; only the first, which nobody has said before, is another.
    let prompts_sha256 = sha256_hex(duel.asked.join("\n").as_bytes());
    let one = labs[0].account(cells.0, &first, started, prompts_sha256.clone());
    let Some(one) = bench.close(one)? else { return Ok(None) };
    let own = std::mem::replace(&mut bench.context, rival.context.clone());
    let two = bench.close(labs[1].account(cells.1, &second, started, prompts_sha256));
    bench.context = own;
    Ok(two?.map(|two| (one, two)))
}

struct Duel<'d, 'a> {
    labs: &'d mut [Lab<'a>; 2],
    cells: (Cell, Cell),
    chance: Chance,
    /// Words of all prompts, without the first of each.
    asked: Vec<String>,
    held: Held,
    pairs: usize,
}

/// What one half of a pair leaves for the other.
enum Held {
    Nothing,
    /// The rival was asked before.
    Answers(Block),
    /// It is still to be asked.
    Prompts(Vec<Prompt>),
}

impl Turns for &mut Duel<'_, '_> {
    fn first(&mut self, calibration: Option<&Calibration>) -> Result<Block, BenchError> {
        let prompts = self.labs[0].next_prompts(self.cells.0);
        self.asked.extend(prompts.iter().map(|prompt| prompt.user.clone()));
        // Both may be one server, which would know the prompt already.
        let nonce = |chance: &mut Chance| format!("{:06x}", chance.bits() & 0xFF_FFFF);
        let others: Vec<Prompt> = prompts
            .iter()
            .map(|prompt| Prompt { system: nonce(&mut self.chance), user: prompt.user.clone() })
            .collect();
        self.pairs += 1;
        self.held = match self.pairs % 2 {
            0 => Held::Answers(self.labs[1].ask(self.cells.1, &others, calibration)?),
            _ => Held::Prompts(others),
        };
        self.labs[0].ask(self.cells.0, &prompts, calibration)
    }

    fn second(&mut self, calibration: Option<&Calibration>) -> Result<Block, BenchError> {
        match std::mem::replace(&mut self.held, Held::Nothing) {
            Held::Answers(block) => Ok(block),
            Held::Prompts(prompts) => self.labs[1].ask(self.cells.1, &prompts, calibration),
            Held::Nothing => Ok(Block::default()),
        }
    }

    fn leading(&self) -> &[Metric] {
        self.cells.1.leading()
    }

    fn pace(&self, warm: &Block) -> Option<Pace> {
        self.cells.1.pace(warm)
    }
}
