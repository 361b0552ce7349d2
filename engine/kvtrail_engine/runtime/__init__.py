"""What differs between a CPU and a CUDA device, behind one code path: arenas, copy streams, device time."""
