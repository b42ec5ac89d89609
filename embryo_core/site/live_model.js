// Live questions: a checkpoint's own model.safetensors as the inputs of the run's graph (embryo_core/engine/onnx_graph.py),
// one after the other in one session of onnxruntime-web. Nothing is fetched before somebody asks.
"use strict";

const ARRAYS = { F16: ["float16", Uint16Array], F32: ["float32", Float32Array] };
const BEAM = 10; // joint answers that are kept after each mask (embryo_core/query/beam.py)

// === Models ===

// The packages, loaded once: onnxruntime-web and @huggingface/tokenizers.
const runtime = (() => {
  let loaded;
  const at = (name) => new URL(`assets/live/${name}`, document.baseURI).href;
  const load = async () => {
    const [ort, { Tokenizer }] = await Promise.all([import(at("ort.js")), import(at("tokenizers.js"))]);
    Object.assign(ort.env.wasm, { numThreads: 1, wasmPaths: { mjs: at("ort-wasm.js"), wasm: at("ort-wasm.wasm") } });
    return { ort, Tokenizer };
  };
  return () => (loaded ??= load());
})();

// A file of safetensors: its content, where its tensors begin, and its header.
async function read(answer) {
  const file = await answer.arrayBuffer();
  const start = 8 + Number(new DataView(file).getBigUint64(0, true));
  return { file, start, header: JSON.parse(new TextDecoder().decode(new Uint8Array(file, 8, start - 8))) };
}

const whole = (values) => BigInt64Array.from(values, BigInt);

