"""Ablation: what the answer becomes without a head, layer, position or neuron."""
