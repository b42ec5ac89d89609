"""Tests of live questions on a static site in Chromium, whose answers equal those of the dashboard."""

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from math import exp
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Browser, Page, expect
from tokenizers import AddedToken, models, pre_tokenizers
from tokenizers import Tokenizer as HuggingFaceTokenizer
from transformers import BertConfig, BertForMaskedLM, ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining

from embryo_core import runs
from embryo_core.errors import SiteError
from embryo_core.query import CONTINUATION_LENGTH, TOGETHER, Answers, ask, ask_layers, parse
from embryo_core.query.question import read_question
from embryo_core.site import packages, site
from embryo_core.tokenizers.tokenizer import Tokenizer
from embryo_core.types import Run, SpecialTokens
from tests import decoders
from tests.browser.conftest import PATIENCE, WINDOW

SIZES = {"vocab_size": 700, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 48}
SIZES |= {"initializer_range": 0.4, "max_position_embeddings": 40, "hidden_size": 24}


class Quiet(SimpleHTTPRequestHandler):
    """Serve files without printing a log."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def npm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip the test if the npm packages are neither cached nor can be downloaded."""
    try:
        packages.add_packages(packages.LIVE, tmp_path_factory.mktemp("packages"))
    except SiteError as reason:
        pytest.skip(str(reason))