async function get(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address} is missing (${answer.status}).`);
  return answer;
}

// A run that can be asked: its description, its tokenizer, one session, and the weights of its checkpoints.
class LiveRun {
  constructor(folder) {
    this.folder = folder;
    this.weights = new Map();
  }

  async describe() {
    return (this.about ??= await (await get(`${this.folder}/about.json`)).json());
  }

  async open() {
    const about = await this.describe();
    this.opened ??= (async () => {
      const [{ ort, Tokenizer }, tokenizer, graph] = await Promise.all([
        runtime(),
        get(`${this.folder}/tokenizer.json`).then((answer) => answer.json()),
        get(`${this.folder}/graph.onnx`).then((answer) => answer.arrayBuffer()),
      ]);
      this.ort = ort;
      this.tokenizer = new Tokenizer({ ...tokenizer, truncation: null, padding: null }, {});
      const session = ort.InferenceSession.create(new Uint8Array(graph)); // fetches the runtime, before the weights
      for (const step of about.steps) this.fetched(step).catch(() => {});
      this.session = await session;
    })();
    await this.opened;
    return about;
  }

  // The file of a checkpoint, and where its tensors are.
  fetched(step) {
    if (!this.weights.has(step)) this.weights.set(step, get(`${this.folder}/step${step}.safetensors`).then(read));
    return this.weights.get(step);
  }

  // The tensors of a checkpoint that the graph reads, as they are in its file.
  async tensors(step) {
    const { file, start, header } = await this.fetched(step);
    const own = this.session.inputNames.filter((name) => name in header);
    return Object.fromEntries(own.map((name) => {
      const { dtype, shape, data_offsets: [from, to] } = header[name];
      const [kind, Kind] = ARRAYS[dtype];
      const aligned = (start + from) % Kind.BYTES_PER_ELEMENT === 0;
      const data = aligned
        ? new Kind(file, start + from, (to - from) / Kind.BYTES_PER_ELEMENT)
        : new Kind(file.slice(start + from, start + to));
      return [name, new this.ort.Tensor(kind, data, shape)];
    }));
  }

  // Logits [places.length, V] of the head on states: each place is [layer, position].
  logits(step, ids, places) {
    const job = async () => {
      const { Tensor } = this.ort;
      const feeds = await this.tensors(step);
      feeds.ids = new Tensor("int64", whole(ids), [ids.length]);
      feeds.positions = new Tensor("int64", whole(ids.keys()), [ids.length]);
      feeds.at = new Tensor("int64", whole(places.map(([layer, position]) => layer * ids.length + position)), [places.length]);
      const { logits } = await this.session.run(feeds);
      const size = logits.dims[1];
      return places.map((_, i) => logits.data.slice(i * size, i * size + this.about.pieces.length));
    };
    return (this.last = (this.last ?? Promise.resolve()).catch(() => {}).then(job)); // one at a time
  }
}

// === Questions (embryo_core/query/question.py) ===

class Question {
  constructor({ about, tokenizer }, text, word) {
    this.about = about;
    this.tokenizer = tokenizer;
    const masked = (given) => (about.mask ? given.replace(/ ?\[MASK\]/g, () => about.mask) : given); // (Tokenizer._masked)
    const encode = (given) => tokenizer.encode(masked(given), { add_special_tokens: false }).ids;
    this.text = text.trim().replace(/\[\s*mask\s*\]/gi, "[MASK]");
    const masks = this.text.split("[MASK]").length - 1;
    if (!this.text) throw new Error(`The text is empty; write for example: ${about.example}`);
    if (this.text.length > about.most_characters) throw new Error(`The text is too long; shorten it.`);
    if (about.fills && !masks) throw new Error(`The text has no [MASK]; write one for the word to be predicted: ${about.example}`);
    if (masks > about.most_masks) throw new Error(`The text has ${masks} [MASK]s; at most ${about.most_masks} are answered together here. Mask fewer words.`);
    if (!about.fills && masks) throw new Error(`The text has a [MASK], but this model continues a text; end it before the word: ${about.example}`);
    this.ids = [...about.begin, ...encode(this.text), ...about.end];
    if (this.ids.length === about.begin.length + (about.fills ? about.end.length : 0)) throw new Error("The text has no character that this run's tokenizer reads; write another.");
    this.places = this.ids.flatMap((id, i) => (about.fills && id === about.mask_id ? [i] : [])); // of its masks
    if (about.fills && this.places.length !== masks) throw new Error(`The text has ${about.mask}, as this tokenizer writes its mask; write [MASK] for every mask.`);
    this.place = about.fills ? this.places[0] : this.ids.length - 1; // of the first state that is read
    this.read = new Map(); // logits, by step and words
    this.check(this.ids.length);
    if (word.trim()) this.pieces = this.piecesOf(word.trim(), encode);
    const wide = about.fills && this.pieces?.length > 1; // the first mask is then written once for each piece
    this.tracked = !wide ? this : {
      ids: this.ids.flatMap((id, i) => (i === this.place ? this.pieces.map(() => about.mask_id) : [id])),
      places: this.pieces.map((_, i) => this.place + i),
    };
  }

  check(length) {
    const { positions } = this.about;
    if (length > positions) throw new Error(`The text is ${length} pieces long, but this model reads at most ${positions}. Shorten it.`);
  }

  piecesOf(word, encode) {
    const { about } = this;
    const inside = word.startsWith("##") && word.length > 2;
    const named = inside ? this.tokenizer.token_to_id(about.word_start ? word.slice(2) : word) : undefined;
    const ofRest = () => (named === undefined ? insideWord(word.slice(2), encode) : [named]);
    const pieces = inside ? ofRest() : (this.atMask(word, encode) ?? encode(about.blank + word));
    if (!pieces.length || pieces.some((one) => about.special.includes(one))) throw new Error(`'${word}' is not a word to track; write one without special tokens.`);
    if (pieces.includes(about.unknown)) throw new Error(`'${word}' has characters that are not in the vocabulary of this run; track another word.`);
    if (pieces.length > about.most_pieces) throw new Error(`'${word}' has ${pieces.length} pieces; at most ${about.most_pieces} can be tracked.`);
    this.check(this.ids.length + pieces.length - 1);
    return pieces;
  }

  // The pieces of a word at the first mask, null if the word alters the rest of the text (Tokenizer.encode_at_mask).
  atMask(word, encode) {
    const { about, ids, place, text } = this;
    if (!about.fills) return null;
    if (!about.blank) {
      const [start] = text.split("[MASK]");
      return about.word_start && /\S$/.test(start) ? sameEnds(encode(start + word), encode(start), []) : null;
    }
    const [before, after] = [ids.slice(0, place), ids.slice(place + 1)];
    return sameEnds([...about.begin, ...encode(text.replace("[MASK]", () => word)), ...about.end], before, after);
  }

  // Logits at the place after `words`, which fill the first masks of a text or continue it.
  async next(model, step, text, words) {
    const key = `${step} ${words}`;
    if (text === this && this.read.has(key)) return this.read.get(key);
    const { fills, layers } = this.about;
    const ids = fills ? text.ids.map((id, i) => words[text.places.indexOf(i)] ?? id) : [...text.ids, ...words];
    const [logits] = await model.logits(step, ids, [[layers, fills ? text.places[words.length] : ids.length - 1]]);
    if (text === this) this.read.set(key, logits);
    return logits;
  }

  // The logarithm of the probability of words, by the chain rule.
  async chance(model, step, text, words) {
    let sum = 0;
    for (const [i, word] of words.entries()) {
      const logits = await this.next(model, step, text, words.slice(0, i));
      sum += logits[word] - logSumExp(logits);
    }
    return sum;
  }

  // What one checkpoint answers.
  async ask(model, step) {
    const logits = await this.next(model, step, this, []);
    if (!isFinite(logSumExp(logits))) throw new Error(`Step ${step} gives numbers that are not finite.`);
    const reply = new Reply(step, logits, this.places.length > 1 ? await this.search(model, step) : null);
    if (this.pieces) reply.tracked = await this.chance(model, step, this.tracked, this.pieces);
    return reply;
  }

  // The best answers to several masks together, best first: an answer is at most as probable as its first words. The rank
  // of an answer is exact if it is at least as probable as all first words that were kept (embryo_core/query/beam.py).
  async search(model, step) {
    let found = [{ words: [], total: 0 }];
    let bound = -Infinity;
    for (const _ of this.places) {
      let longer = [];
      for (const { words, total } of found) {
        if (longer.length === BEAM && total < longer.at(-1).total) break;
        const logits = await this.next(model, step, this, words);
        const norm = total - logSumExp(logits);
        longer.push(...best(logits, BEAM).map((id) => ({ words: [...words, id], total: logits[id] + norm })));
        longer = longer.sort((one, other) => other.total - one.total).slice(0, BEAM);
      }
      found = longer;
      bound = Math.max(bound, found.at(-1).total);
    }
    return found.map((one) => ({ ...one, exact: one.total >= bound }));
  }

  // The most probable next pieces of a text, each after those before it, and the logarithm of their probability.
  async continued(model, step) {
    const { continued, ends, positions } = this.about;
    const words = [];
    while (words.length < Math.min(continued, positions - this.ids.length + 1) && !ends.includes(words.at(-1)))
      words.push(best(await this.next(model, step, this, words), 1)[0]);
    return [words, await this.chance(model, step, this, words)];
  }
}

// The answers of a checkpoint: ids, one for each mask. Of one mask all are known; of several those in the beam, and those
// whose probability was asked for.
class Reply {
  constructor(step, logits, beam) {
    Object.assign(this, { step, logits, beam, total: logSumExp(logits) });
    this.known = new Map(beam?.map(({ words, total }) => [String(words), total]));
  }

  top(count) {
    return this.beam ? this.beam.slice(0, count).map(({ words }) => words) : best(this.logits, count).map((id) => [id]);
  }

  probability(words) {
    return Math.exp(this.beam ? this.known.get(String(words)) : this.logits[words[0]] - this.total);
  }

  // A rank and whether it is exact or a lower bound; "" for joint answers outside the beam.
  rank(words) {
    if (!this.beam) return [rankOf(this.logits, words[0]), true];
    const place = this.beam.findIndex((one) => String(one.words) === String(words));
    return place < 0 ? ["", ""] : [place + 1, this.beam[place].exact];
  }
}

// The ids of a whole between given ends, null if its ends are others.
function sameEnds(whole, before, after) {
  const inside = whole.slice(before.length, whole.length - after.length);
  return String(whole) === String([...before, ...inside, ...after]) ? inside : null;
}

// The pieces that a text has after a letter which does not merge with them (Tokenizer.encode_inside).
function insideWord(text, encode) {
  for (const letter of "abcdefghijklmnopqrstuvwxyz") {
    const pieces = sameEnds(encode(letter + text), encode(letter), []);
    if (pieces?.length) return pieces;
  }
  return encode(text);
}

function logSumExp(values) {
  let most = -Infinity;
  for (const value of values) if (value > most) most = value;
  let sum = 0;
  for (const value of values) sum += Math.exp(value - most);
  return most + Math.log(sum);
}

// The ids of the largest values, best first; of equal ones the first is better.
function best(values, count) {
  const found = [];
  for (let i = 0; i < values.length; i++) {
    if (found.length === count && !(values[i] > values[found.at(-1)])) continue;
    let at = found.length;
    while (at && values[i] > values[found[at - 1]]) at -= 1;
    found.splice(at, 0, i);
    if (found.length > count) found.pop();
  }
  return found;
}

function rankOf(values, id) {
  let rank = 1;
  for (let i = 0; i < values.length; i++) if (values[i] > values[id] || (values[i] === values[id] && i < id)) rank += 1;
  return rank;
}
