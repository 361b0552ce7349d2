"""The five paths of one engine on the same requests: plan, run, figures, and what people see."""