@pytest.fixture
def serve_site(chromium: Browser, tmp_path: Path) -> Iterator[Callable[[Path], Page]]:
    """Yield a function that opens a site's Query page at a state; errors and requests to other hosts fail the test."""
    context, faults = chromium.new_context(**WINDOW), []
    handler = partial(Quiet, directory=str(tmp_path / "site"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host = f"http://127.0.0.1:{server.server_port}/"

    def opened(state: str = "") -> Page:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on(
            "request",
            lambda request: None if request.url.startswith((host, "data:", "blob:")) else faults.append(request.url),
        )
        page.goto(f"{host}query.html#{state}")
        return page

    yield opened
    context.close()
    server.shutdown()
    assert not faults


def write(run: Run, folder: Path, results: Run, monkeypatch: pytest.MonkeyPatch, count: int = 3) -> None:
    """Write the Query page of a run's site with live questions to `count` checkpoints."""
    if not run.results.exists():
        shutil.copytree(results.results, run.results)
    monkeypatch.setattr(site, "PAGES", {"query": site.PAGES["query"]})
    site.write_site([run], folder, live=count)


def store(run: Run, step: int, *models: torch.nn.Module) -> None:
    """Replace the weights of a step; a second model is the generator of the first."""
    for model, path in zip(models, (runs.checkpoint(run, step).path, runs.checkpoint(run, step).path / "generator")):
        shutil.rmtree(path, ignore_errors=True)
        model.save_pretrained(path)
        runs.write_manifest(path, step, sequences=64, tokens=4096)


def make_run(family: str, own_run: Run, folder: Path) -> Run:
    """Return a run of a family with different weights at each step; those of BERT are float16."""
    if family == "gpt2":
        return decoders.add_series(folder / "added", family, (0, 8, 16))
    for step in (0, 8, 16) if family != "albert" else ():
        torch.manual_seed(step)
        if family == "bert":
            store(own_run, step, BertForMaskedLM(BertConfig(**SIZES)).half())
        elif family == "electra":
            pair = (ElectraForPreTraining, 16), (ElectraForMaskedLM, 12)
            store(own_run, step, *(kind(ElectraConfig(**SIZES, embedding_size=size)) for kind, size in pair))
        else:
            change = {"rotary_pct": 0.5, "use_parallel_residual": bool(step)} if step == 16 else {"rotary_pct": 0.5}
            store(own_run, step, decoders.make(family, step, **change))
    return own_run


def put(page: Page, text: str, word: str = "") -> str:
    """Ask a text, and return the status line of the page."""
    page.wait_for_function("() => page.live?.model?.about")
    page.locator("#live input[name=text]").fill(text)
    page.locator("#live input[name=track]").fill(word)
    page.evaluate("() => { page.live.asked = null; page.live.status.textContent = ''; }")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_function("() => page.live.asked || / /.test(page.live.status.textContent) && "
                           "!/fetched|checkpoints$/.test(page.live.status.textContent)")  # fmt: skip
    return page.locator("#live [role=status]").inner_text()


OTHERS = [pytest.param(name, marks=pytest.mark.slow) for name in ("bert", "electra", "gpt_neox")]


@pytest.mark.parametrize("family", ["albert", "gpt2", *OTHERS])
def test_site_answers_match_dashboard(
    family: str, own_run: Run, tiny_results: Run, tmp_path: Path, npm, serve_site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """IDs, words and ranks are equal, probabilities agree to 1e-5: of best answers, a tracked word and each layer."""
    run = make_run(family, own_run, tmp_path)
    write(run, tmp_path / "site", tiny_results, monkeypatch)
    page = serve_site()
    fills = family in ("albert", "bert", "electra")
    text, word = (
        ("She went to the [MASK] , and  Zoë came 1890.", "gardening") if fills else ("She went to", "gardening")
    )
    put(page, text, word)
    answers = ask(run, text)
    steps = page.evaluate("page.live.asked.found.map(({ step }) => step)")
    assert steps == list(answers.steps) and len(steps) >= 2
    assert page.evaluate("page.live.asked.question.ids") == answers.question.ids.tolist()
    tracked = ask(run, parse(run, text).track(word))
    assert page.evaluate("page.live.asked.question.pieces") == tracked.question.tracked.ids.tolist()
    assert len(tracked.question.tracked.ids) > 1
    for inside in ("##ing", "##s", "##ingly"):
        track = "(word) => new Question(page.live.model, page.live.asked.question.text, word).pieces"
        pieces = page.evaluate(track, inside)
        assert pieces == parse(run, text).track(inside).tracked.ids.tolist()
    of_word = page.evaluate("page.live.asked.found.map(({ tracked }) => Math.exp(tracked))")
    assert of_word == pytest.approx(tracked.table["probability"].tolist(), abs=1e-6, rel=1e-4)
    for i, step in enumerate(steps):
        answer = page.evaluate(
            """(i) => {
                const { logits, total } = page.live.asked.found[i];
                const { pieces } = page.live.model.about;
                return best(logits, 10).map((id) => [pieces[id], rankOf(logits, id), Math.exp(logits[id] - total)]);
            }""",
            i,
        )
        known = [(answer.token, answer.rank) for answer in answers.best(step, 1)]
        assert [(token, rank) for token, rank, _ in answer] == known
        assert [share for *_, share in answer] == pytest.approx(
            [answer.probability for answer in answers.best(step, 1)], abs=1e-5
        )
    check_lens(page, run, text, steps[-1])
    check_together(page, run, "The [MASK] of [MASK] came in [MASK] .") if fills else check_continuation(page, answers)


def check_together(page: Page, run: Run, text: str) -> None:
    """Check the joint answers to three masks, with bounds of ranks, and those that are followed over all steps."""
    put(page, text)
    answers = ask(run, text)
    for i, step in enumerate(answers.steps):
        known = {one.token: ([one.rank, one.exact], one.probability) for one in answers.best(step, TOGETHER)}
        answer = page.evaluate(
            """(i) => {
                const { found, followed } = page.live.asked;
                const reply = found[i], spelled = (one) => page.live.spelled(one);
                return [
                    reply.top(10).map((one) => [spelled(one), reply.rank(one), reply.probability(one)]),
                    followed.map((one) => [spelled(one), reply.probability(one)]),
                ];
            }""",
            i,
        )
        assert [token for token, *_ in answer[0]] == [*known]
        assert [rank for _, rank, _ in answer[0]] == [rank for rank, _ in known.values()]
        assert [reply[2] for reply in answer[0]] == pytest.approx([share for _, share in known.values()], abs=1e-5)
        history = answers.history(TOGETHER)
        at = history[history["step"] == step].set_index("token")["probability"].to_dict()
        assert dict(answer[1]) == pytest.approx(at, abs=1e-5)


def check_continuation(page: Page, asked: Answers) -> None:
    """Check that the greedy continuation at the last step is that of the dashboard."""
    page.locator("#live summary", has_text="Continuation").click()
    (known,) = asked.best(asked.steps[-1], TOGETHER)
    expect(page.locator("#live details p").first).to_contain_text(f" … {known.token} (")
    words, total = page.evaluate("page.live.asked.question.continued(page.live.model, page.live.at().step)")
    assert len(words) == CONTINUATION_LENGTH and exp(total) == pytest.approx(known.probability, rel=1e-4)


def check_lens(page: Page, run: Run, text: str, step: int) -> None:
    """Check that the table of layers, from the last one, has the best answers of the dashboard's lens."""
    page.locator("#live summary", has_text="Layer by layer").click()
    rows = page.locator("#live details tbody tr")
    expect(rows.first).to_be_visible()
    layers = ask_layers(run, text, steps=[step])
    shown = [row.split("\t") for row in rows.all_inner_texts()]
    for layer, row in enumerate(reversed(shown)):
        best = layers.best(step, 1, layer)[:3]
        assert [cell.rsplit(" ", 2)[0] for cell in row[1:]] == [answer.token for answer in best]
        assert [float(cell.rsplit(" ", 2)[1]) for cell in row[1:]] == pytest.approx(
            [100 * answer.probability for answer in best], rel=1e-2
        )


def test_byte_level_pieces_at_mask_match_dashboard(
    own_run: Run, tiny_results: Run, tmp_path: Path, npm, serve_site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tracked word has other pieces at the start of a text and after a quotation mark than after a space.

    A mask replaces the space before it too, whether or not the tokenizer says so (`lstrip`).
    """
    write(own_run, tmp_path / "site", tiny_results, monkeypatch, 1)
    special = SpecialTokens(mask="<mask>", cls="<s>", sep="</s>", pad="<pad>", unk="<unk>")
    names = ["<s>", "<pad>", "</s>", "<unk>", *sorted(pre_tokenizers.ByteLevel.alphabet()), "Ġc"]
    page, texts = serve_site(), ["A [MASK] .", "[MASK] .", 'A "[MASK]" .', "A [MASK] [MASK] ."]
    page.wait_for_function("() => page.live?.model?.about")
    for lstrip in (True, False):
        made = HuggingFaceTokenizer(models.BPE({name: i for i, name in enumerate(names)}, [("Ġ", "c")]))
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.add_special_tokens([*names[:4], AddedToken("<mask>", lstrip=lstrip)])
        made.save(str(tmp_path / "tokenizer.json"))
        tokenizer = Tokenizer(tmp_path / "tokenizer.json", special)
        about = {"begin": tokenizer.begin.tolist(), "end": tokenizer.end.tolist(), "mask": "<mask>"}
        about |= {"mask_id": tokenizer.mask_id, "special": [], "unknown": tokenizer.unk_id, "blank": tokenizer.blank}
        found = page.evaluate(
            """async ([content, given, texts]) => {
                const tokenizer = new (await runtime()).Tokenizer(content, {});
                const about = { ...page.live.model.about, ...given };
                const asked = texts.map((text) => new Question({ about, tokenizer }, text, "cat"));
                return asked.map(({ ids, pieces }) => [ids, pieces]);
            }""",
            [json.loads(made.to_str()), {**about, "word_start": tokenizer.word_start}, texts],
        )
        questions = [read_question(text, tokenizer) for text in texts]
        assert found == [[one.ids.tolist(), one.track("cat").tracked.ids.tolist()] for one in questions]
        assert found[0][1] != found[1][1] == found[2][1]


def test_invalid_questions_get_one_message(
    own_run: Run, tiny_results: Run, tmp_path: Path, npm, serve_site, chromium: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The texts have no mask, too many, too many pieces, or a word that cannot be tracked; then one is answered.

    Opened from the disk, the page names the command that serves it, and hides the form.
    """
    write(own_run, tmp_path / "site", tiny_results, monkeypatch, 2)
    page = serve_site("text=A+[MASK]+.&step=8")
    page.wait_for_function("() => page.live?.model?.about")
    assert page.locator("#live input[name=text]").input_value() == "A [MASK] ."
    assert "[MASK]" in put(page, "nothing masked") and "5 [MASK]" in put(page, "[MASK] and " * 5)
    assert "pieces long" in put(page, "word " * 200 + "[MASK]")
    assert "special" in put(page, "A [MASK] .", "[MASK]") and "vocabulary" in put(page, "A [MASK] .", "日")
    assert "2 checkpoints" in put(page, "A [mask] .")
    assert page.evaluate("page.live.asked.found.map(({ step }) => step)") == [0, 16]
    expect(page.locator("#live h3")).to_have_text("At step 0")
    expect(page.locator("#live .js-plotly-plot .main-svg").first).to_be_visible()

    page = chromium.new_context(**WINDOW, offline=True).new_page()
    page.goto((tmp_path / "site" / "query.html").as_uri())
    expect(page.locator("#live [role=status]")).to_contain_text("python -m http.server")
    expect(page.locator("#live form")).to_be_hidden()
    page.context.close()
