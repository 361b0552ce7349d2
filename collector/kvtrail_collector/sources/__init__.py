"""Where batches come from. Each source hands over bytes that are bounded already, and is told what became of them."""
