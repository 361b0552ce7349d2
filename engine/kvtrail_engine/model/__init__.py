"""The small deterministic transformer whose logits prove that a restored block is the right block."""
