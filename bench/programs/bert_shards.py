"""BERT base by Transformers' configuration, with random weights: ``bert_shards.py FOLDER``.

The weights are saved in shards of 100 MB in FOLDER, loaded again, and written as FOLDER/bert.onnx for ONNX Runtime.
"""

import sys
import warnings

import torch
from transformers import BertConfig, BertModel


class Hidden(torch.nn.Module):
    """Words in, the last layer's output."""

    def __init__(self, bert):
        super().__init__()
        self.bert = bert

    def forward(self, input_ids):
        """float32 [batch, length, 768] of int64 [batch, length]."""
        return self.bert(input_ids=input_ids).last_hidden_state


torch.manual_seed(0)
BertModel(BertConfig(), add_pooling_layer=False).save_pretrained(sys.argv[1], max_shard_size="100MB")
loaded = BertModel.from_pretrained(sys.argv[1], add_pooling_layer=False, attn_implementation="eager").eval()
axes = {"input_ids": {0: "batch", 1: "length"}}
names = {"input_names": ["input_ids"], "output_names": ["hidden"], "dynamic_axes": axes}
words = torch.zeros(2, 16, dtype=torch.int64)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.onnx.export(Hidden(loaded), (words,), f"{sys.argv[1]}/bert.onnx", dynamo=False, opset_version=17, **names)
