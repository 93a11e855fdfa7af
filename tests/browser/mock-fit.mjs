// A hob that says what fits: two models, two machines, and answers that follow from the address by simple sums.
// A model with `[slow]` in its name is answered only when the test says so.

const GB = 1e9;
const TRAINED = 131_072;
const CONTEXTS = [512, 4_096, 16_384, 65_536, 131_072];
const KV_BYTES = { f16: 100_000, q8_0: 53_125, "q8_0/q4_0": 40_625 };

export const FIT_MODELS = [
  { name: "mine", installed: true, quant: "Q8_0", quants: ["Q8_0"], trained_context: 8_192 },
  { name: "Qwen3-8B", installed: false, quant: "Q4_K_M", quants: ["F16", "Q8_0", "Q4_K_M"], trained_context: TRAINED },
  { name: "Qwen3-70B [slow]", installed: false, quant: "Q4_K_M", quants: ["Q4_K_M"], trained_context: TRAINED },
  { name: "<img src=x onerror=alert(1)>", installed: false, quant: "Q4_K_M", quants: ["Q4_K_M"], trained_context: TRAINED },
];
export const FIT_MACHINES = [{ name: "this machine" }, { name: "laptop, RTX 4070" }];

const TAGS = { "qwen3:8b": "Qwen3-8B" };

/** @returns {object} the answer to a question in an address */
export function fitFor(query) {
  const [named, asked, machine] = ["model", "quant", "machine"].map((name) => query.get(name));
  const model = TAGS[named] ?? named;
  const quant = asked ?? FIT_MODELS.find(({ name }) => name === model)?.quant;
  const requested = Number(query.get("context_tokens"));
  const trained = FIT_MODELS.find(({ name }) => name === model)?.trained_context ?? TRAINED;
  const kv = query.get("kv") ?? "f16";
  const onCard = machine === FIT_MACHINES[1].name;
  const free = onCard ? 7.2 * GB : 24 * GB;
  const weights = quant === "Q4_K_M" ? 5.0 * GB : 9.2 * GB;
  const room = free - GB - weights;
  const maxOf = (type) => (room < 0 ? null : Math.min(trained, Math.floor(room / KV_BYTES[type] / 256) * 256));
  const rate = (context) => rateOf(onCard ? 1 / (0.02 + context * KV_BYTES[kv] * 6.6e-12) : null, context);
  const need = weights + requested * KV_BYTES[kv];
  const fits = need + GB <= free;
  const pool = onCard ? "GPU 0" : "RAM";
  const max = maxOf(kv);
  const [kvK, kvV = kvK] = kv.split("/");
  const plan = {
    quant, format: "GGUF", engine: "hob", kv_k: kvK, kv_v: kvV, fits,
    placement: onCard ? { kind: "vram", text: "VRAM" } : { kind: "ram", text: "RAM" },
    flags: [
      { engine: "hob", text: `[chat]\nmodel = "${model}"\ncontext_tokens = ${requested}` },
      { engine: "llama.cpp", text: `llama-server -m ${model} -c ${requested} -np 1 -ngl ${onCard ? 37 : 0} -fa on -ctk ${kvK} -ctv ${kvV}` },
    ],
    memory: {
      terms: [
        { name: "weights", pool, bytes: weights, formula: "Σ elements / block × bytes, of every tensor that lies here", basis: "measured" },
        { name: "KV cache", pool, bytes: requested * KV_BYTES[kv], formula: "Σ layers: kv heads × (key × bytes + value × bytes) × cells", basis: "measured" },
      ],
      need, free, margin: GB,
      pools: [{ pool, name: onCard ? "RTX 4070 Laptop" : "RAM", need, reclaimable: 0, free, margin: GB, lacks: Math.max(0, need + GB - free), fits }],
    },
    context: { requested, max, limited_by: max === trained ? "trained" : pool },
    decode: CONTEXTS.filter((context) => context <= Math.max(max ?? 0, requested)).map(rate),
    decode_requested: rate(requested),
    prefill: [{ ...rate(requested), first_token_ms: onCard ? requested / 2 : null }],
    warnings: onCard ? [] : [{ code: "unknown_speed", text: "the memory bandwidth is not known, so hob cannot predict a speed", action: "hob fit calibrate" }],
  };
  return {
    verdict: fits ? `${model} ${quant} fits, with ${requested.toLocaleString("en")} tokens.` : `${model} ${quant} does not fit.`,
    fits,
    machine: { name: machine },
    model: { name: model, quant, trained_context: trained },
    plans: onCard ? [plan, { ...plan, placement: { kind: "split", layers: 12, text: "split, 12 layers on GPU 0 and GPU 1" } }] : [plan],
    alternatives: onCard ? alternatives(quant, plan.placement) : [],
    longest: Object.keys(KV_BYTES).map((type) => ({ kv_k: type.split("/")[0], kv_v: type.split("/").at(-1), max: maxOf(type), limited_by: pool })),
    constants: [
      { name: "bandwidth", device: pool, value: onCard ? 256e9 : null, unit: "bytes/s", basis: onCard ? "stated" : null, source: onCard ? "its maker" : null, engine_version: null, date: null },
      { name: "layer", device: pool, value: 10, unit: "us", basis: "prior", source: null, engine_version: null, date: null },
    ],
  };
}

/** A faster one that this hob has, and a better one that it has not. */
function alternatives(quant, placement) {
  const other = (toward, quant, kv, more) => ({ toward, quant, kv_k: kv, kv_v: kv, placement, tok_s: 61.4, max: 22_528, bytes: 5.2 * GB, ...more });
  return [other("faster", "Q4_K_M", "q8_0"), other("better", "Q6_K", "f16", { tok_s: null })];
}

function rateOf(tokS, context) {
  const known = tokS !== null;
  const share = (part) => (known ? tokS * part : null);
  return {
    context, tok_s: tokS, low: share(0.75), high: share(1.25), basis: known ? "prior" : null, confidence: known ? "fair" : null,
    terms: known ? [{ name: "weights, GPU 0", us: 20_000 }, { name: "hand-over", us: 30 }] : [],
  };
}
