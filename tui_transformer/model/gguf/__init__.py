"""GGUF files of llama.cpp and Ollama: what their metadata say as a `config.json`, and their tensors."""
