"""Write a tiny GLM-4-MoE model with one MTP layer: configuration and tokenizer, no weights. Standard library only.

    python -m moeprof_cpu_backend.model DIR --layers 4

Serve it with ``--load-format dummy``. Of L layers the first is dense; with K drafts an iteration runs L - 1 target MoE layers and
K passes of the MTP layer. Token n is the word ``t<n>``, so that random token ids survive decoding and encoding.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

SPECIAL = ("<unk>", "<s>", "</s>")
POSITIONS = 4096


def config(layers: int, vocabulary: int) -> dict[str, object]:
    """Return the model's configuration."""
    size: dict[str, object] = {
        "hidden_size": 256,
        "intermediate_size": 512,
        "num_hidden_layers": layers,
        "vocab_size": vocabulary,
        "max_position_embeddings": POSITIONS,
    }
    attention: dict[str, object] = {
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "attention_bias": True,
        "use_qk_norm": False,
        "partial_rotary_factor": 0.5,
        "rope_theta": 10000,
    }
    experts: dict[str, object] = {
        "first_k_dense_replace": 1,
        "n_routed_experts": 8,
        "n_shared_experts": 1,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 128,
        "n_group": 1,
        "topk_group": 1,
        "norm_topk_prob": True,
        "routed_scaling_factor": 1.0,
        "num_nextn_predict_layers": 1,
    }
    return {
        "architectures": ["Glm4MoeForCausalLM"],
        "model_type": "glm4_moe",
        "torch_dtype": "bfloat16",
        "hidden_act": "silu",
        "initializer_range": 0.02,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
        "use_cache": True,
        "pad_token_id": 0,
        **ends(),
        **size,
        **attention,
        **experts,
    }


def ends() -> dict[str, object]:
    """Return the ids of the special tokens."""
    return {"bos_token_id": SPECIAL.index("<s>"), "eos_token_id": [SPECIAL.index("</s>")]}


def tokenizer(vocabulary: int) -> dict[str, object]:
    """Return a tokenizer that splits at white space: n words are n tokens."""
    words = [*SPECIAL, *(f"t{number}" for number in range(len(SPECIAL), vocabulary))]
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": number, "content": word, **plain} for number, word in enumerate(SPECIAL)],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "WordLevel",
            "unk_token": SPECIAL[0],
            "vocab": {word: number for number, word in enumerate(words)},
        },
    }


def write(folder: Path, *, layers: int = 4, vocabulary: int = 1024) -> None:
    """Write the model's files; `config.json`, by which a model is known, comes last."""
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, object] = {
        "tokenizer.json": tokenizer(vocabulary),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": POSITIONS,
            "clean_up_tokenization_spaces": False,
            **dict(zip(("unk_token", "bos_token", "eos_token"), SPECIAL, strict=True)),
            "pad_token": SPECIAL[0],
        },
        "generation_config.json": ends(),
        "config.json": config(layers, vocabulary),
    }
    for name, content in files.items():
        part = folder / f".{name}.part"
        part.write_text(json.dumps(content, sort_keys=True) + "\n", encoding="utf-8")
        part.replace(folder / name)


def main(argv: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m moeprof_cpu_backend.model", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layers", type=int, default=4, help="layers of the target, the first one dense (4)")
    parser.add_argument("--vocab", type=int, default=1024, help="number of tokens (1024)")
    options = parser.parse_args(argv)
    if options.layers < 2 or options.vocab < 16:
        parser.error("a model needs at least 2 layers and 16 tokens")
    write(options.folder, layers=options.layers, vocabulary=options.vocab)
    return 0


if __name__ == "__main__":
    sys.exit(main())
