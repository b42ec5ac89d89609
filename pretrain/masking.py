"""Masking of n-grams of words (Joshi et al., 2020, as in ALBERT) or of single pieces, for the model to predict."""

from dataclasses import dataclass

import numpy as np

from pretrain.tokenizer import WordStarts

DRAWS = 1 << 24  # number of values of a draw; integers below it are exact in float32


@dataclass(frozen=True)
class Batch:
    """One batch: B sequences of L tokens, each with at most P predictions, of masked tokens or of all next ones."""

    ids: np.ndarray  # [B, L] int32, masked: with [MASK], random and unchanged tokens in their places
    token_type_ids: np.ndarray  # [B, L] int32
    attention_mask: np.ndarray  # [B, L] int32
    positions: np.ndarray  # [B, P] int32, columns of `ids` at which the model predicts; 0 if unused
    labels: np.ndarray  # [B, P] int32, the original tokens of masked positions, or the next tokens
    weights: np.ndarray  # [B, P] float32, 1 for a used position, 0 for an unused one
    pair: np.ndarray  # [B] int32, 0 if the segments follow each other in the text, else 1
    draws: np.ndarray  # [B, P] int32, uniform below DRAWS, by which a generator samples a token at each position

    def inputs(self) -> dict[str, np.ndarray]:
        """Return the arrays that the model reads."""
        names = ("ids", "token_type_ids", "attention_mask", "positions", "draws")
        return {name: getattr(self, name) for name in names}

    def targets(self) -> dict[str, np.ndarray]:
        """Return the arrays that the objectives read."""
        return {name: getattr(self, name) for name in ("labels", "weights", "pair", "positions", "attention_mask")}


@dataclass(frozen=True)
class Masking:
    """Masking for a tokenizer: of the chosen positions some get [MASK], some a random piece, some stay unchanged."""

    begins_word: WordStarts
    mask_id: int
    special_ids: tuple[int, ...]  # never masked; ordinary pieces have ids above them
    masked_share: float  # share of the tokens of a sequence that are chosen
    max_ngram: int  # longest n-gram, in words
    widest_share: float = 0.0  # largest share of any batch of the run, which determines the width of the arrays
    mask_token_share: float = 0.8  # share of the chosen positions that get [MASK]
    random_token_share: float = 0.1  # share that get a random piece

    def predictions(self, tokens: int) -> int:
        """Return the largest number of masked positions in a sequence of `tokens`: their share, but at least one."""
        return max(1, round(tokens * self.masked_share))

    def __call__(self, ids, token_type_ids, attention_mask, pair, rng: np.random.Generator) -> Batch:
        """Mask one batch: ids, token_type_ids, attention_mask [B, L], pair [B]; a pure function of `rng`'s state."""
        batch, length = ids.shape
        width = max(self.predictions(length), round(length * self.widest_share))  # P
        positions = np.zeros((batch, width), np.int32)
        weights = np.zeros((batch, width), np.float32)
        maskable = attention_mask.astype(bool) & ~np.isin(ids, self.special_ids)
        for row in range(batch):
            chosen_positions = self.choose(ids[row], maskable[row], int(attention_mask[row].sum()), rng)
            positions[row, : len(chosen_positions)] = chosen_positions
            weights[row, : len(chosen_positions)] = 1
        labels = np.take_along_axis(ids, positions, axis=1) * (weights > 0)
        masked_ids = self._replace(ids, positions, weights > 0, rng)
        # from a child generator, so that `rng` is unaffected
        draws = rng.spawn(1)[0].integers(DRAWS, size=positions.shape, dtype=np.int32)
        return Batch(
            masked_ids.astype(np.int32),
            token_type_ids.astype(np.int32),
            attention_mask.astype(np.int32),
            positions,
            labels.astype(np.int32),
            weights,
            pair.astype(np.int32),
            np.asarray(draws, np.int32),
        )

    def choose(self, ids, maskable, tokens: int, rng: np.random.Generator) -> np.ndarray:
        """Choose positions [<= P] of one sequence, sorted: whole words, in n-grams of 1..max_ngram, p(n) ~ 1/n.

        n-grams are drawn in random order until the budget (masked_share of `tokens`) is used; an n-gram that does not
        fit is shortened word by word, and never crosses a special token.
        """
        budget = self.predictions(tokens)
        word_starts = np.flatnonzero(maskable & (self.begins_word(ids, np.roll(ids, 1)) | ~np.roll(maskable, 1)))
        if not len(word_starts):
            return word_starts
        word_ends = self._word_ends(word_starts, maskable)
        odds = 1 / np.arange(1, self.max_ngram + 1)
        order = rng.permutation(len(word_starts))
        ngram_sizes = rng.choice(np.arange(1, self.max_ngram + 1), size=len(word_starts), p=odds / odds.sum())
        gaps = np.flatnonzero(word_starts[1:] != word_ends[:-1])  # words after which a special token follows
        last_allowed = np.append(gaps, len(word_starts) - 1)[np.searchsorted(gaps, np.arange(len(word_starts)))]
        # as lists, since reading single numbers of an array is slow
        start_list, end_list, last_words = word_starts.tolist(), word_ends.tolist(), last_allowed.tolist()
        is_taken = bytearray(len(ids))
        remaining = budget
        for word, size in zip(order.tolist(), ngram_sizes.tolist(), strict=True):
            begin = start_list[word]
            for last_word in range(min(word + size - 1, last_words[word]), word - 1, -1):
                end = end_list[last_word]
                if end - begin <= remaining and 1 not in is_taken[begin:end]:
                    is_taken[begin:end] = bytes([1]) * (end - begin)
                    remaining -= end - begin
                    break
            if remaining == 0:
                break
        return np.flatnonzero(np.frombuffer(is_taken, np.uint8))

    @staticmethod
    def _word_ends(word_starts: np.ndarray, maskable: np.ndarray) -> np.ndarray:
        """Return the end (excluded) of the word at each of `word_starts`: the next word or special token."""
        boundaries = np.flatnonzero(~maskable)
        next_word = np.append(word_starts[1:], len(maskable))
        next_index = np.searchsorted(boundaries, word_starts)
        next_stop = np.append(boundaries, len(maskable))[next_index]
        return np.minimum(next_word, next_stop)

    def _replace(self, ids, positions, is_used, rng: np.random.Generator) -> np.ndarray:
        """Return `ids` with shares of the chosen positions set to [MASK] and to a random ordinary piece."""
        draw = rng.random(positions.shape)
        random_piece = rng.integers(max(self.special_ids) + 1, len(self.begins_word.begins), positions.shape)
        original = np.take_along_axis(ids, positions, axis=1)
        replaced_share = self.mask_token_share + self.random_token_share
        replacements = np.where(
            draw < self.mask_token_share, self.mask_id, np.where(draw < replaced_share, random_piece, original)
        )
        rows = np.broadcast_to(np.arange(len(ids))[:, None], positions.shape)
        masked_ids = ids.copy()
        masked_ids[rows[is_used], positions[is_used]] = replacements[is_used]
        return masked_ids
